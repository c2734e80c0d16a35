// Repeated reads: modest, and none while nobody looks.

import { pause } from "./api.js";

/**
 * Repeats `work`, which fills `place`, until the page is left. `work` returns the wait in milliseconds before the next time. Whoever is inside
 * the place with the keyboard is not disturbed.
 */
export async function poll(signal, place, work) {
  for (let wait = await work(); ;) {
    await pause(wait, signal);
    await seen(signal);
    if (!place.contains(document.activeElement)) wait = await work();
  }
}

/** Waits until the page is visible. */
function seen(signal) {
  if (!document.hidden) return Promise.resolve();
  return new Promise((done, failed) => {
    const look = () => {
      if (document.hidden) return;
      document.removeEventListener("visibilitychange", look);
      done();
    };
    document.addEventListener("visibilitychange", look);
    signal.addEventListener("abort", () => {
      document.removeEventListener("visibilitychange", look);
      failed(signal.reason);
    });
  });
}
