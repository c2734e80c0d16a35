//! What goes through the raw socket, counted.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Counts since the start, and connections now.
#[derive(Debug, Default)]
pub(crate) struct SocketCounts {
    connections: AtomicUsize,
    requests: AtomicU64,
}

/// A connection that is counted as long as this is kept.
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

    /// Returns how many connections are open.
    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }

    /// Returns how many requests came.
    pub(crate) fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }
}

impl Drop for CountedConnection {
    fn drop(&mut self) {
        self.0.connections.fetch_sub(1, Ordering::Relaxed);
    }
}
