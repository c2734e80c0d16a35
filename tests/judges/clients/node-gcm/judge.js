// Drives the unmodified node-gcm through one scenario and prints one JSON line per step.
const path = require("node:path");

const [server, key, home, former] = process.argv.slice(2);
const gcm = require(path.join(home, "node_modules", "node-gcm"));

const report = (step, facts) => console.log(JSON.stringify({ step, ...facts }));
const counted = (reply) => ({
  success: reply.success,
  failure: reply.failure,
  errors: (reply.results ?? []).map((result) => result.error ?? null),
});

function send(senderKey, message, to) {
  const sender = new gcm.Sender(senderKey, { uri: `${server}/gcm/send`, proxy: false });
  return new Promise((resolve, reject) => {
    sender.sendNoRetry(message, to, (error, reply) => (error ? reject(error) : resolve(reply)));
  });
}

async function attempt(step, call) {
  try {
    report(step, { ok: true, value: await call() });
  } catch (error) {
    report(step, { ok: false, error: String(error) });
  }
}

async function main() {
  const message = new gcm.Message({ collapseKey: "c", priority: "high", timeToLive: 60, data: { k: "v" } });
  message.addNotification({ title: "Hello", body: "from node-gcm", icon: "ic" });
  await attempt("single", async () => counted(await send(key, message, "node-one")));
  await attempt("many", async () => counted(await send(key, message, { registrationTokens: ["node-1", "node-2", "gone"] })));
  await attempt("topic", async () => typeof (await send(key, message, { topic: "/topics/news" })).message_id);
  await attempt("canonical", async () => {
    const reply = await send(key, message, former);
    return { count: reply.canonical_ids, id: reply.results[0].registration_id };
  });
  await attempt("wrong key", async () => counted(await send("sk_wrong", message, "node-one")));
}

main();
