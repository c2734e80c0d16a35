//! The channels to the settlers, and the work sent through them.

use std::sync::Arc;

use stentor_core::chunk::TrafficClass;
use stentor_core::id::ChunkId;
use stentor_core::ports::queue::QueueLease;
use stentor_core::ports::settled::SettledChunk;
use stentor_core::ports::store::Awaited;
use stentor_core::settlement::Settlement;
use stentor_core::time::Timestamp;
use tokio::sync::{mpsc, oneshot};

use super::at_once_places::AtOncePlace;
use super::budget::Reservation;
use super::lease_table::LeaseGuard;

/// The channels to the settlers. Single messages have their own, so that they wait for no audience's commit.
pub(crate) struct Settlers {
    urgent: mpsc::Sender<SettlerWork>,
    bulk: mpsc::Sender<SettlerWork>,
}

impl Settlers {
    /// Returns the channel to a class's settler.
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

/// Creates the channels, each for up to `max` waiting chunks.
pub(crate) fn inboxes(max: usize) -> (Settlers, Inboxes) {
    let ((urgent, urgently), (bulk, in_bulk)) = (mpsc::channel(max), mpsc::channel(max));
    let inbox = |class, works| SettlerInbox { class, works };
    (Settlers { urgent, bulk }, [inbox(TrafficClass::Urgent, urgently), inbox(TrafficClass::Bulk, in_bulk)])
}

/// The place of a leased chunk among those that wait or are sent.
pub(crate) enum ChunkPlace {
    /// In the queue: the lease of its ticket.
    Queue(QueueLease),
    /// Beside the queue: its message is sent at once.
    AtOnce(#[expect(dead_code, reason = "its drop gives the place back")] Option<Arc<AtOncePlace>>),
}

impl ChunkPlace {
    /// Returns the lease of its ticket, if it has one.
    pub(crate) fn into_queue_lease(self) -> Option<QueueLease> {
        match self {
            Self::Queue(lease) => Some(lease),
            Self::AtOnce(_) => None,
        }
    }
}

/// The resources of a finished chunk.
pub(crate) struct LeaseParts {
    /// Its place; `None` for the late part of a chunk.
    pub(crate) place: Option<ChunkPlace>,
    /// Its share of the budget.
    pub(crate) hold: Reservation,
    /// Keeps the lease from expiring.
    pub(crate) guard: LeaseGuard,
    /// The part that connected devices receive once it is settled.
    pub(crate) settled_chunk: Option<SettledChunk>,
}

/// The chunk in which awaited deliveries continue, and the guard of its lease.
pub(crate) type Continuation = (Awaited, LeaseGuard);

/// Work for a settler.
pub(crate) enum SettlerWork {
    /// A chunk was sent, or needed no sending. The sender passes the chunk in which awaited deliveries continue.
    Settle(Settlement, LeaseParts, Option<oneshot::Sender<Continuation>>),
    /// A chunk was not sent at all and is released.
    Release(ChunkId, u32, Timestamp, LeaseParts),
}
