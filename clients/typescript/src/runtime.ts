import { ConnectionFailed, Problem } from "./problem.js";
import { waitSeconds, type Retries } from "./retries.js";

const VERSION = "0.1.0";
const SAFE_TO_REPEAT = ["GET", "PUT", "PATCH", "DELETE"];
/** Failures of a connection that was never made, as Node names them. */
const NEVER_SENT = ["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "EHOSTUNREACH", "ENETUNREACH", "UND_ERR_CONNECT_TIMEOUT"];

/** How a client is made. */
export interface ClientOptions {
  /** Where the server is, such as `http://127.0.0.1:8686`. */
  url: string;
  /** A key of an app, or the operator's. */
  key?: string;
  /** Which app the operator's key speaks for. */
  app?: string;
  /** How often and how soon calls are tried again. */
  retries?: Retries;
  /** How long an attempt may take, 30 when absent. */
  timeoutSeconds?: number;
}

/** What any call may be given. */
export interface CallOptions {
  /** Ends the call, its waits and its retries. */
  signal?: AbortSignal;
}

/** What a call that may be repeated may be given. */
export interface KeyedOptions extends CallOptions {
  /** The idempotency key; one is made for each call when absent. */
  idempotencyKey?: string;
}

/** One request as an operation makes it. */
export interface Call {
  method: string;
  path: string;
  query?: Record<string, unknown>;
  body?: unknown;
  lines?: string;
  contentType?: string;
  /** Whether an idempotency key makes repeating harmless. */
  hasKey?: boolean;
}

/** Puts names into a path. Throws for a name that a path cannot hold: an empty one, `.` and `..` would be another address. */
export function address(path: string, subject: Record<string, string>): string {
  return path.replace(/\{(\w+)\}/g, (_, name: string) => {
    const value = subject[name] ?? "";
    if (["", ".", ".."].includes(value)) throw new TypeError(`${JSON.stringify(value)} cannot stand in an address as ${name}`);
    return encodeURIComponent(value);
  });
}

/** Sends calls, and tries them again. */
export class Transport {
  private readonly url: string;

  constructor(private readonly options: ClientOptions) {
    this.url = options.url.replace(/\/+$/, "");
  }

  /** Returns what is replied; throws Problem or ConnectionFailed. */
  async call<T>(call: Call, options: KeyedOptions): Promise<T> {
    const [url, request] = [this.urlOf(call), this.request(call, options)];
    const isRepeatable = call.hasKey === true || SAFE_TO_REPEAT.includes(call.method);
    for (let attempts = 1; ; attempts++) {
      const answer = await this.attempt(url, request, options.signal);
      if (!(answer instanceof Problem || answer instanceof ConnectionFailed)) return answer.reply as T;
      const wait = waitSeconds(this.options.retries ?? {}, attempts, answer, isRepeatable);
      if (wait === undefined) throw answer;
      await pause(wait, options.signal);
    }
  }

  private urlOf(call: Call): string {
    const given = Object.entries(call.query ?? {}).filter(([, value]) => value !== undefined && value !== null);
    const query = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString();
    return this.url + call.path + (query === "" ? "" : `?${query}`);
  }

  /** Builds the request once, so that every attempt carries the same idempotency key. */
  private request(call: Call, options: KeyedOptions): RequestInit {
    const headers: Record<string, string> = { accept: "application/json", "user-agent": `stentor-typescript/${VERSION}` };
    if (this.options.key !== undefined) headers["authorization"] = `Bearer ${this.options.key}`;
    if (this.options.app !== undefined) headers["x-stentor-app"] = this.options.app;
    if (call.hasKey === true) headers["idempotency-key"] = options.idempotencyKey ?? crypto.randomUUID();
    const body = call.lines ?? (call.body === undefined ? undefined : JSON.stringify(call.body));
    if (body !== undefined) headers["content-type"] = call.contentType ?? "application/json";
    // A redirect is not followed: the key belongs to this address alone.
    return { method: call.method, headers, body: body ?? null, redirect: "manual" };
  }

  private async attempt(
    url: string,
    request: RequestInit,
    signal: AbortSignal | undefined,
  ): Promise<{ reply: unknown } | Problem | ConnectionFailed> {
    const limit = AbortSignal.timeout((this.options.timeoutSeconds ?? 30) * 1000);
    const both = signal === undefined ? limit : AbortSignal.any([signal, limit]);
    try {
      const response = await fetch(url, { ...request, signal: both });
      const text = await response.text();
      return response.ok ? read(response, text) : problem(response, text);
    } catch (error) {
      // Whoever ends a call gets his own reason, not a failure of ours.
      signal?.throwIfAborted();
      return failed(error);
    }
  }
}

function read(response: Response, text: string): { reply: unknown } | ConnectionFailed {
  const isJson = response.headers.get("content-type")?.startsWith("application/json") === true;
  if (text === "") return { reply: null };
  if (!isJson) return { reply: text };
  const reply = parsed(text);
  return reply === undefined ? new ConnectionFailed("the answer is not JSON", true) : { reply };
}

function problem(response: Response, text: string): Problem {
  const body = parsed(text);
  const record = typeof body === "object" && body !== null ? (body as Record<string, unknown>) : {};
  return new Problem(response.status, record, secondsOf(response.headers.get("retry-after")));
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Reads `Retry-After` (RFC 9110, section 10.2.3): seconds, or a date. */
function secondsOf(retryAfter: string | null): number | undefined {
  if (retryAfter === null) return undefined;
  if (/^\d+$/.test(retryAfter.trim())) return Number(retryAfter);
  const date = Date.parse(retryAfter);
  return Number.isNaN(date) ? undefined : Math.max(0, (date - Date.now()) / 1000);
}

function failed(error: unknown): ConnectionFailed {
  const inner = error instanceof Error ? (error.cause as { code?: unknown; message?: unknown } | undefined) : undefined;
  const why = String(inner?.message ?? inner?.code ?? error);
  return new ConnectionFailed(why, !NEVER_SENT.includes(String(inner?.code)), { cause: error });
}

/** Waits, or ends with the caller's reason. */
function pause(seconds: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    signal?.throwIfAborted();
    const ended = (): void => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", ended);
      resolve();
    }, seconds * 1000);
    signal?.addEventListener("abort", ended, { once: true });
  });
}
