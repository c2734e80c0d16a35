// Unmodified libraries for senders, pointed at the emulators by the lines of docs/test-kits.md.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { after, afterEach, before, test } from 'node:test';
import { ApnsClient, Notification } from 'apns2';
import { cert, initializeApp } from 'firebase-admin/app';
import { getMessaging } from 'firebase-admin/messaging';
import { ApnsEmulator, FcmEmulator } from 'stentor-emulators';

const apn = createRequire(import.meta.url)('@parse/node-apn');
const PHONE = 'ab'.repeat(32);
const GONE = 'cd'.repeat(32);
let fcm, apns;

before(async () => {
  [fcm, apns] = await Promise.all([FcmEmulator.start(), ApnsEmulator.start()]);
});

afterEach(async () => {
  await Promise.all([fcm.reset(), apns.reset()]);
});

after(async () => {
  await Promise.all([fcm.stop(), apns.stop()]);
});

test('firebase-admin sends and gets the answer that was chosen', async () => {
  await fcm.answer('gone', 'UNREGISTERED');
  const restore = fcm.redirect();
  const messaging = getMessaging(initializeApp({ credential: cert(fcm.credentialFile) }));
  await messaging.send({ token: 'phone', data: { order: '7' } });
  await assert.rejects(messaging.send({ token: 'gone' }), { code: 'messaging/registration-token-not-registered' });
  const sent = await messaging.sendEach([{ token: 'one' }, { token: 'two' }]);
  assert.equal(sent.successCount, 2);
  assert.equal((await messaging.subscribeToTopic(['phone'], 'news')).successCount, 1);
  await messaging.send({ topic: 'news' });
  restore();
  const tokens = (await fcm.messages()).map((message) => message.token);
  assert.deepEqual(tokens.sort(), ['/topics/news', 'one', 'phone', 'two']);
});

test('node-apn sends and gets the answer that was chosen', async () => {
  await apns.answer(GONE, 'Unregistered');
  const provider = new apn.Provider({
    token: { key: apns.credentialFile, keyId: apns.keyId, teamId: apns.teamId },
    address: apns.host,
    port: apns.port,
    ca: apns.caFile,
  });
  const notification = new apn.Notification({ topic: 'org.example.app', alert: 'Hello' });
  const { sent, failed } = await provider.send(notification, [PHONE, GONE]);
  provider.shutdown();
  assert.deepEqual(sent.map((one) => one.device), [PHONE]);
  assert.deepEqual(failed.map((one) => one.response.reason), ['Unregistered']);
  const [arrived] = await apns.messages();
  assert.deepEqual([arrived.token, arrived.topic, arrived.payload.aps], [PHONE, 'org.example.app', { alert: 'Hello' }]);
});

test('apns2 sends and gets the answer that was chosen', async () => {
  await apns.answer(GONE, 'Unregistered');
  const restore = apns.redirect();
  const client = new ApnsClient({
    team: apns.teamId,
    keyId: apns.keyId,
    signingKey: readFileSync(apns.credentialFile, 'utf8'),
    defaultTopic: 'org.example.app',
  });
  await client.send(new Notification(PHONE, { alert: 'Hello' }));
  await assert.rejects(client.send(new Notification(GONE, { alert: 'Hello' })), { reason: 'Unregistered' });
  await client.close();
  restore();
  const [arrived] = await apns.messages();
  assert.deepEqual([arrived.token, arrived.topic, arrived.payload.aps.alert], [PHONE, 'org.example.app', 'Hello']);
});
