//! Two users of one queue, of any engine: their common requirements, and the building blocks of an engine's cases.

use std::time::{Duration, Instant};

use stentor_core::chunk::{Lane, Ticket, TrafficClass};
use stentor_core::device::ProviderKind;
use stentor_core::id::{AppId, ChunkId};
use stentor_core::ports::queue::Queue;
use stentor_storage::conformance::scene::at;

pub(crate) const LANE: Lane =
    Lane { provider: ProviderKind::Fcm, app: AppId::from_raw(1), class: TrafficClass::Bulk };
pub(crate) const MINUTE: Duration = Duration::from_secs(60);
/// The number of wake-ups by the other, and their longest total time: half of the time without notifications.
const WAKE_UPS_COUNT: u64 = 20;
const WAKE_UPS: Duration = Duration::from_secs(10);

/// Makes tickets that are due.
pub(crate) fn tickets(numbers: impl Iterator<Item = u64>) -> Vec<Ticket> {
    numbers.map(|number| Ticket { chunk: ChunkId::from_raw(number), lane: LANE, due_at: at(0) }).collect()
}

/// Leases the present tickets, a few at a time, and acks them; returns the chunks.
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

/// Both publish overlapping tickets and lease them: each ticket is leased once.
pub(crate) async fn check_that_each_is_leased_once(one: &dyn Queue, other: &dyn Queue) {
    one.publish(&tickets(1..=2_000)).await.expect("published");
    other.publish(&tickets(1_000..=3_000)).await.expect("published");
    let (mine, theirs) = tokio::join!(drain(one), drain(other));
    let mut all = [mine, theirs].concat();
    all.sort_unstable();
    assert_eq!(all, (1..=3_000).collect::<Vec<u64>>(), "each once, none left");
}

/// One waits for the tickets of the other, and is listening already.
pub(crate) async fn check_that_who_waits_is_woken(one: &dyn Queue, other: &dyn Queue) {
    let begun = Instant::now();
    for number in 1..=WAKE_UPS_COUNT {
        one.publish(&tickets(number..=number)).await.expect("published");
        other.changed().await;
    }
    assert!(begun.elapsed() < WAKE_UPS, "nobody is told: {:?}", begun.elapsed());
}
