//! The port to a queue: it carries chunk ids, and can be thrown away and rebuilt from the store at any moment.

use std::time::Duration;

use async_trait::async_trait;

use crate::chunk::{Lane, Ticket};
use crate::id::ChunkId;
use crate::time::Timestamp;

/// Why a queue could not do as asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum QueueError {
    /// The engine failed; trying again later may help.
    #[error("the queue is unavailable: {0}")]
    Unavailable(String),
}

/// A right to work on a chunk for a while; settling it (ack, nack) consumes it.
#[derive(Debug, PartialEq, Eq)]
pub struct QueueLease {
    /// What was published.
    pub ticket: Ticket,
    /// Distinguishes this lease from earlier ones of the same ticket; the engine's own.
    pub token: u64,
}

/// How full a lane is.
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

/// What an engine does beyond carrying tickets; whoever calls it makes up for what it does not, or does without.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueAbilities {
    /// No ticket is leased before it is due. To an engine without it only what is due is published and given back.
    pub holds_back: bool,
    /// Tickets of a lane are leased in order of due time, then of chunk id; otherwise about as they were published.
    pub orders: bool,
}

impl QueueAbilities {
    /// All that an engine can do.
    pub const ALL: Self = Self { holds_back: true, orders: true };
}

/// A queue of chunk ids. Every call takes `now` from the caller.
#[async_trait]
pub trait Queue: Send + Sync {
    /// Returns what it does of what not every engine can do.
    fn abilities(&self) -> QueueAbilities {
        QueueAbilities::ALL
    }

    /// Puts tickets into their lanes. Publishing a chunk that is already there, leased or not, changes nothing.
    async fn publish(&self, tickets: &[Ticket]) -> Result<(), QueueError>;

    /// Takes up to `max` due tickets of the lane; each is nobody else's until `now + lease_for`.
    async fn lease(
        &self,
        lane: Lane,
        max: usize,
        lease_for: Duration,
        now: Timestamp,
    ) -> Result<Vec<QueueLease>, QueueError>;

    /// Prolongs leases that are still held; tells for each whether it is.
    async fn extend(
        &self,
        leases: &[QueueLease],
        lease_for: Duration,
        now: Timestamp,
    ) -> Result<Vec<bool>, QueueError>;

    /// Takes settled tickets out for good; a lease lost meanwhile is ignored.
    async fn ack(&self, leases: Vec<QueueLease>) -> Result<(), QueueError>;

    /// Puts tickets of which nothing was sent back, due at `due_at`; a lease lost meanwhile is ignored.
    async fn nack(&self, leases: Vec<QueueLease>, due_at: Timestamp) -> Result<(), QueueError>;

    /// Takes chunks out without a lease: their campaign has ended or holds, or who had leased them is dead.
    async fn withdraw(&self, chunks: &[ChunkId]) -> Result<(), QueueError>;

    /// Returns how full each lane is that holds anything.
    async fn depths(&self, now: Timestamp) -> Result<Vec<LaneDepth>, QueueError>;

    /// Returns whether tickets that are published now are taken: it was so within the last second, or a small write is tried
    /// for it.
    async fn keeps(&self) -> Result<(), QueueError>;

    /// Waits until the engine has lost a part without which it does nothing more before it is opened again, and returns what
    /// became of that part.
    async fn broken(&self) -> String;

    /// Waits until the engine has noticed that it lost what it held, as far as it can: what waits is to be published again.
    async fn emptied(&self) {
        std::future::pending().await
    }

    /// Throws everything away.
    async fn clear(&self) -> Result<(), QueueError>;

    /// Waits until something may have become ready since the last call; may return early, for no reason.
    async fn changed(&self);
}
