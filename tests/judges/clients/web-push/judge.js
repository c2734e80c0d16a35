// Sends by the unmodified web-push what each line of standard input asks for, and prints one JSON line about each.
const path = require("node:path");
const readline = require("node:readline");

const [home] = process.argv.slice(2);
const webPush = require(path.join(home, "node_modules", "web-push"));

const keys = { own: webPush.generateVAPIDKeys(), other: webPush.generateVAPIDKeys() };
const print = (facts) => console.log(JSON.stringify(facts));

async function send(asked) {
  const options = {
    vapidDetails: { subject: "mailto:judge@example.com", ...keys[asked.key] },
    TTL: asked.ttl,
    contentEncoding: asked.encoding,
  };
  if (asked.topic) options.topic = asked.topic;
  if (asked.urgency) options.urgency = asked.urgency;
  const body = Buffer.from(asked.body, "base64");
  // What is refused is an error with the same fields.
  const answer = await webPush.sendNotification(asked.subscription, body, options).catch((refused) => refused);
  if (!answer.statusCode) throw answer;
  const { ttl, location } = answer.headers;
  return { status: answer.statusCode, ttl: ttl ?? null, location: location ?? null, body: answer.body };
}

async function main() {
  print({ own: keys.own.publicKey, other: keys.other.publicKey });
  for await (const line of readline.createInterface({ input: process.stdin })) {
    print(await send(JSON.parse(line)));
  }
}

main();
