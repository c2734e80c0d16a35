// The process of an emulator: the program, its start, its end.
'use strict';

const { spawn } = require('node:child_process');
const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const { EmulatorError } = require('./control');

const START_MS_MAX = 60_000;
const STOP_MS_MAX = 10_000;
const END_MS_MAX = 1_000;
// The end of a log that an error shows.
const LOG_CHARACTERS_MAX = 4096;

// Taken before a test can replace the clock.
const { setTimeout: later, clearTimeout: forget } = globalThis;

/** A running `stentor emulate`, with a folder for its files. */
class EmulatorProcess {
  /** Starts the program and waits for its addresses. */
  static async start(service, credential, policy, program) {
    const started = new EmulatorProcess(service, credential, policy, findProgram(program));
    try {
      started.ready = JSON.parse(await within(START_MS_MAX, started.#firstLine(), 'stentor emulate is not ready'));
      if (started.ready.error) throw new EmulatorError(await started.ended());
      return started;
    } catch (error) {
      await started.stop();
      throw error;
    }
  }

  #child;
  #ended;
  #folder;
  #log;

  constructor(service, credential, policy, program) {
    this.#folder = fs.mkdtempSync(path.join(os.tmpdir(), 'stentor-'));
    this.#log = path.join(this.#folder, 'log');
    const log = fs.openSync(this.#log, 'w');
    // The emulator ends with its input, which ends with this process, however that ends.
    this.#child = spawn(program, commandLine(service, this.#folder, credential, policy), { stdio: ['pipe', 'pipe', log] });
    fs.closeSync(log);
    this.#ended = new Promise((resolve) => {
      this.#child.on('exit', (code, signal) => resolve(signal ?? `code ${code}`));
      this.#child.on('error', (error) => resolve(error.message));
    });
    // A test run may end without a stop.
    for (const handle of [this.#child, this.#child.stdin, this.#child.stdout]) handle.unref();
  }

  get pid() {
    return this.#child.pid;
  }

  /** Says why the emulator has ended; undefined while it runs. */
  async ended() {
    // A port may be gone a moment before its process.
    const how = await within(END_MS_MAX, this.#ended).catch(() => undefined);
    if (how === undefined) return undefined;
    if (!fs.existsSync(this.#log)) return 'the emulator was stopped';
    const log = fs.readFileSync(this.#log, 'utf8').slice(-LOG_CHARACTERS_MAX).trim();
    return `stentor emulate has ended with ${how}: ${log || 'its log is empty'}`;
  }

  /** Ends the emulator and removes its files. */
  async stop() {
    this.#child.ref();
    this.#child.kill('SIGTERM');
    await within(STOP_MS_MAX, this.#ended).catch(() => {
      this.#child.kill('SIGKILL');
      return this.#ended;
    });
    fs.rmSync(this.#folder, { recursive: true, force: true });
  }

  async #firstLine() {
    const output = this.#child.stdout;
    output.ref();
    let read = '';
    for await (const piece of output.setEncoding('utf8').iterator({ destroyOnReturn: false })) {
      read += piece;
      if (!read.includes('\n')) continue;
      output.unref();
      return read.slice(0, read.indexOf('\n'));
    }
    throw new EmulatorError(await this.ended());
  }
}

/** Returns the path of stentor: the given one, that of STENTOR_BIN, or the first in PATH. */
function findProgram(program) {
  const wanted = program || process.env.STENTOR_BIN;
  const folders = wanted?.includes(path.sep) ? [''] : (process.env.PATH ?? '').split(path.delimiter);
  const found = folders.map((folder) => path.join(folder, wanted || 'stentor')).find(isProgram);
  if (found) return path.resolve(found);
  throw new EmulatorError(
    wanted
      ? `${wanted} is not a program: set STENTOR_BIN to the path of stentor`
      : 'stentor is not in PATH: install it, or set STENTOR_BIN to its path',
  );
}

function isProgram(file) {
  try {
    fs.accessSync(file, fs.constants.X_OK);
    return fs.statSync(file).isFile();
  } catch {
    return false;
  }
}

function commandLine(service, folder, credential, policy) {
  return [
    ...['emulate', service, '--json', '--end-with-input'],
    ...['--listen', '127.0.0.1:0', '--control', '127.0.0.1:0'],
    ...['--ca-dir', folder, '--credential', path.join(folder, credential)],
    ...['--keep-messages', '10000', '--policy', JSON.stringify(policy)],
  ];
}

/** Rejects if the promise is not settled in time. */
async function within(limitMs, promise, what = '') {
  let timer;
  const over = new Promise((_, reject) => {
    timer = later(() => reject(new EmulatorError(`${what} after ${limitMs / 1000} s`)), limitMs);
  });
  try {
    return await Promise.race([promise, over]);
  } finally {
    forget(timer);
  }
}

module.exports = { EmulatorProcess };
