//! What happens to the queue on NATS around its stream: two that share it, and somebody who empties it.

use std::time::{Duration, Instant};

use stentor_core::chunk::{Lane, Ticket, TrafficClass};
use stentor_core::device::ProviderKind;
use stentor_core::id::{AppId, ChunkId};
use stentor_core::ports::queue::Queue;
use stentor_storage::conformance::scene::at;
use stentor_storage::nats::NatsQueue;

use crate::nats_server::server;

const LANE: Lane = Lane { provider: ProviderKind::Fcm, app: AppId::from_raw(1), class: TrafficClass::Bulk };
const MINUTE: Duration = Duration::from_secs(60);
const PATIENCE: Duration = Duration::from_secs(30);
/// How often one is woken by the other, and how long all of that takes at most: half of what it takes without a word.
const WAKE_UPS_COUNT: u64 = 20;
const WAKE_UPS: Duration = Duration::from_secs(10);

fn tickets(numbers: impl Iterator<Item = u64>) -> Vec<Ticket> {
    numbers.map(|number| Ticket { chunk: ChunkId::from_raw(number), lane: LANE, due_at: at(0) }).collect()
}

/// Leases what there is, some at a time, and acks it; returns the chunks.
async fn drain(queue: &NatsQueue) -> Vec<u64> {
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
async fn two_that_share_a_stream_lease_each_ticket_once() {
    let Some(server) = server() else { return };
    let settings = server.stream();
    let (one, other) = (server.queue(&settings), server.queue(&settings));
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
    let settings = server.stream();
    let (one, other) = (server.queue(&settings), server.queue(&settings));
    // Connected before anything is told.
    assert_eq!(other.depths(at(0)).await.expect("told"), []);
    let begun = Instant::now();
    for number in 1..=WAKE_UPS_COUNT {
        one.publish(&tickets(number..=number)).await.expect("published");
        other.changed().await;
    }
    assert!(begun.elapsed() < WAKE_UPS, "nobody is told: {:?}", begun.elapsed());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_somebody_empties_is_noticed_and_used_again() {
    let Some(server) = server() else { return };
    let settings = server.stream();
    let (queue, other) = (server.queue(&settings), server.queue(&settings));
    queue.publish(&tickets(1..=3)).await.expect("published");
    let lost = queue.lease(LANE, 1, MINUTE, at(1)).await.expect("asked");
    assert_eq!(lost.len(), 1);
    other.clear().await.expect("emptied");
    assert_eq!(queue.depths(at(1)).await.expect("told"), []);
    tokio::time::timeout(PATIENCE, queue.emptied()).await.expect("noticed");
    queue.publish(&tickets(1..=3)).await.expect("published");
    queue.ack(lost).await.expect("of no meaning any more");
    let mut all = drain(&queue).await;
    all.sort_unstable();
    assert_eq!(all, [1, 2, 3]);
}
