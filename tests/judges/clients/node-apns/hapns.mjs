// Drives the unmodified hapns through one scenario and prints one JSON line per step.
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import path from 'node:path';
import { pathToFileURL } from 'node:url';

const [home, key, subscribed, token, dead] = process.argv.slice(2);
const installed = createRequire(path.join(home, 'package.json'));
const load = (name) => import(pathToFileURL(installed.resolve(`hapns/${name}`)));

const { TokenConnector } = await load('connectors/token');
const { LiveActivityNotification } = await load('notifications/LiveActivityNotification');
const { BroadcastChannel } = await load('targets/broadcastchannel');
const { Device } = await load('targets/device');
const { send } = await load('send');
const channels = await load('channels/broadcast');

const BUNDLE = 'org.example.app';
const REQUEST = '2288cf3f-70d8-46a6-97d7-dd5d00867127';

const report = (step, facts) => process.stdout.write(JSON.stringify({ step, ...facts }) + '\n');

async function attempt(step, call, value = () => true) {
  try {
    const answer = await call();
    report(step, { ok: true, value: value(answer) });
    return answer;
  } catch (error) {
    report(step, { ok: false, status: error.statusCode, reason: error.name.replace(/Error$/, ''), error: String(error) });
  }
}

const connector = TokenConnector({ key: await readFile(key), keyId: 'KEYID12345', teamIdentifier: 'TEAMID1234' });

function activity(event, more = {}, headers = {}) {
  const payload = { event, timestamp: 1, contentState: { score: '1:0' }, ...more };
  return LiveActivityNotification(BUNDLE, { payload, ...headers });
}

const settings = { bundleId: BUNDLE, messageStoragePolicy: 1, apnsRequestId: REQUEST };
const created = (channel) => channel.channelId.length > 0;
const channel = await attempt('create', () => channels.createBroadcastChannel(connector, settings), created);
const config = (read) => [read.messageStoragePolicy, read.pushType];
await attempt('read', () => channels.readBroadcastChannel(connector, channel), config);
const listed = (all) => [all.length, all.some((one) => one.channelId === channel.channelId)];
await attempt('list', () => channels.readAllBroadcastChannels(connector, BUNDLE), listed);

const target = BroadcastChannel(subscribed, BUNDLE);
const ids = (answer) => [answer.apnsUniqueId.length, answer.apnsId.length];
await attempt('update channel', () => send(connector, activity('update'), target), ids);
await attempt('end channel', () => send(connector, activity('end'), target), ids);
await attempt('expiring', () => send(connector, activity('update', {}, { expiration: 1900000000 }), target));

const alert = { title: 'Kick-off', body: 'A plays B' };
const start = { attributesType: 'Match', attributes: { home: 'A' }, inputPushChannel: subscribed, alert };
const toDevice = (notification, device = token) => send(connector, notification, Device(device));
await attempt('start', () => toDevice(activity('start', start)));
await attempt('update', () => toDevice(activity('update', {}, { priority: 5 })));
await attempt('end', () => toDevice(activity('end', { dismissalDate: 1 })));
await attempt('dead', () => toDevice(activity('update'), dead));

const gone = { apnsRequestId: REQUEST };
await attempt('delete', () => channels.deleteBroadcastChannel(connector, channel, gone), (answer) => answer.apnsRequestId);
await attempt('read deleted', () => channels.readBroadcastChannel(connector, channel));
await attempt('update deleted', () => send(connector, activity('update'), channel));
process.exit();
