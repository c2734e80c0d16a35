//! Work that is too much for one transaction of the SQLite store: it is begun, and continues, also after restarts.

use rusqlite::Connection;
use stentor_core::campaign::{CampaignState, Stop};
use stentor_core::device::{ProviderKind, Registration};
use stentor_core::outcome::Reason;
use stentor_core::ports::store::{DeviceStore, PipelineStore, TopicStore};
use stentor_core::target::Target;
use stentor_storage::conformance::PlainChanges;
use stentor_storage::conformance::scene::{
    CHUNK_MAX_DEVICES, Draft, Scene, accept_all, at, owned_registration, person, registration, topic,
};
use stentor_storage::sqlite::{SqliteSettings, SqliteStore};
use tempfile::TempDir;

/// More chunks than one transaction ends.
const CHUNKS: usize = 300;
/// Chunks that are ended in one transaction at most.
const ENDED_MAX_CHUNKS: usize = 256;
/// Chunks that a stop ends with the settlement that brings it.
const STOPPED_MAX_CHUNKS: usize = 64;

fn open(folder: &TempDir) -> SqliteStore {
    SqliteStore::open(folder.path().join("stentor.db"), SqliteSettings::store()).expect("opened")
}

fn file(folder: &TempDir) -> Connection {
    Connection::open(folder.path().join("stentor.db")).expect("opened")
}

/// Works off all unfinished work; returns the number of transactions.
async fn finish(store: &SqliteStore) -> usize {
    let mut steps = 1;
    while store.continue_work(at(9)).await.expect("done") {
        steps += 1;
        assert!(steps < 10_000, "it does not end");
    }
    steps
}

#[tokio::test]
async fn a_large_topic_is_gone_at_once_and_its_rows_after_a_restart() {
    let folder = TempDir::new().expect("a folder");
    let store = open(&folder);
    let scene = Scene::new(&store).await;
    let mut given: Vec<Registration> = Vec::new();
    for no in 0..6_000 {
        given.push(Registration {
            topics: vec![topic("news")],
            ..registration(ProviderKind::Fcm, &format!("address-{no}"))
        });
    }
    let device = store.register(scene.app, &given, at(0)).await.expect("registered")[0].device;
    store.remove_topic(scene.app, &topic("news")).await.expect("removed");
    assert!(store.topic(scene.app, &topic("news")).await.is_err());
    assert_eq!(store.topics_of(scene.app, device).await, Ok(Vec::new()));
    let again = store.subscribe(scene.app, &topic("news"), &[device]).await.expect("made anew");
    assert_eq!(again.changed, 1);
    let app = scene.app;
    drop(store);
    let store = open(&folder);
    assert!(finish(&store).await > 0, "the rest was too much for one transaction");
    assert_eq!(store.topic(app, &topic("news")).await.map(|topic| topic.device_count), Ok(1));
    drop(store);
    let left = "SELECT (SELECT count(*) FROM subscriptions) + (SELECT count(*) FROM leftovers)";
    assert_eq!(file(&folder).query_row(left, [], |row| row.get(0)), Ok(1));
}

#[tokio::test]
async fn a_campaign_canceled_before_a_crash_ends_after_it_a_part_in_each_transaction() {
    let folder = TempDir::new().expect("a folder");
    let store = open(&folder);
    let scene = Scene::new(&store).await;
    let devices = scene.fcm(CHUNKS * CHUNK_MAX_DEVICES).await.len() as u64;
    let (message, tickets) = scene.send_wide(Draft::to(Target::Everyone)).await;
    assert_eq!(tickets.len(), CHUNKS);
    drop(store);
    // The file as it is if the process dies after the first transaction of a cancellation.
    file(&folder).execute_batch("UPDATE campaigns SET state = 3; DELETE FROM producers;").expect("changed");
    let store = open(&folder);
    let scene = Scene::again(&store, 1);
    assert!(store.continue_work(at(9)).await.expect("begun"));
    let least = devices - (ENDED_MAX_CHUNKS * CHUNK_MAX_DEVICES) as u64;
    assert!(scene.tally(message).await.queued >= least, "{:?}", scene.tally(message).await);
    finish(&store).await;
    assert_eq!((scene.tally(message).await.queued, scene.tally(message).await.canceled), (0, devices));
    assert_eq!(scene.ledger(message).await.campaign.ended_at, Some(at(9)));
}

#[tokio::test]
async fn a_stop_ends_a_part_with_its_settlement_and_the_rest_later() {
    let folder = TempDir::new().expect("a folder");
    let store = open(&folder);
    let scene = Scene::new(&store).await;
    let devices = scene.fcm(CHUNKS * CHUNK_MAX_DEVICES).await.len() as u64;
    let (message, tickets) = scene.send_wide(Draft::to(Target::Everyone)).await;
    let leased = scene.lease(tickets[0].chunk, at(1)).await;
    let mut given = accept_all(&leased, at(2));
    given.stop = Some(Stop { reason: Reason::PayloadRefused, detail: "no".to_owned() });
    scene.settled(given).await;
    let failed = (STOPPED_MAX_CHUNKS * CHUNK_MAX_DEVICES) as u64;
    assert_eq!(scene.tally(message).await.failed, failed, "no more than so many in one transaction");
    finish(&store).await;
    let (tally, accepted) = (scene.tally(message).await, CHUNK_MAX_DEVICES as u64);
    assert_eq!((tally.queued, tally.accepted, tally.failed), (0, accepted, devices - accepted));
    assert_eq!(scene.state(message).await, CampaignState::Finished);
}

#[tokio::test]
async fn a_message_to_a_person_with_many_devices_is_expanded_by_producers() {
    let folder = TempDir::new().expect("a folder");
    let store = open(&folder);
    let scene = Scene::new(&store).await;
    let own = |no: usize| owned_registration(ProviderKind::Fcm, &format!("address-{no}"), "ada");
    let given: Vec<_> = (0..1_001).map(own).collect();
    store.register(scene.app, &given, at(0)).await.expect("registered");
    let (message, tickets) = scene.send(Draft::to(Target::User(person("ada")))).await;
    assert!(tickets.is_empty(), "too much to be begun with the message");
    scene.expand(message, at(1)).await;
    assert_eq!(scene.tally(message).await.queued, 1_001);
}

#[tokio::test]
async fn a_rehearsal_of_registrations_waits_for_nobody_who_writes() {
    let folder = TempDir::new().expect("a folder");
    let store = open(&folder);
    let scene = Scene::new(&store).await;
    let topics = (0..1_500).map(|no| topic(&format!("topic-{no}"))).collect();
    let given = [Registration { topics, ..registration(ProviderKind::Fcm, "address") }];
    // No other connection writes during this.
    let other = file(&folder);
    other.execute_batch("BEGIN IMMEDIATE").expect("begun");
    let looking = store.validate_some_registrations(scene.app, &given, at(0));
    let found = tokio::time::timeout(std::time::Duration::from_secs(20), looking).await;
    assert_eq!(found.expect("in time"), Ok(1));
    other.execute_batch("ROLLBACK").expect("ended");
}

#[tokio::test]
async fn a_device_with_many_topics_is_registered_while_others_write_in_between() {
    let folder = TempDir::new().expect("a folder");
    let store = open(&folder);
    let scene = Scene::new(&store).await;
    let topics: Vec<_> = (0..2_000).map(|no| topic(&format!("topic-{no}"))).collect();
    let large = [Registration { topics, ..registration(ProviderKind::Fcm, "large") }];
    let single = registration(ProviderKind::Fcm, "single");
    let registering = store.register(scene.app, &large, at(0));
    let beside = async {
        let subscribed = async || store.topics(scene.app, None, 2_000).await.expect("listed").len();
        while subscribed().await == 0 {
            tokio::task::yield_now().await;
        }
        scene.register(single).await;
        subscribed().await
    };
    let (registered, topics_then) = tokio::join!(registering, beside);
    assert_eq!(registered.expect("registered").len(), 1);
    assert!(topics_then < 2_000, "the other one waited for all of them");
    assert_eq!(store.topics(scene.app, None, 3_000).await.expect("listed").len(), 2_000);
}
