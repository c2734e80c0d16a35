//! A disk with one unreadable page: the chunk on it is skipped, and everything else continues.

use stentor_core::chunk::encode_devices;
use stentor_core::device::ProviderKind;
use stentor_core::id::{ChunkId, MessageId};
use stentor_core::ports::store::{
    BrokenWork, Expansion, HealthStore, Lease, LeaseReply, LeaseTerms, PipelineStore, ProducerTask,
    QueuedFilter, StoreError, WriteProof,
};
use stentor_core::target::Target;
use stentor_storage::conformance::scene::{Draft, INSTANCE, Scene, accept_all, at, lease_at, lease_of};
use stentor_storage::sqlite::{SqliteSettings, SqliteStore};
use tempfile::TempDir;

use crate::unsynced_vfs;

/// The number of devices of a chunk: such a row fills a page of its own.
const CHUNK: usize = 3_000;

/// A store with three chunks, leased by a process or by none, and the page of the second scratched.
async fn scratched(folder: &TempDir, lease: Option<LeaseTerms>) -> (SqliteStore, MessageId, Vec<ChunkId>) {
    let settings = SqliteSettings { vfs: Some(unsynced_vfs::register()), ..SqliteSettings::store() };
    let path = folder.path().join("stentor.db");
    let store = SqliteStore::open(&path, settings.clone()).expect("made");
    let scene = Scene::new(&store).await;
    let devices = scene.fcm(3 * CHUNK).await;
    let (message, _) = scene.send(Draft::to(Target::Everyone)).await;
    let task = ProducerTask { message, app: scene.app, provider: ProviderKind::Fcm };
    let how = Expansion { chunk_max_devices: CHUNK, max_chunks: 3, now: at(0) };
    let tickets = store.expand(task, how).await.expect("expanded").tickets;
    let chunks: Vec<_> = tickets.iter().map(|ticket| ticket.chunk).collect();
    if let Some(lease) = lease {
        store.lease(&chunks, lease).await.expect("leased");
    }
    drop(store);
    unsynced_vfs::scratch(&path, &encode_devices(&devices[CHUNK..2 * CHUNK])[..16]);
    (SqliteStore::open(&path, settings).expect("opened"), message, chunks)
}

#[tokio::test]
async fn a_chunk_that_the_disk_does_not_give_is_left_alone_and_the_others_are_sent() {
    let folder = TempDir::new().expect("a folder");
    let (store, _, chunks) = scratched(&folder, None).await;
    let scene = Scene::again(&store, 1);
    let lease = lease_at(at(1));
    assert!(matches!(store.lease(&chunks, lease).await, Err(StoreError::Unreadable(_))), "together");
    assert!(matches!(store.lease(&chunks[1..2], lease).await, Err(StoreError::Unreadable(_))), "alone");
    assert_eq!(store.keeps(WriteProof::Now).await, Ok(()), "the disk takes the rest");
    assert_eq!(store.quarantine(BrokenWork::Chunk { chunk: chunks[1], epoch: None }, at(2)).await, Ok(true));
    let published = store.queued(QueuedFilter::After(ChunkId::from_raw(0), 10)).await.expect("listed");
    assert_eq!(published.iter().map(|ticket| ticket.chunk).collect::<Vec<_>>(), [chunks[0], chunks[2]]);
    for chunk in [chunks[0], chunks[2]] {
        let leased = scene.lease(chunk, at(3)).await;
        scene.settled(accept_all(&leased, at(3))).await;
    }
}

#[tokio::test]
async fn leases_on_a_page_that_the_disk_does_not_give_keep_no_server_from_starting() {
    let folder = TempDir::new().expect("a folder");
    let (store, _, chunks) = scratched(&folder, Some(lease_of(INSTANCE - 1, at(1)))).await;
    let (recovery, _) = store.recover(INSTANCE, at(2)).await.expect("it starts");
    assert_eq!(recovery.chunks, 2);
    let replies = store.lease(&[chunks[0], chunks[2]], lease_at(at(3))).await.expect("leased");
    assert!(replies.iter().all(|reply| matches!(reply, LeaseReply::Leased(_))));
}

#[tokio::test]
async fn leases_that_ran_out_on_such_a_page_keep_no_others_from_being_taken_back_or_prolonged() {
    let folder = TempDir::new().expect("a folder");
    let (store, message, chunks) = scratched(&folder, Some(lease_at(at(1)))).await;
    let held: Vec<_> = chunks.iter().map(|chunk| Lease { chunk: *chunk, epoch: 1 }).collect();
    store.extend(&held, lease_at(at(30))).await.expect("the others are prolonged");
    assert!(store.sweep(100, at(70)).await.expect("swept").released.is_empty());
    let swept = store.sweep(100, at(200)).await.expect("swept");
    assert_eq!(swept.released.len(), 2);
    let late = store.sweep(100, at(100_000)).await.expect("swept");
    assert_eq!(late.expired.len(), 2, "{message}");
}
