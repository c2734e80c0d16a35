// Drives the unmodified firebase-admin for Node through one scenario and prints one JSON line per step.
'use strict';

const { createRequire } = require('node:module');
const path = require('node:path');

const [serviceAccount, home, once] = process.argv.slice(2);
const installed = createRequire(path.join(home, 'package.json'));
const { initializeApp, cert } = installed('firebase-admin/app');
const { getMessaging } = installed('firebase-admin/messaging');

// Installation ids, in the form that Firebase's SDKs give them; FCM does not know the last one.
const FID = 'cJ4vGd1wRk2aB-3_xYz09Q';
const FIDS = ['dQ90zYx_3-Ba2kRw1dGv4J', 'eAbCdEfGhIjKlMnOpQrStU'];
const GONE_FID = 'fGone0123456789abcdefg';

const report = (step, facts) => process.stdout.write(JSON.stringify({ step, ...facts }) + '\n');

async function attempt(step, call) {
  try {
    report(step, { ok: true, value: await call() });
  } catch (error) {
    report(step, { ok: false, error: error.code || error.name, detail: String(error.message) });
  }
}

const message = (token) => ({ token, notification: { title: 'Hello', body: 'from a judge' }, data: { key: 'value' } });

const rich = (token) => ({
  ...message(token),
  android: { collapseKey: 'news', priority: 'high', ttl: 3600 * 1000, notification: { channelId: 'main' } },
  apns: { headers: { 'apns-priority': '10' }, payload: { aps: { badge: 3, sound: 'default' } } },
  webpush: { headers: { Urgency: 'high' } },
  fcmOptions: { analyticsLabel: 'judges' },
});

const counted = (batch) => ({
  success: batch.successCount,
  failure: batch.failureCount,
  errors: batch.responses.filter((response) => response.error).map((response) => response.error.code),
});

const topic = (answer) => ({ success: answer.successCount, failure: answer.failureCount });

async function main() {
  const messaging = getMessaging(initializeApp({ credential: cert(serviceAccount) }));
  await attempt('send', () => messaging.send(message('good')));
  if (once) return;
  await attempt('rich', () => messaging.send(rich('rich')));
  await attempt('dry run', () => messaging.send(message('dry'), true));
  const many = Array.from({ length: 199 }, (_, number) => message(`each-${number}`)).concat([message('gone-many')]);
  await attempt('send each', async () => counted(await messaging.sendEach(many)));
  const multicast = { tokens: ['multi-1', 'multi-2'], data: { a: 'b' } };
  await attempt('multicast', async () => counted(await messaging.sendEachForMulticast(multicast)));
  await attempt('fid', () => messaging.send({ fid: FID, data: { a: 'b' } }));
  await attempt('fids', async () => counted(await messaging.sendEachForMulticast({ fids: FIDS, data: { a: 'b' } })));
  await attempt('gone fid', () => messaging.send({ fid: GONE_FID, data: { a: 'b' } }));
  await attempt('subscribe', async () => topic(await messaging.subscribeToTopic(['good', 'rich'], 'news')));
  await attempt('topic', () => messaging.send({ topic: 'news', data: { a: 'b' } }));
  await attempt('condition', () => messaging.send({ condition: "'news' in topics && !('sport' in topics)", data: { a: 'b' } }));
  await attempt('unsubscribe', async () => topic(await messaging.unsubscribeFromTopic(['good', 'rich'], 'news')));
  for (const token of ['gone', 'invalid', 'foreign', 'quota', 'third-party', 'busy']) {
    await attempt(token, () => messaging.send(message(token)));
  }
  await attempt('too big', () => messaging.send({ token: 'big', data: { a: 'b'.repeat(5000) } }));
}

main().then(() => process.exit(0));
