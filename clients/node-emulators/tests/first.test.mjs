import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { cert, initializeApp } from 'firebase-admin/app';
import { getMessaging } from 'firebase-admin/messaging';
import { FcmEmulator } from 'stentor-emulators';

let fcm, restore;
before(async () => { fcm = await FcmEmulator.start(); restore = fcm.redirect(); });
after(async () => { restore(); await fcm.stop(); });

test('a buyer is told that the order is ready', async () => {
  const app = initializeApp({ credential: cert(fcm.credentialFile) });
  await getMessaging(app).send({ token: 'phone', data: { order: '7' } });
  const [sent] = await fcm.messages({ token: 'phone' });
  assert.deepEqual(sent.payload.data, { order: '7' });
});
