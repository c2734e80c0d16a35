//! Slow start before the first response. The longer a peer is silent, the more distant it is at least, and the more requests in flight it
//! needs.
//!
//! Slow start usually doubles with each round trip. Before the first round trip is over, only time gives information. A nearby peer
//! responds before the first step. A distant one would otherwise cost several long round trips of doubling.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Time without a response that allows as many requests again as the initial limit. A peer in the same building responds earlier. A peer at
/// 50 ms has the full allowance when its first response arrives.
const STEP: Duration = Duration::from_millis(10);

/// Nothing has been sent yet.
const NOTHING_SENT: u64 = u64::MAX;
/// The peer has responded, or failed.
const ENDED: u64 = u64::MAX - 1;
/// The full allowance by time has been granted.
const EXHAUSTED: u64 = u64::MAX - 2;

/// Growth by time, from the first request to the first response.
#[derive(Debug)]
pub(super) struct SlowStart {
    /// The start, in microseconds of a running time, or one of the constants above.
    began_us: AtomicU64,
    initial: usize,
    /// Upper bound of the allowance, because the peer may not sustain more.
    most: usize,
}

impl SlowStart {
    pub(super) const fn new(initial: usize, most: usize) -> Self {
        Self { began_us: AtomicU64::new(NOTHING_SENT), initial, most }
    }

    /// Returns how many requests may be in flight; `None` after the end of slow start.
    pub(super) fn allows(&self, now: Duration, inflight: usize) -> Option<usize> {
        let now_us = now.as_micros() as u64;
        let began_us = match self.began_us.load(Relaxed) {
            ENDED | EXHAUSTED => return None,
            NOTHING_SENT if inflight == 0 => return Some(self.initial),
            NOTHING_SENT => {
                // If another thread was first, its start is kept, and so is an end that came in between.
                let _ = self.began_us.compare_exchange(NOTHING_SENT, now_us, Relaxed, Relaxed);
                now_us
            }
            began_us => began_us,
        };
        let steps = now_us.saturating_sub(began_us) / STEP.as_micros() as u64;
        let allowed = self.initial.saturating_mul(1 + steps as usize);
        if allowed >= self.most {
            // Atomic, so that it does not overwrite an end that came in between.
            let _ = self.began_us.compare_exchange(began_us, EXHAUSTED, Relaxed, Relaxed);
        }
        Some(allowed.min(self.most))
    }

    pub(super) fn end(&self) {
        // Read before it is written: every read of responses comes here, and a write would take the cache line from all other cores.
        if self.began_us.load(Relaxed) != ENDED {
            self.began_us.store(ENDED, Relaxed);
        }
    }

    /// Returns true if the peer has responded or failed.
    pub(super) fn was_ended(&self) -> bool {
        self.began_us.load(Relaxed) == ENDED
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn slow_start_counts_from_the_first_request_on_and_allows_no_more_than_it_may() {
        let slow_start = SlowStart::new(1_000, 3_500);
        assert_eq!(slow_start.allows(ms(500), 0), Some(1_000));
        let allowed = [1_000, 1_009, 1_010, 1_025].map(|now| slow_start.allows(ms(now), 900));
        assert_eq!(allowed, [1_000, 1_000, 2_000, 3_000].map(Some));
        assert_eq!([1_500, 1_510].map(|now| slow_start.allows(ms(now), 900)), [Some(3_500), None]);
    }

    #[test]
    fn slow_start_that_is_over_says_nothing_more() {
        let slow_start = SlowStart::new(1_000, 100_000);
        assert_eq!(slow_start.allows(ms(0), 900), Some(1_000));
        slow_start.end();
        assert_eq!(slow_start.allows(ms(30), 900), None);
    }
}
