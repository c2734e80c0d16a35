//! Reads wait only for reads of their own kind.

use std::sync::mpsc::Sender;
use std::time::Duration;

use stentor_core::campaign::CampaignAction;
use stentor_core::id::MessageId;
use stentor_core::ports::store::{AttemptFilter, DeviceStore, MessageStore, PipelineStore, QueuedFilter};
use stentor_core::target::Target;

use super::*;
use crate::conformance::scene::{CHUNK_MAX_DEVICES, Draft, Scene, at, first};
use crate::sqlite::readers::Reading;
use crate::sqlite::readers::tests::fill;
use crate::sqlite::settings::SqliteSettings;

/// Work that needs no place of a full lane is done much sooner.
const PATIENCE: Duration = Duration::from_secs(60);

fn open(folder: &tempfile::TempDir) -> SqliteStore {
    SqliteStore::open(folder.path().join("store.db"), SqliteSettings::store()).expect("opened")
}

/// Takes every place of lanes; they are given back once the returned senders are dropped.
async fn full(store: &SqliteStore, lanes: [Reading; 2]) -> Vec<Vec<Sender<()>>> {
    let settings = SqliteSettings::store();
    let mut held = Vec::new();
    for lane in lanes {
        let places = match lane {
            Reading::Short | Reading::Step => settings.readers_max_count,
            Reading::Walk | Reading::Long => settings.long_readers_max_count,
        };
        held.push(fill(store, |store| &store.inner.readers, (lane, places)).await);
    }
    held
}

async fn in_time(work: impl Future<Output = ()>) {
    tokio::time::timeout(PATIENCE, work).await.expect("it waits for a place that is not its own");
}

/// Sends a message to everyone; its audience is not expanded yet.
async fn wide(scene: &Scene<'_>, store: &SqliteStore) -> (MessageId, ProducerTask) {
    scene.fcm(2).await;
    let (message, _) = scene.send(Draft::to(Target::Everyone)).await;
    (message, store.producers().await.expect("listed")[0])
}

#[tokio::test]
async fn callers_read_while_all_that_moves_audiences_waits_for_its_reads() {
    let folder = tempfile::TempDir::new().expect("a temporary directory");
    let store = open(&folder);
    let scene = Scene::new(&store).await;
    let (message, task) = wide(&scene, &store).await;
    let (app, device) = (scene.app, scene.fcm(1).await[0]);
    let held = full(&store, [Reading::Step, Reading::Walk]).await;
    let moving = store.clone();
    let moving = tokio::spawn(async move { moving.queued_deliveries(task).await });
    in_time(async {
        assert!(scene.ledger(message).await.is_balanced());
        assert_eq!(store.message(app, message).await.expect("there").id, message);
        assert_eq!(store.campaigns(app, first(9)).await.expect("listed").readable.len(), 1);
        assert!(
            store.attempts(app, device, AttemptFilter::Message(message)).await.expect("looked up").is_empty()
        );
        assert!(
            store.attempts(app, device, AttemptFilter::Page(first(9))).await.expect("looked up").is_empty()
        );
        assert_eq!(store.device(app, device).await.expect("there").id, device);
        assert_eq!(store.count_audience(app, &Target::Everyone).await.expect("counted")[0].1, 3);
        scene.act(message, CampaignAction::Pause, at(1)).await;
        assert!(scene.act(message, CampaignAction::Resume, at(1)).await.is_empty());
    })
    .await;
    assert!(!moving.is_finished(), "it has no place");
    drop(held);
    assert_eq!(moving.await.expect("ended"), Ok(0));
}

#[tokio::test]
async fn audiences_move_while_every_caller_waits_for_its_reads() {
    let folder = tempfile::TempDir::new().expect("a temporary directory");
    let store = open(&folder);
    let scene = Scene::new(&store).await;
    let (message, task) = wide(&scene, &store).await;
    let held = full(&store, [Reading::Short, Reading::Long]).await;
    let reading = store.clone();
    let (app, campaign) = (scene.app, message.into());
    let reading = tokio::spawn(async move { reading.ledger(app, campaign).await });
    in_time(async {
        let how = Expansion { chunk_max_devices: CHUNK_MAX_DEVICES, max_chunks: 2, now: at(1) };
        assert_eq!(store.producers().await.expect("listed"), [task]);
        let tickets = store.expand(task, how).await.expect("expanded").tickets;
        assert_eq!(store.queued_deliveries(task).await, Ok(2));
        assert_eq!(store.queued(QueuedFilter::After(ChunkId::from_raw(0), 9)).await.as_ref(), Ok(&tickets));
        assert_eq!(store.queued(QueuedFilter::Among(&[tickets[0].chunk])).await.as_ref(), Ok(&tickets));
        assert_eq!(store.continue_work(at(1)).await, Ok(false));
    })
    .await;
    assert!(!reading.is_finished(), "it has no place");
    drop(held);
    assert!(reading.await.expect("ended").is_ok());
}
