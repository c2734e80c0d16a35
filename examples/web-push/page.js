// The app's public key, from `stentor app credential list`.
const PUBLIC_KEY = new URLSearchParams(location.search).get("key") ?? "";

async function subscribe() {
  // Safari's window has a push manager of its own, for pages without a service worker.
  const holder = window.pushManager ? window : await navigator.serviceWorker.register("worker.js");
  if (holder !== window) await navigator.serviceWorker.ready;
  await Notification.requestPermission();
  return holder.pushManager.subscribe({ userVisibleOnly: true, applicationServerKey: PUBLIC_KEY });
}

document.getElementById("subscribe").addEventListener("click", async () => {
  const shown = document.getElementById("subscription");
  try {
    shown.textContent = JSON.stringify(await subscribe());
  } catch (error) {
    shown.textContent = String(error);
  }
});
