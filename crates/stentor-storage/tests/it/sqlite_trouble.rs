//! Disks that are full or cannot sync: a store and a queue say so, and say otherwise by themselves once it is over.

use std::time::{Duration, Instant};

use stentor_core::ports::queue::Queue;
use stentor_core::ports::store::{HealthStore, StoreError, WriteProof};
use stentor_storage::conformance::PlainChanges;
use stentor_storage::conformance::scene::{app, at, registration};
use stentor_storage::sqlite::{SqliteQueue, SqliteSettings, SqliteStore};
use tempfile::TempDir;

use crate::unsynced_vfs::{self, Refusals};

const PATIENCE: Duration = Duration::from_secs(30);
/// Longer than the time for which a write predicts the next one's result.
const LONGER: Duration = Duration::from_millis(1_500);

/// Polls until a condition holds.
async fn until(what: &str, mut so: impl AsyncFnMut() -> bool) {
    let began = Instant::now();
    while !so().await {
        assert!(began.elapsed() < PATIENCE, "{what} never came");
        tokio::task::yield_now().await;
    }
}

fn store() -> (TempDir, std::path::PathBuf, SqliteStore) {
    let folder = TempDir::new().expect("a temporary directory");
    let path = folder.path().join("stentor.db");
    let settings = SqliteSettings { vfs: Some(unsynced_vfs::register()), ..SqliteSettings::store() };
    let store = SqliteStore::open(&path, settings).expect("opened");
    (folder, path, store)
}

async fn says_so_until_it_is_over(refusals: Refusals) {
    let (_folder, path, store) = store();
    store.create_app(&app(1)).await.expect("kept");
    let device = |name: &str| registration(stentor_core::device::ProviderKind::Fcm, name);
    let register = async |name| store.register(app(1).id, &[device(name)], at(0)).await;
    unsynced_vfs::refuse(&path, refusals);
    assert!(matches!(register("a").await, Err(StoreError::Unavailable(_))));
    let began = Instant::now();
    while began.elapsed() < LONGER {
        assert!(store.keeps(WriteProof::Recent).await.is_err(), "nobody writes, and it is still so");
    }
    unsynced_vfs::refuse(&path, Refusals::default());
    until("a store that keeps", async || store.keeps(WriteProof::Recent).await.is_ok()).await;
    register("a").await.expect("kept");
}

#[tokio::test]
async fn a_store_without_room_says_so_until_there_is_some() {
    says_so_until_it_is_over(Refusals { is_full: true, ..Refusals::default() }).await;
}

#[tokio::test]
async fn a_store_that_cannot_sync_says_so_until_it_can() {
    says_so_until_it_is_over(Refusals { fails_to_sync: true, ..Refusals::default() }).await;
}

#[tokio::test]
async fn a_store_to_which_nobody_writes_notices_by_itself_that_it_cannot() {
    let (_folder, path, store) = store();
    store.keeps(WriteProof::Recent).await.expect("it keeps");
    unsynced_vfs::refuse(&path, Refusals { fails_to_sync: true, ..Refusals::default() });
    until("a store that says no", async || store.keeps(WriteProof::Recent).await.is_err()).await;
}

#[tokio::test]
async fn a_queue_without_room_says_so_until_there_is_some() {
    let folder = TempDir::new().expect("a temporary directory");
    let path = folder.path().join("queue.db");
    let settings = SqliteSettings { vfs: Some(unsynced_vfs::register()), ..SqliteSettings::queue() };
    let queue = SqliteQueue::open(&path, settings).expect("opened");
    unsynced_vfs::refuse(&path, Refusals { is_full: true, ..Refusals::default() });
    until("a queue that says no", async || queue.keeps().await.is_err()).await;
    unsynced_vfs::refuse(&path, Refusals::default());
    until("a queue that takes tickets", async || queue.keeps().await.is_ok()).await;
}
