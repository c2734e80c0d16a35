// One message on one device, attempt by attempt.

import { here, ofApp, read } from "../api.js";
import { badge, code, count, element, facts, fill, instant, link, section } from "../elements.js";
import { table } from "../lists.js";
import { poll } from "../polling.js";

const INTERVAL_MS = 3_000;

export async function delivery({ content, header, signal, ids: [message, device] }) {
  header("One message on one device");
  const columns = [
    ["Attempt", (one) => count(one.attempt)],
    ["State", (one) => badge(one.state)],
    ["Reason", (one) => one.reason],
    ["Push service", (one) => one.provider],
    ["At", (one) => instant(one.at)],
    ["Possibly sent twice", (one) => (one.ambiguous ? "yes: an answer was lost" : "no")],
    ["Chunk", (one) => code(one.chunk)],
  ];
  const attempts = element("div");
  const about = facts([
    ["Message", link(`/${here.app}/campaigns/${message.replace(/^msg_/, "cmp_")}`, message)],
    ["Device", link(`/${here.app}/devices/${device}`, device)],
  ]);
  fill(content, about, section("Attempts", attempts));
  await poll(signal, attempts, async () => {
    const path = `/v1/messages/${message}/deliveries/${device}`;
    const { deliveries } = await read(path, { query: ofApp(), signal });
    const inOrder = [...deliveries].sort((a, b) => a.attempt - b.attempt);
    fill(attempts, table("Attempts", columns, inOrder, "The message has not come to this device."));
    return INTERVAL_MS;
  });
}
