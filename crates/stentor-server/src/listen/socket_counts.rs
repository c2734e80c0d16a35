//! Counters of the raw socket.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Requests since the start, and open connections.
#[derive(Debug, Default)]
pub(crate) struct SocketCounts {
    connections: AtomicUsize,
    requests: AtomicU64,
}

/// A connection that is counted while this guard lives.
pub(crate) struct CountedConnection(Arc<SocketCounts>);

impl SocketCounts {
    /// Counts a connection.
    pub(crate) fn connected(self: &Arc<Self>) -> CountedConnection {
        self.connections.fetch_add(1, Ordering::Relaxed);
        CountedConnection(self.clone())
    }

    /// Counts a request.
    pub(crate) fn asked(&self) {
        self.requests.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the number of open connections.
    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }

    /// Returns the number of requests.
    pub(crate) fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }
}

impl Drop for CountedConnection {
    fn drop(&mut self) {
        self.0.connections.fetch_sub(1, Ordering::Relaxed);
    }
}
