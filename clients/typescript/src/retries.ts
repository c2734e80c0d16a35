import { Problem, type ConnectionFailed } from "./problem.js";

/** How often and how soon a call is tried again: exponential waits with full jitter, and never before `Retry-After`. */
export interface Retries {
  /** Attempts in all; 1 tries nothing again. 5 when absent. */
  attemptsMax?: number;
  /** The longest wait after the first attempt; it doubles with each. 0.2 when absent. */
  baseSeconds?: number;
  /** The longest wait; a server that asks for more has its refusal thrown at once. 20 when absent. */
  waitMaxSeconds?: number;
}

/** Returns how long to wait after so many attempts; undefined when the failure is the caller's. */
export function waitSeconds(
  retries: Retries,
  attempts: number,
  failure: Problem | ConnectionFailed,
  isRepeatable: boolean,
): number | undefined {
  if (attempts >= (retries.attemptsMax ?? 5) || !mayRepeat(failure, isRepeatable)) return undefined;
  const waitMax = retries.waitMaxSeconds ?? 20;
  const longest = Math.min(waitMax, (retries.baseSeconds ?? 0.2) * 2 ** Math.min(attempts - 1, 30));
  const asked = failure instanceof Problem ? (failure.retryAfterSeconds ?? 0) : 0;
  return asked > waitMax ? undefined : asked + Math.random() * longest;
}

/** What may not be repeated is tried again only when the server surely did nothing. */
function mayRepeat(failure: Problem | ConnectionFailed, isRepeatable: boolean): boolean {
  if (!(failure instanceof Problem)) return isRepeatable || !failure.wasSent;
  return failure.status === 429 || (isRepeatable && failure.status === 503);
}
