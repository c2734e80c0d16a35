//! The queue's file with rows of one app damaged, each value in turn: the tickets of the other app are leased, and once the store's chunks
//! are published again its own are too.

use std::path::Path;
use std::time::Duration;

use stentor_core::chunk::{Lane, Ticket, TrafficClass};
use stentor_core::device::ProviderKind;
use stentor_core::id::{AppId, ChunkId};
use stentor_core::ports::queue::{Queue, QueueError};
use stentor_storage::conformance::scene::at;
use stentor_storage::conformance::value_damage::{ValueDamage, apply, possible};
use stentor_storage::sqlite::{SqliteQueue, SqliteSettings};
use tempfile::TempDir;

const LEASE: Duration = Duration::from_secs(60);
/// When all leases have run out.
const LATER_SECONDS: i64 = 1_000;

fn lane(app: u64) -> Lane {
    Lane { provider: ProviderKind::Fcm, app: AppId::from_raw(app), class: TrafficClass::Bulk }
}

/// A ticket that waits for its time, one that is due, and one that is leased.
fn tickets(app: u64) -> [Ticket; 3] {
    [(1, 500), (2, 0), (3, 0)].map(|(number, due)| {
        let chunk = ChunkId::from_raw(app * 10 + number);
        Ticket { chunk, lane: lane(app), due_at: at(due) }
    })
}

fn open(path: &Path) -> SqliteQueue {
    SqliteQueue::open(path, SqliteSettings::queue()).expect("opened")
}

async fn fill(queue: &SqliteQueue, app: u64) {
    queue.publish(&tickets(app)[2..]).await.expect("published");
    assert_eq!(queue.lease(lane(app), 1, LEASE, at(1)).await.expect("leased").len(), 1);
    queue.publish(&tickets(app)[..2]).await.expect("published");
}

/// Makes every call to a queue with damaged rows of one app. A queue opened after the damage is filled as a server does it.
async fn asked(queue: &SqliteQueue, is_new: bool) -> Result<(), QueueError> {
    let all = [tickets(1), tickets(2)].concat();
    if is_new {
        queue.clear().await?;
        queue.publish(&all).await?;
    }
    let due = if is_new { &tickets(2)[1..] } else { &tickets(2)[1..2] };
    let depths = queue.depths(at(2)).await?;
    let of_other = depths.iter().find(|depth| depth.lane == lane(2)).expect("its lane is counted");
    assert_eq!((of_other.ready, of_other.delayed), (due.len() as u64, 1));
    assert_eq!(of_other.leased, u64::from(!is_new));
    let leased = queue.lease(lane(2), 9, LEASE, at(2)).await?;
    assert_eq!(leased.iter().map(|lease| lease.ticket).collect::<Vec<_>>(), due);
    assert_eq!(queue.extend(&leased, LEASE, at(3)).await?, vec![true; due.len()]);
    queue.keeps().await?;
    queue.nack(leased, at(4)).await?;
    queue.lease(lane(1), 9, LEASE, at(LATER_SECONDS)).await?;
    // The store's queued chunks are published again now and then, which restores tickets lost by the damage.
    queue.publish(&all).await?;
    let later = at(2 * LATER_SECONDS);
    for app in [1, 2] {
        let mut leased = queue.lease(lane(app), 9, LEASE, later).await?;
        leased.sort_by_key(|lease| lease.ticket.chunk);
        let mut chunks: Vec<_> = leased.iter().map(|lease| lease.ticket.chunk).collect();
        // A number that belongs to no chunk: the store reports it as unknown.
        chunks.retain(|chunk| *chunk < ChunkId::from_raw(100));
        assert_eq!(chunks, tickets(app).map(|ticket| ticket.chunk));
        queue.ack(leased).await?;
    }
    assert!(queue.depths(later).await?.iter().all(|depth| depth.lane.app.raw() != 2));
    Ok(())
}

/// Damages a copy of the file, before it is opened or while it is open, and makes the calls.
async fn serve(both: &Path, one: &Path, damage: &ValueDamage, is_open: bool) -> bool {
    let folder = TempDir::new().expect("a temporary directory");
    let path = folder.path().join("queue.db");
    std::fs::copy(both, &path).expect("copied");
    let before = is_open.then(|| open(&path));
    let changed = apply(&path, one, damage);
    let queue = before.unwrap_or_else(|| open(&path));
    if changed > 0 {
        let went_on = asked(&queue, !is_open).await;
        assert!(went_on.is_ok(), "{damage}, open: {is_open}: {went_on:?}");
    }
    changed > 0
}

#[tokio::test]
async fn a_damaged_row_of_the_queue_stops_nothing_and_comes_back_from_the_store() {
    let folder = TempDir::new().expect("a temporary directory");
    let (both, one) = (folder.path().join("both.db"), folder.path().join("one.db"));
    let queue = open(&both);
    fill(&queue, 1).await;
    drop(queue);
    std::fs::copy(&both, &one).expect("copied");
    let queue = open(&both);
    fill(&queue, 2).await;
    drop(queue);
    let mut changed = 0;
    for damage in possible(&both) {
        for is_open in [false, true] {
            changed += usize::from(serve(&both, &one, &damage, is_open).await);
        }
    }
    assert!(changed > 40, "{changed}");
}
