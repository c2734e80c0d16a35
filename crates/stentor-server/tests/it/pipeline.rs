//! The pipeline over the memory engines, with scripted push services, in virtual time.

mod campaigns;
mod clocks;
mod crashes;
mod damage;
mod fairness;
mod neighbours;
mod parking;
mod quota;
mod readiness;
mod schedules;
mod stub;
mod watch;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use stentor_core::app::{App, Credential};
use stentor_core::campaign::{CampaignAction, CampaignState, Ledger};
use stentor_core::chunk::Ticket;
use stentor_core::device::{Platform, ProviderKind, PushToken, Registration};
use stentor_core::error::Invalid;
use stentor_core::id::{AppId, DeviceId, IdSource, MessageId};
use stentor_core::message::{Content, Message, MessageSpec, Notification, Priority, Ttl};
use stentor_core::name::{CollapseKey, Label};
use stentor_core::ports::clock::Clock;
use stentor_core::ports::provider::Provider;
use stentor_core::ports::store::{Idempotent, NewMessage, Store};
use stentor_core::target::Target;
use stentor_core::time::Timestamp;
use stentor_server::pipeline::stats::DispatchStats;
use stentor_server::pipeline::{
    Dependencies, NodeRoles, NodeStanding, Pipeline, PipelineConfig, ProviderFactory,
};
use stentor_storage::conformance::PlainChanges;
use stentor_storage::sqlite::SqliteStore;
use stub::Stub;
use tokio::time::Instant;

use crate::trap::Trap;

const KIND: ProviderKind = ProviderKind::Fcm;
const APP: AppId = AppId::from_raw(1);
/// Far longer than any story here takes, in virtual time.
const PATIENCE: Duration = Duration::from_secs(3_600);

/// The time of the virtual clock by which tokio sleeps.
struct TestClock {
    began: Instant,
    ahead_ms: AtomicU64,
}

impl Clock for TestClock {
    fn now(&self) -> Timestamp {
        let ahead = Duration::from_millis(self.ahead_ms.load(Ordering::SeqCst));
        Timestamp::from_millis(1_800_000_000_000).plus(self.began.elapsed() + ahead)
    }
}

/// Opens the stub for every credential but those of neighbours, with one quota for all.
struct Factory {
    stub: Arc<Stub>,
    neighbours: Vec<(AppId, Arc<Stub>)>,
    quota: Option<u32>,
}

impl ProviderFactory for Factory {
    fn build(&self, credential: &Credential) -> Result<Arc<dyn Provider>, Invalid> {
        let other = self.neighbours.iter().find(|(app, _)| *app == credential.app);
        Ok(other.map_or(&self.stub, |(_, stub)| stub).clone())
    }

    fn quota(&self, _: &Credential) -> Option<u32> {
        self.quota
    }
}

/// A server without faces: engines, one app, a stub for its push service, and the pipeline.
struct House {
    store: Arc<dyn Store>,
    queue: Arc<Trap>,
    clock: Arc<TestClock>,
    ids: Arc<IdSource>,
    stub: Arc<Stub>,
    /// Other apps with push services of their own.
    neighbours: Vec<(AppId, Arc<Stub>)>,
    quota: Option<u32>,
    /// The folder in which quotas survive a crash.
    folder: tempfile::TempDir,
    instance: u64,
    pipeline: Option<Pipeline>,
}

impl House {
    /// Builds it with a credential, without devices, and starts the pipeline.
    async fn open(stub: Stub, config: PipelineConfig) -> Self {
        let mut house = Self::build(stub).await;
        house.put_credential().await;
        house.start(config).await;
        house
    }

    async fn build(stub: Stub) -> Self {
        Self::build_over(stub, Arc::new(SqliteStore::temporary().expect("a store")), Arc::<Trap>::default())
            .await
    }

    async fn build_over(stub: Stub, store: Arc<dyn Store>, queue: Arc<Trap>) -> Self {
        let clock = Arc::new(TestClock { began: Instant::now(), ahead_ms: AtomicU64::new(0) });
        let name = Label::new("test").expect("fits");
        store.create_app(&App { id: APP, name, created_at: clock.now() }).await.expect("kept");
        let ids = Arc::new(IdSource::after(0));
        let (stub, folder) = (Arc::new(stub), tempfile::tempdir().expect("a folder"));
        let (neighbours, quota) = (Vec::new(), None);
        Self { store, queue, clock, ids, stub, neighbours, quota, folder, instance: 0, pipeline: None }
    }

    async fn put_credential(&self) {
        self.put_credential_at(KIND).await;
    }

    async fn put_credential_at(&self, provider: ProviderKind) {
        self.put_credential_in(APP, provider).await;
    }

    async fn put_credential_in(&self, app: AppId, provider: ProviderKind) {
        let secret = "{}".to_owned();
        let credential = Credential { app, provider, secret, updated_at: self.clock.now() };
        self.store.put_credential(&credential).await.expect("kept");
    }

    /// Starts a pipeline as another process would.
    async fn start(&mut self, config: PipelineConfig) {
        self.instance += 1;
        let neighbours = self.neighbours.clone();
        let factory = Factory { stub: self.stub.clone(), neighbours, quota: self.quota };
        let dependencies = Dependencies {
            store: self.store.clone(),
            queue: self.queue.clone(),
            clock: self.clock.clone(),
            ids: self.ids.clone(),
            factory: Arc::new(factory),
            threads: None,
            standing: NodeStanding::alone(self.instance),
            roles: NodeRoles::default(),
            shares_queue: false,
            levels: Some(self.folder.path().join("quotas")),
            settled_feed: None,
        };
        let config = config.checked().expect("sound");
        self.pipeline = Some(Pipeline::start(&dependencies, config).await.expect("started"));
    }

    /// Ends the pipeline as `kill -9` would; the queue is lost with it.
    async fn crash(&mut self) {
        self.pipeline = None;
        self.queue = Arc::<Trap>::default();
        tokio::task::yield_now().await;
    }

    fn pipeline(&self) -> &Pipeline {
        self.pipeline.as_ref().expect("started")
    }

    fn dispatcher(&self) -> DispatchStats {
        let stats = self.pipeline().stats();
        stats.providers.into_iter().find(|dispatcher| dispatcher.provider == KIND).expect("there")
    }

    /// Registers devices with the tokens `t0`, `t1`, ...
    async fn register(&self, count: usize) -> Vec<DeviceId> {
        self.register_at(KIND, "t", count).await
    }

    /// Registers devices at a provider, their tokens being a word and a number.
    async fn register_at(&self, kind: ProviderKind, word: &str, count: usize) -> Vec<DeviceId> {
        self.register_in(APP, kind, word, count).await
    }

    async fn register_in(&self, app: AppId, kind: ProviderKind, word: &str, count: usize) -> Vec<DeviceId> {
        let tokens = (0..count).map(|number| PushToken::new(format!("{word}{number}")).expect("fits"));
        let devices: Vec<_> = tokens.map(|token| Registration::new(Platform::Android, kind, token)).collect();
        let registered = self.store.register(app, &devices, self.clock.now()).await.expect("kept");
        registered.into_iter().map(|one| one.device).collect()
    }

    /// Accepts a message as the service would.
    async fn send(&self, spec: MessageSpec) -> MessageId {
        self.send_in(APP, spec).await
    }

    async fn send_in(&self, app: AppId, spec: MessageSpec) -> MessageId {
        let id = self.accept_in(app, spec).await;
        self.pipeline().wake();
        id
    }

    /// Accepts a message without notifying the pipeline.
    async fn accept(&self, spec: MessageSpec) -> MessageId {
        self.accept_in(APP, spec).await
    }

    async fn accept_in(&self, app: AppId, spec: MessageSpec) -> MessageId {
        let now = self.clock.now();
        let id = MessageId::from_raw(self.ids.next(now));
        let message = Message { id, app, spec, created_at: now, due_at: now, occurrence: None };
        let new = NewMessage { message, idempotency: None, at_once: None };
        let stored = self.store.accept(vec![new]).await.remove(0);
        assert_eq!(stored.map(|stored| stored.map(drop)), Ok(Idempotent::Done(())));
        id
    }

    /// Begins due messages without notifying the pipeline; returns their chunks.
    async fn begin(&self) -> Vec<Ticket> {
        self.store.start_due(100, 100, self.clock.now()).await.expect("begun").tickets
    }

    async fn act(&self, id: MessageId, action: CampaignAction) {
        let (_, tickets) =
            self.store.act(APP, id.into(), action, self.clock.now()).await.expect("makes sense");
        self.pipeline().published(tickets);
        self.pipeline().wake();
    }

    /// Reads the books, which balance in every snapshot.
    async fn ledger(&self, id: MessageId) -> Ledger {
        let ledger = self.store.ledger(APP, id.into()).await.expect("there");
        assert!(ledger.is_balanced(), "{ledger:?}");
        ledger
    }

    /// Waits in virtual time until the books show something.
    async fn until(&self, id: MessageId, shows: impl Fn(&Ledger) -> bool) -> Ledger {
        let began = Instant::now();
        loop {
            let ledger = self.ledger(id).await;
            if shows(&ledger) {
                return ledger;
            }
            assert!(began.elapsed() < PATIENCE, "it never came: {ledger:?}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// Waits for the campaign's end.
    async fn finished(&self, id: MessageId) -> Ledger {
        self.until(id, |ledger| ledger.campaign.state == CampaignState::Finished).await
    }
}

/// Small chunks and short intervals.
fn quick() -> PipelineConfig {
    PipelineConfig { chunk_max_devices: 100, republish_interval_ms: 2_000, ..PipelineConfig::default() }
}

fn spec(target: Target) -> MessageSpec {
    let notification = Some(Notification { title: Some("Hi".into()), ..Notification::default() });
    let content = Content { notification, ..Content::default() };
    let (priority, ttl) = (Priority::High, Ttl::default());
    MessageSpec { target, content, priority, ttl, collapse_key: None }
}

fn everyone() -> MessageSpec {
    spec(Target::Everyone)
}

fn lasting(seconds: u64, spec: MessageSpec) -> MessageSpec {
    MessageSpec { ttl: Ttl::from_seconds(seconds).expect("fits"), ..spec }
}

fn collapsing(key: &str, spec: MessageSpec) -> MessageSpec {
    MessageSpec { collapse_key: Some(CollapseKey::new(key).expect("fits")), ..spec }
}

async fn pass(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}
