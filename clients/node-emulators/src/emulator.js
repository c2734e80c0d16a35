// The emulators of FCM and APNs, as a test sees them.
'use strict';

const fs = require('node:fs');
const { ask, EmulatorError } = require('./control');
const { EmulatorProcess } = require('./process');
const { redirect } = require('./redirect');

// The longest wait of one request for messages.
const WAIT_MS_MAX = 30_000;

// Taken before a test can replace the clock.
const { hrtime } = process;
const nowMs = () => Number(hrtime.bigint() / 1_000_000n);

class Emulator {
  static async start({ policy = {}, program } = {}) {
    const started = await EmulatorProcess.start(this.service, this.credential, policy, program);
    return new this(started, policy);
  }

  #answers = [];
  #policy;
  #process;

  constructor(started, policy) {
    this.#process = started;
    this.#policy = policy;
    const { url, address, ca_file: caFile, control, credential } = started.ready;
    const [host, port] = address.split(':');
    Object.assign(this, { url, host, port: Number(port), caFile, control, credentialFile: credential.file });
  }

  async messages({ token } = {}) {
    return this.#of(await this.#behind(0, 0), token);
  }

  async waitFor(count = 1, { token, timeoutMs = 10_000 } = {}) {
    const deadline = nowMs() + timeoutMs;
    const arrived = await this.#behind(0, 0);
    for (;;) {
      const found = this.#of(arrived, token);
      if (found.length >= count) return found;
      const left = deadline - nowMs();
      if (left <= 0) {
        const of = token === undefined ? '' : ` for ${token}`;
        throw new EmulatorError(`${found.length} of ${count} messages${of} have arrived in ${timeoutMs} ms`);
      }
      arrived.push(...(await this.#behind(arrived.at(-1)?.number ?? 0, Math.min(left, WAIT_MS_MAX))));
    }
  }

  async answer(token, error, { times, retryAfterSeconds } = {}) {
    const refusal = { error: { code: error, retry_after_s: retryAfterSeconds } };
    const when = times === undefined ? { then: refusal } : { answers: [{ answer: refusal, times }] };
    const answers = [{ token: this.name(token), ...when }, ...this.#answers];
    await this.#put({ ...this.#policy, scripts: [...answers, ...(this.#policy.scripts ?? [])] });
    this.#answers = answers;
  }

  async setPolicy(policy) {
    await this.#put(policy);
    this.#answers = [];
  }

  async counts(token) {
    const { validate_only: validateOnly, ...counts } = await this.#ask('GET', `/tokens/${this.name(token)}`);
    return { ...counts, validateOnly };
  }

  async reset() {
    await this.#ask('POST', '/reset');
    this.#answers = [];
  }

  redirect() {
    const ca = fs.readFileSync(this.caFile);
    return redirect(this.constructor.hosts, { host: this.host, port: this.port, ca });
  }

  async stop() {
    await this.#process.stop();
  }

  get pid() {
    return this.#process.pid;
  }

  name(token) {
    return token;
  }

  #put(policy) {
    return this.#ask('PUT', '/policy', policy);
  }

  async #behind(number, waitMs) {
    const arrived = [];
    for (;;) {
      // Only the first page may be waited for.
      const wait = arrived.length > 0 ? 0 : Math.ceil(waitMs);
      const { messages } = await this.#ask('GET', `/messages?after=${number}&wait_ms=${wait}`);
      if (messages.length === 0) return arrived;
      arrived.push(...messages.map(arrivedMessage));
      number = arrived.at(-1).number;
    }
  }

  #of(arrived, token) {
    return token === undefined ? arrived : arrived.filter((message) => message.token === this.name(token));
  }

  async #ask(method, path, body) {
    try {
      return await ask(this.control, method, path, body);
    } catch (error) {
      if (error instanceof EmulatorError) throw error;
      const why = (await this.#process.ended()) ?? `the emulator does not answer: ${error.message}`;
      throw new EmulatorError(why, { cause: error });
    }
  }
}

class FcmEmulator extends Emulator {
  static service = 'fcm';
  static credential = 'service-account.json';
  static hosts = [
    'fcm.googleapis.com',
    'oauth2.googleapis.com',
    'www.googleapis.com',
    'iid.googleapis.com',
    'iamcredentials.googleapis.com',
  ];

  constructor(started, policy) {
    super(started, policy);
    this.projectId = started.ready.credential.project_id;
  }
}

class ApnsEmulator extends Emulator {
  static service = 'apns';
  static credential = 'AuthKey.p8';
  static hosts = ['api.push.apple.com', 'api.sandbox.push.apple.com', 'api.development.push.apple.com'];

  constructor(started, policy) {
    super(started, policy);
    this.keyId = started.ready.credential.key_id;
    this.teamId = started.ready.credential.team_id;
  }

  name(token) {
    // Both spellings of a token are the same device.
    return token.toLowerCase();
  }
}

function arrivedMessage(message) {
  return {
    number: message.number,
    token: message.token,
    payload: message.payload,
    messageId: message.message_id,
    collapseKey: message.collapse_key,
    topic: message.topic,
    pushType: message.push_type,
    highPriority: message.high_priority,
  };
}

module.exports = { ApnsEmulator, FcmEmulator };
