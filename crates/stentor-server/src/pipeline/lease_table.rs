//! The leases that this process holds, so that they are prolonged for as long as their work lasts.

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

/// Leased chunks with their epochs, and with tickets where the queue has leased one for them.
type Leases = HashMap<ChunkId, (u32, Option<(Ticket, u64)>)>;

/// The leases that this process holds, to be prolonged.
#[derive(Default)]
pub(crate) struct LeaseTable {
    /// Shared while leases are taken and noted here; alone when those that ran out are looked for.
    taking: RwLock<()>,
    leases: Mutex<Leases>,
    /// When all of them were last prolonged, in milliseconds; those taken later hold longer.
    prolonged_at_ms: AtomicI64,
}

impl LeaseTable {
    /// Announces leases that are not noted yet: until all are, none counts as having run out.
    pub(crate) async fn taking(&self) -> RwLockReadGuard<'_, ()> {
        self.taking.read().await
    }

    /// Waits until every lease that was taken is noted, and lets none be taken meanwhile.
    pub(crate) async fn complete(&self) -> RwLockWriteGuard<'_, ()> {
        self.taking.write().await
    }

    /// Prolongs a chunk's lease, and its ticket's if it has one, for as long as the guard lives.
    pub(crate) fn keep(
        self: &Arc<Self>,
        chunk: ChunkId,
        epoch: u32,
        lease: Option<&QueueLease>,
    ) -> LeaseGuard {
        self.lock().insert(chunk, (epoch, lease.map(|lease| (lease.ticket, lease.token))));
        LeaseGuard { table: self.clone(), chunk, epoch }
    }

    /// Notes that all that were held at an instant hold on from there.
    pub(crate) fn prolonged(&self, at: Timestamp) {
        self.prolonged_at_ms.store(at.as_millis(), Ordering::Release);
    }

    /// Returns whether they were last prolonged longer ago than `age`, or by a clock that has gone back since: those taken
    /// after that run out earlier than all others.
    pub(crate) fn is_stale(&self, now: Timestamp, age: Duration) -> bool {
        let prolonged_at = Timestamp::from_millis(self.prolonged_at_ms.load(Ordering::Acquire));
        // A clock that went back counts as stale: the leases' ends are by the later time.
        now < prolonged_at || now.since(prolonged_at) > age
    }

    /// Lists them for the store and for the queue.
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

/// A lease that is prolonged; once dropped it may run out.
pub(crate) struct LeaseGuard {
    table: Arc<LeaseTable>,
    chunk: ChunkId,
    epoch: u32,
}

impl Drop for LeaseGuard {
    fn drop(&mut self) {
        let mut leases = self.table.lock();
        // A chunk whose lease ran out may be leased here again: that lease has another guard.
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
