//! Counters over the lifetime of a client.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// State and counters of a client.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stats {
    /// Connections open now.
    pub connections: u64,
    /// Requests written and without a response now.
    pub inflight: u64,
    /// Current limit of requests in flight.
    pub inflight_limit: u64,
    /// The shortest recent latency of a response; zero before the first.
    pub min_rtt: Duration,
    /// The best recent rate of responses per second; zero before it is known.
    pub delivery_rate: u64,
    /// Requests waiting for a stream now.
    pub waiting: u64,
    /// Connections opened so far.
    pub connects: u64,
    /// Connections that failed to open so far.
    pub connect_failures: u64,
    /// Connections ended by a peer's GOAWAY so far.
    pub goaways: u64,
    /// Streams reset by the peer so far.
    pub resets: u64,
    /// Requests that timed out so far.
    pub timeouts: u64,
    /// Requests sent again because the peer certainly had not processed them.
    pub resends: u64,
}

#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) connects: Counter,
    pub(crate) connect_failures: Counter,
    pub(crate) goaways: Counter,
    pub(crate) resets: Counter,
    pub(crate) timeouts: Counter,
    pub(crate) resends: Counter,
}

#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self, count: u64) {
        if count > 0 {
            self.0.fetch_add(count, Ordering::Relaxed);
        }
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
