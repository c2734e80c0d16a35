// Requests to the control port of an emulator.
'use strict';

const http = require('node:http');

// Longer than the longest wait for a message.
const REPLY_MS_MAX = 60_000;

/** An emulator that cannot start, has ended or refuses a request. */
class EmulatorError extends Error {
  constructor(message, options) {
    super(message, options);
    this.name = 'EmulatorError';
  }
}

/** Sends a request; rejects with another error than EmulatorError where the control port is gone. */
function ask(control, method, path, body) {
  return new Promise((resolve, reject) => {
    const options = { method, agent: false, timeout: REPLY_MS_MAX, headers: { 'content-type': 'application/json' } };
    const request = http.request(new URL(control + path), options, async (response) => {
      try {
        const reply = JSON.parse(await text(response));
        if (response.statusCode === 200) resolve(reply);
        else reject(new EmulatorError(`the emulator refuses ${method} ${path}: ${reply.error}`));
      } catch (error) {
        reject(error);
      }
    });
    request.on('timeout', () => request.destroy(new Error(`no reply in ${REPLY_MS_MAX / 1000} s`)));
    request.on('error', reject);
    request.end(body === undefined ? undefined : JSON.stringify(body));
  });
}

async function text(stream) {
  let read = '';
  for await (const piece of stream.setEncoding('utf8')) read += piece;
  return read;
}

module.exports = { ask, EmulatorError };
