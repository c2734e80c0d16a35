// A page as a device of the gateway: it registers, listens, confirms, and sends to its app. With Web Push it is reached while it is
// closed as well.

const part = (id) => document.getElementById(id);
const known = () => JSON.parse(localStorage.getItem("device") ?? "null");

/** Asks the gateway; what serves this page hands on what is below `gateway/`. */
async function ask(method, path, body, authorization) {
  const headers = { Authorization: authorization ?? `Basic ${btoa(`${known().token}:${known().secret}`)}` };
  const answer = await fetch(`gateway/v1/${path}`, { method, headers, body: body && JSON.stringify(body) });
  if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${await answer.text()}`);
  return answer;
}

export async function join(key) {
  const answer = await ask("POST", "devices", { platform: "web" }, `Bearer ${key}`);
  localStorage.setItem("device", JSON.stringify(await answer.json()));
}

/** Sends a message to the app; the same name twice is the same message. */
export async function send(data) {
  await ask("POST", "upstream", { message_id: crypto.randomUUID(), data });
}

/** Subscribes to Web Push for the holder of a key, and tells the app where to send. */
export async function subscribe(key) {
  const worker = await navigator.serviceWorker.ready;
  const options = { userVisibleOnly: true, ...(key && { applicationServerKey: key }) };
  const subscription = await worker.pushManager.subscribe(options);
  if (known()) await send({ subscription: JSON.stringify(subscription) });
  return subscription.toJSON();
}

/** Hands each event of the stream over until it ends (WHATWG HTML, 9.2: the gateway writes one line of data each). */
async function listen(take) {
  const answer = await ask("GET", "events");
  part("state").textContent = `This page is ${known().device} and listens.`;
  let text = "";
  for await (const bytes of chunks(answer.body.pipeThrough(new TextDecoderStream()))) {
    const events = (text + bytes).split("\n\n");
    text = events.pop();
    for (const event of events) {
      const field = (name) => event.match(new RegExp(`^${name}: ?(.*)$`, "m"))?.[1];
      if (field("event") === "message") await take(JSON.parse(field("data")));
    }
  }
}

async function* chunks(stream) {
  const reader = stream.getReader();
  for (let read = await reader.read(); !read.done; read = await reader.read()) yield read.value;
}

/** Shows a message, and confirms it after that: a page that is closed in between gets it again. */
async function take(message) {
  await show(message.id, message.notification ?? { title: JSON.stringify(message.data) });
  await ask("POST", "receipts", { messages: [message.id] });
}

async function show(id, { title, body }) {
  note(`${title} ${body ?? ""}`);
  const worker = await navigator.serviceWorker.ready;
  if (Notification.permission === "granted") await worker.showNotification(title, { body, tag: id });
}

function note(text) {
  part("messages").append(Object.assign(document.createElement("li"), { textContent: text }));
}

/** Listens as long as the page is open; after a connection that broke the next comes a little later each time. */
async function run() {
  for (let wait = 1; known(); wait = Math.min(wait * 2, 300)) {
    await listen((message) => ((wait = 1), take(message))).catch((error) => (part("state").textContent = String(error)));
    await new Promise((over) => setTimeout(over, wait * 1000));
  }
}

function on(id, act) {
  part(id).addEventListener("submit", async (event) => {
    event.preventDefault();
    // Browsers ask people only after a click.
    if (Notification.permission === "default") await Notification.requestPermission();
    await act(Object.fromEntries(new FormData(event.target))).catch((error) => (part("state").textContent = String(error)));
  });
}

on("join", async ({ key }) => {
  await join(key);
  run();
});
on("send", ({ text }) => send({ text }));
on("subscribe", async ({ key }) => (part("subscription").textContent = JSON.stringify(await subscribe(key))));
// What the service worker was pushed.
navigator.serviceWorker.addEventListener("message", ({ data }) => note(`${data.title} ${data.body ?? ""}`));
await navigator.serviceWorker.register("worker.js");
run();
