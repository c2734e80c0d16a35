//! The setup of cases: an app, its devices, messages on their way, and helpers to settle them.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::conformance::PlainChanges;
use stentor_core::app::App;
use stentor_core::campaign::{CampaignAction, CampaignState, Ledger, ProviderLedger, Tally};
use stentor_core::chunk::{Ticket, TrafficClass};
use stentor_core::delivery::{DeliveryState, Record};
use stentor_core::device::{Platform, ProviderKind, PushToken, Registration};
use stentor_core::id::{AppId, ChunkId, DeviceId, MessageId};
use stentor_core::message::{Content, Message, MessageSpec, Notification, Priority, Ttl};
use stentor_core::name::{CollapseKey, ExternalId, GroupName, IdempotencyKey, Label, Tag, TopicName};
use stentor_core::outcome::Reason;
use stentor_core::ports::store::{
    AttemptFilter, Awaited, Expansion, Idempotent, IdempotentReply, JoiningNode, LeaseReply, LeaseTerms,
    LeasedChunk, NewMessage, Page, SettleReply, Store, StoreError, StoredReply,
};
use stentor_core::settlement::{Child, Settlement};
use stentor_core::target::Target;
use stentor_core::time::Timestamp;

/// The process that cases lease for, unless they say otherwise.
pub const INSTANCE: u64 = 7;
/// Most devices of a chunk in cases.
pub const CHUNK_MAX_DEVICES: usize = 4;
/// The duration of leases in cases.
const LEASE_SECONDS: i64 = 60;

/// Returns an instant, in seconds after the one at which every case begins.
#[must_use]
pub const fn at(seconds: i64) -> Timestamp {
    Timestamp::from_millis(1_700_000_000_000 + seconds * 1_000)
}

/// Names a topic.
#[must_use]
pub fn topic(text: &str) -> TopicName {
    TopicName::new(text).expect("a topic name")
}

/// Creates the name of a user.
#[must_use]
pub fn person(text: &str) -> ExternalId {
    ExternalId::new(text).expect("an external id")
}

/// Names a group.
#[must_use]
pub fn group(text: &str) -> GroupName {
    GroupName::new(text).expect("a group name")
}

/// Names a mark.
#[must_use]
pub fn tag(text: &str) -> Tag {
    Tag::new(text).expect("a tag")
}

/// Returns an address.
#[must_use]
pub fn token(text: &str) -> PushToken {
    PushToken::new(text).expect("a push token")
}

/// Works off everything that was too much for one transaction: on a slow disk even a few rows may be.
pub async fn finish_work(store: &dyn Store) {
    while store.continue_work(at(1)).await.expect("worked off") {}
}

/// Starts a registration.
#[must_use]
pub fn registration(provider: ProviderKind, address: &str) -> Registration {
    let platform = if provider == ProviderKind::Apns { Platform::Apple } else { Platform::Android };
    Registration::new(platform, provider, token(address))
}

/// Starts the registration of a user's device.
#[must_use]
pub fn owned_registration(provider: ProviderKind, address: &str, owner: &str) -> Registration {
    let mut registration = registration(provider, address);
    registration.facts.user = Some(person(owner));
    registration
}

/// Makes an app value.
#[must_use]
pub fn app(raw: u64) -> App {
    let name = Label::new(format!("app {raw}")).expect("a label");
    App { id: AppId::from_raw(raw), name, created_at: at(0) }
}

/// Makes a repeatable reply: `request` stands for the hashed request.
#[must_use]
pub fn reply(key: &str, request: u8, body: &str) -> IdempotentReply {
    let key = IdempotencyKey::new(key).expect("a key");
    let reply = StoredReply { record: body.to_owned() };
    IdempotentReply { key, request_hash: [request; 32], reply }
}

/// Starts a page at the front.
#[must_use]
pub const fn first(limit: usize) -> Page {
    Page { after: 0, limit }
}

/// Returns a list's page after a number.
#[must_use]
pub const fn after(after: u64, limit: usize) -> Page {
    Page { after, limit }
}

/// Makes a lease for [`INSTANCE`].
#[must_use]
pub fn lease_at(now: Timestamp) -> LeaseTerms {
    lease_of(INSTANCE, now)
}

/// Makes a lease for another process.
#[must_use]
pub fn lease_of(instance: u64, now: Timestamp) -> LeaseTerms {
    let until = Timestamp::from_millis(now.as_millis() + LEASE_SECONDS * 1_000);
    LeaseTerms { instance, until, now, class: TrafficClass::Bulk }
}

/// Makes a server that joins others.
#[must_use]
pub fn joining(node: u64) -> JoiningNode {
    let (host, roles) = (format!("host-{node}"), vec!["api", "consumer"]);
    JoiningNode { node, secrets_hash: [7; 32], fires: true, host, roles, version: "1.2.3" }
}

/// Lists the chunks of tickets.
#[must_use]
pub fn chunks(tickets: &[Ticket]) -> Vec<ChunkId> {
    tickets.iter().map(|ticket| ticket.chunk).collect()
}

/// Makes a record without ambiguity.
#[must_use]
pub const fn record(state: DeliveryState, reason: Reason) -> Record {
    Record::new(state, reason, false)
}

/// Settles a chunk with the same record for every device.
#[must_use]
pub fn settle_all(leased: &LeasedChunk, record: Record, now: Timestamp) -> Settlement {
    Settlement {
        chunk: leased.id,
        epoch: leased.epoch,
        now,
        records: vec![record; leased.devices.len()],
        attempts: leased.tokens.len() as u32,
        tokens: Vec::new(),
        children: Vec::new(),
        awaited: Vec::new(),
        stop: None,
    }
}

/// Settles a chunk: all accepted.
#[must_use]
pub fn accept_all(leased: &LeasedChunk, now: Timestamp) -> Settlement {
    settle_all(leased, record(DeliveryState::Accepted, Reason::None), now)
}

/// Sends positions of a settlement on in a child chunk.
#[must_use]
pub fn retry(
    mut given: Settlement,
    positions: &[u32],
    leased: &LeasedChunk,
    due_at: Timestamp,
) -> Settlement {
    for position in positions {
        given.records[*position as usize] =
            Record::new(DeliveryState::Queued, Reason::Unavailable, leased.ambiguous);
    }
    let attempt = leased.attempt + 1;
    let positions = positions.to_vec();
    given.children.push(Child { positions, due_at, attempt, ambiguous: leased.ambiguous });
    given
}

/// Moves positions of a settlement into a chunk of their own, leased already.
#[must_use]
pub fn await_some(mut given: Settlement, positions: &[u32], leased: &LeasedChunk) -> Settlement {
    for position in positions {
        given.records[*position as usize] =
            Record::new(DeliveryState::Queued, Reason::None, leased.ambiguous);
    }
    given.awaited = positions.to_vec();
    given
}

/// Returns the chunk in which positions of another continue.
#[must_use]
pub fn awaited_chunk(leased: &LeasedChunk, awaited: Awaited, positions: &[u32]) -> LeasedChunk {
    LeasedChunk { id: awaited.lease.chunk, epoch: awaited.lease.epoch, ..leased.part(positions) }
}

/// A message that a case is about to send.
#[derive(Debug, Clone)]
pub struct Draft {
    /// The target.
    pub target: Target,
    /// The time to live.
    pub ttl_seconds: u64,
    /// Newer replaces older.
    pub collapse_key: Option<&'static str>,
    /// When it is accepted.
    pub created_at: Timestamp,
    /// When it begins.
    pub due_at: Timestamp,
    /// The content for one provider, as the text of a JSON object.
    pub fields: Option<(ProviderKind, &'static str)>,
}

impl Draft {
    /// Starts a message that is due at once and lives long.
    #[must_use]
    pub const fn to(target: Target) -> Self {
        Self {
            target,
            ttl_seconds: 86_400,
            collapse_key: None,
            created_at: at(0),
            due_at: at(0),
            fields: None,
        }
    }

    /// Limits its life.
    #[must_use]
    pub const fn ttl(mut self, seconds: u64) -> Self {
        self.ttl_seconds = seconds;
        self
    }

    /// Sets the collapse key.
    #[must_use]
    pub const fn collapsing(mut self, key: &'static str) -> Self {
        self.collapse_key = Some(key);
        self
    }

    /// Accepts it, due at once, at another time.
    #[must_use]
    pub const fn sent_at(mut self, now: Timestamp) -> Self {
        self.created_at = now;
        self.due_at = now;
        self
    }

    /// Sets a later due time.
    #[must_use]
    pub const fn due(mut self, due_at: Timestamp) -> Self {
        self.due_at = due_at;
        self
    }

    /// Adds an override for devices of the gateway.
    #[must_use]
    pub const fn for_gateway(mut self, fields: &'static str) -> Self {
        self.fields = Some((ProviderKind::Gateway, fields));
        self
    }

    /// Makes it a message for Live Activities.
    #[must_use]
    pub const fn for_live_activities(mut self, fields: &'static str) -> Self {
        self.fields = Some((ProviderKind::LiveActivity, fields));
        self
    }

    /// Makes the message.
    #[must_use]
    pub fn message(self, app: AppId, id: u64) -> Message {
        let notification = Some(Notification { title: Some("Hello".to_owned()), ..Notification::default() });
        let key = self.collapse_key.map(|key| CollapseKey::new(key).expect("a collapse key"));
        let read = |(kind, text)| (kind, serde_json::from_str(text).expect("an object"));
        let overrides = self.fields.map(read).into_iter().collect();
        let spec = MessageSpec {
            target: self.target,
            content: Content { notification, overrides, ..Content::default() },
            priority: Priority::High,
            ttl: Ttl::from_seconds(self.ttl_seconds).expect("a ttl"),
            collapse_key: key,
        };
        let id = MessageId::from_raw(id);
        Message { id, app, spec, created_at: self.created_at, due_at: self.due_at, occurrence: None }
    }
}

/// An app in a store, with all that cases do to it.
pub struct Scene<'a> {
    /// The store under judgement.
    pub store: &'a dyn Store,
    /// The app.
    pub app: AppId,
    next: AtomicU64,
}

impl<'a> Scene<'a> {
    /// Makes the app.
    pub async fn new(store: &'a dyn Store) -> Self {
        Self::in_app(store, 1).await
    }

    /// Makes an app with another number.
    pub async fn in_app(store: &'a dyn Store, raw: u64) -> Self {
        store.create_app(&app(raw)).await.expect("the app is new");
        Self::again(store, raw)
    }

    /// Goes on in an app that exists, after a restart.
    #[must_use]
    pub const fn again(store: &'a dyn Store, raw: u64) -> Self {
        Self { store, app: AppId::from_raw(raw), next: AtomicU64::new(raw * 10_000) }
    }

    /// Registers a device.
    pub async fn register(&self, given: Registration) -> DeviceId {
        let registered = self.store.register(self.app, &[given], at(0)).await.expect("registered");
        registered[0].device
    }

    /// Registers new devices of a provider.
    pub async fn devices(&self, provider: ProviderKind, count: usize) -> Vec<DeviceId> {
        let fresh = |_| registration(provider, &format!("token-{}", self.next()));
        let given: Vec<_> = (0..count).map(fresh).collect();
        let registered = self.store.register(self.app, &given, at(0)).await.expect("registered");
        registered.into_iter().map(|one| one.device).collect()
    }

    /// Registers new devices of FCM.
    pub async fn fcm(&self, count: usize) -> Vec<DeviceId> {
        self.devices(ProviderKind::Fcm, count).await
    }

    /// Makes a message of this app ready to be accepted.
    pub fn new_message(&self, draft: Draft) -> NewMessage {
        let message = draft.message(self.app, self.next());
        NewMessage { message, idempotency: None, at_once: None }
    }

    /// Accepts one message.
    pub async fn accept(&self, new: NewMessage) -> Result<Idempotent<()>, StoreError> {
        self.store.accept(vec![new]).await.remove(0).map(|stored| stored.map(drop))
    }

    /// Accepts a message, which must succeed, and starts due campaigns.
    pub async fn send(&self, draft: Draft) -> (MessageId, Vec<Ticket>) {
        let now = draft.created_at;
        let new = self.new_message(draft);
        let id = new.message.id;
        match self.accept(new).await.expect("accepted") {
            Idempotent::Done(()) => (id, self.start(now).await),
            other => panic!("kept before: {other:?}"),
        }
    }

    /// Begins all that is due; returns the chunks of direct targets.
    pub async fn start(&self, now: Timestamp) -> Vec<Ticket> {
        let mut tickets = Vec::new();
        loop {
            let started = self.store.start_due(100, CHUNK_MAX_DEVICES, now).await.expect("started");
            tickets.extend(started.tickets);
            if !started.has_more {
                return tickets;
            }
        }
    }

    /// Accepts a message and expands its whole audience.
    pub async fn send_wide(&self, draft: Draft) -> (MessageId, Vec<Ticket>) {
        let now = draft.created_at;
        let (id, mut tickets) = self.send(draft).await;
        tickets.extend(self.expand(id, now).await);
        (id, tickets)
    }

    /// Runs a message's producers to their end.
    pub async fn expand(&self, message: MessageId, now: Timestamp) -> Vec<Ticket> {
        let how = Expansion { chunk_max_devices: CHUNK_MAX_DEVICES, max_chunks: 2, now };
        let producers = self.store.producers().await.expect("listed");
        let mut tickets = Vec::new();
        for task in producers.into_iter().filter(|task| task.message == message) {
            loop {
                assert!(tickets.len() < 10_000, "the producer does not end");
                let step = self.store.expand(task, how).await.expect("expanded");
                assert!(step.tickets.len() <= how.max_chunks, "a step makes at most max_chunks");
                tickets.extend(step.tickets);
                self.ledger(message).await;
                if step.done || step.paused {
                    break;
                }
            }
        }
        tickets
    }

    /// Requests leases of chunks.
    pub async fn ask(&self, chunks: &[ChunkId], now: Timestamp) -> Vec<LeaseReply> {
        self.store.lease(chunks, lease_at(now)).await.expect("asked")
    }

    /// Leases one chunk that must be free.
    pub async fn lease(&self, chunk: ChunkId, now: Timestamp) -> LeasedChunk {
        match self.ask(&[chunk], now).await.remove(0) {
            LeaseReply::Leased(leased) => *leased,
            other => panic!("not leased: {other:?}"),
        }
    }

    /// Settles one chunk.
    pub async fn settle(&self, given: Settlement) -> SettleReply {
        self.store.settle(vec![given]).await.expect("settled").remove(0)
    }

    /// Settles one chunk under a valid lease; returns the tickets of its children.
    pub async fn settled(&self, given: Settlement) -> Vec<Ticket> {
        match self.settle(given).await {
            SettleReply::Settled { tickets, .. } => tickets,
            SettleReply::Stale => panic!("the lease was lost"),
        }
    }

    /// Settles one chunk with awaited deliveries under a valid lease; returns the chunk in which they continue.
    pub async fn settled_but(&self, given: Settlement) -> Awaited {
        match self.settle(given).await {
            SettleReply::Settled { awaited, .. } => awaited.expect("some is awaited"),
            SettleReply::Stale => panic!("the lease was lost"),
        }
    }

    /// Leases and accepts all chunks.
    pub async fn deliver(&self, tickets: &[Ticket], now: Timestamp) {
        for ticket in tickets {
            let leased = self.lease(ticket.chunk, now).await;
            self.settled(accept_all(&leased, now)).await;
        }
    }

    /// Applies an action to a campaign.
    pub async fn act(&self, id: MessageId, action: CampaignAction, now: Timestamp) -> Vec<Ticket> {
        self.store.act(self.app, id.into(), action, now).await.expect("possible").1
    }

    /// Reads the books, which must balance.
    pub async fn ledger(&self, id: MessageId) -> Ledger {
        let ledger = self.store.ledger(self.app, id.into()).await.expect("a ledger");
        assert!(ledger.is_balanced(), "the books do not balance: {ledger:?}");
        ledger
    }

    /// Adds the books of all providers.
    pub async fn tally(&self, id: MessageId) -> Tally {
        self.ledger(id).await.total()
    }

    /// Reads the books at FCM.
    pub async fn books(&self, id: MessageId) -> ProviderLedger {
        let ledger = self.ledger(id).await;
        let books = ledger.providers.into_iter().find(|books| books.provider == ProviderKind::Fcm);
        books.expect("an audience at fcm")
    }

    /// Returns where a campaign is.
    pub async fn state(&self, id: MessageId) -> CampaignState {
        self.ledger(id).await.campaign.state
    }

    /// Returns the last record of a delivery.
    pub async fn last_record(&self, id: MessageId, device: DeviceId) -> Option<Record> {
        let attempts =
            self.store.attempts(self.app, device, AttemptFilter::Message(id)).await.expect("a delivery");
        attempts.last().map(|attempt| attempt.record)
    }

    /// Returns a number not used before in this app.
    pub fn next(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed) + 1
    }
}
