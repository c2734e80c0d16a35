//! A connection as seen by its pool.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use futures_util::task::AtomicWaker;

/// One open connection as seen by its pool.
///
/// Its numbers are `Relaxed`. The connection's loop writes them, then takes the pool's lock, and then waits. They are read under that lock.
/// So a thread that adds requests later sees the numbers, and requests added earlier are seen by the loop.
#[derive(Debug, Default)]
pub(crate) struct PooledConnection {
    /// Wakes the connection's loop.
    pub(crate) waker: AtomicWaker,
    /// Number of streams it could open now.
    pub(crate) room: AtomicUsize,
    /// Number of its open streams.
    pub(crate) open: AtomicUsize,
    /// Number of those with late requests.
    pub(crate) late: AtomicUsize,
    /// 1 during a probe of the peer after idleness.
    pub(crate) probing: AtomicUsize,
    /// 1 once it takes no more requests.
    pub(crate) retired: AtomicUsize,
}

impl PooledConnection {
    /// Returns the number of open and possible streams; zero before the peer has announced a limit.
    pub(super) fn streams(&self) -> usize {
        self.room.load(Relaxed) + self.open.load(Relaxed)
    }

    /// Returns true during a probe, which soon shows if the connection is usable.
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
    // Loads change concurrently. Each is read once, because an inconsistent order makes sorting panic.
    ready.sort_by_cached_key(|member| member.open.load(Relaxed));
    ready
}

#[cfg(test)]
mod tests;
