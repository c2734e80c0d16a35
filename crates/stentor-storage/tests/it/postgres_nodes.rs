//! Two servers on one PostgreSQL database: liveness, and the permitted actions of each.

use std::time::{Duration, SystemTime, UNIX_EPOCH};
use stentor_storage::conformance::PlainChanges;

use stentor_core::app::Credential;
use stentor_core::campaign::Tally;
use stentor_core::chunk::TrafficClass;
use stentor_core::device::ProviderKind;
use stentor_core::device::{DeviceKeys, PushToken};
use stentor_core::id::{AppId, ChunkId, DeviceId, UpstreamId};
use stentor_core::ports::store::{
    AppStore, AuditStore, Change, DeviceStore, Expansion, Heartbeat, JoiningNode, LeaseReply, Membership,
    NodeEvent, NodeNotice, NodeStore, Page, PipelineStore, Precondition, ProducerTask, PruneTask, QuotaClaim,
    ScheduleStore, SettleReply, StoreError, UpstreamAction, UpstreamFilter, UpstreamStore,
};
use stentor_core::quota::Quota;
use stentor_core::target::Target;
use stentor_core::upstream::{UpstreamKind, UpstreamMessage};
use stentor_storage::conformance::scene::{Draft, Scene, accept_all, at, joining, lease_of, registration};
use stentor_storage::postgres::{PostgresSettings, PostgresStore};

use crate::postgres_server::{TestDatabase, server};

/// Two stores on one database of their own.
pub(crate) struct Pair {
    pub(crate) one: PostgresStore,
    pub(crate) other: PostgresStore,
    // After the stores: it is dropped with force.
    pub(crate) database: TestDatabase,
}

impl Pair {
    /// Opens them; `None` where there is no server.
    pub(crate) fn new() -> Option<Self> {
        let database = server()?.database();
        let open = || PostgresStore::open(&database.address(), &PostgresSettings::default()).expect("opened");
        Some(Self { one: open(), other: open(), database })
    }
}

pub(crate) async fn join(store: &PostgresStore, node: u64) -> Membership {
    let membership = store.join(joining(node), at(1)).await.expect("joined");
    store.recover(membership.instance, at(1)).await.expect("recovered");
    membership
}

/// Makes a node declare all others dead that send no heartbeat between two of its own.
async fn judge(store: &PostgresStore, node: &Membership) -> Heartbeat {
    store.beat(node.instance, None, at(2)).await.expect("noted");
    store.beat(node.instance, Some(Duration::ZERO), at(2)).await.expect("noted")
}

const MINUTE: Duration = Duration::from_secs(60);

/// Longer than any machine stands still.
const PATIENCE: Option<Duration> = Some(Duration::from_secs(3_600));

#[tokio::test]
async fn a_second_server_starts_and_leaves_the_leases_of_the_first_alone() {
    let Some(Pair { database: _database, one, other }) = Pair::new() else { return };
    let scene = Scene::new(&one).await;
    scene.fcm(3).await;
    let (message, tickets) = scene.send_wide(Draft::to(Target::Everyone)).await;
    let first = join(&one, 1).await;
    one.lease(&[tickets[0].chunk], lease_of(first.instance, at(1))).await.expect("leased");
    let second = join(&other, 2).await;
    assert_ne!(first.id_place, second.id_place);
    assert!(second.instance > first.instance);
    // By its clock the lease is over: one runs out by the clock of the node that holds it alone.
    assert!(other.sweep(100, at(61)).await.expect("swept").released.is_empty());
    let heartbeat = other.beat(second.instance, PATIENCE, at(2)).await.expect("noted");
    assert!(heartbeat.is_known && heartbeat.released.is_empty());
    assert_eq!(scene.tally(message).await.sending, 3);
    assert_eq!(one.sweep(100, at(61)).await.expect("swept").released.len(), 1, "its own does");
}

#[tokio::test]
async fn nodes_are_told_at_once_what_another_accepts_and_says_and_what_the_databases_clock_shows() {
    let Some(Pair { database: _database, one, other }) = Pair::new() else { return };
    let scene = Scene::new(&one).await;
    scene.fcm(1).await;
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("a date").as_millis() as i64;
    let (first, second) = (join(&one, 1).await, join(&other, 2).await);
    let heartbeat = one.beat(first.instance, None, at(2)).await.expect("noted");
    for shown in [first.shown, second.shown, heartbeat.shown] {
        let shown = shown.expect("a clock").as_millis();
        // Both clocks are of this machine, and a millisecond may be rounded away.
        assert!((since - 1..since + 3_600_000).contains(&shown), "{shown} after {since}");
    }
    let mut last = second.last_event;
    let came = NodeEvent::Connected(scene.app, DeviceId::from_raw(7), at(3), 255);
    one.publish(NodeNotice::Event(came.clone())).await.expect("told");
    while last == second.last_event {
        tokio::time::timeout(MINUTE, other.changed()).await.expect("nobody is told");
        let found = other.events_after(last).await.expect("read");
        last = found.last_event;
        assert!(last == second.last_event || found.events == [came.clone()], "{:?}", found.events);
    }
    scene.accept(scene.new_message(Draft::to(Target::Everyone))).await.expect("accepted");
    while other.next_due().await.expect("read").is_none() {
        tokio::time::timeout(MINUTE, other.changed()).await.expect("nobody is told");
    }
}

#[tokio::test]
async fn a_node_that_was_silent_too_long_settles_nothing_and_learns_it() {
    let Some(Pair { database: _database, one, other }) = Pair::new() else { return };
    let scene = Scene::new(&one).await;
    scene.fcm(3).await;
    let (message, tickets) = scene.send_wide(Draft::to(Target::Everyone)).await;
    let (first, second) = (join(&one, 1).await, join(&other, 2).await);
    let terms = |node: &Membership| lease_of(node.instance, at(1));
    let mut leased = one.lease(&[tickets[0].chunk], terms(&first)).await.expect("leased");
    let Some(LeaseReply::Leased(old)) = leased.pop() else { panic!("nothing was leased") };
    let heartbeat = judge(&other, &second).await;
    assert_eq!(heartbeat.released.len(), 1);
    assert_eq!(scene.books(message).await.duplicate_bound, 3);
    let settled = one.settle(vec![accept_all(&old, at(3))]).await;
    assert_eq!(settled, Ok(vec![SettleReply::Stale]), "while it is queued");
    other.lease(&[tickets[0].chunk], terms(&second)).await.expect("leased");
    let settled = one.settle(vec![accept_all(&old, at(3))]).await;
    assert_eq!(settled, Ok(vec![SettleReply::Stale]), "while another has it");
    assert!(!one.beat(first.instance, PATIENCE, at(4)).await.expect("noted").is_known);
    let again = join(&one, 1).await;
    assert!(again.instance > first.instance && again.id_place != first.id_place);
    assert_eq!(scene.tally(message).await, Tally { sending: 3, ..Tally::default() });
}

#[tokio::test]
async fn a_database_whose_clock_jumps_takes_nobody_for_dead_and_keeps_nobody_alive() {
    let Some(Pair { database, one, other }) = Pair::new() else { return };
    let (first, second) = (join(&one, 1).await, join(&other, 2).await);
    // By the database's clock the other's sign is of another day, before and after.
    for day in ["- interval '1 day'", "+ interval '2 days'"] {
        other.beat(second.instance, None, at(2)).await.expect("noted");
        database.command(&format!(
            "UPDATE nodes SET seen_at = seen_at {day} WHERE instance = {}",
            first.instance
        ));
        other.beat(second.instance, PATIENCE, at(2)).await.expect("noted");
        assert!(one.beat(first.instance, None, at(2)).await.expect("noted").is_known, "{day}");
    }
    // A heartbeat dated tomorrow keeps no node alive without further heartbeats.
    database.command("UPDATE nodes SET seen_at = seen_at + interval '1 day'");
    judge(&one, &first).await;
    assert!(!other.beat(second.instance, None, at(2)).await.expect("noted").is_known);
}

#[tokio::test]
async fn a_dead_node_leases_nothing_until_it_joins_again() {
    let Some(Pair { database: _database, one, other }) = Pair::new() else { return };
    let scene = Scene::new(&one).await;
    scene.fcm(3).await;
    let (message, tickets) = scene.send_wide(Draft::to(Target::Everyone)).await;
    let (first, second) = (join(&one, 1).await, join(&other, 2).await);
    judge(&other, &second).await;
    let wanted = [tickets[0].chunk];
    let refused = one.lease(&wanted, lease_of(first.instance, at(1))).await;
    assert!(matches!(refused, Err(StoreError::Unavailable(why)) if why.contains("join them again")));
    assert_eq!(scene.tally(message).await, Tally { queued: 3, ..Tally::default() });
    let again = join(&one, 1).await;
    let leased = one.lease(&wanted, lease_of(again.instance, at(4))).await.expect("asked");
    assert!(matches!(leased[..], [LeaseReply::Leased(_)]), "it is among them again");
}

#[tokio::test]
async fn who_says_goodbye_leaves_nothing_leased() {
    let Some(Pair { database: _database, one, other }) = Pair::new() else { return };
    let scene = Scene::new(&one).await;
    scene.fcm(3).await;
    let (message, tickets) = scene.send_wide(Draft::to(Target::Everyone)).await;
    let (first, second) = (join(&one, 1).await, join(&other, 2).await);
    one.lease(&[tickets[0].chunk], lease_of(first.instance, at(1))).await.expect("leased");
    one.leave(first.instance, at(2)).await.expect("left");
    assert_eq!(scene.tally(message).await, Tally { queued: 3, ..Tally::default() });
    let found = other.events_after(second.last_event).await.expect("read");
    assert_eq!(found.events, [NodeEvent::Queued]);
}

#[tokio::test]
async fn a_node_with_another_pepper_is_refused_while_others_are_there() {
    let Some(Pair { database: _database, one, other }) = Pair::new() else { return };
    let first = join(&one, 1).await;
    let stranger = JoiningNode { secrets_hash: [8; 32], ..joining(2) };
    let refused = other.join(stranger.clone(), at(1)).await;
    assert!(matches!(refused, Err(StoreError::Conflict(why)) if why.contains("key.pepper")));
    one.leave(first.instance, at(2)).await.expect("left");
    other.join(stranger, at(3)).await.expect("nobody is there any more");
}

#[tokio::test]
async fn two_nodes_share_the_producers_and_never_write_the_same_page() {
    let Some(Pair { database: _database, one, other }) = Pair::new() else { return };
    let scene = Scene::new(&one).await;
    scene.fcm(10).await;
    let (first, _second) = (join(&one, 1).await, join(&other, 2).await);
    let (message, _) = scene.send(Draft::to(Target::Everyone)).await;
    let task = ProducerTask { message, app: scene.app, provider: ProviderKind::Fcm };
    assert_eq!(one.producers().await, Ok(vec![task]));
    assert_eq!(other.producers().await, Ok(Vec::new()), "it is the first one's");
    let how = Expansion { chunk_max_devices: 2, max_chunks: 2, now: at(1) };
    assert_eq!(one.expand(task, how).await.expect("expanded").tickets.len(), 2);
    let not_its = other.expand(task, how).await.expect("looked");
    assert!(not_its.tickets.is_empty() && not_its.done);
    one.leave(first.instance, at(2)).await.expect("left");
    assert_eq!(other.producers().await, Ok(vec![task]), "it goes on where the first one was");
    assert_eq!(other.expand(task, how).await.expect("expanded").tickets.len(), 2);
    assert!(one.expand(task, how).await.expect("looked").tickets.is_empty());
    assert_eq!(scene.tally(message).await.queued, 8);
}

#[tokio::test]
async fn what_one_changes_the_other_hears_in_order() {
    let Some(Pair { database: _database, one, other }) = Pair::new() else { return };
    let scene = Scene::new(&one).await;
    let (_first, second) = (join(&one, 1).await, join(&other, 2).await);
    let provider = ProviderKind::Fcm;
    let credential = Credential { app: scene.app, provider, secret: "{}".to_owned(), updated_at: at(1) };
    one.change(Change::PutCredential(credential), None).await.expect("put");
    one.change(Change::DeleteApp(AppId::from_raw(99), Precondition::none()), None)
        .await
        .expect_err("there is none");
    one.change(Change::DeleteApp(scene.app, Precondition::none()), None).await.expect("removed");
    one.publish(NodeNotice::Event(NodeEvent::CutOff(scene.app, None))).await.expect("told");
    let found = other.events_after(second.last_event).await.expect("read");
    let expected = [
        NodeEvent::Credential(scene.app, provider),
        NodeEvent::Keys,
        NodeEvent::CutOff(scene.app, None),
        NodeEvent::CutOff(scene.app, None),
    ];
    assert_eq!((found.events, found.is_gapped), (expected.to_vec(), false));
    assert!(other.events_after(found.last_event).await.expect("read").events.is_empty());
    assert!(other.apps().await.expect("listed").is_empty());
}

#[tokio::test]
async fn two_nodes_draw_no_more_from_a_quota_than_one_bucket_holds() {
    let Some(Pair { database: _database, one, other }) = Pair::new() else { return };
    let scene = Scene::new(&one).await;
    let quota = Quota { per_minute: 60, ramp: Duration::ZERO, urgent_share_percent: 20 };
    let claim = QuotaClaim {
        app: scene.app,
        provider: ProviderKind::Fcm,
        quota,
        class: TrafficClass::Bulk,
        least: 600,
        most: 600,
    };
    let (first, second) = tokio::join!(one.draw(vec![claim]), other.draw(vec![claim]));
    let mut drawn = [first.expect("drawn")[0], second.expect("drawn")[0]];
    drawn.sort_unstable();
    assert_eq!(drawn, [0, 600], "the second one waits ten minutes until the debt is paid off");
    let elsewhere = QuotaClaim { provider: ProviderKind::Apns, ..claim };
    assert_eq!(one.draw(vec![claim, elsewhere]).await, Ok(vec![0, 600]), "another credential has its own");
}

#[tokio::test]
async fn what_one_settles_for_the_gateway_another_can_bring_to_its_devices() {
    let Some(Pair { database: _database, one, other }) = Pair::new() else { return };
    let scene = Scene::new(&one).await;
    let given = registration(ProviderKind::Gateway, "own");
    let device = one.register(scene.app, &[given], at(0)).await.expect("registered")[0].device;
    let (first, second) = (join(&one, 1).await, join(&other, 2).await);
    let (message, tickets) = scene.send(Draft::to(Target::Device(device))).await;
    let mut leased = one.lease(&[tickets[0].chunk], lease_of(first.instance, at(1))).await.expect("leased");
    let Some(LeaseReply::Leased(leased)) = leased.pop() else { panic!("nothing was leased") };
    one.settle(vec![accept_all(&leased, at(2))]).await.expect("settled");
    let found = other.events_after(second.last_event).await.expect("read");
    assert_eq!(found.events, [NodeEvent::Settled(leased.id)]);
    let settled = other.settled_chunks(&[leased.id, ChunkId::from_raw(99)]).await.expect("read");
    let [settled] = &settled[..] else { panic!("{settled:?}") };
    assert_eq!((settled.chunk, settled.message.id), (leased.id, message));
    assert_eq!(settled.devices, [device]);
}

#[tokio::test]
async fn what_a_lone_server_settles_is_told_to_nobody() {
    let Some(Pair { database, one, .. }) = Pair::new() else { return };
    let scene = Scene::new(&one).await;
    let given = registration(ProviderKind::Gateway, "own");
    let device = one.register(scene.app, &[given], at(0)).await.expect("registered")[0].device;
    let first = join(&one, 1).await;
    let (_, tickets) = scene.send(Draft::to(Target::Device(device))).await;
    let mut leased = one.lease(&[tickets[0].chunk], lease_of(first.instance, at(1))).await.expect("leased");
    let Some(LeaseReply::Leased(leased)) = leased.pop() else { panic!("nothing was leased") };
    one.settle(vec![accept_all(&leased, at(2))]).await.expect("settled");
    one.publish(NodeNotice::Event(NodeEvent::Upstream(scene.app))).await.expect("told");
    assert_eq!(database.count("node_events"), 0);
}

/// Simulates `count` published events.
fn tell_many(database: &TestDatabase, count: u64, app: AppId) {
    database.command(&format!(
        "INSERT INTO node_events (no, origin, kind, app) SELECT value + step, 1, 8, {app} FROM sequences,
            generate_series(1, {count}) step WHERE name = 'event';
        UPDATE sequences SET value = value + {count} WHERE name = 'event'",
        app = app.raw()
    ));
}

#[tokio::test]
async fn who_is_behind_hears_everything_page_by_page_and_whether_some_is_forgotten() {
    let Some(Pair { database, one, other }) = Pair::new() else { return };
    let scene = Scene::new(&one).await;
    let (_first, second) = (join(&one, 1).await, join(&other, 2).await);
    tell_many(&database, 2_500, scene.app);
    one.publish(NodeNotice::Event(NodeEvent::Keys)).await.expect("told");
    let (mut last, mut heard, mut pages) = (second.last_event, Vec::new(), 0);
    loop {
        let found = other.events_after(last).await.expect("read");
        assert!(!found.is_gapped);
        (last, pages) = (found.last_event, pages + 1);
        heard.extend(found.events);
        if !found.has_more {
            break;
        }
    }
    assert_eq!((heard.len(), heard.last(), pages), (2_501, Some(&NodeEvent::Keys), 3));
    tell_many(&database, 20_000, scene.app);
    assert!(!other.events_after(last).await.expect("read").is_gapped, "all of it is there");
    let mut gone = 0;
    while let forgotten @ 1.. = one.prune(PruneTask::Events, 1_000).await.expect("pruned").count {
        assert!(forgotten <= 1_000, "each time a bounded part");
        gone += forgotten;
    }
    assert_eq!((gone, database.count("node_events")), (2_500 + 1 + 20_000 - 16_384, 16_384));
    let found = other.events_after(last).await.expect("read");
    assert!(found.is_gapped && found.has_more, "some of it is forgotten");
    assert!(!other.events_after(found.last_event).await.expect("read").is_gapped, "it goes on after that");
    // A database that was put back to an earlier state.
    assert!(other.events_after(last + 1_000_000).await.expect("read").is_gapped);
}

#[tokio::test]
async fn levels_of_quotas_go_some_time_after_their_credentials() {
    let Some(Pair { database, one, .. }) = Pair::new() else { return };
    let scene = Scene::new(&one).await;
    let (app, now) = (scene.app.raw(), "(extract(epoch FROM clock_timestamp()) * 1000)::bigint");
    let credential = Credential {
        app: scene.app,
        provider: ProviderKind::Fcm,
        secret: "{}".to_owned(),
        updated_at: at(1),
    };
    one.change(Change::PutCredential(credential), None).await.expect("put");
    let (fcm, apns, null) = (ProviderKind::Fcm.code(), ProviderKind::Apns.code(), ProviderKind::Null.code());
    database.command(&format!(
        "INSERT INTO quota_levels VALUES ({app}, {fcm}, 0, 0, 0, 0), ({app}, {apns}, 0, 0, 0, 0), ({app}, {null}, {now}, 0, 0, 0)"
    ));
    assert_eq!(one.prune(PruneTask::Events, 100).await.map(|pruned| pruned.count), Ok(1));
    assert_eq!(database.count(&format!("quota_levels WHERE provider IN ({fcm}, {null})")), 2);
    assert_eq!(one.prune(PruneTask::Events, 100).await.map(|pruned| pruned.count), Ok(0));
}

#[tokio::test]
async fn whose_token_or_keys_are_others_or_who_is_gone_is_cut_off_everywhere() {
    let Some(Pair { database: _database, one, other }) = Pair::new() else { return };
    let scene = Scene::new(&one).await;
    let (_first, second) = (join(&one, 1).await, join(&other, 2).await);
    let register = async |token: &str| {
        let given = registration(ProviderKind::Gateway, token);
        one.register(scene.app, &[given], at(0)).await.expect("registered")[0].device
    };
    let devices: [DeviceId; 3] = [register("a").await, register("b").await, register("c").await];
    let other_token = PushToken::new("other").expect("a token");
    one.offer_token(scene.app, devices[0], &other_token, at(1)).await.expect("offered");
    assert!(
        other.events_after(second.last_event).await.expect("read").events.is_empty(),
        "an offer changes nothing"
    );
    one.take_offered_token(scene.app, &other_token, at(2)).await.expect("taken").expect("an offer");
    let keys = DeviceKeys { p256dh: "key".to_owned(), auth: "auth".to_owned() };
    one.put_device_keys(scene.app, devices[1], Some(&keys)).await.expect("kept");
    one.put_device_keys(scene.app, DeviceId::from_raw(99), None).await.expect_err("there is none");
    one.remove_device(scene.app, devices[2]).await.expect("removed");
    let events = other.events_after(second.last_event).await.expect("read").events;
    assert_eq!(events, devices.map(|device| NodeEvent::CutOff(scene.app, Some(device))));
}

/// Waits until `count` sessions of a database wait for a lock.
async fn locked(database: &TestDatabase, count: i64) {
    let waiting = async {
        let sessions = "pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
        while database.count(sessions) < count {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(MINUTE, waiting).await.expect("nobody waits");
}

#[tokio::test(flavor = "multi_thread")]
async fn two_nodes_whose_jobs_come_in_opposite_order_do_not_wait_for_each_other() {
    let Some(server) = server() else { return };
    let database = server.database();
    // Deadlocked sessions wait for longer than this test.
    database.command("DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET deadlock_timeout = 600000', current_database()); END $$");
    // All jobs that come belong to one transaction, however long it takes.
    let settings = PostgresSettings { group_commit_max_ms: 600_000, ..PostgresSettings::default() };
    let open = || PostgresStore::open(&database.address(), &settings).expect("opened");
    let (one, other) = (open(), open());
    let scene = Scene::new(&one).await;
    let (first, second) = (join(&one, 1).await, join(&other, 2).await);
    let quota = Quota { per_minute: 6_000, ramp: Duration::ZERO, urgent_share_percent: 20 };
    let (app, provider, class) = (scene.app, ProviderKind::Fcm, TrafficClass::Bulk);
    let claim = QuotaClaim { app, provider, quota, class, least: 1, most: 1 };
    one.draw(vec![claim]).await.expect("drawn");
    let signs = database.hold("SELECT 1 FROM nodes FOR UPDATE");
    let event = || NodeEvent::CutOff(scene.app, None);
    let both = async {
        tokio::join!(
            async {
                tokio::join!(
                    one.draw(vec![claim]),
                    one.beat(first.instance, None, at(1)),
                    one.publish(NodeNotice::Event(event()))
                )
            },
            async {
                tokio::join!(
                    other.publish(NodeNotice::Event(event())),
                    other.beat(second.instance, None, at(1)),
                    other.draw(vec![claim])
                )
            },
        )
    };
    let freed = async {
        locked(&database, 2).await;
        drop(signs);
    };
    let done = tokio::time::timeout(MINUTE, async { tokio::join!(both, freed) });
    let (((drawn, beat, published), (also_published, also_beat, also_drawn)), ()) =
        done.await.expect("they wait for each other");
    assert!(drawn.is_ok() && beat.is_ok() && published.is_ok());
    assert!(also_published.is_ok() && also_beat.is_ok() && also_drawn.is_ok());
    assert_eq!(database.count("node_events"), 2);
}

#[tokio::test]
async fn a_message_of_a_device_is_with_one_node_until_that_lets_go_of_it_or_is_dead() {
    let Some(Pair { database: _database, one, other }) = Pair::new() else { return };
    let app = Scene::new(&one).await.app;
    join(&one, 1).await;
    let second = join(&other, 2).await;
    let message = |id: u64| UpstreamMessage {
        id: UpstreamId::from_raw(id),
        app,
        device: DeviceId::from_raw(1),
        kind: UpstreamKind::Message,
        key: id.to_string(),
        body: "{}".to_owned(),
        created_at: at(0),
        expires_at: at(100),
        attempts: 0,
        dead_reason: None,
    };
    one.keep_upstream(vec![message(1), message(2)]).await.expect("kept");
    let [a, b] = [1, 2].map(UpstreamId::from_raw);
    let page = Page { after: 0, limit: 10 };
    let free = async |store: &PostgresStore| {
        let free = store
            .upstream(app, UpstreamFilter::Free { with_receipts: false }, page, at(1))
            .await
            .expect("listed");
        free.iter().map(|message| message.id).collect::<Vec<_>>()
    };
    assert_eq!(one.claim_upstream(app, &[a, b]).await, Ok(vec![a, b]));
    assert_eq!((free(&one).await, free(&other).await), (vec![a, b], vec![]));
    assert_eq!(other.claim_upstream(app, &[a, b]).await, Ok(vec![]), "both are the first one's");
    assert_eq!(one.upstream(app, UpstreamFilter::Waiting, page, at(1)).await.expect("listed")[1].attempts, 1);
    one.change_upstream(app, &[b], UpstreamAction::Release).await.expect("let go");
    let found = other.events_after(second.last_event).await.expect("read");
    assert_eq!(found.events, [NodeEvent::Upstream(app)]);
    assert_eq!(other.claim_upstream(app, &[a, b]).await, Ok(vec![b]));
    other.change_upstream(app, &[a], UpstreamAction::Release).await.expect("it is not its own");
    assert_eq!(free(&other).await, [b]);
    judge(&other, &second).await;
    assert_eq!(one.claim_upstream(app, &[a]).await, Ok(vec![]), "who is taken for dead claims nothing");
    assert_eq!(other.claim_upstream(app, &[a]).await, Ok(vec![a]));
}
