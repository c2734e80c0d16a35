use std::sync::Arc;

use async_trait::async_trait;

use super::StoreError;
use crate::campaign::Tally;
use crate::chunk::{Ticket, TokenList, TrafficClass};
use crate::device::ProviderKind;
use crate::id::{AppId, ChunkId, DeviceId, MessageId};
use crate::message::Message;
use crate::settlement::Settlement;
use crate::time::Timestamp;

/// A producer that has not ended: one per campaign and provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ProducerTask {
    /// Whose audience it expands.
    pub message: MessageId,
    /// Whose app.
    pub app: AppId,
    /// For which provider.
    pub provider: ProviderKind,
}

/// How far to expand in one step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Expansion {
    /// Most devices in one chunk.
    pub chunk_max_devices: usize,
    /// Most chunks in this step.
    pub max_chunks: usize,
    /// The present.
    pub now: Timestamp,
}

/// What a step of a producer came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expanded {
    /// Chunks made, to be published.
    pub tickets: Vec<Ticket>,
    /// Whether the producer has ended: nothing is left, or its campaign has ended.
    pub done: bool,
    /// Whether its campaign is paused: nothing was expanded, ask again after it is resumed.
    pub paused: bool,
}

/// Under which conditions chunks are leased.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LeaseTerms {
    /// The process that leases; one start of a server is one instance.
    pub instance: u64,
    /// Until when the lease holds among live nodes.
    pub until: Timestamp,
    /// The present.
    pub now: Timestamp,
    /// Of which class the chunks are: those of single messages go before audiences.
    pub class: TrafficClass,
}

/// A chunk leased under an epoch: whoever leases it later has a larger one, and what is then done under the older is void.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lease {
    /// The chunk.
    pub chunk: ChunkId,
    /// How often it was leased, this time included.
    pub epoch: u32,
}

/// What is known of one device at sending time; `Gone` goes before `Collapsed`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SendDecision {
    /// To be sent; the token list has its address.
    Send,
    /// The device was removed or retired.
    Gone,
    /// A newer message of the app with the same collapse key (by [`Message::place`]), neither canceled nor stopped at the
    /// provider, has been expanded to it, and waits for it, is on its way, or may have arrived.
    Collapsed,
}

/// A chunk leased to this process: the lease is on disk, its deliveries are `sending`.
///
/// Devices, decisions and tokens are lists of their own, not one list of a struct, because they come and go that way: the
/// devices as the store unpacks them or has them from a producer, the tokens in one piece of memory that the sender's batch takes
/// over. One list would be allocated and filled once more for each lease, and take 16 bytes a device instead of 9.
#[derive(Debug, Clone)]
pub struct LeasedChunk {
    /// The chunk.
    pub id: ChunkId,
    /// The fence: settling under an older epoch changes nothing.
    pub epoch: u32,
    /// The message.
    pub message: Arc<Message>,
    /// The adapter that it goes through.
    pub provider: ProviderKind,
    /// 1 for the first.
    pub attempt: u16,
    /// Whether an attempt before may have reached the devices unseen.
    pub ambiguous: bool,
    /// Everyone in it, ascending.
    pub devices: Vec<DeviceId>,
    /// What is known of each.
    pub decisions: Vec<SendDecision>,
    /// Addresses of those with `SendDecision::Send`, in order.
    pub tokens: TokenList,
    /// The campaign's books at this provider when leased, this chunk counted as `sending`.
    pub tally: Tally,
}

impl LeasedChunk {
    /// Returns the lease that it is under.
    #[must_use]
    pub const fn lease(&self) -> Lease {
        Lease { chunk: self.id, epoch: self.epoch }
    }

    /// Returns these positions as a chunk of the same lease, without their addresses; positions that it has not are left out.
    #[must_use]
    pub fn part(&self, positions: &[u32]) -> Self {
        let (devices, decisions) = (&self.devices, &self.decisions);
        let at = || positions.iter().map(|at| *at as usize);
        Self {
            id: self.id,
            epoch: self.epoch,
            message: Arc::clone(&self.message),
            provider: self.provider,
            attempt: self.attempt,
            ambiguous: self.ambiguous,
            devices: at().filter_map(|at| devices.get(at).copied()).collect(),
            decisions: at().filter_map(|at| decisions.get(at).copied()).collect(),
            tokens: TokenList::default(),
            tally: self.tally,
        }
    }
}

/// What asking for a lease came to.
#[derive(Debug, Clone)]
pub enum LeaseReply {
    /// The chunk is leased to the caller.
    Leased(Box<LeasedChunk>),
    /// The campaign is paused: the chunk stays queued, take its ticket off the queue.
    Paused,
    /// Settled, leased by another, or gone: take its ticket off the queue.
    Void,
}

/// What settling came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SettleReply {
    /// The settlement is written.
    Settled {
        /// The children, to be published.
        tickets: Vec<Ticket>,
        /// The chunk of what is still awaited.
        awaited: Option<Awaited>,
    },
    /// The lease was lost before; nothing was written.
    Stale,
}

/// The chunk in which what is still awaited goes on, leased as its parent was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Awaited {
    /// The chunk that was settled.
    pub parent: ChunkId,
    /// The lease of the chunk that goes on.
    pub lease: Lease,
}

/// What whoever runs the server should know of a store.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StoreFigures {
    /// Chunks that were quarantined and not pruned yet.
    pub quarantined_chunks: u64,
    /// Rows of any kind that could not be read since the process began, each once: lists leave them out.
    pub damaged_rows: u64,
    /// Size of the engine's write-ahead log; 0 for an engine without one.
    pub log_bytes: u64,
}

/// What was found at start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Recovery {
    /// Chunks leased by dead processes, now queued again.
    pub chunks: u64,
    /// Their deliveries: what this crash adds to `duplicate_bound`.
    pub deliveries: u64,
}

/// What a sweep did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Swept {
    /// Chunks that ended expired; their tickets may be taken off the queue.
    pub expired: Vec<ChunkId>,
    /// Leases of live nodes that had run out, queued again.
    pub released: Vec<Ticket>,
}

/// What [`PipelineStore::start_due`] began.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Started {
    /// The chunks of direct targets, to be published.
    pub tickets: Vec<Ticket>,
    /// The app of each campaign.
    pub begun: Vec<AppId>,
    /// Whether any of them has producers, which now have work.
    pub has_producers: bool,
    /// Whether more may be due.
    pub has_more: bool,
}

/// What the pipeline asks of the store.
///
/// Whenever a chunk would be queued again, the campaign is read again: the chunk of an ended campaign ends with it, the
/// chunk of a paused one stays queued without a ticket until it is resumed.
#[async_trait]
pub trait PipelineStore: Send + Sync {
    /// Starts campaigns that are due, be it since they were accepted: fixes `as_of`, makes their producers (or chunks with
    /// the ledger, for direct targets; one without any device finishes at once). Where there are more than the limit, every
    /// app has its turn.
    async fn start_due(
        &self,
        limit: usize,
        chunk_max_devices: usize,
        now: Timestamp,
    ) -> Result<Started, StoreError>;

    /// Lists producers that have not ended and whose campaign runs.
    async fn producers(&self) -> Result<Vec<ProducerTask>, StoreError>;

    /// Returns how many deliveries of a producer's campaign are queued at its provider.
    async fn queued_deliveries(&self, task: ProducerTask) -> Result<u64, StoreError>;

    /// Makes the next chunks of a campaign at a provider: chunk rows, the producer's cursor and the audience counter
    /// in one transaction. The last step ends the producer and sets `audience_complete`; a campaign left without open
    /// deliveries finishes then.
    async fn expand(&self, task: ProducerTask, how: Expansion) -> Result<Expanded, StoreError>;

    /// Ends a producer that cannot go on, because what it would expand cannot be read: its campaign stops at its provider
    /// for [`Reason::Damaged`](crate::outcome::Reason).
    async fn give_up_producer(&self, task: ProducerTask, now: Timestamp) -> Result<(), StoreError>;

    /// Leases chunks and reads what is needed to send them, all in one transaction; reply i belongs to chunk i.
    async fn lease(&self, chunks: &[ChunkId], terms: LeaseTerms) -> Result<Vec<LeaseReply>, StoreError>;

    /// Prolongs leases held by an instance.
    async fn extend(&self, leases: &[Lease], terms: LeaseTerms) -> Result<(), StoreError>;

    /// Releases leased chunks of which not a byte was sent: queued again, the attempt not counted.
    async fn release(&self, leases: &[Lease], due_at: Timestamp) -> Result<Vec<Ticket>, StoreError>;

    /// Writes settlements, each in one transaction and compare-and-set on its epoch: records, books, token hygiene, child
    /// chunks, stop. Reads the campaign again: retries of an ended one end with it. Reply i belongs to settlement i.
    ///
    /// What is awaited goes on as a child chunk that is leased from the beginning: by the same instance, since and until the
    /// same instants, in the same attempt. Its deliveries stay `sending`.
    ///
    /// A stop ends the campaign at the chunk's provider alone: its queued chunks fail for the stop's reason (many of them
    /// later, see [`PipelineStore::continue_work`]), its producer ends, what is leased settles, its retries fail too. The
    /// first stop counts. A campaign that finishes with a stopped provider and nothing accepted anywhere is `Stopped`, for
    /// the reason of the first such provider.
    async fn settle(&self, settlements: Vec<Settlement>) -> Result<Vec<SettleReply>, StoreError>;

    /// Quarantines a chunk that can neither be leased nor settled, so that it holds nothing else up: one leased under `epoch`,
    /// or a queued one. Its deliveries end failed for [`Reason::Damaged`](crate::outcome::Reason), those of a leased one
    /// ambiguous. Where its row or books make no sense, the chunk alone is taken away and the books stay as they are.
    /// Where it can neither be read nor written while other things can, it is left alone until the next start.
    /// Returns whether it was there.
    async fn quarantine(
        &self,
        chunk: ChunkId,
        epoch: Option<u32>,
        now: Timestamp,
    ) -> Result<bool, StoreError>;

    /// Writes something of no meaning and commits it: returns whether anything can be written at all.
    async fn try_to_write(&self) -> Result<(), StoreError>;

    /// Counts what whoever runs the server should know of.
    async fn figures(&self) -> Result<StoreFigures, StoreError>;

    /// Goes on with what was begun and is too much for one transaction: the rows of removed topics, groups, people and apps,
    /// which are gone for everybody already, and what is queued of campaigns canceled or stopped. Returns whether more is left.
    async fn continue_work(&self, now: Timestamp) -> Result<bool, StoreError>;

    /// Releases the leases of every instance but this one, marks their deliveries ambiguous and adds them to the
    /// campaigns' `duplicate_bound`. For an engine that serves one process; called once at start. The instance's number
    /// counts as given out from then on: `last_id` is never below it. Returns how much that was, and the tickets of what may be
    /// published: a queue that outlives the process may take them for leased.
    async fn recover(&self, instance: u64, now: Timestamp) -> Result<(Recovery, Vec<Ticket>), StoreError>;

    /// Returns whether what is written now is kept: it was so within the last second, or a small write is tried for it.
    async fn keeps(&self) -> Result<(), StoreError>;

    /// Waits until the engine has lost a part without which it keeps nothing more before it is opened again, and returns what
    /// became of that part.
    async fn broken(&self) -> String;

    /// Lists queued chunks of running campaigns after a chunk id, in order of id, to publish them again.
    async fn queued(&self, after: ChunkId, limit: usize) -> Result<Vec<Ticket>, StoreError>;

    /// Returns the tickets of those of the chunks that are queued and whose campaign runs.
    async fn waiting(&self, chunks: &[ChunkId]) -> Result<Vec<Ticket>, StoreError>;

    /// Ends queued chunks of campaigns past their ttl (paused ones too) as expired, releases leases that ran out
    /// among live nodes (counted like a crash), finishes campaigns.
    async fn sweep(&self, limit: usize, now: Timestamp) -> Result<Swept, StoreError>;

    /// Forgets campaigns that ended before `ended_before`, and idempotency rows made before `replies_before`;
    /// gives how many rows went.
    async fn prune(
        &self,
        ended_before: Timestamp,
        replies_before: Timestamp,
        limit: usize,
    ) -> Result<u64, StoreError>;

    /// Forgets devices known only by a message to their token, made before `before`, that no message which is kept was sent
    /// to. Looks at some of them, beginning after the place that the call before gave (0 at first); returns how many went,
    /// and the place after which to look on, none at the end.
    async fn prune_unlisted(&self, before: Timestamp, after: u64) -> Result<(u64, Option<u64>), StoreError>;
}
