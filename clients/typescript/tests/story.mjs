// A program that uses the client; STENTOR_URL, STENTOR_BUSY_URL and STENTOR_KEY say where and how.
import assert from "node:assert/strict";

import { Client, ConnectionFailed, Problem } from "stentor-client";

const { STENTOR_URL: url, STENTOR_BUSY_URL: busyUrl, STENTOR_KEY: key } = process.env;
const client = new Client({ url, key });
const busy = new Client({ url: busyUrl, key, retries: { baseSeconds: 0.01 } });

const ids = [];
for (const number of [0, 1, 2, 3, 4]) {
  const device = { platform: "android", provider: "null", token: `token-${number}`, user: "anna" };
  ids.push((await client.devices.register(device)).id);
}
assert.equal((await client.topics.subscribe("news", { devices: ids })).changed, 5);
const listed = [];
for await (const device of client.devices.iterate({ limit: 2 })) listed.push(device.id);
assert.deepEqual(listed, ids);
assert.equal((await client.devices.change(ids[0], { user: null })).user ?? null, null);
assert.equal((await client.messages.sendDryRun({ target: { topic: "news" }, data: { k: "v" } })).audience.total, 5);

const sent = await busy.messages.send({ target: { topic: "news" }, data: { k: "v & <w>" }, ttl_seconds: 60 });
const ledger = await client.messages.ledger(sent.id);
assert.ok(ledger.balanced && ledger.message === sent.id, JSON.stringify(ledger));
await client.devices.remove(ids[4]);
await client.services.publish("printer", { kind: "ipp", address: "ipp://127.0.0.1/print", ttl_seconds: 60 });
assert.equal((await client.services.list({ kind: "ipp" })).services[0].address, "ipp://127.0.0.1/print");
await client.services.remove("printer");

await assert.rejects(client.devices.register({ platform: "vms", token: "t" }), (problem) => {
  assert.ok(problem instanceof Problem);
  assert.deepEqual([problem.status, problem.code, problem.field], [422, "invalid_field", "platform"]);
  return true;
});
for (const name of ["", ".", ".."]) assert.throws(() => client.topics.show(name), TypeError);
const nowhere = new Client({ url: "http://127.0.0.1:1", key, retries: { attemptsMax: 2, baseSeconds: 0.01 } });
await assert.rejects(nowhere.devices.list(), (error) => error instanceof ConnectionFailed);
const ended = new AbortController();
ended.abort(new Error("no longer wanted"));
await assert.rejects(client.devices.list({}, { signal: ended.signal }), /no longer wanted/);
console.log("is content");
