//! What happens to the queue on PostgreSQL around its table: two that share it, and somebody who drops it.

use std::time::{Duration, Instant};

use stentor_core::chunk::{Lane, Ticket, TrafficClass};
use stentor_core::device::ProviderKind;
use stentor_core::id::{AppId, ChunkId};
use stentor_core::ports::queue::Queue;
use stentor_storage::conformance::scene::at;
use stentor_storage::postgres::{PostgresQueue, PostgresSettings};

use crate::postgres_server::{TestDatabase, server};

const LANE: Lane = Lane { provider: ProviderKind::Fcm, app: AppId::from_raw(1), class: TrafficClass::Bulk };
const MINUTE: Duration = Duration::from_secs(60);
/// How often one is woken by the other, and how long all of that takes at most: half of what it takes without a word.
const WAKE_UPS_COUNT: u64 = 20;
const WAKE_UPS: Duration = Duration::from_secs(10);

fn open(database: &TestDatabase) -> PostgresQueue {
    PostgresQueue::open(&database.address(), &PostgresSettings::default()).expect("opened")
}

fn tickets(numbers: impl Iterator<Item = u64>) -> Vec<Ticket> {
    numbers.map(|number| Ticket { chunk: ChunkId::from_raw(number), lane: LANE, due_at: at(0) }).collect()
}

/// Leases what there is, some at a time, and acks it; returns the chunks.
async fn drain(queue: &PostgresQueue) -> Vec<u64> {
    let mut taken = Vec::new();
    loop {
        let leases = queue.lease(LANE, 7, MINUTE, at(1)).await.expect("asked");
        if leases.is_empty() {
            return taken;
        }
        taken.extend(leases.iter().map(|lease| lease.ticket.chunk.raw()));
        queue.ack(leases).await.expect("acked");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_that_share_a_queue_lease_each_ticket_once() {
    let Some(server) = server() else { return };
    let database = server.database();
    let (one, other) = (open(&database), open(&database));
    one.publish(&tickets(1..=2_000)).await.expect("published");
    other.publish(&tickets(1_000..=3_000)).await.expect("published");
    let (mine, theirs) = tokio::join!(drain(&one), drain(&other));
    let mut all = [mine, theirs].concat();
    all.sort_unstable();
    assert_eq!(all, (1..=3_000).collect::<Vec<u64>>(), "each once, none left");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_waits_hears_of_what_another_process_puts_in() {
    let Some(server) = server() else { return };
    let database = server.database();
    let (one, other) = (open(&database), open(&database));
    // The first may come before the other listens.
    other.changed().await;
    let begun = Instant::now();
    for number in 1..=WAKE_UPS_COUNT {
        one.publish(&tickets(number..=number)).await.expect("published");
        other.changed().await;
    }
    assert!(begun.elapsed() < WAKE_UPS, "nobody is told: {:?}", begun.elapsed());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_queue_whose_table_is_dropped_makes_it_again_and_says_so() {
    let Some(server) = server() else { return };
    let database = server.database();
    let queue = open(&database);
    queue.publish(&tickets(1..=3)).await.expect("published");
    assert_eq!(queue.lease(LANE, 7, MINUTE, at(1)).await.expect("asked").len(), 3);
    database.command("DROP TABLE queue_tickets; DROP SEQUENCE queue_leases");
    assert_eq!(queue.depths(at(1)).await.expect("told"), []);
    tokio::time::timeout(MINUTE, queue.emptied()).await.expect("noticed");
    queue.publish(&tickets(2..=2)).await.expect("published");
    assert_eq!(drain(&queue).await, [2]);
}
