//! The tables, as collections.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::Arc;

use stentor_core::account::IssuedAccount;
use stentor_core::app::{ApiKey, App, Credential};
use stentor_core::audit::AuditEntry;
use stentor_core::campaign::{Campaign, ProviderLedger, ReasonCount};
use stentor_core::chunk::{ChunkState, Ticket};
use stentor_core::delivery::Record;
use stentor_core::device::{Device, ProviderKind, PushToken};
use stentor_core::group::Member;
use stentor_core::id::{AppId, CampaignId, ChunkId, DeviceId, KeyId, ScheduleId, UpstreamId};
use stentor_core::ledger::{Books, Chunk};
use stentor_core::message::Message;
use stentor_core::name::{ExternalId, GroupName, IdempotencyKey, ServiceName, TopicName};
use stentor_core::ports::store::{Channel, StoreError, StoredReply};
use stentor_core::published::PublishedService;
use stentor_core::schedule::Schedule;
use stentor_core::time::Timestamp;
use stentor_core::upstream::{UpstreamMessage, UpstreamWebhook};

/// Everything that is kept.
#[derive(Clone, Default)]
pub(super) struct Tables {
    pub(super) apps: BTreeMap<AppId, AppRow>,
    pub(super) keys: BTreeMap<KeyId, ApiKey>,
    pub(super) accounts: BTreeMap<KeyId, IssuedAccount>,
    pub(super) campaigns: BTreeMap<CampaignId, CampaignRow>,
    pub(super) chunks: BTreeMap<ChunkId, StoredChunk>,
    /// Chunks that are queued or leased.
    pub(super) open: BTreeSet<ChunkId>,
    pub(super) schedules: BTreeMap<ScheduleId, Schedule>,
    /// Ascending; of each kind in each app the newest.
    pub(super) audit: Vec<AuditEntry>,
    pub(super) last_audit: u64,
    pub(super) fired: HashSet<(ScheduleId, Timestamp)>,
    /// Never goes back, so that no id is given twice.
    pub(super) last_device: u64,
    pub(super) last_chunk: u64,
    pub(super) last_instance: u64,
    pub(super) upstream: BTreeMap<UpstreamId, UpstreamRow>,
    pub(super) channels: BTreeMap<String, BTreeMap<String, Channel>>,
    /// What a device may take, of which app it is, and what it had when it was offered that.
    pub(super) offered_tokens: BTreeMap<DeviceId, (AppId, PushToken, PushToken)>,
}

/// A message of a device.
#[derive(Clone)]
pub(super) struct UpstreamRow {
    pub(super) message: UpstreamMessage,
    pub(super) is_settled: bool,
    /// Why nobody takes it over.
    pub(super) dead: Option<String>,
}

impl UpstreamRow {
    pub(super) const fn waits(&self) -> bool {
        !self.is_settled && self.dead.is_none()
    }
}

/// An app with what belongs to it, apart from its campaigns.
#[derive(Clone)]
pub(super) struct AppRow {
    pub(super) app: App,
    pub(super) credentials: BTreeMap<ProviderKind, Credential>,
    pub(super) webhook: Option<UpstreamWebhook>,
    pub(super) devices: BTreeMap<DeviceId, Device>,
    pub(super) tokens: HashMap<(ProviderKind, PushToken), DeviceId>,
    /// Tokens of the gateway that devices had before.
    pub(super) replaced_tokens: HashMap<PushToken, DeviceId>,
    /// The same by device, the oldest first.
    pub(super) former_tokens: HashMap<DeviceId, VecDeque<PushToken>>,
    /// Those that any device was ever registered with.
    pub(super) providers: BTreeSet<ProviderKind>,
    pub(super) topics: BTreeMap<TopicName, BTreeSet<DeviceId>>,
    pub(super) subscriptions: HashMap<DeviceId, BTreeSet<TopicName>>,
    pub(super) users: BTreeMap<ExternalId, UserRow>,
    pub(super) groups: BTreeMap<GroupName, GroupRow>,
    pub(super) services: BTreeMap<ServiceName, PublishedService>,
    pub(super) replies: BTreeMap<IdempotencyKey, ReplyRow>,
}

#[derive(Clone)]
pub(super) struct UserRow {
    pub(super) created_at: Timestamp,
    pub(super) devices: BTreeSet<DeviceId>,
}

#[derive(Clone)]
pub(super) struct GroupRow {
    pub(super) created_at: Timestamp,
    pub(super) members: BTreeSet<Member>,
}

#[derive(Clone)]
pub(super) struct ReplyRow {
    pub(super) request_hash: [u8; 32],
    pub(super) reply: StoredReply,
    pub(super) created_at: Timestamp,
}

/// A campaign with its message, books and chunks.
#[derive(Clone)]
pub(super) struct CampaignRow {
    pub(super) campaign: Campaign,
    pub(super) message: Arc<Message>,
    /// Devices with larger ids came too late; `None` until the campaign begins.
    pub(super) as_of: Option<DeviceId>,
    pub(super) providers: BTreeMap<ProviderKind, ProviderRow>,
    /// Its chunks, in ascending order.
    pub(super) chunks: Vec<ChunkId>,
}

/// A campaign at a provider: its books, and the producer that fills them.
#[derive(Clone)]
pub(super) struct ProviderRow {
    pub(super) producing: bool,
    pub(super) cursor: DeviceId,
    pub(super) books: Books,
}

/// A chunk; `records` is set once it is settled.
#[derive(Clone)]
pub(super) struct StoredChunk {
    /// The state of its campaign in it is not kept up.
    pub(super) facts: Chunk,
    pub(super) devices: Vec<DeviceId>,
    pub(super) created_at: Timestamp,
    pub(super) lease: Option<LeaseRow>,
    pub(super) records: Vec<Record>,
}

#[derive(Clone, Copy)]
pub(super) struct LeaseRow {
    pub(super) instance: u64,
    pub(super) until: Timestamp,
}

impl Tables {
    pub(super) fn app(&self, id: AppId) -> Result<&AppRow, StoreError> {
        self.apps.get(&id).ok_or(StoreError::NotFound("app"))
    }

    pub(super) fn app_mut(&mut self, id: AppId) -> Result<&mut AppRow, StoreError> {
        self.apps.get_mut(&id).ok_or(StoreError::NotFound("app"))
    }

    pub(super) fn campaign(&self, app: AppId, id: CampaignId) -> Result<&CampaignRow, StoreError> {
        let row = self.campaigns.get(&id).filter(|row| row.campaign.app == app);
        row.ok_or(StoreError::NotFound("message"))
    }
}

impl AppRow {
    pub(super) fn new(app: App) -> Self {
        Self {
            app,
            credentials: BTreeMap::new(),
            webhook: None,
            devices: BTreeMap::new(),
            tokens: HashMap::new(),
            providers: BTreeSet::new(),
            topics: BTreeMap::new(),
            subscriptions: HashMap::new(),
            users: BTreeMap::new(),
            groups: BTreeMap::new(),
            services: BTreeMap::new(),
            replies: BTreeMap::new(),
            replaced_tokens: HashMap::new(),
            former_tokens: HashMap::new(),
        }
    }
}

impl ProviderRow {
    /// Starts with empty books.
    pub(super) fn new(provider: ProviderKind) -> Self {
        Self { producing: false, cursor: DeviceId::from_raw(0), books: Books::new(provider) }
    }

    pub(super) fn ledger(&self) -> ProviderLedger {
        let ends = self.books.ends().filter(|((state, _), _)| state.is_final());
        let reasons = ends.map(|((state, reason), count)| ReasonCount { state, reason, count });
        ProviderLedger { reasons: reasons.collect(), ..self.books.ledger().clone() }
    }
}

impl StoredChunk {
    pub(super) fn is_queued(&self) -> bool {
        self.facts.state == ChunkState::Queued
    }

    pub(super) const fn ticket(&self) -> Ticket {
        Ticket { chunk: self.facts.id, lane: self.facts.lane, due_at: self.facts.due_at }
    }
}
