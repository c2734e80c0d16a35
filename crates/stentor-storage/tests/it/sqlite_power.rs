//! Answered writes survive a power cut: every write that was not synced is dropped before reopening.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use stentor_core::id::{AppId, CampaignId};
use stentor_core::ports::store::{MessageStore, StoreError};
use stentor_core::target::Target;
use stentor_storage::conformance::scene::{Draft, Scene, at};
use stentor_storage::sqlite::{SqliteSettings, SqliteStore, Synchronous};
use tempfile::TempDir;

use crate::unsynced_vfs;

const ROUNDS: usize = 30;
const MESSAGES: usize = 100;

/// A store on a disk that forgets.
struct Disk {
    directory: TempDir,
    settings: SqliteSettings,
}

impl Disk {
    fn new(synchronous: Synchronous) -> Self {
        let vfs = Some(unsynced_vfs::register());
        // The log is copied into the file every few commits, so that power is cut around checkpoints too.
        let settings =
            SqliteSettings { synchronous, vfs, wal_autocheckpoint_pages: 40, ..SqliteSettings::store() };
        Self { directory: TempDir::new().expect("a temporary directory"), settings }
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join("stentor.db")
    }

    fn open(&self) -> SqliteStore {
        SqliteStore::open(self.path(), self.settings.clone()).expect("opened")
    }

    /// Opens the file that a power cut at this moment would leave.
    fn reopen_after_power_cut(&self, round: usize) -> Result<SqliteStore, StoreError> {
        let left = self.directory.path().join(format!("left-{round}.db"));
        unsynced_vfs::cut_power(&self.path(), &left);
        SqliteStore::open(left, SqliteSettings::store())
    }
}

/// Counts which of the acknowledged campaigns are not there, or not whole.
async fn missing(store: &SqliteStore, app: AppId, acknowledged: &[CampaignId]) -> usize {
    let mut missing = 0;
    Scene::again(store, app.raw()).start(at(1)).await;
    for id in acknowledged {
        let ledger = store.ledger(app, *id).await;
        missing += usize::from(!ledger.is_ok_and(|ledger| ledger.is_balanced() && ledger.audience() == 2));
    }
    missing
}

/// Accepts messages and cuts the power after each answer; returns how many acknowledged messages were missing.
async fn accept_and_cut_power(disk: &Disk) -> usize {
    let store = disk.open();
    let scene = Scene::new(&store).await;
    let target = Target::Devices(scene.fcm(2).await);
    let (mut acknowledged, mut lost) = (Vec::new(), 0);
    for round in 0..ROUNDS {
        let batch: Vec<_> = (0..=round % 4).map(|_| scene.new_message(Draft::to(target.clone()))).collect();
        let ids: Vec<CampaignId> = batch.iter().map(|new| new.message.id.into()).collect();
        let replies = store.accept(batch).await;
        assert!(replies.iter().all(Result::is_ok), "accepted: {replies:?}");
        acknowledged.extend(ids);
        lost += match disk.reopen_after_power_cut(round) {
            Ok(left) => missing(&left, scene.app, &acknowledged).await,
            Err(_) => acknowledged.len(),
        };
    }
    lost
}

#[tokio::test]
async fn every_acknowledged_message_survives_a_power_cut_right_after_its_answer() {
    assert_eq!(accept_and_cut_power(&Disk::new(Synchronous::Full)).await, 0);
}

#[tokio::test]
async fn without_a_sync_at_each_commit_the_same_test_loses_messages() {
    assert!(accept_and_cut_power(&Disk::new(Synchronous::Off)).await > 0);
    assert!(accept_and_cut_power(&Disk::new(Synchronous::Normal)).await > 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_acknowledged_message_survives_a_power_cut_at_any_moment() {
    let disk = Disk::new(Synchronous::Full);
    let store = disk.open();
    let devices = Scene::new(&store).await.fcm(2).await;
    let acknowledged = Arc::new(Mutex::new(Vec::new()));
    let writing = tokio::spawn(write_on(store.clone(), Target::Devices(devices), Arc::clone(&acknowledged)));
    let mut cuts = 0;
    while !writing.is_finished() || cuts == 0 {
        let before = acknowledged.lock().expect("not poisoned").clone();
        let left = disk.reopen_after_power_cut(cuts).expect("what is left can be opened");
        let app = Scene::again(&left, 1).app;
        assert_eq!(missing(&left, app, &before).await, 0, "of {}, at cut {cuts}", before.len());
        cuts += 1;
    }
    writing.await.expect("written");
}

/// Accepts messages one after the other and notes each that was answered.
async fn write_on(store: SqliteStore, target: Target, acknowledged: Arc<Mutex<Vec<CampaignId>>>) {
    let scene = Scene::again(&store, 1);
    for _ in 0..MESSAGES {
        let (id, _) = scene.send(Draft::to(target.clone())).await;
        acknowledged.lock().expect("not poisoned").push(id.into());
    }
}
