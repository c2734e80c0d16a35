//! The port from the ledger's rules to an engine: rows of the ledger, within one transaction.

use std::fmt::Display;
use std::ops::Deref;
use std::sync::Arc;

use super::{Books, Finish, Standing, TooFew};
use crate::campaign::{Campaign, CampaignState, ProviderLedger};
use crate::chunk::{ChunkState, Lane, TokenList};
use crate::delivery::Record;
use crate::device::{ProviderKind, PushToken};
use crate::id::{AppId, CampaignId, ChunkId, DeviceId};
use crate::message::Message;
use crate::outcome::Reason;
use crate::ports::store::{LeaseTerms, SendDecision, StoreError};
use crate::time::Timestamp;

/// A chunk's row without its devices, with frequently needed fields of its campaign.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk {
    /// Its id.
    pub id: ChunkId,
    /// The campaign of its deliveries.
    pub campaign: CampaignId,
    /// Its queue.
    pub lane: Lane,
    /// Its state.
    pub state: ChunkState,
    /// Number of the attempt, starting at 1.
    pub attempt: u16,
    /// True if an earlier attempt may have reached the devices unnoticed.
    pub ambiguous: bool,
    /// Number of leases so far.
    pub epoch: u32,
    /// Earliest time of the lease.
    pub due_at: Timestamp,
    /// Number of deliveries.
    pub count: usize,
    /// Time of the lease or settlement.
    pub changed_at: Option<Timestamp>,
    /// State of its campaign.
    pub campaign_state: CampaignState,
    /// True if a chunk of its campaign was leased before.
    pub campaign_started: bool,
}

impl Chunk {
    /// Returns true if its ticket may be published.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.campaign_state == CampaignState::Running
    }

    /// Returns true if it is leased under an epoch.
    #[must_use]
    pub fn is_leased_under(&self, epoch: u32) -> bool {
        self.state == ChunkState::Leased && self.epoch == epoch
    }
}

/// The epoch of a chunk's first lease.
pub const FIRST_EPOCH: u32 = 1;

/// A new chunk to be stored, queued or leased under [`FIRST_EPOCH`].
#[derive(Debug, Clone, Copy)]
pub struct NewChunk<'a> {
    /// The campaign of its deliveries.
    pub campaign: CampaignId,
    /// Its queue.
    pub lane: Lane,
    /// Its devices, ascending; never empty.
    pub devices: &'a [DeviceId],
    /// Number of the attempt, starting at 1.
    pub attempt: u16,
    /// True if an earlier attempt may have reached the devices unnoticed.
    pub ambiguous: bool,
    /// Earliest time of the lease.
    pub due_at: Timestamp,
    /// The current time.
    pub created_at: Timestamp,
    /// The chunk from which its deliveries continue.
    pub parent: Option<ChunkId>,
    /// Terms of its lease; `None` if it is queued.
    pub lease: Option<LeaseTerms>,
}

/// The data needed to send a chunk.
#[derive(Debug, Clone)]
pub struct Contents {
    /// The message.
    pub message: Arc<Message>,
    /// Its devices, ascending.
    pub devices: Vec<DeviceId>,
    /// The decision for each device.
    pub decisions: Vec<SendDecision>,
    /// Addresses of those with `SendDecision::Send`, in order.
    pub tokens: TokenList,
}

/// The rows of the ledger within one transaction of an engine.
///
/// An operation only reads or writes; it decides nothing. A damaged row is an error for which [`is_unreadable`](LedgerRows::is_unreadable)
/// holds; the rules then continue without it.
pub trait LedgerRows: Sized {
    /// The error of an operation.
    type Error: From<StoreError> + From<TooFew> + Display;
    /// A chunk with additional data of the engine.
    type Chunk: Deref<Target = Chunk>;

    /// Most queued chunks that are ended at once; the rest is left to other transactions.
    const ENDED_AT_ONCE_MAX_COUNT: usize;

    /// Returns true if an error means that the row itself is damaged, rather than that the engine failed.
    fn is_unreadable(error: &Self::Error) -> bool;

    /// Runs `work` atomically. Returns its error if it met a damaged row, and fails if the engine does.
    fn attempt<T>(
        &mut self,
        work: impl FnOnce(&mut Self) -> Result<T, Self::Error>,
    ) -> Result<Result<T, Self::Error>, Self::Error>;

    /// Reports a damaged row to the operator of the engine.
    fn note_damage(&self, row: Damaged, error: &Self::Error);

    /// Returns true if the rest is left to another transaction.
    fn is_portion_over(&self) -> bool {
        false
    }

    /// Returns true if a chunk must be skipped because the disk cannot read it.
    fn skips(&self, _chunk: ChunkId) -> bool {
        false
    }

    /// Notes the current chunk, so that a failure of the disk can be attributed to it.
    fn touch(&self, _chunk: Option<ChunkId>) {}

    /// Returns true if each chunk is to be processed separately.
    fn tries_each_alone(&self) -> bool {
        false
    }

    /// Finds a chunk.
    fn chunk(&self, id: ChunkId) -> Result<Option<Self::Chunk>, Self::Error>;
    /// Reads the devices of a chunk.
    fn devices(&self, chunk: &Self::Chunk) -> Result<Vec<DeviceId>, Self::Error>;
    /// Reads the record of each device of a settled chunk.
    fn records(&self, chunk: &Self::Chunk) -> Result<Vec<Record>, Self::Error>;
    /// Reads the data needed to send a chunk.
    fn contents(&self, chunk: &Self::Chunk, now: Timestamp) -> Result<Contents, Self::Error>;
    /// Lists queued chunks of a campaign, at one provider or at all, in order of id.
    fn queued(
        &self,
        campaign: CampaignId,
        only: Option<ProviderKind>,
        max: usize,
    ) -> Result<Vec<ChunkId>, Self::Error>;
    /// Lists leased chunks.
    fn leased(&self) -> Result<Vec<ChunkId>, Self::Error>;
    /// Returns true if a chunk is leased by an instance.
    fn is_leased_by(&self, chunk: ChunkId, instance: u64) -> Result<bool, Self::Error>;
    /// Lists chunks with an expired lease, the earliest first.
    fn leases_over(&self, now: Timestamp, max: usize) -> Result<Vec<ChunkId>, Self::Error>;

    /// Stores a new chunk.
    fn insert_chunk(&mut self, new: &NewChunk<'_>) -> Result<ChunkId, Self::Error>;
    /// Leases a queued chunk under an epoch.
    fn write_lease(&mut self, chunk: &Self::Chunk, epoch: u32, lease: LeaseTerms) -> Result<(), Self::Error>;
    /// Leases a new chunk under an epoch, with the lease of another chunk.
    fn copy_lease(&mut self, chunk: ChunkId, epoch: u32, other: ChunkId) -> Result<(), Self::Error>;
    /// Queues a chunk again.
    fn write_queued(&mut self, chunk: ChunkId, due_at: Timestamp, ambiguous: bool)
    -> Result<(), Self::Error>;
    /// Settles a chunk.
    fn write_settled(
        &mut self,
        chunk: ChunkId,
        records: &[Record],
        now: Timestamp,
    ) -> Result<(), Self::Error>;
    /// Replaces the records of a settled chunk.
    fn write_records(&mut self, chunk: &Self::Chunk, records: &[Record]) -> Result<(), Self::Error>;
    /// Sets whether devices of a settled chunk may still confirm deliveries, as long as the campaign has not expired. Clearing the flag
    /// works even if the row is damaged.
    fn write_awaits_receipts(&mut self, chunk: ChunkId, awaits: bool) -> Result<(), Self::Error>;
    /// Quarantines a chunk, even if its row is damaged.
    fn write_quarantined(&mut self, chunk: ChunkId, now: Timestamp) -> Result<(), Self::Error>;

    /// Reads the books of a campaign at a provider; a campaign without stored books gets empty ones.
    fn books(&self, campaign: CampaignId, provider: ProviderKind) -> Result<Books, Self::Error>;
    /// Reads the sums of a campaign at all providers, in their order; `None` if some cannot be read.
    fn sums(&self, campaign: CampaignId) -> Result<Option<Vec<ProviderLedger>>, Self::Error>;
    /// Stores books, and adds the deliveries that ended since they were opened.
    fn save_books(&mut self, campaign: CampaignId, books: &Books) -> Result<(), Self::Error>;
    /// Marks the audience as complete in all books of a campaign.
    fn complete_books(&mut self, campaign: CampaignId) -> Result<(), Self::Error>;
    /// Reads books with open deliveries for which no chunk and no producer is left; damaged values in them count as zero.
    fn orphaned_books(&self, of: OrphanedBooks) -> Result<Vec<(CampaignId, Books)>, Self::Error>;
    /// Lists campaigns without an end that were canceled, or have expired by an instant, and have neither an open chunk nor a producer.
    fn orphaned_campaigns(&self, expired_by: Timestamp, max: usize) -> Result<Vec<CampaignId>, Self::Error>;

    /// Finds a campaign of an app, and whether its expansion has begun.
    fn campaign(&self, app: AppId, id: CampaignId) -> Result<Option<(Campaign, bool)>, Self::Error>;
    /// Reads the facts that decide whether a campaign is over.
    fn standing(&self, id: CampaignId) -> Result<Option<Standing>, Self::Error>;
    /// Lists campaigns that may still send, have queued chunks, expire by `now`, and satisfy `is_late` for their due and expiry times.
    fn expired_campaigns(
        &self,
        now: Timestamp,
        is_late: impl Fn(Timestamp, Timestamp) -> bool,
        max: usize,
    ) -> Result<Vec<CampaignId>, Self::Error>;
    /// Sets the state of a campaign.
    fn write_state(&mut self, id: CampaignId, state: CampaignState) -> Result<(), Self::Error>;
    /// Sets the state of a campaign, even if the rest of its row is damaged; clears its end and stop.
    fn force_state(&mut self, id: CampaignId, state: CampaignState) -> Result<(), Self::Error>;
    /// Sets the state of a campaign that begins, and the upper bound of its audience.
    fn write_begun(
        &mut self,
        id: CampaignId,
        state: CampaignState,
        as_of: DeviceId,
    ) -> Result<(), Self::Error>;
    /// Writes the end of a campaign, even if the rest of its row is damaged; an existing stop stays if the end has none.
    fn write_end(&mut self, id: CampaignId, end: &Finish, now: Timestamp) -> Result<(), Self::Error>;

    /// Stores a producer at the beginning of its audience.
    fn add_producer(
        &mut self,
        app: AppId,
        campaign: CampaignId,
        provider: ProviderKind,
    ) -> Result<(), Self::Error>;
    /// Moves the cursor of a producer to a device.
    fn advance_producer(
        &mut self,
        campaign: CampaignId,
        lane: Lane,
        cursor: DeviceId,
    ) -> Result<(), Self::Error>;
    /// Ends the producers of a campaign, at one provider or at all.
    fn end_producers(&mut self, campaign: CampaignId, only: Option<ProviderKind>) -> Result<(), Self::Error>;

    /// Returns the time since which a device has its token.
    fn token_since(&self, chunk: &Self::Chunk, device: DeviceId) -> Result<Option<Timestamp>, Self::Error>;
    /// Removes a device from all audiences, unless its token is newer than `since`.
    fn retire(
        &mut self,
        chunk: &Self::Chunk,
        device: DeviceId,
        reason: Reason,
        since: Timestamp,
        now: Timestamp,
    ) -> Result<(), Self::Error>;
    /// Moves the token to this device and revives it. Returns false if another device holds the token.
    fn move_token(
        &mut self,
        chunk: &Self::Chunk,
        device: DeviceId,
        token: &PushToken,
        now: Timestamp,
    ) -> Result<bool, Self::Error>;
}

/// Selects books without anything left that could settle their open deliveries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OrphanedBooks {
    /// The books of a chunk's campaign at its provider, even if the rest of the chunk's row is damaged.
    OfChunk(ChunkId),
    /// The books of a campaign at one provider or at all.
    OfCampaign(CampaignId, Option<ProviderKind>),
}

/// A damaged row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Damaged {
    /// Of a chunk.
    Chunk(ChunkId),
    /// Of a campaign.
    Campaign(CampaignId),
}
