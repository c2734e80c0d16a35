//! Two servers on one PostgreSQL database: who is dead, and what the other may do.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use stentor_core::app::Credential;
use stentor_core::campaign::Tally;
use stentor_core::chunk::TrafficClass;
use stentor_core::device::ProviderKind;
use stentor_core::id::AppId;
use stentor_core::ports::store::{
    AppStore, AuditStore, Change, DeviceStore, Expansion, JoiningNode, LeaseReply, Membership, NodeEvent,
    NodeStore, PipelineStore, Precondition, ProducerTask, QuotaClaim, ScheduleStore, SettleReply, StoreError,
};
use stentor_core::quota::Quota;
use stentor_core::target::Target;
use stentor_storage::conformance::scene::{Draft, Scene, accept_all, at, lease_of, registration};
use stentor_storage::postgres::{PostgresSettings, PostgresStore};

use crate::postgres_server::{TestDatabase, server};

const SECRETS_HASH: [u8; 32] = [7; 32];

/// Two stores on one database of their own.
struct Pair {
    one: PostgresStore,
    other: PostgresStore,
    // After the stores: it is dropped with force.
    database: TestDatabase,
}

impl Pair {
    /// Opens them; `None` where there is no server.
    fn new() -> Option<Self> {
        let database = server()?.database();
        let open = || PostgresStore::open(&database.address(), &PostgresSettings::default()).expect("opened");
        Some(Self { one: open(), other: open(), database })
    }
}

async fn join(store: &PostgresStore, node: u64) -> Membership {
    let joining = JoiningNode { node, secrets_hash: SECRETS_HASH, fires: true };
    let membership = store.join(joining, at(1)).await.expect("joined");
    store.recover(membership.instance, at(1)).await.expect("recovered");
    membership
}

/// Lets a node seem to have been silent for a day.
fn silence(database: &TestDatabase, node: &Membership) {
    let sql = "UPDATE nodes SET seen_at = seen_at - interval '1 day' WHERE instance =";
    database.command(&format!("{sql} {}", node.instance));
}

const MINUTE: Duration = Duration::from_secs(60);

/// Longer than any machine stands still, and shorter than a silence.
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
    one.publish_event(NodeEvent::Upstream(scene.app)).await.expect("told");
    while last == second.last_event {
        tokio::time::timeout(MINUTE, other.changed()).await.expect("nobody is told");
        last = other.events_after(last).await.expect("read").last_event;
    }
    scene.accept(scene.new_message(Draft::to(Target::Everyone))).await.expect("accepted");
    while other.next_due().await.expect("read").is_none() {
        tokio::time::timeout(MINUTE, other.changed()).await.expect("nobody is told");
    }
}

#[tokio::test]
async fn a_node_that_was_silent_too_long_settles_nothing_and_learns_it() {
    let Some(Pair { database, one, other }) = Pair::new() else { return };
    let scene = Scene::new(&one).await;
    scene.fcm(3).await;
    let (message, tickets) = scene.send_wide(Draft::to(Target::Everyone)).await;
    let (first, second) = (join(&one, 1).await, join(&other, 2).await);
    let terms = |node: &Membership| lease_of(node.instance, at(1));
    let mut leased = one.lease(&[tickets[0].chunk], terms(&first)).await.expect("leased");
    let Some(LeaseReply::Leased(old)) = leased.pop() else { panic!("nothing was leased") };
    silence(&database, &first);
    let heartbeat = other.beat(second.instance, PATIENCE, at(2)).await.expect("noted");
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
async fn what_a_dead_node_leases_after_its_death_is_released() {
    let Some(Pair { database, one, other }) = Pair::new() else { return };
    let scene = Scene::new(&one).await;
    scene.fcm(3).await;
    let (message, tickets) = scene.send_wide(Draft::to(Target::Everyone)).await;
    let (first, second) = (join(&one, 1).await, join(&other, 2).await);
    silence(&database, &first);
    other.beat(second.instance, PATIENCE, at(2)).await.expect("noted");
    one.lease(&[tickets[0].chunk], lease_of(first.instance, at(1))).await.expect("leased");
    assert_eq!(other.beat(second.instance, PATIENCE, at(3)).await.expect("noted").released.len(), 1);
    assert_eq!(scene.tally(message).await, Tally { queued: 3, ..Tally::default() });
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
    let stranger = JoiningNode { node: 2, secrets_hash: [8; 32], fires: true };
    let refused = other.join(stranger, at(1)).await;
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
    one.publish_event(NodeEvent::CutOff(scene.app, None)).await.expect("told");
    let found = other.events_after(second.last_event).await.expect("read");
    let expected =
        [NodeEvent::Credential(scene.app, provider), NodeEvent::Keys, NodeEvent::CutOff(scene.app, None)];
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
    let settled = other.settled_chunk(leased.id).await.expect("read").expect("there");
    assert_eq!((settled.message.id, settled.devices), (message, vec![device]));
}
