// What runs while the page is closed: it shows what is pushed, and brings the page back when somebody clicks on it.

self.addEventListener("install", () => self.skipWaiting());
self.addEventListener("activate", (event) => event.waitUntil(self.clients.claim()));

/** Reads what a sender has pushed: JSON with a title, or a text. */
function read(data) {
  const text = data?.text() ?? "";
  try {
    const { title, body } = JSON.parse(text);
    if (title) return { title, body };
  } catch {
    // A text that is no JSON is shown as it is.
  }
  return { title: "A message", body: text };
}

self.addEventListener("push", (event) => {
  const shown = read(event.data);
  const tell = async () => {
    for (const page of await self.clients.matchAll({ type: "window" })) page.postMessage(shown);
    // Browsers want something to be shown for each push.
    await self.registration.showNotification(shown.title, { body: shown.body });
  };
  event.waitUntil(tell());
});

self.addEventListener("notificationclick", (event) => {
  event.notification.close();
  event.waitUntil(self.clients.openWindow("./"));
});
