//! The way to the settlers: what they are asked to write.

use stentor_core::chunk::TrafficClass;
use stentor_core::id::ChunkId;
use stentor_core::ports::queue::QueueLease;
use stentor_core::ports::settled::SettledChunk;
use stentor_core::ports::store::Awaited;
use stentor_core::settlement::Settlement;
use stentor_core::time::Timestamp;
use tokio::sync::{mpsc, oneshot};

use super::budget::Reservation;
use super::lease_table::LeaseGuard;

/// The ways to the settlers: single messages have one of their own, so that they wait for no audience's commit.
pub(crate) struct Settlers {
    urgent: mpsc::Sender<SettlerWork>,
    bulk: mpsc::Sender<SettlerWork>,
}

impl Settlers {
    /// Returns the way to a class's settler.
    pub(crate) const fn of(&self, class: TrafficClass) -> &mpsc::Sender<SettlerWork> {
        match class {
            TrafficClass::Urgent => &self.urgent,
            TrafficClass::Bulk => &self.bulk,
        }
    }
}

/// Where settlements of a class come in.
pub(crate) struct SettlerInbox {
    pub(crate) class: TrafficClass,
    pub(crate) works: mpsc::Receiver<SettlerWork>,
}

/// The inboxes of all classes.
pub(crate) type Inboxes = [SettlerInbox; 2];

/// Makes the ways, each for up to `max` chunks that wait.
pub(crate) fn inboxes(max: usize) -> (Settlers, Inboxes) {
    let ((urgent, urgently), (bulk, in_bulk)) = (mpsc::channel(max), mpsc::channel(max));
    let inbox = |class, works| SettlerInbox { class, works };
    (Settlers { urgent, bulk }, [inbox(TrafficClass::Urgent, urgently), inbox(TrafficClass::Bulk, in_bulk)])
}

/// What is over, and what it held.
pub(crate) struct LeaseParts {
    /// Its ticket's lease; none of what is late of a chunk.
    pub(crate) lease: Option<QueueLease>,
    /// Its share of the budget.
    pub(crate) hold: Reservation,
    /// Keeps the lease from running out.
    pub(crate) guard: LeaseGuard,
    /// What connected devices are to be given once it is settled.
    pub(crate) settled_chunk: Option<SettledChunk>,
}

/// The chunk in which goes on what is awaited, and what keeps its lease from running out.
pub(crate) type Continuation = (Awaited, LeaseGuard);

/// What the settler is asked to write.
pub(crate) enum SettlerWork {
    /// A chunk was sent, or needed no sending; who waits is told of the chunk in which the awaited goes on.
    Settle(Settlement, LeaseParts, Option<oneshot::Sender<Continuation>>),
    /// A chunk of which not a byte was sent goes back.
    Release(ChunkId, u32, Timestamp, LeaseParts),
}
