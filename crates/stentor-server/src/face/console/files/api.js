// Requests to the public API. The browser's cookie stands for the key, and each change carries the session's CSRF token.

import { element, fill, part } from "./elements.js";

const RETRY_FIRST_MS = 500;
const RETRY_MAX_MS = 10_000;
/** The server is away, starts, or has too much to do: a read is repeated. */
const AWAY = [429, 502, 503, 504];

/** What the pages know of their session: `null` before a login. */
export const here = { session: null, app: null };

/** A refusal of the API, as RFC 9457 describes it. */
export class Refusal extends Error {
  constructor(status, problem) {
    const field = problem.field ? `${problem.field}: ` : "";
    const hint = problem.hint ? ` – ${problem.hint}` : "";
    super(`${field}${problem.detail ?? `the server answered ${status}`}${hint}`);
    this.status = status;
    this.code = problem.code;
  }
}

/** Sent when the API knows the session no more. */
export const SESSION_ENDED = "session-ended";

const rolesOf = (session) => session?.person?.roles ?? [];
/** The roles of the person in the chosen app. */
const rolesHere = () => rolesOf(here.session).filter(({ app }) => !app || app === here.app);

/** True for the root key, and for a person who may do the same. */
export function isRoot() {
  const isAdmin = rolesOf(here.session).some(({ app, role }) => !app && role === "admin");
  return here.session?.by === "root" || isAdmin;
}

/** True for the key of an app, which cannot name another one. */
export const isAppKey = () => here.session?.by === "key";

/** True if the session's key has one of the scopes, or the role of its person. */
export function may(...scopes) {
  const own = [...(here.session?.scopes ?? []), ...rolesHere().flatMap((role) => role.scopes)];
  return own.includes("admin") || scopes.some((scope) => own.includes(scope));
}

/** True if the session may read what a key with one of the scopes may. */
export const mayRead = (...scopes) => may(...scopes) || rolesHere().length > 0;

export const read = (path, options = {}) => ask("GET", path, options);
export const change = (method, path, body, options = {}) => ask(method, path, { body, ...options });

/**
 * Asks the API. A read waits until the server can answer; a change is tried once, because only its sender knows whether to repeat it.
 */
async function ask(method, path, options) {
  for (let wait = RETRY_FIRST_MS; ; wait = Math.min(wait * 2, RETRY_MAX_MS)) {
    const answer = await attempt(method, path, options);
    const isRepeated = method === "GET" && (answer === null || AWAY.includes(answer.status));
    if (!isRepeated) return finished(answer);
    tellConnection("Reconnecting to the server …");
    const seconds = Number(answer?.headers.get("retry-after") ?? 0);
    await pause(Math.min(Math.max(wait, seconds * 1_000), RETRY_MAX_MS), options.signal);
  }
}

/** Returns the answer, or `null` if there is none. */
async function attempt(method, path, { query, body, headers = {}, signal }) {
  const request = { method, signal, cache: "no-store", headers: { Accept: "application/json", ...headers } };
  if (method !== "GET" && here.session) request.headers["X-Stentor-CSRF"] = here.session.csrf;
  if (body !== undefined) {
    request.headers["Content-Type"] = "application/json";
    request.body = JSON.stringify(body);
  }
  try {
    return await fetch(address(path, query), request);
  } catch (error) {
    if (signal?.aborted) throw error;
    return null;
  }
}

/** Returns what the server says of its readiness, which it may deny. */
export async function readiness(signal) {
  const answer = await attempt("GET", "/readyz", { signal });
  return answer === null ? null : answer.json().catch(() => null);
}

function address(path, query = {}) {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== null && value !== "");
  const text = new URLSearchParams(given).toString();
  return text ? `${path}?${text}` : path;
}

async function finished(answer) {
  if (answer === null) {
    throw new Error("The server did not answer. Whether it has done this is unknown: look, then try again.");
  }
  tellConnection("");
  if (answer.ok) return answer.status === 204 ? null : answer.json();
  const problem = await answer.json().catch(() => ({}));
  if (answer.status === 401 && here.session) document.dispatchEvent(new Event(SESSION_ENDED));
  throw new Refusal(answer.status, problem);
}

function tellConnection(text) {
  const place = part("connection");
  if (place.textContent !== text) fill(place, text && element("span", {}, text));
}

/** Waits, unless the page is left before. */
export function pause(milliseconds, signal) {
  return new Promise((done, failed) => {
    signal?.throwIfAborted();
    const timer = setTimeout(done, milliseconds);
    signal?.addEventListener("abort", () => {
      clearTimeout(timer);
      failed(signal.reason);
    });
  });
}

/** Asks within the chosen app, which the key of an app need not name. */
export const ofApp = (query = {}) => (isAppKey() ? query : { ...query, app: here.app });

/** Key that marks repetitions of one request. `randomUUID` exists over TLS only. */
export function idempotencyKey() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
