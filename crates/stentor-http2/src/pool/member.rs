//! A connection as the others of its pool see it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use futures_util::task::AtomicWaker;

/// One open connection as the others see it.
///
/// Its numbers are `Relaxed`: they are written by the connection's loop and read under the pool's lock, which the loop takes
/// after it has written and before it waits. So whoever adds requests after that sees them; before, the loop sees the
/// requests.
#[derive(Debug, Default)]
pub(crate) struct PooledConnection {
    /// Wakes the connection's loop.
    pub(crate) waker: AtomicWaker,
    /// Streams it could open now.
    pub(crate) room: AtomicUsize,
    /// Streams it has open.
    pub(crate) open: AtomicUsize,
    /// One while it asks, after idleness, whether the peer still lives.
    pub(crate) probing: AtomicUsize,
    /// One once it takes no more requests.
    pub(crate) retired: AtomicUsize,
}

impl PooledConnection {
    /// Counts the streams it has and could have; zero before the peer has said how many.
    pub(super) fn streams(&self) -> usize {
        self.room.load(Relaxed) + self.open.load(Relaxed)
    }

    /// Returns whether it will soon be known to live, or be gone.
    pub(crate) fn is_probing(&self) -> bool {
        self.probing.load(Relaxed) != 0 && !self.is_retired()
    }

    pub(crate) fn is_retired(&self) -> bool {
        self.retired.load(Relaxed) != 0
    }
}

/// Lists the connections with room, the least loaded first.
pub(super) fn ready(members: &[Arc<PooledConnection>]) -> Vec<&Arc<PooledConnection>> {
    let mut ready: Vec<_> = members.iter().filter(|member| member.room.load(Relaxed) > 0).collect();
    // Loads change meanwhile: each is looked at once, for an order that contradicts itself makes sorting panic.
    ready.sort_by_cached_key(|member| member.open.load(Relaxed));
    ready
}

#[cfg(test)]
mod tests;
