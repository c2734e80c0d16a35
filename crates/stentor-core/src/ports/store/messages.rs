//! The port for messages, their books and their delivery records.

use async_trait::async_trait;

use super::StoreError;
use super::leases::{LeaseTerms, LeasedChunk};
use crate::campaign::{Campaign, Ledger, ProviderLedger};
use crate::delivery::{DeliveryState, Record};
use crate::device::ProviderKind;
use crate::id::{AppId, CampaignId, ChunkId, DeviceId, MessageId};
use crate::message::Message;
use crate::name::{CollapseKey, IdempotencyKey, TopicName};
use crate::target::Target;
use crate::time::Timestamp;

/// A page of a list: its cursor and its size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Page {
    /// Only ids above this (or below, where newest come first); 0 starts.
    pub after: u64,
    /// At most this many.
    pub limit: usize,
}

/// A part of a list in which some rows cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed<T, I> {
    /// The readable things, in order, as many as the page has room for.
    pub readable: Vec<T>,
    /// The ids of things before the last of these that cannot be read.
    pub broken: Vec<I>,
}

/// The stored reply for a repeated request, independent of the face.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredReply {
    /// Its record, as the contract writes it.
    pub record: String,
}

/// The data that makes a request idempotent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdempotentReply {
    /// The caller's key, unique within the app.
    pub key: IdempotencyKey,
    /// Hash of the operation and its record: the same key with another request is a mistake.
    pub request_hash: [u8; 32],
    /// The reply to the request and to its repeats.
    pub reply: StoredReply,
}

/// The result of storing something under an idempotency key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Idempotent<T> {
    /// Stored now.
    Done(T),
    /// Stored before: send this reply.
    Replayed(StoredReply),
    /// The key was used for another request.
    KeyReused,
}

impl<T> Idempotent<T> {
    /// Changes the result of what was stored now.
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Idempotent<U> {
        match self {
            Self::Done(done) => Idempotent::Done(change(done)),
            Self::Replayed(reply) => Idempotent::Replayed(reply),
            Self::KeyReused => Idempotent::KeyReused,
        }
    }
}

/// A message to be stored.
#[derive(Debug, Clone, PartialEq)]
pub struct NewMessage {
    /// The message; scheduled when `due_at` is later than `created_at`.
    pub message: Message,
    /// The idempotency data, if the caller gave a key.
    pub idempotency: Option<IdempotentReply>,
    /// Terms under which the caller sends it at once, if it can.
    pub at_once: Option<AtOnce>,
}

/// Terms under which a message is sent at once: its campaign begins, and its chunks are leased to the caller, in the transaction that
/// stores it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AtOnce {
    /// The terms of the leases.
    pub lease: LeaseTerms,
    /// The providers through which the caller can send now.
    pub providers: Vec<ProviderKind>,
}

/// The most devices of a message that is sent at once.
pub const AT_ONCE_MAX_DEVICES: usize = 16;

/// A stored message.
#[derive(Debug, Clone)]
pub enum Accepted {
    /// It waits for its due time, or for [`PipelineStore::start_due`](super::PipelineStore::start_due).
    Waits,
    /// Its campaign has begun, and these chunks, of which there is at least one, are leased to the caller.
    Leased(Vec<LeasedChunk>),
}

/// One attempt in a device's history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttemptRecord {
    /// The message.
    pub message: MessageId,
    /// The provider.
    pub provider: ProviderKind,
    /// The chunk that carried it.
    pub chunk: ChunkId,
    /// Number of the attempt, starting at 1.
    pub attempt: u16,
    /// Time of the chunk's creation.
    pub created_at: Timestamp,
    /// Time of its settlement, of its lease, or its due time.
    pub at: Timestamp,
    /// Its record; `Queued` with a later attempt in the list means that it was retried.
    pub record: Record,
}

/// The attempts at a device that a list contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttemptFilter {
    /// Every attempt of one message, in order.
    Message(MessageId),
    /// The attempts over all messages below the page's cursor (a message), newest message first. The limit counts messages, so that a
    /// message's attempts stay together.
    Page(Page),
}

/// The records of the devices in one chunk of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChunkRecords {
    /// The chunk.
    pub chunk: ChunkId,
    /// The provider.
    pub provider: ProviderKind,
    /// Number of the attempt, starting at 1.
    pub attempt: u16,
    /// Time of the chunk's creation.
    pub created_at: Timestamp,
    /// Time of its settlement, of its lease, or its due time.
    pub at: Timestamp,
    /// Its devices.
    pub devices: Vec<DeviceId>,
    /// Record i belongs to device i; `None` before the settlement.
    pub records: Option<Vec<Record>>,
    /// The record of each device before the settlement.
    pub unsettled: Record,
}

impl ChunkRecords {
    /// Lists the devices with their last attempt in this chunk, and their positions in it. Devices that were retried are left out: a later
    /// chunk has their last attempt.
    pub fn last_attempts(&self) -> impl Iterator<Item = (usize, DeviceId, Record)> {
        let record_at = |place: usize| match &self.records {
            Some(records) => {
                records.get(place).copied().filter(|record: &Record| record.state() != DeliveryState::Queued)
            }
            None => Some(self.unsettled),
        };
        let devices = self.devices.iter().enumerate();
        devices.filter_map(move |(place, device)| Some((place, *device, record_at(place)?)))
    }
}

/// Number of devices that a target would reach through a provider.
pub type AudienceCount = (ProviderKind, u64);

/// Messages and the ledger.
#[async_trait]
pub trait MessageStore: Send + Sync {
    /// Stores messages, each atomically and independent of the others. Reply i belongs to message i.
    ///
    /// In one transaction: idempotency row, message and campaign, which [`super::PipelineStore::start_due`] begins. NotFound for a target
    /// device, group or topic that does not exist in the app. A retired device is in no audience unless the target names it, or its token:
    /// its delivery then ends as gone.
    ///
    /// A message to be sent at once begins in the same transaction and its chunks are leased to the caller, if it names at least one and at
    /// most [`AT_ONCE_MAX_DEVICES`] known devices, and the caller can send through the providers of all of them.
    async fn accept(&self, messages: Vec<NewMessage>) -> Vec<Result<Idempotent<Accepted>, StoreError>>;

    /// Returns the newest message of an app with a collapse key, if there is one.
    async fn newest_with_key(&self, app: AppId, key: &CollapseKey) -> Result<Option<MessageId>, StoreError>;

    /// Looks up an idempotency key before any work is done.
    async fn replay(
        &self,
        app: AppId,
        key: &IdempotencyKey,
        request_hash: &[u8; 32],
    ) -> Result<Option<Idempotent<()>>, StoreError>;

    /// Stores the reply for repeats of a request with work that was stored before. A reply already stored under the key is returned and
    /// stays.
    async fn keep_reply(
        &self,
        app: AppId,
        reply: &IdempotentReply,
        now: Timestamp,
    ) -> Result<Idempotent<()>, StoreError>;

    /// Returns one message.
    async fn message(&self, app: AppId, id: MessageId) -> Result<Message, StoreError>;

    /// Returns the given messages that belong to the app and can be read, in one read and in no particular order.
    async fn messages(&self, app: AppId, ids: Vec<MessageId>) -> Result<Vec<Message>, StoreError>;

    /// Returns the newest retained message of a topic ([`crate::message::MessageSpec::retained_topic`]) in the order of their
    /// [places](Message::place), among those that are due by `now`, have not expired and are neither canceled nor paused.
    async fn retained(
        &self,
        app: AppId,
        topic: &TopicName,
        now: Timestamp,
    ) -> Result<Option<MessageId>, StoreError>;

    /// Lists campaigns below the page's cursor, newest first; unreadable ones can be canceled.
    async fn campaigns(&self, app: AppId, page: Page) -> Result<Listed<Campaign, CampaignId>, StoreError>;

    /// Returns the books of a campaign in one snapshot.
    async fn ledger(&self, app: AppId, id: CampaignId) -> Result<Ledger, StoreError>;

    /// Returns the sums of some campaigns of the app, by provider and without reasons, each with its campaign. Campaigns without sums, or
    /// with unreadable sums, are left out.
    async fn sums(
        &self,
        app: AppId,
        ids: Vec<CampaignId>,
    ) -> Result<Vec<(CampaignId, Vec<ProviderLedger>)>, StoreError>;

    /// Lists readable chunks of a message in order, beginning at `from`.
    async fn chunk_records(
        &self,
        app: AppId,
        message: MessageId,
        from: ChunkId,
        max: usize,
    ) -> Result<Vec<ChunkRecords>, StoreError>;

    /// Returns attempts at one device.
    async fn attempts(
        &self,
        app: AppId,
        device: DeviceId,
        filter: AttemptFilter,
    ) -> Result<Vec<AttemptRecord>, StoreError>;

    /// Counts the devices that a target would reach now, by provider; stores nothing.
    async fn count_audience(&self, app: AppId, target: &Target) -> Result<Vec<AudienceCount>, StoreError>;
}
