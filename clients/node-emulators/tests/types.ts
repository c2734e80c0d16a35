// What the types of the kit allow.
import { ApnsEmulator, type ArrivedMessage, type Counts, EmulatorError, FcmEmulator } from 'stentor-emulators';

export async function everything(): Promise<[ArrivedMessage[], Counts, EmulatorError]> {
  const fcm: FcmEmulator = await FcmEmulator.start({ policy: { mix: 'realistic' }, program: '/usr/bin/stentor' });
  const restore: () => void = fcm.redirect();
  await fcm.answer('gone', 'UNREGISTERED', { times: 2, retryAfterSeconds: 1 });
  const messages = await fcm.waitFor(2, { token: 'phone', timeoutMs: 1000 });
  const counts = await fcm.counts('phone');
  restore();
  const apns = await ApnsEmulator.start();
  const text: string = apns.keyId + apns.teamId + fcm.projectId + apns.url + apns.caFile + apns.credentialFile;
  await Promise.all([apns.stop(), fcm.stop()]);
  // @ts-expect-error An emulator is started, not made.
  new FcmEmulator();
  return [messages.concat(await fcm.messages({ token: text })), counts, new EmulatorError()];
}
