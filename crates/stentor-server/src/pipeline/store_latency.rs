//! How long the store takes, so that windows are wide enough to hide it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// A store that takes longer does not need more to do.
const STORE_LATENCY_MAX_US: u64 = 100_000;

/// How long the store takes for what a delivery waits for twice: its lease and its settlement.
#[derive(Default)]
pub(crate) struct StoreLatency {
    lease_us: AtomicU64,
    settle_us: AtomicU64,
}

impl StoreLatency {
    /// Notes how long a lease took.
    pub(crate) fn note_lease(&self, took: Duration) {
        smooth(&self.lease_us, took);
    }

    /// Notes how long a settlement took.
    pub(crate) fn note_settlement(&self, took: Duration) {
        smooth(&self.settle_us, took);
    }

    /// Returns the time of a lease, of the settlement that is waited for, and of the one that follows it.
    pub(crate) fn get(&self) -> Duration {
        let (lease, settle) = (self.lease_us.load(Ordering::Relaxed), self.settle_us.load(Ordering::Relaxed));
        Duration::from_micros((lease + 2 * settle).min(STORE_LATENCY_MAX_US))
    }
}

fn smooth(mean_us: &AtomicU64, took: Duration) {
    let took = took.as_micros() as u64;
    let _ = mean_us.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |mean| Some((mean * 7 + took) / 8));
}
