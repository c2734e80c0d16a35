// A page as a device of the gateway: it registers, listens, confirms, and sends to its app. With Web Push it is reached while it is
// closed as well.

const TOKEN_LIFE_MS = 30 * 24 * 3_600_000;
/** So many messages are remembered as shown: more than can be given again to a page that was closed before it confirmed them. */
const SEEN_MAX_COUNT = 1_000;
const WAIT_MAX_SECONDS = 300;

const part = (id) => document.getElementById(id);
// What the page knows outlives it: it is a device until its browser forgets the page's data. It is on disk when `keep` is done, which
// `localStorage` does not promise: a browser that dies would come back with a token that opens nothing any more.
const database = new Promise((done, failed) => {
  const opening = indexedDB.open("device", 1);
  opening.onupgradeneeded = () => opening.result.createObjectStore("memory");
  opening.onsuccess = () => done(opening.result);
  opening.onerror = () => failed(opening.error);
});

async function access(mode, act) {
  const transaction = (await database).transaction("memory", mode, { durability: "strict" });
  const request = act(transaction.objectStore("memory"));
  await new Promise((done, failed) => {
    transaction.oncomplete = done;
    transaction.onabort = () => failed(transaction.error);
  });
  return request.result;
}

export const memory = (name) => access("readonly", (store) => store.get(name));
export const keep = (name, value) => access("readwrite", (store) => store.put(value, name));
const known = () => memory("device");

class Refusal extends Error {
  constructor(what, status, why) {
    super(`${what}: ${status} ${why}`);
    this.status = status;
  }
}

/** Asks the gateway; what serves this page hands on what is below `gateway/`. */
async function ask(method, path, body, authorization) {
  const headers = { Authorization: authorization ?? (await login()) };
  const answer = await fetch(`gateway/v1/${path}`, { method, headers, body: body && JSON.stringify(body) });
  if (!answer.ok) throw new Refusal(`${method} ${path}`, answer.status, await answer.text());
  return answer;
}

async function login() {
  const { token, secret } = await known();
  return `Basic ${btoa(`${token}:${secret}`)}`;
}

const remember = (joined) => keep("device", { ...joined, since: Date.now() });

export async function join(key) {
  const answer = await ask("POST", "devices", { platform: "web" }, `Bearer ${key}`);
  await remember(await answer.json());
}

/** Renews a token that is old. The former one opens the door until the new one was used, so nothing is lost in between. */
async function renew() {
  const own = await known();
  if (Date.now() - own.since < TOKEN_LIFE_MS) return;
  await remember({ ...own, ...(await (await ask("POST", "device/token")).json()) });
}

/** Tells the app a token that it does not know, once the gateway has let it in. */
async function tellToken() {
  const { token } = await known();
  if ((await memory("told_token")) === token) return;
  await send({ token });
  await keep("told_token", token);
}

/** Puts a message for the app into the outbox, where it waits for a connection. */
export async function send(data) {
  const message = { message_id: crypto.randomUUID(), data };
  await locked("outbox", async () => keep("outbox", [...((await memory("outbox")) ?? []), message]));
  flush().catch((error) => (part("state").textContent = String(error)));
}

/** Sends what waits, the oldest first; the same name twice is the same message, so one whose answer was lost is sent again. */
const flush = () =>
  locked("sending", async () => {
    if (!(await known())) return;
    for (let message; (message = (await memory("outbox"))?.[0]); ) {
      await ask("POST", "upstream", message).catch(dropIfRefused);
      await locked("outbox", async () => keep("outbox", (await memory("outbox")).slice(1)));
    }
  });

/** Leaves in the outbox what may be taken another time; what is refused for good would keep the others from going. */
function dropIfRefused(error) {
  if (![400, 413, 422].includes(error.status)) throw error;
  note(`not sent: ${error.message}`);
}

/** One page of several does it at a time. */
const locked = (name, act) => navigator.locks.request(name, act);

/** Subscribes to Web Push for the holder of a key, and tells the app where to send. */
export async function subscribe(key) {
  const worker = await navigator.serviceWorker.ready;
  const options = { userVisibleOnly: true, ...(key && { applicationServerKey: key }) };
  const subscription = await worker.pushManager.subscribe(options);
  await send({ subscription: JSON.stringify(subscription) });
  return subscription.toJSON();
}

/** Hands each event of the stream over until it ends (WHATWG HTML, 9.2: the gateway writes one line of data each). */
async function listen(take) {
  const answer = await ask("GET", "events");
  part("state").textContent = `This page is ${(await known()).device} and listens.`;
  await tellToken();
  await flush();
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

/**
 * Shows a message, and confirms it after that: a page that is closed in between gets it again, and knows that it was shown. What it says
 * to the page's own code comes as the event `data`.
 */
async function take(message) {
  const seen = (await memory("seen")) ?? [];
  if (!seen.includes(message.id)) {
    if (message.notification) await show(message.id, message.notification);
    // What has neither, such as bytes of the app's own, is for the code too.
    const isForCode = !message.notification || Object.keys(message.data ?? {}).length > 0;
    if (isForCode) document.dispatchEvent(new CustomEvent("data", { detail: message }));
    await keep("seen", [...seen, message.id].slice(-SEEN_MAX_COUNT));
  }
  await ask("POST", "receipts", { messages: [message.id] });
}

/** Shows a message here and, as far as the browser and the desktop can, as a notification: that may take as long as it likes. */
async function show(id, { title, body }) {
  note(`${title} ${body ?? ""}`);
  const worker = await navigator.serviceWorker.ready;
  if (Notification.permission === "granted") worker.showNotification(title, { body, tag: id }).catch(console.warn);
}

function note(text) {
  part("messages").append(Object.assign(document.createElement("li"), { textContent: text }));
}

/** Listens as long as the page is open; after a connection that broke the next comes a little later each time. */
async function run() {
  for (let wait = 1; await known(); wait = Math.min(wait * 2, WAIT_MAX_SECONDS)) {
    try {
      await renew();
      await listen((message) => ((wait = 1), take(message)));
    } catch (error) {
      part("state").textContent = String(error);
      // Its token opens nothing any more: it was removed.
      if (error.status === 401) await keep("device", undefined);
    }
    await new Promise((over) => setTimeout(over, wait * 1000));
  }
}

// Two pages with one token would end each other's connection in turns.
const begin = () => locked("listening", run);

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
  begin();
});
on("send", ({ text }) => send({ text }));
on("subscribe", async ({ key }) => (part("subscription").textContent = JSON.stringify(await subscribe(key))));
// What the service worker was pushed.
navigator.serviceWorker.addEventListener("message", ({ data }) => note(`${data.title} ${data.body ?? ""}`));
document.addEventListener("data", ({ detail }) => note(JSON.stringify(detail.data)));
await navigator.serviceWorker.register("worker.js");
begin();
