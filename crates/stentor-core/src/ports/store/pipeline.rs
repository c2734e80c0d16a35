//! The port of the pipeline: producers, leases, settlements and maintenance.

use async_trait::async_trait;

use super::StoreError;
use super::leases::{Lease, LeaseTerms, LeasedChunk};
use crate::chunk::Ticket;
use crate::device::ProviderKind;
use crate::id::{AppId, ChunkId, MessageId, ScheduleId};
use crate::settlement::Settlement;
use crate::time::Timestamp;

/// An active producer: one per campaign and provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ProducerTask {
    /// The message with the audience to expand.
    pub message: MessageId,
    /// The owning app.
    pub app: AppId,
    /// The provider.
    pub provider: ProviderKind,
}

/// Limits of one expansion step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Expansion {
    /// Most devices in one chunk.
    pub chunk_max_devices: usize,
    /// Most chunks in this step.
    pub max_chunks: usize,
    /// The current time.
    pub now: Timestamp,
}

/// The result of a producer's step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expanded {
    /// New chunks to be published.
    pub tickets: Vec<Ticket>,
    /// True if the producer has ended: the audience is complete, or its campaign has ended.
    pub done: bool,
    /// True if its campaign is paused: nothing was expanded, and the step can be repeated once it is resumed.
    pub paused: bool,
}

/// The result of a request for a lease.
#[derive(Debug, Clone)]
pub enum LeaseReply {
    /// The chunk is leased to the caller.
    Leased(Box<LeasedChunk>),
    /// The campaign is paused: the chunk stays queued; its ticket must be removed from the queue.
    Paused,
    /// Settled, leased by another process, or gone: its ticket must be removed from the queue.
    Void,
}

/// The result of a settlement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SettleReply {
    /// The settlement is written.
    Settled {
        /// The children, to be published.
        tickets: Vec<Ticket>,
        /// The chunk of the deliveries that are still awaited.
        awaited: Option<Awaited>,
    },
    /// The lease had been lost; nothing was written.
    Stale,
}

/// The chunk in which awaited deliveries continue, with the lease of its parent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Awaited {
    /// The settled chunk.
    pub parent: ChunkId,
    /// The lease of the continuing chunk.
    pub lease: Lease,
}

/// Work that cannot be done because its data is damaged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BrokenWork {
    /// A chunk that can neither be leased nor settled: a chunk leased under `epoch`, or a queued one. Its deliveries end failed for
    /// [`Reason::Damaged`](crate::outcome::Reason); if the chunk is leased, they are ambiguous. If its row or books are damaged, only the
    /// chunk is removed and the books stay unchanged. If it can neither be read nor written while other data can, it is skipped until the
    /// next start.
    Chunk {
        /// The chunk.
        chunk: ChunkId,
        /// The epoch of its lease, if it is leased.
        epoch: Option<u32>,
    },
    /// A producer with an unreadable audience: it ends, and its campaign stops at its provider for
    /// [`Reason::Damaged`](crate::outcome::Reason).
    Producer(ProducerTask),
    /// A schedule that cannot be read, or cannot fire: it is disabled.
    Schedule(ScheduleId),
}

/// The queued chunks that a list contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueuedFilter<'a> {
    /// The chunks after another, at most so many.
    After(ChunkId, usize),
    /// Some of the given chunks.
    Among(&'a [ChunkId]),
}

/// The result of the recovery at start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Recovery {
    /// Chunks leased by dead processes, now queued again.
    pub chunks: u64,
    /// Their deliveries, which this crash adds to `duplicate_bound`.
    pub deliveries: u64,
}

/// The result of a sweep.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Swept {
    /// Chunks that ended expired; their tickets may be removed from the queue.
    pub expired: Vec<ChunkId>,
    /// Expired leases of live nodes, queued again.
    pub released: Vec<Ticket>,
}

/// A deletion of old rows, in steps of one transaction each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PruneTask {
    /// Deletes campaigns that ended before one instant, and idempotency rows created before another.
    Campaigns {
        /// The time of the last campaigns to be kept.
        ended_before: Timestamp,
        /// The time of the last idempotency rows to be kept.
        replies_before: Timestamp,
    },
    /// Deletes unlisted devices, known only from a message to their token, that were created before an instant and to which no stored
    /// message was sent. A step checks some of them, however many it deletes.
    Unlisted {
        /// The time of the last devices to be kept.
        before: Timestamp,
        /// The cursor behind which the step begins; 0 at first.
        after: u64,
    },
    /// Deletes upstream messages that were taken over or have expired, and dead letters.
    Upstream {
        /// The time of the last expiry to be kept.
        expired_before: Timestamp,
        /// The time of the last expiry of a dead letter to be kept.
        dead_before: Timestamp,
    },
    /// Deletes entries of the audit trail from before an instant.
    Audit {
        /// The time of the last entries to be kept.
        before: Timestamp,
    },
    /// Deletes proposals that expired before an instant.
    Proposals {
        /// The time of the last expiry to be kept.
        expired_before: Timestamp,
    },
    /// Deletes the oldest events between nodes beyond their limit, and quota levels without a credential.
    Events,
}

impl PruneTask {
    /// Returns the result of a step of this task that deleted some rows.
    #[must_use]
    pub fn deleted(self, count: u64) -> Pruned {
        Pruned { count, next: (count > 0).then_some(self) }
    }
}

/// The result of a step of a [`PruneTask`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pruned {
    /// The number of deleted rows; for [`PruneTask::Unlisted`] of deleted devices.
    pub count: u64,
    /// The next step; `None` if nothing is left to do.
    pub next: Option<PruneTask>,
}

/// The campaigns begun by [`PipelineStore::start_due`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Started {
    /// The chunks of direct targets, to be published.
    pub tickets: Vec<Ticket>,
    /// The app of each campaign.
    pub begun: Vec<AppId>,
    /// True if any of them has producers, which now have work.
    pub has_producers: bool,
    /// True if more campaigns may be due.
    pub has_more: bool,
}

/// Operations of the pipeline.
///
/// Before a chunk is queued again, its campaign is read again: a chunk of an ended campaign ends with it, a chunk of a paused one stays
/// queued without a ticket until it is resumed.
#[async_trait]
pub trait PipelineStore: Send + Sync {
    /// Starts due campaigns, including newly accepted ones: fixes `as_of` and creates their producers, or for direct targets chunks with
    /// the ledger; a campaign without devices finishes at once. If more are due than the limit, the apps take turns.
    async fn start_due(
        &self,
        limit: usize,
        chunk_max_devices: usize,
        now: Timestamp,
    ) -> Result<Started, StoreError>;

    /// Lists active producers of running campaigns.
    async fn producers(&self) -> Result<Vec<ProducerTask>, StoreError>;

    /// Counts the queued deliveries of a producer's campaign at its provider.
    async fn queued_deliveries(&self, task: ProducerTask) -> Result<u64, StoreError>;

    /// Creates the next chunks of a campaign at a provider: chunk rows, the producer's cursor and the audience counter in one transaction.
    /// The last step ends the producer and sets `audience_complete`; a campaign without open deliveries finishes then.
    async fn expand(&self, task: ProducerTask, how: Expansion) -> Result<Expanded, StoreError>;

    /// Leases chunks and reads the data needed to send them, all in one transaction; reply i belongs to chunk i.
    async fn lease(&self, chunks: &[ChunkId], terms: LeaseTerms) -> Result<Vec<LeaseReply>, StoreError>;

    /// Extends leases of an instance.
    async fn extend(&self, leases: &[Lease], terms: LeaseTerms) -> Result<(), StoreError>;

    /// Releases leased chunks that were not sent at all: they are queued again, and the attempt does not count.
    async fn release(&self, leases: &[Lease], due_at: Timestamp) -> Result<Vec<Ticket>, StoreError>;

    /// Writes settlements, each in one transaction and compare-and-set on its epoch: records, books, token changes, child chunks, stop.
    /// Reads the campaign again: retries of an ended one end with it. Reply i belongs to settlement i.
    ///
    /// Awaited deliveries continue in a child chunk that is leased from the beginning: by the same instance, since and until the same
    /// instants, in the same attempt. They stay `sending`.
    ///
    /// A stop ends the campaign at the chunk's provider alone: its queued chunks fail for the stop's reason (many of them later, see
    /// [`PipelineStore::continue_work`]), its producer ends, leased chunks settle, and their retries fail too. The first stop counts. A
    /// campaign that finishes with a stopped provider and nothing accepted anywhere is `Stopped`, for the reason of the first such
    /// provider.
    async fn settle(&self, settlements: Vec<Settlement>) -> Result<Vec<SettleReply>, StoreError>;

    /// Sets work aside for good, so that it delays nothing else. Returns true if it existed.
    async fn quarantine(&self, work: BrokenWork, now: Timestamp) -> Result<bool, StoreError>;

    /// Continues work that is too large for one transaction: rows of removed topics, groups, users and apps, which are already invisible,
    /// and queued chunks of canceled or stopped campaigns. Returns true if more is left.
    async fn continue_work(&self, now: Timestamp) -> Result<bool, StoreError>;

    /// Releases the leases of all other instances, marks their deliveries ambiguous and adds them to the campaigns' `duplicate_bound`. For
    /// an engine that serves one process; called once at start. The instance's id counts as used from then on: `last_id` is never below it.
    /// Returns the released amount, and the tickets that may be published: a queue that outlives the process may consider them leased.
    async fn recover(&self, instance: u64, now: Timestamp) -> Result<(Recovery, Vec<Ticket>), StoreError>;

    /// Returns the tickets of queued chunks of running campaigns, in order of id, so that they can be published again.
    async fn queued(&self, filter: QueuedFilter<'_>) -> Result<Vec<Ticket>, StoreError>;

    /// Ends queued chunks of campaigns past their ttl (including paused ones) as expired, releases expired leases of live nodes (counted
    /// like a crash), finishes campaigns.
    async fn sweep(&self, limit: usize, now: Timestamp) -> Result<Swept, StoreError>;

    /// Deletes some old rows, at most `limit`.
    async fn prune(&self, task: PruneTask, limit: usize) -> Result<Pruned, StoreError>;
}
