// Sends to WNS by the unmodified node-pushnotifications and prints one JSON line for each step.
'use strict';

const { createRequire } = require('node:module');
const path = require('node:path');

const [home, secret, text] = process.argv.slice(2);
const PushNotifications = createRequire(path.join(home, 'package.json'))('node-pushnotifications');
const channels = JSON.parse(text);

const TILE = { type: 'TileSquareText04', text1: 'a tile' };
const STEPS = [
  ['toast', 'device', 'sendToastText01', { text1: 'hello, wörld' }],
  ['tile', 'device', 'sendTileSquareText04', TILE],
  ['raw', 'device', 'sendRaw', { any: 'text' }],
  ['large', 'device', 'sendRaw', { text: 'x'.repeat(5001) }],
  ...['gone', 'unknown', 'foreign', 'throttled', 'unavailable'].map((step) => [step, step, 'sendToastText01', { text1: step }]),
];

async function send([step, channel, notificationMethod, data]) {
  const wns = { client_id: 'ms-app://s-1-15-2-judge', client_secret: secret, notificationMethod };
  const [result] = await new PushNotifications({ wns }).send([channels[channel]], data);
  const [{ errorMsg }] = result.message;
  const report = errorMsg ? { ok: false, error: errorMsg } : { ok: true, value: result.success };
  process.stdout.write(JSON.stringify({ step, ...report }) + '\n');
}

async function main() {
  for (const step of STEPS) {
    await send(step);
  }
}

main();
