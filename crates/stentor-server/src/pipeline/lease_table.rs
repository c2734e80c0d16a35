//! The leases that this process holds, so that they are extended while their work lasts.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use stentor_core::chunk::Ticket;
use stentor_core::id::ChunkId;
use stentor_core::ports::queue::QueueLease;
use stentor_core::ports::store::Lease;
use stentor_core::time::Timestamp;
use tokio::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};

/// Leased chunks with their epochs, and their tickets if the queue has leased them.
type Leases = HashMap<ChunkId, (u32, Option<(Ticket, u64)>)>;

/// The leases that this process holds and extends.
#[derive(Default)]
pub(crate) struct LeaseTable {
    /// Read-locked while leases are taken and recorded here; write-locked during a sweep for expired leases.
    taking: RwLock<()>,
    leases: Mutex<Leases>,
    /// Time of the last extension of all leases, in milliseconds; leases taken later last longer.
    prolonged_at_ms: AtomicI64,
}

impl LeaseTable {
    /// Announces leases that are not recorded yet; while the guard lives, no sweep runs.
    pub(crate) async fn taking(&self) -> RwLockReadGuard<'_, ()> {
        self.taking.read().await
    }

    /// Waits until every lease that was taken is recorded, and blocks new ones while the guard lives.
    pub(crate) async fn complete(&self) -> RwLockWriteGuard<'_, ()> {
        self.taking.write().await
    }

    /// Extends the lease of a chunk, and of its ticket if given, while the guard lives.
    pub(crate) fn keep(
        self: &Arc<Self>,
        chunk: ChunkId,
        epoch: u32,
        lease: Option<&QueueLease>,
    ) -> LeaseGuard {
        self.lock().insert(chunk, (epoch, lease.map(|lease| (lease.ticket, lease.token))));
        LeaseGuard { table: self.clone(), chunk, epoch }
    }

    /// Records that all leases held at `at` were extended then.
    pub(crate) fn prolonged(&self, at: Timestamp) {
        self.prolonged_at_ms.store(at.as_millis(), Ordering::Release);
    }

    /// Returns true if the last extension is older than `age`, or was made by a clock that has gone back since. In that case, leases taken
    /// after it expire earlier than the others.
    pub(crate) fn is_stale(&self, now: Timestamp, age: Duration) -> bool {
        let prolonged_at = Timestamp::from_millis(self.prolonged_at_ms.load(Ordering::Acquire));
        // After a clock step back the table counts as stale: the leases' ends follow the later time.
        now < prolonged_at || now.since(prolonged_at) > age
    }

    /// Lists the leases for the store and for the queue.
    pub(crate) fn list(&self) -> (Vec<Lease>, Vec<QueueLease>) {
        let leases = self.lock();
        let chunks =
            leases.iter().map(|(chunk, (epoch, ..))| Lease { chunk: *chunk, epoch: *epoch }).collect();
        let tickets = leases.values().filter_map(|(_, lease)| *lease);
        (chunks, tickets.map(|(ticket, token)| QueueLease { ticket, token }).collect())
    }

    fn lock(&self) -> MutexGuard<'_, Leases> {
        self.leases.lock()
    }
}

/// A lease that is extended; it may expire once the guard is dropped.
pub(crate) struct LeaseGuard {
    table: Arc<LeaseTable>,
    chunk: ChunkId,
    epoch: u32,
}

impl Drop for LeaseGuard {
    fn drop(&mut self) {
        let mut leases = self.table.lock();
        // After its lease expired, a chunk may be leased here again under another guard.
        if leases.get(&self.chunk).is_some_and(|(epoch, _)| *epoch == self.epoch) {
            leases.remove(&self.chunk);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_guard_of_a_lease_that_was_lost_leaves_the_next_one_of_its_chunk() {
        let (table, chunk) = (Arc::<LeaseTable>::default(), ChunkId::from_raw(7));
        let lost = table.keep(chunk, 1, None);
        let held = table.keep(chunk, 2, None);
        drop(lost);
        assert_eq!(table.list().0, [Lease { chunk, epoch: 2 }], "it is prolonged still");
        drop(held);
        assert_eq!(table.list().0, []);
    }
}
