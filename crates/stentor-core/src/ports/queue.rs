//! The port to a queue: it carries chunk ids, and can be thrown away and rebuilt from the store at any moment.

use std::time::Duration;

use async_trait::async_trait;

use crate::chunk::{Lane, Ticket};
use crate::id::ChunkId;
use crate::time::Timestamp;

/// The error of a queue operation.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum QueueError {
    /// The engine failed; a later retry may succeed.
    #[error("the queue is unavailable: {0}")]
    Unavailable(String),
}

/// A right to work on a chunk for a while; settling it (ack, nack) consumes it.
#[derive(Debug, PartialEq, Eq)]
pub struct QueueLease {
    /// The published ticket.
    pub ticket: Ticket,
    /// Distinguishes this lease from earlier ones of the same ticket; meaningful to the engine only.
    pub token: u64,
}

/// Number of tickets in a lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LaneDepth {
    /// The lane.
    pub lane: Lane,
    /// Tickets due and not leased.
    pub ready: u64,
    /// Tickets due later.
    pub delayed: u64,
    /// Tickets leased.
    pub leased: u64,
    /// Due time of the oldest ticket that is due and not leased.
    pub oldest_due: Option<Timestamp>,
    /// Due time of the next ticket that is not due yet.
    pub next_due: Option<Timestamp>,
}

/// The abilities of an engine beyond carrying tickets; its caller makes up for missing ones, or does without.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueAbilities {
    /// No ticket is leased before it is due. With an engine that lacks this ability, only due tickets are published and given back.
    pub holds_back: bool,
    /// Tickets of a lane are leased in order of due time, then of chunk id; otherwise roughly in order of publication.
    pub orders: bool,
}

impl QueueAbilities {
    /// All abilities.
    pub const ALL: Self = Self { holds_back: true, orders: true };
}

/// A queue of chunk ids. Every call takes `now` from the caller.
#[async_trait]
pub trait Queue: Send + Sync {
    /// Returns its abilities.
    fn abilities(&self) -> QueueAbilities {
        QueueAbilities::ALL
    }

    /// Puts tickets into their lanes. Publishing a chunk that is already there, leased or not, changes nothing.
    async fn publish(&self, tickets: &[Ticket]) -> Result<(), QueueError>;

    /// Leases up to `max` due tickets of the lane exclusively until `now + lease_for`.
    async fn lease(
        &self,
        lane: Lane,
        max: usize,
        lease_for: Duration,
        now: Timestamp,
    ) -> Result<Vec<QueueLease>, QueueError>;

    /// Extends leases that are still held; returns for each whether it is held.
    async fn extend(
        &self,
        leases: &[QueueLease],
        lease_for: Duration,
        now: Timestamp,
    ) -> Result<Vec<bool>, QueueError>;

    /// Removes settled tickets for good; leases lost in the meantime are ignored.
    async fn ack(&self, leases: Vec<QueueLease>) -> Result<(), QueueError>;

    /// Returns unsent tickets to the queue, due at `due_at`; leases lost in the meantime are ignored.
    async fn nack(&self, leases: Vec<QueueLease>, due_at: Timestamp) -> Result<(), QueueError>;

    /// Removes chunks without a lease: their campaign has ended or is paused, or the node that leased them is dead.
    async fn withdraw(&self, chunks: &[ChunkId]) -> Result<(), QueueError>;

    /// Returns the depth of each non-empty lane.
    async fn depths(&self, now: Timestamp) -> Result<Vec<LaneDepth>, QueueError>;

    /// Fails if published tickets are not accepted now. It relies on a success within the last second, or tries a small write.
    async fn keeps(&self) -> Result<(), QueueError>;

    /// Waits until the engine has lost a part that it needs and that only reopening restores; returns the cause.
    async fn broken(&self) -> String;

    /// Waits until the engine has noticed the loss of its content, as far as it can: waiting tickets must be published again.
    async fn emptied(&self) {
        std::future::pending().await
    }

    /// Removes everything.
    async fn clear(&self) -> Result<(), QueueError>;

    /// Waits until a ticket may have become ready since the last call; may return early, without a reason.
    async fn changed(&self);
}
