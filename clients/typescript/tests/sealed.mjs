// Looks a device's keys up, seals messages for it, and sends them; STENTOR_URL, STENTOR_KEY, DEVICE and CONTENT say where and what.
import assert from "node:assert/strict";

import { Client, seal } from "stentor-client";

const { sealWith } = await import(new URL("./seal.js", import.meta.resolve("stentor-client")));
const bytes = (text) => new Uint8Array(Buffer.from(text, "base64url"));

// The example of RFC 8291, 5 and appendix A.
const point = bytes("BP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A8");
const [x, y] = [point.subarray(1, 33), point.subarray(33)].map((part) => Buffer.from(part).toString("base64url"));
const d = "yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw";
const curve = { name: "ECDH", namedCurve: "P-256" };
const own = {
  privateKey: await crypto.subtle.importKey("jwk", { kty: "EC", crv: "P-256", x, y, d }, curve, false, ["deriveBits"]),
  publicKey: await crypto.subtle.importKey("raw", point, curve, true, []),
};
const example = {
  p256dh: "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4",
  auth: "BTBZMqHH6r4Tts7J_aSIgg",
};
const body = await sealWith(example, "When I grow up, I want to be a watermelon", own, bytes("DGv6ra1nlYgDCS1FRnbzlw"));
const written =
  "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl7A_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN";
assert.equal(Buffer.from(body).toString("base64url"), written);
await assert.rejects(seal({ ...example, auth: "AAAA" }, "x"), TypeError);
await assert.rejects(seal({ ...example, p256dh: "AAAA" }, "x"));

const { STENTOR_URL: url, STENTOR_KEY: key, DEVICE, CONTENT } = process.env;
const client = new Client({ url, key });
const device = await client.devices.show(DEVICE);
for (const content of [CONTENT, new Uint8Array(3).fill(0xff), "x".repeat(4079), "y".repeat(5_000)]) {
  const sent = await client.messages.send({ target: { device: device.id }, gateway: await seal(device.keys, content) });
  console.log(sent.id);
}
