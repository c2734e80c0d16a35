//! Two that use one queue, whatever its engine: what they must do, and what the cases of an engine are made of.

use std::time::{Duration, Instant};

use stentor_core::chunk::{Lane, Ticket, TrafficClass};
use stentor_core::device::ProviderKind;
use stentor_core::id::{AppId, ChunkId};
use stentor_core::ports::queue::Queue;
use stentor_storage::conformance::scene::at;

pub(crate) const LANE: Lane =
    Lane { provider: ProviderKind::Fcm, app: AppId::from_raw(1), class: TrafficClass::Bulk };
pub(crate) const MINUTE: Duration = Duration::from_secs(60);
/// How often one is woken by the other, and how long all of that takes at most: half of what it takes without a word.
const WAKE_UPS_COUNT: u64 = 20;
const WAKE_UPS: Duration = Duration::from_secs(10);

/// Makes tickets that are due.
pub(crate) fn tickets(numbers: impl Iterator<Item = u64>) -> Vec<Ticket> {
    numbers.map(|number| Ticket { chunk: ChunkId::from_raw(number), lane: LANE, due_at: at(0) }).collect()
}

/// Leases what there is, some at a time, and acks it; returns the chunks.
pub(crate) async fn drain(queue: &dyn Queue) -> Vec<u64> {
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

/// Lets both put in what is partly the same, and both take it: each ticket comes out once.
pub(crate) async fn check_that_each_is_leased_once(one: &dyn Queue, other: &dyn Queue) {
    one.publish(&tickets(1..=2_000)).await.expect("published");
    other.publish(&tickets(1_000..=3_000)).await.expect("published");
    let (mine, theirs) = tokio::join!(drain(one), drain(other));
    let mut all = [mine, theirs].concat();
    all.sort_unstable();
    assert_eq!(all, (1..=3_000).collect::<Vec<u64>>(), "each once, none left");
}

/// Lets one wait for what the other puts in, who listens already.
pub(crate) async fn check_that_who_waits_is_woken(one: &dyn Queue, other: &dyn Queue) {
    let begun = Instant::now();
    for number in 1..=WAKE_UPS_COUNT {
        one.publish(&tickets(number..=number)).await.expect("published");
        other.changed().await;
    }
    assert!(begun.elapsed() < WAKE_UPS, "nobody is told: {:?}", begun.elapsed());
}
