use async_trait::async_trait;

use super::StoreError;
use crate::campaign::{Campaign, Ledger, ProviderLedger};
use crate::delivery::{DeliveryState, Record};
use crate::device::ProviderKind;
use crate::id::{AppId, CampaignId, ChunkId, DeviceId, MessageId};
use crate::message::Message;
use crate::name::{IdempotencyKey, TopicName};
use crate::target::Target;
use crate::time::Timestamp;

/// A piece of a list: what comes after a number, and how much of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Page {
    /// Only ids above this (or below, where newest come first); 0 starts.
    pub after: u64,
    /// At most this many.
    pub limit: usize,
}

/// The reply that a repeated request gets again, through whichever face.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredReply {
    /// Its record, as the contract writes it.
    pub record: String,
}

/// What makes repeating a request harmless.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdempotentReply {
    /// The caller's key, unique within the app.
    pub key: IdempotencyKey,
    /// Hash of the operation and its record: the same key with another request is a mistake.
    pub request_hash: [u8; 32],
    /// What to answer, now and again.
    pub reply: StoredReply,
}

/// Whether something was kept now or had been kept before under the same idempotency key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Idempotent<T> {
    /// Kept now.
    Done(T),
    /// Kept before: answer this.
    Replayed(StoredReply),
    /// The key was used for another request.
    KeyReused,
}

/// A message to keep.
#[derive(Debug, Clone, PartialEq)]
pub struct NewMessage {
    /// The message; scheduled when `due_at` is later than `created_at`.
    pub message: Message,
    /// What makes it repeatable, if the caller gave a key.
    pub idempotency: Option<IdempotentReply>,
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
    /// 1 for the first.
    pub attempt: u16,
    /// When the chunk was made.
    pub created_at: Timestamp,
    /// When it was settled, or leased, or is due.
    pub at: Timestamp,
    /// What is known; `Queued` with a later attempt in the list means that it was tried again.
    pub record: Record,
}

/// The records of the devices in one chunk of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChunkRecords {
    /// The chunk.
    pub chunk: ChunkId,
    /// The provider.
    pub provider: ProviderKind,
    /// 1 for the first.
    pub attempt: u16,
    /// When the chunk was made.
    pub created_at: Timestamp,
    /// When it was settled, or leased, or is due.
    pub at: Timestamp,
    /// Its devices.
    pub devices: Vec<DeviceId>,
    /// Record i belongs to device i; `None` before it is settled.
    pub records: Option<Vec<Record>>,
    /// What is true of each device before that.
    pub unsettled: Record,
}

impl ChunkRecords {
    /// Lists the devices of which this chunk tells the last attempt, and their places in it: what was tried again is told by
    /// a later chunk.
    pub fn last_attempts(&self) -> impl Iterator<Item = (usize, DeviceId, Record)> {
        let told = |place: usize| match &self.records {
            Some(records) => {
                records.get(place).copied().filter(|record: &Record| record.state() != DeliveryState::Queued)
            }
            None => Some(self.unsettled),
        };
        let devices = self.devices.iter().enumerate();
        devices.filter_map(move |(place, device)| Some((place, *device, told(place)?)))
    }
}

/// How many devices a target would reach through a provider.
pub type AudienceCount = (ProviderKind, u64);

/// Messages and the ledger.
#[async_trait]
pub trait MessageStore: Send + Sync {
    /// Keeps messages, each whole or not at all and independent of the others. Reply i belongs to message i.
    ///
    /// In one transaction: idempotency row, message and campaign, which [`super::PipelineStore::start_due`] begins.
    /// NotFound for a target device, group or topic that does not exist in the app. A retired device is in no audience
    /// unless the target names it, or its token: its delivery then ends as gone.
    async fn accept(&self, messages: Vec<NewMessage>) -> Vec<Result<Idempotent<()>, StoreError>>;

    /// Looks up an idempotency key before any work is done.
    async fn replay(
        &self,
        app: AppId,
        key: &IdempotencyKey,
        request_hash: &[u8; 32],
    ) -> Result<Option<Idempotent<()>>, StoreError>;

    /// Keeps what a repeated request is answered, where the request's own work was kept before; what is kept already under the
    /// key is returned and stays.
    async fn keep_reply(
        &self,
        app: AppId,
        reply: &IdempotentReply,
        now: Timestamp,
    ) -> Result<Idempotent<()>, StoreError>;

    /// Returns one message.
    async fn message(&self, app: AppId, id: MessageId) -> Result<Message, StoreError>;

    /// Returns those of these messages that the app has and that can be read, in one read and in no certain order.
    async fn messages(&self, app: AppId, ids: Vec<MessageId>) -> Result<Vec<Message>, StoreError>;

    /// Returns the newest of the messages that a topic is to keep ([`crate::message::MessageSpec::retained_topic`]), in the order of their
    /// [places](Message::place): of those that are due by `now`, have not expired and are neither canceled nor paused.
    async fn retained(
        &self,
        app: AppId,
        topic: &TopicName,
        now: Timestamp,
    ) -> Result<Option<MessageId>, StoreError>;

    /// Lists campaigns, newest first, those below the page's cursor, those that can be read.
    async fn campaigns(&self, app: AppId, page: Page) -> Result<Vec<Campaign>, StoreError>;

    /// Lists the campaigns that such a list leaves out because they cannot be read; they can be canceled.
    async fn broken_campaigns(&self, app: AppId, page: Page) -> Result<Vec<CampaignId>, StoreError>;

    /// Returns the books of a campaign in one snapshot.
    async fn ledger(&self, app: AppId, id: CampaignId) -> Result<Ledger, StoreError>;

    /// Returns the sums of some campaigns of the app, by provider and without reasons, each with its campaign; nothing of one that has none
    /// or whose sums cannot be read.
    async fn sums(
        &self,
        app: AppId,
        ids: Vec<CampaignId>,
    ) -> Result<Vec<(CampaignId, Vec<ProviderLedger>)>, StoreError>;

    /// Lists chunks of a message, in order and beginning at one, those that can be read.
    async fn chunk_records(
        &self,
        app: AppId,
        message: MessageId,
        from: ChunkId,
        max: usize,
    ) -> Result<Vec<ChunkRecords>, StoreError>;

    /// Returns every attempt of one message at one device, in order.
    async fn delivery(
        &self,
        app: AppId,
        message: MessageId,
        device: DeviceId,
    ) -> Result<Vec<AttemptRecord>, StoreError>;

    /// Returns a device's attempts over all messages, newest message first, those below the page's cursor (a message);
    /// the limit counts messages, so that no message's attempts are cut in two.
    async fn history(
        &self,
        app: AppId,
        device: DeviceId,
        page: Page,
    ) -> Result<Vec<AttemptRecord>, StoreError>;

    /// Counts whom a target would reach now, by provider; keeps nothing.
    async fn count_audience(&self, app: AppId, target: &Target) -> Result<Vec<AudienceCount>, StoreError>;
}
