//! The retry policy: exponential backoff with jitter, bounded by attempts and by the message's ttl.

use std::time::Duration;

/// Delays and number of attempts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RetryPolicy {
    /// Delay before the second attempt.
    pub base: Duration,
    /// Longest delay between two attempts, unless the push service requests a longer one.
    pub max: Duration,
    /// Attempts of a single delivery for reasons of its own; delays requested by the service do not count.
    pub max_attempts: u16,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self { base: Duration::from_secs(1), max: Duration::from_secs(300), max_attempts: 10 }
    }
}

impl RetryPolicy {
    /// Returns the delay after `attempt` failed (1 = the first): between half and all of the exponential step.
    ///
    /// `jitter` is a number in 0..1 that the caller draws, so that the function stays pure; `floor` is a Retry-After.
    #[must_use]
    pub fn wait(&self, attempt: u16, jitter: f64, floor: Option<Duration>) -> Duration {
        // Bounded for the shift; `max` holds long before.
        let doublings = u32::from(attempt.saturating_sub(1)).min(31);
        let step = self.base.saturating_mul(1 << doublings).min(self.max);
        let share = 0.5 + jitter.clamp(0.0, 1.0) / 2.0;
        let wait = step.mul_f64(share);
        match floor {
            Some(floor) => {
                floor + wait.min(floor.mul_f64(0.1).max(self.base)).mul_f64(jitter.clamp(0.0, 1.0))
            }
            None => wait,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_wait_is_never_shorter_than_retry_after(attempt in 0..100_u16, jitter in 0.0..1.0_f64, floor in 0..100_000_u64) {
            let floor = Duration::from_millis(floor);
            prop_assert!(RetryPolicy::default().wait(attempt, jitter, Some(floor)) >= floor);
        }

        #[test]
        fn a_wait_never_exceeds_the_maximum(attempt in 0..=u16::MAX, jitter in 0.0..1.0_f64) {
            let policy = RetryPolicy::default();
            prop_assert!(policy.wait(attempt, jitter, None) <= policy.max);
        }

        #[test]
        fn later_attempts_wait_at_least_half_as_long_as_the_step_before(attempt in 1..12_u16, jitter in 0.0..1.0_f64) {
            let policy = RetryPolicy::default();
            prop_assert!(policy.wait(attempt + 1, jitter, None) >= policy.wait(attempt, jitter, None));
        }
    }
}
