// Sends one message to many subscriptions with the unmodified web-push, and prints the time that it took.
// usage: node send.js <url of the sink> <file with its authority> <messages> <concurrent requests>
const fs = require("node:fs");
const https = require("node:https");
const crypto = require("node:crypto");
const webPush = require("web-push");

const [url, authority, messages, concurrent] = process.argv.slice(2);
const keys = webPush.generateVAPIDKeys();
const agent = new https.Agent({ keepAlive: true, maxSockets: Number(concurrent), ca: fs.readFileSync(authority) });
const device = crypto.createECDH("prime256v1");
const subscriptionKeys = {
  p256dh: device.generateKeys().toString("base64url"),
  auth: crypto.randomBytes(16).toString("base64url"),
};
const body = JSON.stringify({ notification: { title: "Hello", body: "from a server" }, data: { order: "7" } });
const options = {
  vapidDetails: { subject: "mailto:ops@app.example", ...keys },
  TTL: 3600,
  urgency: "high",
  contentEncoding: "aes128gcm",
  agent,
};

async function sendFrom(next) {
  for (let number = next(); number < Number(messages); number = next()) {
    const token = number.toString(16).padStart(64, "0");
    await webPush.sendNotification({ endpoint: `${url}/3/device/${token}`, keys: subscriptionKeys }, body, options);
  }
}

async function main() {
  let number = 0;
  const began = process.hrtime.bigint();
  const before = process.cpuUsage();
  await Promise.all(Array.from({ length: Number(concurrent) }, () => sendFrom(() => number++)));
  const { user, system } = process.cpuUsage(before);
  const seconds = Number(process.hrtime.bigint() - began) / 1e9;
  console.log(JSON.stringify({ seconds, cpu_seconds: (user + system) / 1e6 }));
}

main();
