// Drives the unmodified @parse/node-apn through one scenario and prints one JSON line per step.
'use strict';

const { createRequire } = require('node:module');
const path = require('node:path');

const [home, key, subscribed, token, dead] = process.argv.slice(2);
const apn = createRequire(path.join(home, 'package.json'))('@parse/node-apn');

const BUNDLE = 'org.example.app';
const STATE = { score: '1:0' };

const report = (step, facts) => process.stdout.write(JSON.stringify({ step, ...facts }) + '\n');

async function attempt(step, call, value = () => true) {
  const { sent, failed } = await call();
  if (failed.length === 0) {
    report(step, { ok: true, value: value(sent[0]) });
  } else {
    report(step, { ok: false, status: failed[0].status, reason: failed[0].response?.reason, error: String(failed[0].error) });
  }
  return sent[0];
}

function activity(event, more = {}) {
  const facts = { pushType: 'liveactivity', timestamp: 1, event, contentState: STATE, expiry: 0, ...more };
  const notification = new apn.Notification();
  return Object.assign(notification, facts);
}

const about = (channelId) => Object.assign(new apn.Notification(), { channelId });

function wanted(policy) {
  const requestId = '2288cf3f-70d8-46a6-97d7-dd5d00867127';
  return Object.assign(new apn.Notification(), { requestId, payload: { 'message-storage-policy': policy } });
}

async function manageChannels(provider) {
  const id = (reply) => [reply['apns-channel-id'].length > 0, reply['apns-request-id']];
  const created = await attempt('create', () => provider.manageChannels(wanted(1), BUNDLE, 'create'), id);
  const channel = created['apns-channel-id'];
  const config = (reply) => [reply['message-storage-policy'], reply['push-type']];
  await attempt('read', () => provider.manageChannels(about(channel), BUNDLE, 'read'), config);
  const listed = (reply) => [reply.channels.length, reply.channels.includes(channel)];
  await attempt('list', () => provider.manageChannels(new apn.Notification(), BUNDLE, 'readAll'), listed);
  await attempt('wrong policy', () => provider.manageChannels(wanted(2), BUNDLE, 'create'));
  return channel;
}

async function main() {
  const provider = new apn.Provider({ token: { key, keyId: 'KEYID12345', teamId: 'TEAMID1234' }, production: true });
  const channel = await manageChannels(provider);
  const broadcast = (event, more) => provider.broadcast(activity(event, more), BUNDLE);
  const ids = (reply) => [reply['apns-unique-id'].length, reply['apns-request-id'].length];
  await attempt('update channel', () => broadcast('update', { channelId: subscribed }), ids);
  await attempt('end channel', () => broadcast('end', { channelId: subscribed }), ids);
  await attempt('expiring', () => broadcast('update', { channelId: subscribed, expiry: 1900000000 }));
  const topic = `${BUNDLE}.push-type.liveactivity`;
  const start = { attributesType: 'Match', attributes: { home: 'A' }, inputPushChannel: subscribed, alert: 'Kick-off' };
  await attempt('start', () => provider.send(activity('start', { topic, ...start }), token));
  await attempt('update', () => provider.send(activity('update', { topic, priority: 5 }), token));
  await attempt('end', () => provider.send(activity('end', { topic, dismissalDate: 1 }), token));
  await attempt('dead', () => provider.send(activity('update', { topic }), dead));
  await attempt('plain topic', () => provider.send(activity('update', { topic: BUNDLE }), token));
  await attempt('delete', () => provider.manageChannels(about(channel), BUNDLE, 'delete'));
  await attempt('read deleted', () => provider.manageChannels(about(channel), BUNDLE, 'read'));
  await attempt('update deleted', () => broadcast('update', { channelId: channel }));
  provider.shutdown();
}

main();
