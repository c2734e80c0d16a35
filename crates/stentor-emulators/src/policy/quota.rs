//! Limits over time and over counts: the quota bucket and the bursts of failures.

use super::ServiceError;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use std::time::Instant;

/// A limit of messages per window. The window is refilled in full at its end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QuotaPolicy {
    /// Messages per window.
    pub messages: u64,
    /// The length of a window in milliseconds.
    pub window_ms: u64,
    /// The answer above the quota; by default the push service's own, with the rest of the window as `Retry-After`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ServiceError>,
}

/// Every `every` requests, the last `length` of them fail.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bursts {
    /// The period, in requests.
    pub every: u64,
    /// The number of failing requests per period.
    pub length: u64,
    /// The answer.
    pub error: ServiceError,
}

/// The filling state of a quota.
#[derive(Debug)]
pub(super) struct QuotaWindow {
    started: Instant,
    fill: Mutex<QuotaFill>,
}

/// Messages taken in the newest window.
#[derive(Debug, Default)]
struct QuotaFill {
    window: u64,
    taken: u64,
}

impl QuotaWindow {
    pub(super) fn new() -> Self {
        Self { started: Instant::now(), fill: Mutex::default() }
    }

    /// Takes one message out of the quota. The error is the rest of the window in whole seconds, at least 1.
    pub(super) fn take(&self, quota: &QuotaPolicy) -> Result<(), u32> {
        // Read under the lock: a clock that was read before another window had begun would open the old one again.
        let mut fill = self.fill.lock();
        let elapsed_ms = self.started.elapsed().as_millis() as u64;
        fill.take(quota, elapsed_ms)
    }
}

impl QuotaFill {
    fn take(&mut self, quota: &QuotaPolicy, elapsed_ms: u64) -> Result<(), u32> {
        let window = elapsed_ms / quota.window_ms.max(1);
        if window > self.window {
            *self = Self { window, taken: 0 };
        }
        if self.taken < quota.messages {
            self.taken += 1;
            return Ok(());
        }
        let rest_ms = (window + 1).saturating_mul(quota.window_ms).saturating_sub(elapsed_ms);
        Err(rest_ms.div_ceil(1000).clamp(1, u64::from(u32::MAX)) as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_that_came_to_the_lock_late_opens_no_old_window_again() {
        let quota = QuotaPolicy { messages: 2, window_ms: 1_000, error: None };
        let mut fill = QuotaFill::default();
        let times = [900, 950, 1_000, 999, 1_001];
        assert_eq!(times.map(|ms| fill.take(&quota, ms)), [Ok(()), Ok(()), Ok(()), Ok(()), Err(1)]);
    }
}
