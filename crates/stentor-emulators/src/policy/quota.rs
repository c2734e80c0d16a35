//! Limits over time and over counts: the quota bucket and the bursts of failures.

use super::ServiceError;
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// So many messages per window; the window is refilled in full at its end.
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
    /// How many requests of each period fail.
    pub length: u64,
    /// The answer.
    pub error: ServiceError,
}

/// The filling state of a quota.
#[derive(Debug)]
pub(super) struct QuotaWindow {
    started: Instant,
    window: AtomicU64,
    taken: AtomicU64,
}

impl QuotaWindow {
    pub(super) fn new() -> Self {
        Self { started: Instant::now(), window: AtomicU64::new(0), taken: AtomicU64::new(0) }
    }

    /// Takes one message out; the error is the rest of the window in whole seconds, at least 1.
    pub(super) fn take(&self, quota: &QuotaPolicy) -> Result<(), u32> {
        let elapsed_ms = self.started.elapsed().as_millis() as u64;
        let window = elapsed_ms / quota.window_ms.max(1);
        let before = self.window.load(Ordering::Relaxed);
        if window != before
            && self.window.compare_exchange(before, window, Ordering::Relaxed, Ordering::Relaxed).is_ok()
        {
            self.taken.store(0, Ordering::Relaxed);
        }
        if self.taken.fetch_add(1, Ordering::Relaxed) < quota.messages {
            return Ok(());
        }
        let rest_ms = (window + 1) * quota.window_ms - elapsed_ms.min((window + 1) * quota.window_ms);
        Err(rest_ms.div_ceil(1000).clamp(1, u64::from(u32::MAX)) as u32)
    }
}
