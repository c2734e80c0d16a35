//! The latency of the store, so that windows are wide enough to hide it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The latency counts up to this value: a slower store gets no wider windows.
const STORE_LATENCY_MAX_US: u64 = 100_000;

/// The store's mean times for the two calls that each delivery waits for: lease and settlement.
#[derive(Default)]
pub(crate) struct StoreLatency {
    lease_us: AtomicU64,
    settle_us: AtomicU64,
}

impl StoreLatency {
    /// Records the time of a lease.
    pub(crate) fn note_lease(&self, took: Duration) {
        smooth(&self.lease_us, took);
    }

    /// Records the time of a settlement.
    pub(crate) fn note_settlement(&self, took: Duration) {
        smooth(&self.settle_us, took);
    }

    /// Returns the time of a lease and of two settlements: the one in progress and the next one.
    pub(crate) fn get(&self) -> Duration {
        let (lease, settle) = (self.lease_us.load(Ordering::Relaxed), self.settle_us.load(Ordering::Relaxed));
        Duration::from_micros((lease + 2 * settle).min(STORE_LATENCY_MAX_US))
    }
}

fn smooth(mean_us: &AtomicU64, took: Duration) {
    let took = took.as_micros() as u64;
    let _ = mean_us.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |mean| Some((mean * 7 + took) / 8));
}
