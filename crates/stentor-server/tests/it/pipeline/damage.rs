//! Two apps with every kind of row, the rows of one of them damaged in each value in turn: the server starts, and the other app's messages
//! go out unaffected.

use std::path::{Path, PathBuf};

use futures_util::StreamExt;
use stentor_core::app::{ApiKey, Scopes};
use stentor_core::chunk::TrafficClass;
use stentor_core::delivery::{DeliveryState, Record};
use stentor_core::device::{DEVICE_TEXTS, DeviceFacts};
use stentor_core::group::Member;
use stentor_core::id::{ChunkId, KeyId, ScheduleId};
use stentor_core::name::{ExternalId, GroupName, IdempotencyKey, Tag, TimeZoneName, TopicName};
use stentor_core::outcome::Reason;
use stentor_core::ports::store::{
    AttemptFilter, DeviceFilter, Expansion, IdempotentReply, KeyFilter, LeaseReply, LeaseTerms, Page,
    StoreError, StoredReply,
};
use stentor_core::schedule::{CatchUp, Recurrence, Schedule, ScheduleState};
use stentor_core::settlement::Settlement;
use stentor_core::target::TokenTarget;
use stentor_gateway::{DeviceIdentity, DeviceProtocol, Gateway, GatewayKey, SessionEvent};
use stentor_storage::conformance::PlainChanges;
use stentor_storage::conformance::value_damage::{ValueDamage, apply, possible};
use stentor_storage::sqlite::{SqliteSettings, SqliteStore, Synchronous};

use super::stub::Stub;
use super::*;

const ALL: Page = Page { after: 0, limit: 100 };
/// Creation time of the rows; the pipelines start later.
const BEFORE: Timestamp = Timestamp::from_millis(1_800_000_000_000 - 600_000);
/// The process that created them, and its successor.
const MAKER: u64 = 1;
const HEIR: u64 = 2;

fn later(seconds: i64) -> Timestamp {
    Timestamp::from_millis(BEFORE.as_millis() + seconds * 1_000)
}

fn open(path: &Path) -> Result<Arc<dyn Store>, StoreError> {
    let settings = SqliteSettings { synchronous: Synchronous::Off, ..SqliteSettings::store() };
    Ok(Arc::new(SqliteStore::open(path, settings)?))
}

/// An app in a file, with its messages that must end.
struct Tenant {
    app: AppId,
    messages: Vec<MessageId>,
    device: DeviceId,
    /// A device of the gateway that has a message to confirm.
    phone: DeviceIdentity,
}

impl Tenant {
    fn number(&self, number: u64) -> u64 {
        self.app.raw() * 1_000 + number
    }

    fn message(&self, number: u64, spec: MessageSpec, due_at: Timestamp) -> Message {
        let id = MessageId::from_raw(self.number(number));
        Message { id, app: self.app, spec, created_at: due_at, due_at, occurrence: None }
    }

    /// Stores a message and begins due ones; returns the chunks.
    async fn begin(&mut self, store: &dyn Store, message: Message) -> Vec<ChunkId> {
        let now = message.due_at;
        self.keep(store, message).await;
        let started = store.start_due(1_000, 2, now).await.expect("begun");
        started.tickets.iter().map(|ticket| ticket.chunk).collect()
    }

    async fn keep(&mut self, store: &dyn Store, message: Message) {
        let key = IdempotencyKey::new(format!("key-{}", message.id.raw())).expect("fits");
        let reply = StoredReply { record: "{}".into() };
        let idempotency = Some(IdempotentReply { key, request_hash: [7; 32], reply });
        self.messages.push(message.id);
        let new = NewMessage { message, idempotency, at_once: None };
        let stored = store.accept(vec![new]).await.remove(0);
        assert_eq!(stored.map(|stored| stored.map(drop)), Ok(Idempotent::Done(())));
    }
}

/// Creates an app with a row of every kind.
async fn furnish(store: &dyn Store, app: u64) -> Tenant {
    let app = AppId::from_raw(app);
    let name = Label::new("test").expect("fits");
    store.create_app(&App { id: app, name: name.clone(), created_at: BEFORE }).await.expect("kept");
    let nobody = DeviceId::from_raw(0);
    let phone = DeviceIdentity { app, device: nobody };
    let mut tenant = Tenant { app, messages: Vec::new(), device: nobody, phone };
    let (scopes, hash) = (Scopes::from_bits(1), [app.raw() as u8; 32]);
    let id = KeyId::from_raw(tenant.number(900));
    let key = ApiKey { id, app: Some(app), name, scopes, hash, created_at: BEFORE };
    store.create_key(&key).await.expect("kept");
    for provider in [KIND, ProviderKind::Null, ProviderKind::Gateway] {
        let credential = Credential { app, provider, secret: "{}".into(), updated_at: BEFORE };
        store.put_credential(&credential).await.expect("kept");
    }
    let devices = people(store, app).await;
    tenant.device = devices[0];
    schedules(store, &tenant).await;
    messages(store, &mut tenant, &devices).await;
    connected(store, &mut tenant).await;
    tenant
}

/// Registers a device of the gateway, and sends it a message that it has not confirmed.
async fn connected(store: &dyn Store, tenant: &mut Tenant) {
    let token = PushToken::new(format!("phone-of-{}", tenant.app.raw())).expect("fits");
    let phone = Registration::new(Platform::Linux, ProviderKind::Gateway, token);
    let registered = store.register(tenant.app, &[phone], BEFORE).await.expect("kept");
    tenant.phone.device = registered[0].device;
    let message = tenant.message(11, spec(Target::Device(tenant.phone.device)), later(99));
    let chunk = tenant.begin(store, message).await[0];
    let lease =
        LeaseTerms { instance: MAKER, until: later(10_000), now: later(100), class: TrafficClass::Urgent };
    let LeaseReply::Leased(leased) = store.lease(&[chunk], lease).await.expect("leased").remove(0) else {
        panic!("not leased")
    };
    let settlement = Settlement {
        chunk,
        epoch: leased.epoch,
        now: later(101),
        records: vec![Record::new(DeliveryState::Accepted, Reason::None, false)],
        attempts: 1,
        tokens: Vec::new(),
        children: Vec::new(),
        awaited: Vec::new(),
        stop: None,
    };
    store.settle(vec![settlement]).await.expect("settled");
}

/// Registers devices with all their attributes, and puts them into a group.
async fn people(store: &dyn Store, app: AppId) -> Vec<DeviceId> {
    let user = ExternalId::new("somebody").expect("fits");
    let texts = DEVICE_TEXTS.map(|text| Some(text.rule.example.to_owned()));
    let facts = DeviceFacts {
        user: Some(user.clone()),
        tags: vec![Tag::new("red").expect("fits")],
        ..DeviceFacts::of_texts(texts).expect("examples fit")
    };
    let device = |number: usize| Registration {
        facts: facts.clone(),
        topics: vec![TopicName::new("news").expect("fits")],
        ..Registration::new(Platform::Android, KIND, PushToken::new(token_of(app, number)).expect("fits"))
    };
    let devices: Vec<_> = (0..6).map(device).collect();
    let registered = store.register(app, &devices, BEFORE).await.expect("kept");
    let devices: Vec<_> = registered.into_iter().map(|one| one.device).collect();
    let group = GroupName::new("friends").expect("fits");
    store.create_group(app, &group, BEFORE).await.expect("kept");
    let members = [Member::User(user), Member::Device(devices[1])];
    store.add_members(app, &group, &members, BEFORE).await.expect("kept");
    devices
}

fn token_of(app: AppId, number: usize) -> String {
    format!("token-{number}-of-{}", app.raw())
}

/// Makes a schedule that is due and one that fired.
async fn schedules(store: &dyn Store, tenant: &Tenant) {
    let time_zone = TimeZoneName::new("UTC").expect("a name");
    let (until, catch_up) = (None, CatchUp::Once);
    let recurrence = Recurrence { cron: "0 0 1 1 *".into(), time_zone, until, catch_up, exact: true };
    let (state, name) = (ScheduleState::Active, Some(Label::new("yearly").expect("fits")));
    let schedule = Schedule {
        id: ScheduleId::from_raw(tenant.number(800)),
        app: tenant.app,
        name,
        spec: everyone(),
        recurrence,
        state,
        created_at: BEFORE,
        next_due: Some(later(60)),
        last_fired: None,
    };
    let fired = Schedule { id: ScheduleId::from_raw(tenant.number(801)), ..schedule.clone() };
    store.create_schedule(&schedule, None).await.expect("kept");
    store.create_schedule(&fired, None).await.expect("kept");
    let mut message = tenant.message(890, everyone(), later(60));
    message.occurrence = Some((fired.id, later(60)));
    let occurrence = stentor_core::ports::store::Occurrence {
        schedule: fired.id,
        instant: later(60),
        message: Some(message),
        next_due: Some(Timestamp::from_millis(i64::MAX / 2)),
    };
    store.fire(&occurrence).await.expect("fired");
}

/// Makes messages in every state that a crash may leave them in.
async fn messages(store: &dyn Store, tenant: &mut Tenant, devices: &[DeviceId]) {
    let direct = || spec(Target::Device(devices[2]));
    let lease = |chunk: ChunkId, until: Timestamp, instance| async move {
        let lease = LeaseTerms { instance, until, now: later(100), class: TrafficClass::Urgent };
        match store.lease(&[chunk], lease).await.expect("leased").remove(0) {
            LeaseReply::Leased(leased) => leased,
            other => panic!("{other:?}"),
        }
    };
    let finished = tenant.message(1, spec(Target::Devices(devices[..2].to_vec())), later(90));
    let chunk = tenant.begin(store, finished).await[0];
    let leased = lease(chunk, later(10_000), MAKER).await;
    let rejected = Record::new(DeliveryState::Rejected, Reason::PayloadRefused, false);
    let records = vec![Record::new(DeliveryState::Accepted, Reason::None, false), rejected];
    let (tokens, children) = (Vec::new(), Vec::new());
    let (epoch, now) = (leased.epoch, later(101));
    let settlement = Settlement {
        chunk,
        epoch,
        now,
        records,
        attempts: 2,
        tokens,
        children,
        awaited: Vec::new(),
        stop: None,
    };
    store.settle(vec![settlement]).await.expect("settled");
    let queued = tenant.message(2, collapsing("one", direct()), later(91));
    tenant.begin(store, queued).await;
    let of_the_dead = tenant.message(3, direct(), later(92));
    let chunk = tenant.begin(store, of_the_dead).await[0];
    lease(chunk, later(10_000), MAKER).await;
    let run_out = tenant.message(4, direct(), later(93));
    let chunk = tenant.begin(store, run_out).await[0];
    lease(chunk, later(110), HEIR).await;
    let late = tenant.message(5, lasting(10, direct()), later(94));
    tenant.begin(store, late).await;
    let token = PushToken::new(format!("unlisted-{}", tenant.app.raw())).expect("fits");
    let token = TokenTarget { platform: Platform::Android, provider: KIND, token };
    let unlisted = tenant.message(6, spec(Target::Token(token)), later(95));
    tenant.begin(store, unlisted).await;
    for (number, target) in [
        (7, Target::Everyone),
        (8, Target::Topic(TopicName::new("news").expect("fits"))),
        (9, Target::Group(GroupName::new("friends").expect("fits"))),
    ] {
        let wide = tenant.message(number, collapsing("many", spec(target)), later(96));
        tenant.begin(store, wide).await;
    }
    store.start_due(100, 2, later(97)).await.expect("started");
    let of_everyone = MessageId::from_raw(tenant.number(7));
    let tasks = store.producers().await.expect("listed");
    let own = |task: &&stentor_core::ports::store::ProducerTask| {
        task.message == of_everyone && task.provider == KIND
    };
    let how = Expansion { chunk_max_devices: 2, max_chunks: 2, now: later(98) };
    store.expand(*tasks.iter().find(own).expect("a producer"), how).await.expect("expanded");
    let waiting = tenant.message(10, direct(), later(99));
    tenant.keep(store, waiting).await;
}

/// A file with two apps, a copy of it from when it had only the first, and the apps' messages that must end.
struct Site {
    folder: tempfile::TempDir,
    other: Tenant,
    first: Tenant,
}

impl Site {
    async fn build() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let (both, one) = (folder.path().join("both.db"), folder.path().join("one.db"));
        let store = open(&both).expect("made");
        let first = furnish(&*store, 1).await;
        close(store).await;
        std::fs::copy(&both, &one).expect("copied");
        let store = open(&both).expect("opened");
        let other = furnish(&*store, 2).await;
        close(store).await;
        Self { folder, other, first }
    }

    fn copy(&self) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("stentor.db");
        std::fs::copy(self.folder.path().join("both.db"), &path).expect("copied");
        (folder, path)
    }
}

/// Closes a file completely.
async fn close(store: Arc<dyn Store>) {
    tokio::task::spawn_blocking(move || drop(store)).await.expect("closed");
}

/// Starts a server over a file and checks that the second app's messages go out, old ones and new; returns the failures.
async fn serve(site: &Site, path: &Path) -> Result<(), String> {
    let say = |what: &'static str| move |error: StoreError| format!("{what}: {error}");
    let store = open(path).map_err(say("opening"))?;
    let clock = Arc::new(TestClock { began: Instant::now(), ahead_ms: AtomicU64::new(0) });
    let last = store.last_id().await.map_err(say("the last id"))?;
    let (ids, stub) = (Arc::new(IdSource::after(last)), Arc::new(Stub::accepting(0)));
    let dependencies = Dependencies {
        store: store.clone(),
        queue: Arc::<Trap>::default(),
        clock: clock.clone(),
        ids: ids.clone(),
        factory: Arc::new(Factory { stub: stub.clone(), quota: None, neighbours: Vec::new() }),
        threads: None,
        standing: NodeStanding::alone(HEIR),
        roles: NodeRoles::default(),
        shares_queue: false,
        levels: None,
        settled_feed: None,
    };
    let config = PipelineConfig {
        scheduler_max_sleep_ms: 100,
        producers_interval_ms: 100,
        sweep_interval_ms: 100,
        ..quick()
    };
    let config = config.checked().expect("sound");
    let pipeline = Pipeline::start(&dependencies, config).await.map_err(say("starting"))?;
    drop(dependencies);
    let fresh = Registration::new(Platform::Android, KIND, PushToken::new("fresh").expect("fits"));
    store.register(site.other.app, &[fresh], clock.now()).await.map_err(say("registering"))?;
    let mut messages = site.other.messages.clone();
    for target in [Target::Device(site.other.device), Target::Everyone] {
        let (id, now) = (MessageId::from_raw(ids.next(clock.now())), clock.now());
        let app = site.other.app;
        let message = Message { id, app, spec: spec(target), created_at: now, due_at: now, occurrence: None };
        let new = NewMessage { message, idempotency: None, at_once: None };
        store.accept(vec![new]).await.remove(0).map_err(say("accepting"))?;
        messages.push(id);
    }
    pipeline.wake();
    let waited = wait(&*store, site, &messages, &pipeline).await;
    let failures = pipeline.stats().failures;
    let lists = lists(&*store, site, clock.now()).await;
    let devices = devices(&store, site, (clock.clone(), ids.clone())).await;
    pipeline.drain(Duration::from_secs(5)).await;
    close(store).await;
    if !failures.is_empty() {
        return Err(format!("a part failed: {failures:?}"));
    }
    let sent = stub.counts();
    if !sent.contains_key("fresh")
        || (0..6).any(|number| !sent.contains_key(&token_of(site.other.app, number)))
    {
        return Err(format!("not all were reached: {sent:?}"));
    }
    waited.and(lists).and(devices)
}

/// Lets the phones of both apps confirm their messages, the damaged app's first: the other app's confirmation is written all the same.
async fn devices(
    store: &Arc<dyn Store>,
    site: &Site,
    (clock, ids): (Arc<dyn Clock>, Arc<IdSource>),
) -> Result<(), String> {
    let gateway = Gateway::start(store.clone(), clock.clone(), ids, GatewayKey::new([1; 32]));
    let moment = Duration::from_millis(300);
    let damaged = gateway.open(site.first.phone, DeviceProtocol::Stream, 10);
    if let Ok(Ok(Some(SessionEvent::Messages(some)))) = tokio::time::timeout(moment, damaged.try_next()).await
    {
        damaged.confirm(&some.iter().map(|one| one.message.id).collect::<Vec<_>>());
    }
    // The outcome does not matter; it may never come.
    let first = MessageId::from_raw(site.first.number(11));
    let _left = tokio::time::timeout(moment, gateway.confirm(site.first.phone, &[first])).await;
    let confirmed = async {
        let session = gateway.open(site.other.phone, DeviceProtocol::Stream, 10);
        let Ok(SessionEvent::Messages(some)) = session.next().await else {
            return Err("another app's device is given nothing".to_owned());
        };
        let some: Vec<_> = some.iter().map(|one| one.message.id).collect();
        let count = gateway.confirm(site.other.phone, &some).await.map_err(|error| error.to_string())?;
        if count == 0 || !some.contains(&MessageId::from_raw(site.other.number(11))) {
            return Err(format!("it confirmed {count} of {some:?}"));
        }
        let device = (site.other.app, site.other.phone.device);
        let waiting = store.pending(&[device], 10, clock.now()).await.map_err(|error| error.to_string())?;
        let waits = |one: &stentor_core::ports::store::PendingDelivery| some.contains(&one.message);
        if waiting.concat().iter().any(waits) { Err("a receipt is not written".to_owned()) } else { Ok(()) }
    };
    let confirmed = tokio::time::timeout(Duration::from_secs(10), confirmed).await;
    let keeps_up = gateway.keeps_up();
    gateway.close().await;
    drop((damaged, gateway));
    confirmed.unwrap_or_else(|_| Err("another app's device waits".to_owned()))?;
    if keeps_up { Ok(()) } else { Err("receipts wait".to_owned()) }
}

/// Waits until the messages have ended and the due schedule has fired and ended too.
async fn wait(
    store: &dyn Store,
    site: &Site,
    messages: &[MessageId],
    pipeline: &Pipeline,
) -> Result<(), String> {
    let (app, began) = (site.other.app, std::time::Instant::now());
    let due = ScheduleId::from_raw(site.other.number(800));
    loop {
        let mut open = Vec::new();
        for id in messages {
            match store.ledger(app, (*id).into()).await {
                Ok(ledger) if ledger.campaign.state.is_ended() => {}
                other => open.push(format!("{id}: {other:?}")),
            }
        }
        let schedule = store.schedule(app, due).await.map_err(|error| format!("the schedule: {error}"))?;
        if open.is_empty() && schedule.last_fired.is_some() {
            return Ok(());
        }
        if began.elapsed() > Duration::from_secs(30) || !pipeline.stats().failures.is_empty() {
            return Err(format!(
                "{} did not end, fired {:?}: {:?}",
                open.len(),
                schedule.last_fired,
                open.first()
            ));
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Checks that every list works for both apps, and that unreadable campaigns can be canceled.
async fn lists(store: &dyn Store, site: &Site, now: Timestamp) -> Result<(), String> {
    let say = |what: &'static str| move |error: StoreError| format!("{what}: {error}");
    store.apps().await.map_err(say("apps"))?;
    store.credentials().await.map_err(say("credentials"))?;
    for tenant in [&site.first, &site.other] {
        let app = tenant.app;
        store.keys(KeyFilter::App(app)).await.map_err(say("keys"))?;
        store.topics(app, None, 10).await.map_err(say("topics"))?;
        store.users(app, None, 10).await.map_err(say("users"))?;
        store.groups(app, None, 10).await.map_err(say("groups"))?;
        store.campaigns(app, ALL).await.map_err(say("campaigns"))?;
        store.schedules(app, ALL).await.map_err(say("schedules"))?;
        store.attempts(app, tenant.device, AttemptFilter::Page(ALL)).await.map_err(say("history"))?;
        match store.count_audience(app, &Target::Everyone).await {
            // The app itself is no longer there.
            Err(StoreError::NotFound("app")) | Ok(_) => {}
            Err(error) => return Err(say("counts")(error)),
        }
        match store.devices(app, &DeviceFilter::default(), ALL).await {
            // The app itself is no longer there.
            Err(StoreError::NotFound("app")) | Ok(_) => {}
            Err(error) => return Err(format!("devices: {error}")),
        }
        for id in store.campaigns(app, ALL).await.map_err(say("broken campaigns"))?.broken {
            store.act(app, id, CampaignAction::Cancel, now).await.map_err(say("canceling"))?;
        }
        for id in store.schedules(app, ALL).await.map_err(say("broken schedules"))?.broken {
            store.delete_broken_schedule(app, id).await.map_err(say("canceling a schedule"))?;
        }
    }
    Ok(())
}

/// Servers that run at once.
const AT_ONCE_COUNT: usize = 16;

/// Damages one value in a copy of the file and serves it; `None` if nothing was changed.
async fn apply_once(site: &Site, damage: ValueDamage) -> Option<Result<(), String>> {
    let (_folder, path) = site.copy();
    let changed = apply(&path, &site.folder.path().join("one.db"), &damage);
    if changed == 0 {
        return None;
    }
    Some(serve(site, &path).await.map_err(|what| format!("{damage}: {what}")))
}

// Hundreds of servers; one thread would need a minute and a half after all other tests have ended.
#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_value_of_one_app_stops_nothing_of_another() {
    let site = Site::build().await;
    let (_folder, path) = site.copy();
    serve(&site, &path).await.expect("nothing is damaged");
    let damages = possible(&site.folder.path().join("both.db"));
    let applied = damages.into_iter().map(|damage| apply_once(&site, damage));
    let ends: Vec<_> = futures_util::stream::iter(applied).buffer_unordered(AT_ONCE_COUNT).collect().await;
    let changed: Vec<_> = ends.into_iter().flatten().collect();
    let wrong: Vec<_> = changed.iter().filter_map(|end| end.as_ref().err()).collect();
    assert!(changed.len() > 300 && wrong.is_empty(), "{} of {}: {wrong:#?}", wrong.len(), changed.len());
}
