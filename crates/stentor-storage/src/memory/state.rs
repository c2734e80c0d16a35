//! The tables, as collections.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use stentor_core::app::{ApiKey, App, Credential};
use stentor_core::audit::AuditEntry;
use stentor_core::campaign::{Campaign, ProviderLedger, ReasonCount, Stop, Tally};
use stentor_core::chunk::{Lane, Ticket};
use stentor_core::delivery::{DeliveryState, Record};
use stentor_core::device::{Device, ProviderKind, PushToken};
use stentor_core::group::Member;
use stentor_core::id::{AppId, CampaignId, ChunkId, DeviceId, KeyId, MessageId, ScheduleId};
use stentor_core::message::Message;
use stentor_core::name::{CollapseKey, ExternalId, GroupName, IdempotencyKey, TopicName};
use stentor_core::outcome::Reason;
use stentor_core::ports::clock::Timestamp;
use stentor_core::ports::store::{StoreError, StoredReply};
use stentor_core::schedule::Schedule;

/// Everything that is kept.
#[derive(Clone, Default)]
pub(super) struct State {
    pub(super) apps: BTreeMap<AppId, AppRow>,
    pub(super) keys: BTreeMap<KeyId, ApiKey>,
    pub(super) campaigns: BTreeMap<CampaignId, CampaignRow>,
    pub(super) chunks: BTreeMap<ChunkId, ChunkRow>,
    /// Chunks that are queued or leased.
    pub(super) open: BTreeSet<ChunkId>,
    /// Chunks that were given up.
    pub(super) set_aside: BTreeSet<ChunkId>,
    pub(super) schedules: BTreeMap<ScheduleId, Schedule>,
    /// Ascending; of each kind in each app the newest.
    pub(super) audit: Vec<AuditEntry>,
    pub(super) last_audit: u64,
    pub(super) fired: HashSet<(ScheduleId, Timestamp)>,
    /// Never goes back, so that no id is given twice.
    pub(super) last_device: u64,
    pub(super) last_chunk: u64,
    pub(super) last_instance: u64,
}

/// An app with what belongs to it, apart from its campaigns.
#[derive(Clone)]
pub(super) struct AppRow {
    pub(super) app: App,
    pub(super) credentials: BTreeMap<ProviderKind, Credential>,
    pub(super) devices: BTreeMap<DeviceId, Device>,
    pub(super) tokens: HashMap<(ProviderKind, PushToken), DeviceId>,
    pub(super) topics: BTreeMap<TopicName, BTreeSet<DeviceId>>,
    pub(super) subscriptions: HashMap<DeviceId, BTreeSet<TopicName>>,
    pub(super) users: BTreeMap<ExternalId, UserRow>,
    pub(super) groups: BTreeMap<GroupName, GroupRow>,
    pub(super) replies: BTreeMap<IdempotencyKey, ReplyRow>,
    /// The messages of each collapse key that were expanded to a device and neither canceled nor stopped at its provider, by
    /// their places.
    pub(super) newest: HashMap<CollapseKey, HashMap<DeviceId, BTreeSet<(u64, MessageId)>>>,
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
    pub(super) books: BTreeMap<ProviderKind, Books>,
    /// Ascending.
    pub(super) chunks: Vec<ChunkId>,
}

/// The books of a campaign at a provider, with the producer that fills them.
#[derive(Clone, Default)]
pub(super) struct Books {
    pub(super) producing: bool,
    pub(super) cursor: Option<DeviceId>,
    pub(super) audience: u64,
    pub(super) audience_complete: bool,
    pub(super) tally: Tally,
    pub(super) attempts: u64,
    pub(super) ambiguous: u64,
    pub(super) duplicate_bound: u64,
    pub(super) stop: Option<Stop>,
    pub(super) reasons: BTreeMap<(DeliveryState, Reason), u64>,
}

/// A chunk; `records` is set once it is settled.
#[derive(Clone)]
pub(super) struct ChunkRow {
    pub(super) campaign: CampaignId,
    pub(super) lane: Lane,
    pub(super) devices: Vec<DeviceId>,
    pub(super) attempt: u16,
    pub(super) ambiguous: bool,
    pub(super) epoch: u32,
    pub(super) created_at: Timestamp,
    pub(super) due_at: Timestamp,
    pub(super) lease: Option<LeaseRow>,
    pub(super) settled_at: Option<Timestamp>,
    pub(super) records: Vec<Record>,
}

#[derive(Clone, Copy)]
pub(super) struct LeaseRow {
    pub(super) instance: u64,
    pub(super) since: Timestamp,
    pub(super) until: Timestamp,
}

impl State {
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
            devices: BTreeMap::new(),
            tokens: HashMap::new(),
            topics: BTreeMap::new(),
            subscriptions: HashMap::new(),
            users: BTreeMap::new(),
            groups: BTreeMap::new(),
            replies: BTreeMap::new(),
            newest: HashMap::new(),
        }
    }
}

impl Books {
    /// Counts deliveries that ended.
    pub(super) fn count_ends(&mut self, records: &[Record]) {
        for record in records.iter().filter(|record| record.state().is_final()) {
            *self.reasons.entry((record.state(), record.reason())).or_default() += 1;
            self.ambiguous += u64::from(record.is_ambiguous());
        }
    }

    pub(super) fn ledger(&self, provider: ProviderKind) -> ProviderLedger {
        let reason = |(&(state, reason), &count): (&(DeliveryState, Reason), &u64)| ReasonCount {
            state,
            reason,
            count,
        };
        ProviderLedger {
            provider,
            audience: self.audience,
            audience_complete: self.audience_complete,
            tally: self.tally,
            delivered: 0,
            attempts: self.attempts,
            ambiguous: self.ambiguous,
            duplicate_bound: self.duplicate_bound,
            stop: self.stop.clone(),
            reasons: self.reasons.iter().map(reason).collect(),
        }
    }
}

impl ChunkRow {
    pub(super) fn is_queued(&self) -> bool {
        self.lease.is_none() && self.settled_at.is_none()
    }

    pub(super) fn is_leased_under(&self, epoch: u32) -> bool {
        self.lease.is_some() && self.epoch == epoch
    }

    pub(super) fn ticket(&self, id: ChunkId) -> Ticket {
        Ticket { chunk: id, lane: self.lane, due_at: self.due_at }
    }
}
