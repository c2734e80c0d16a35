// The kit itself: what a test can read and choose, and how it fails.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import https from 'node:https';
import { createConnection } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';
import tls, { connect } from 'node:tls';
import { ApnsEmulator, EmulatorError, FcmEmulator } from 'stentor-emulators';

const folder = mkdtempSync(path.join(os.tmpdir(), 'kit-'));
const program = path.join(folder, 'stentor');
let emulator;

// A program that starts stentor with settings of its own: senders need no access token.
before(async () => {
  const settings = path.join(folder, 'settings.json');
  writeFileSync(settings, '{"auth": {"required": false}}');
  writeFileSync(program, `#!/bin/sh\nexec "${process.env.STENTOR_BIN}" "$@" --config "${settings}"\n`);
  chmodSync(program, 0o755);
  emulator = await FcmEmulator.start({ program });
});

after(async () => {
  await emulator.stop();
  rmSync(folder, { recursive: true });
});

function send(token, to = emulator) {
  const ca = readFileSync(to.caFile);
  const headers = { 'content-type': 'application/json' };
  const options = { method: 'POST', ca, headers, agent: false };
  return new Promise((resolve, reject) => {
    const request = https.request(`${to.url}/v1/projects/any/messages:send`, options, (response) => {
      response.resume().on('end', () => resolve(response.statusCode));
    });
    request.on('error', reject);
    request.end(JSON.stringify({ message: { token } }));
  });
}

test('messages are read for all tokens or for one', async () => {
  await emulator.reset();
  for (const token of ['a', 'b', 'a']) assert.equal(await send(token), 200);
  assert.deepEqual((await emulator.messages()).map((message) => message.token), ['a', 'b', 'a']);
  assert.equal((await emulator.messages({ token: 'a' })).length, 2);
});

test('a wait ends when the messages have arrived', async () => {
  await emulator.reset();
  const waiting = emulator.waitFor(2, { token: 'a', timeoutMs: 60_000 });
  for (const token of ['a', 'b', 'a']) await send(token);
  assert.equal((await waiting).length, 2);
});

test('a wait fails with what has arrived', async () => {
  await emulator.reset();
  await send('a');
  const waiting = emulator.waitFor(2, { token: 'a', timeoutMs: 100 });
  await assert.rejects(waiting, { name: 'EmulatorError', message: '1 of 2 messages for a have arrived in 100 ms' });
});

test('an answer is given always or some times, until a reset', async () => {
  await emulator.reset();
  await emulator.answer('gone', 'UNREGISTERED');
  await emulator.answer('busy', 'UNAVAILABLE', { times: 1, retryAfterSeconds: 7 });
  assert.deepEqual([await send('gone'), await send('gone')], [404, 404]);
  assert.deepEqual([await send('busy'), await send('busy'), await send('other')], [503, 200, 200]);
  assert.deepEqual(await emulator.counts('busy'), { attempts: 2, accepted: 1, rejected: 1, validateOnly: 0 });
  await emulator.reset();
  assert.deepEqual(await emulator.messages(), []);
  assert.equal((await emulator.counts('busy')).attempts, 0);
  assert.equal(await send('gone'), 200);
});

test('the policy of the start is in force again after a reset', async () => {
  const policy = { mix: { accept: 0, errors: [{ error: { code: 'INTERNAL' }, weight: 1 }] } };
  const refusing = await FcmEmulator.start({ policy, program });
  await refusing.setPolicy({});
  assert.equal(await send('phone', refusing), 200);
  await refusing.reset();
  assert.equal(await send('phone', refusing), 500);
  assert.deepEqual(await emulator.messages({ token: 'phone' }), [], 'two emulators share nothing');
  await refusing.stop();
});

test('an error that the service does not have is refused', async () => {
  await assert.rejects(emulator.answer('gone', 'Unregistered'), EmulatorError);
});

test('tokens of APNs are known in both spellings', async () => {
  const apns = await ApnsEmulator.start();
  await apns.answer('AB'.repeat(32), 'BadDeviceToken');
  assert.equal((await apns.counts('AB'.repeat(32))).attempts, 0);
  assert.equal(statSync(apns.credentialFile).mode & 0o777, 0o600);
  await apns.stop();
  assert.equal(existsSync(apns.credentialFile), false);
});

test('a redirection ends, for those who have imported the function too', async () => {
  const before = connect;
  const restore = emulator.redirect();
  const other = emulator.redirect();
  assert.notEqual(tls.connect, before);
  assert.equal(connect, tls.connect);
  restore();
  other();
  assert.equal(connect, before);
  assert.equal(tls.connect, before);
});

test('a missing program is named with the remedy', async () => {
  const { STENTOR_BIN, PATH } = process.env;
  try {
    process.env.STENTOR_BIN = path.join(folder, 'nothing');
    await assert.rejects(FcmEmulator.start(), /nothing is not a program: set STENTOR_BIN/);
    delete process.env.STENTOR_BIN;
    process.env.PATH = path.join(folder, 'nowhere');
    await assert.rejects(FcmEmulator.start(), /stentor is not in PATH: install it, or set STENTOR_BIN/);
  } finally {
    Object.assign(process.env, { STENTOR_BIN, PATH });
  }
});

test('a policy that cannot be used fails the start with its reason', async () => {
  await assert.rejects(FcmEmulator.start({ policy: { mixx: 1 } }), /unknown field `mixx`/);
});

test('an emulator that has died is reported with its signal', async () => {
  const dying = await FcmEmulator.start({ program });
  process.kill(dying.pid, 'SIGKILL');
  await assert.rejects(dying.waitFor(1), /stentor emulate has ended with SIGKILL/);
  await dying.stop();
});

test('an emulator ends with the process that has started it', async () => {
  const script = `
    const { FcmEmulator } = require('stentor-emulators');
    FcmEmulator.start().then((emulator) => {
      console.log(emulator.control);
      process.kill(process.pid, 'SIGKILL');
    });`;
  const started = spawnSync(process.execPath, ['-e', script], { cwd: import.meta.dirname, encoding: 'utf8' });
  // The connection is refused, or it ends with the emulator: a living one would keep it.
  const { hostname, port } = new URL(started.stdout.trim());
  await new Promise((resolve) => {
    createConnection(port, hostname).on('close', resolve).on('error', () => {}).resume();
  });
});

test('a process ends although no emulator was stopped', () => {
  const script = "require('stentor-emulators').ApnsEmulator.start()";
  const ended = spawnSync(process.execPath, ['-e', script], { cwd: import.meta.dirname, timeout: 60_000 });
  assert.equal(ended.status, 0, String(ended.stderr));
});
