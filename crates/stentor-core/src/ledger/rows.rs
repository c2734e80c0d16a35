//! What the rules ask of an engine: rows of the ledger, within one transaction.

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

/// What is kept of a chunk apart from who is in it, with what is asked of its campaign again and again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk {
    /// Its id.
    pub id: ChunkId,
    /// Whose deliveries it has.
    pub campaign: CampaignId,
    /// Its queue.
    pub lane: Lane,
    /// Where it is.
    pub state: ChunkState,
    /// 1 for the first.
    pub attempt: u16,
    /// Whether an attempt before may have reached the devices unseen.
    pub ambiguous: bool,
    /// How often it was leased.
    pub epoch: u32,
    /// Not before.
    pub due_at: Timestamp,
    /// How many deliveries it has.
    pub count: usize,
    /// When it was leased or settled.
    pub changed_at: Option<Timestamp>,
    /// Where its campaign is.
    pub campaign_state: CampaignState,
    /// Whether a chunk of its campaign was leased before.
    pub campaign_started: bool,
}

impl Chunk {
    /// Returns whether its ticket may be published.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.campaign_state == CampaignState::Running
    }

    /// Returns whether it is leased under an epoch.
    #[must_use]
    pub fn is_leased_under(&self, epoch: u32) -> bool {
        self.state == ChunkState::Leased && self.epoch == epoch
    }
}

/// A chunk to be kept, queued.
#[derive(Debug, Clone, Copy)]
pub struct NewChunk<'a> {
    /// Whose deliveries it has.
    pub campaign: CampaignId,
    /// Its queue.
    pub lane: Lane,
    /// Everyone in it, ascending; never empty.
    pub devices: &'a [DeviceId],
    /// 1 for the first.
    pub attempt: u16,
    /// Whether an attempt before may have reached the devices unseen.
    pub ambiguous: bool,
    /// Not before.
    pub due_at: Timestamp,
    /// The present.
    pub created_at: Timestamp,
    /// The chunk whose deliveries go on in it.
    pub parent: Option<ChunkId>,
}

/// What is needed to send a chunk.
#[derive(Debug, Clone)]
pub struct Contents {
    /// The message.
    pub message: Arc<Message>,
    /// Everyone in it, ascending.
    pub devices: Vec<DeviceId>,
    /// What is known of each.
    pub decisions: Vec<SendDecision>,
    /// Addresses of those with `SendDecision::Send`, in order.
    pub tokens: TokenList,
}

/// The rows of the ledger within one transaction of an engine.
///
/// An operation reads or writes what it is told to and decides nothing. A row that makes no sense is an error for which
/// [`is_unreadable`](LedgerRows::is_unreadable) holds; the rules then go on without it.
pub trait LedgerRows: Sized {
    /// Why an operation failed.
    type Error: From<StoreError> + From<TooFew> + Display;
    /// A chunk, with what the engine alone knows of it.
    type Chunk: Deref<Target = Chunk>;

    /// Most queued chunks that are ended at once; more are left to other transactions.
    const ENDED_AT_ONCE_MAX_COUNT: usize;

    /// Returns whether an error says of the row alone that it makes no sense, and nothing of the engine.
    fn is_unreadable(error: &Self::Error) -> bool;

    /// Does something whole or not at all; returns the error when what it met makes no sense, and fails when the engine does.
    fn attempt<T>(
        &mut self,
        work: impl FnOnce(&mut Self) -> Result<T, Self::Error>,
    ) -> Result<Result<T, Self::Error>, Self::Error>;

    /// Names a row that makes no sense to whoever runs the engine.
    fn note_damage(&self, row: Damaged, error: &Self::Error);

    /// Returns whether the rest is for another transaction.
    fn is_portion_over(&self) -> bool {
        false
    }

    /// Returns whether a chunk is to be left alone, because the disk does not give it.
    fn skips(&self, _chunk: ChunkId) -> bool {
        false
    }

    /// Notes which chunk is being worked on, so that it is known at which the disk failed.
    fn touch(&self, _chunk: Option<ChunkId>) {}

    /// Returns whether each chunk is to be tried alone.
    fn tries_each_alone(&self) -> bool {
        false
    }

    /// Finds a chunk.
    fn chunk(&self, id: ChunkId) -> Result<Option<Self::Chunk>, Self::Error>;
    /// Reads who is in a chunk.
    fn devices(&self, chunk: &Self::Chunk) -> Result<Vec<DeviceId>, Self::Error>;
    /// Reads what became of each device of a settled chunk.
    fn records(&self, chunk: &Self::Chunk) -> Result<Vec<Record>, Self::Error>;
    /// Reads what is needed to send a chunk.
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
    /// Returns whether a chunk is leased by an instance.
    fn is_leased_by(&self, chunk: ChunkId, instance: u64) -> Result<bool, Self::Error>;
    /// Lists chunks whose lease has run out, the earliest first.
    fn leases_over(&self, now: Timestamp, max: usize) -> Result<Vec<ChunkId>, Self::Error>;

    /// Keeps a new chunk.
    fn insert_chunk(&mut self, new: &NewChunk<'_>) -> Result<ChunkId, Self::Error>;
    /// Leases a queued chunk under an epoch.
    fn write_lease(&mut self, chunk: &Self::Chunk, epoch: u32, lease: LeaseTerms) -> Result<(), Self::Error>;
    /// Leases a new chunk under an epoch as another is leased.
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
    /// Rewrites what became of the devices of a settled chunk.
    fn write_records(&mut self, chunk: &Self::Chunk, records: &[Record]) -> Result<(), Self::Error>;
    /// Notes whether devices of a settled chunk may still confirm deliveries, as long as the campaign has not expired; that they may not,
    /// whatever else its row says.
    fn write_awaits_receipts(&mut self, chunk: ChunkId, awaits: bool) -> Result<(), Self::Error>;
    /// Takes a chunk out of the way for good, whatever its row says.
    fn write_quarantined(&mut self, chunk: ChunkId, now: Timestamp) -> Result<(), Self::Error>;

    /// Reads the books of a campaign at a provider; one that has none yet gets empty ones.
    fn books(&self, campaign: CampaignId, provider: ProviderKind) -> Result<Books, Self::Error>;
    /// Reads the sums of a campaign at all providers, in their order; `None` where some cannot be read.
    fn sums(&self, campaign: CampaignId) -> Result<Option<Vec<ProviderLedger>>, Self::Error>;
    /// Keeps books, and adds what has ended since they were opened.
    fn save_books(&mut self, campaign: CampaignId, books: &Books) -> Result<(), Self::Error>;
    /// Notes in all books of a campaign that what was expanded is all that there will be.
    fn complete_books(&mut self, campaign: CampaignId) -> Result<(), Self::Error>;
    /// Reads books that have something open though no chunk and no producer is left that it could come from; what makes no sense
    /// in them counts for nothing.
    fn orphaned_books(&self, of: OrphanedBooks) -> Result<Vec<(CampaignId, Books)>, Self::Error>;
    /// Lists campaigns without an end that were canceled, or have expired by an instant, and have neither a chunk that is open
    /// nor a producer.
    fn orphaned_campaigns(&self, expired_by: Timestamp, max: usize) -> Result<Vec<CampaignId>, Self::Error>;

    /// Finds a campaign of an app, and whether its audience was begun.
    fn campaign(&self, app: AppId, id: CampaignId) -> Result<Option<(Campaign, bool)>, Self::Error>;
    /// Reads what is known of a campaign when it may be over.
    fn standing(&self, id: CampaignId) -> Result<Option<Standing>, Self::Error>;
    /// Lists campaigns that may still send, of which something is queued, that expire by `now`, and for which `is_late` holds
    /// of the instants when they are due and expire.
    fn expired_campaigns(
        &self,
        now: Timestamp,
        is_late: impl Fn(Timestamp, Timestamp) -> bool,
        max: usize,
    ) -> Result<Vec<CampaignId>, Self::Error>;
    /// Sets the state of a campaign.
    fn write_state(&mut self, id: CampaignId, state: CampaignState) -> Result<(), Self::Error>;
    /// Sets the state of a campaign whatever else its row says; it has neither end nor stop then.
    fn force_state(&mut self, id: CampaignId, state: CampaignState) -> Result<(), Self::Error>;
    /// Sets the state of a campaign that begins, and the bound of its audience.
    fn write_begun(
        &mut self,
        id: CampaignId,
        state: CampaignState,
        as_of: DeviceId,
    ) -> Result<(), Self::Error>;
    /// Writes how a campaign ends, whatever else its row says; a stop it had stays where the end has none.
    fn write_end(&mut self, id: CampaignId, end: &Finish, now: Timestamp) -> Result<(), Self::Error>;

    /// Keeps a producer, at the beginning of its audience.
    fn add_producer(
        &mut self,
        app: AppId,
        campaign: CampaignId,
        provider: ProviderKind,
    ) -> Result<(), Self::Error>;
    /// Lets a producer go on after a device.
    fn advance_producer(
        &mut self,
        campaign: CampaignId,
        lane: Lane,
        cursor: DeviceId,
    ) -> Result<(), Self::Error>;
    /// Ends the producers of a campaign, at one provider or at all.
    fn end_producers(&mut self, campaign: CampaignId, only: Option<ProviderKind>) -> Result<(), Self::Error>;

    /// Returns since when a device has its token.
    fn token_since(&self, chunk: &Self::Chunk, device: DeviceId) -> Result<Option<Timestamp>, Self::Error>;
    /// Takes a device out of every audience, unless its token is newer than `since`.
    fn retire(
        &mut self,
        chunk: &Self::Chunk,
        device: DeviceId,
        reason: Reason,
        since: Timestamp,
        now: Timestamp,
    ) -> Result<(), Self::Error>;
    /// Moves a device to another address and revives it; false when another device holds the address.
    fn move_token(
        &mut self,
        chunk: &Self::Chunk,
        device: DeviceId,
        token: &PushToken,
        now: Timestamp,
    ) -> Result<bool, Self::Error>;
}

/// Whose books may have lost all that they waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OrphanedBooks {
    /// Those of a chunk's campaign at its provider, whatever else the chunk's row says.
    OfChunk(ChunkId),
    /// Those of a campaign at one provider or at all.
    OfCampaign(CampaignId, Option<ProviderKind>),
}

/// A row that makes no sense.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Damaged {
    /// Of a chunk.
    Chunk(ChunkId),
    /// Of a campaign.
    Campaign(CampaignId),
}
