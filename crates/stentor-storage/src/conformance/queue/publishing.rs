//! Putting tickets in, in order, and taking them out.

use stentor_core::chunk::{Ticket, TrafficClass};
use stentor_core::device::ProviderKind;
use stentor_core::id::ChunkId;
use stentor_core::ports::queue::Queue;

use super::{MINUTE, bulk, lane, numbers, publish, take, ticket};
use crate::conformance::scene::at;

pub async fn a_published_ticket_is_leased_as_it_was(queue: &dyn Queue) {
    publish(queue, &[ticket(5, 3)]).await;
    let leases = take(queue, 10, 3).await;
    assert_eq!(leases.len(), 1);
    assert_eq!(leases[0].ticket, ticket(5, 3));
}

pub async fn an_empty_queue_gives_nothing(queue: &dyn Queue) {
    assert!(take(queue, 10, 0).await.is_empty());
    publish(queue, &[]).await;
    assert!(queue.depths(at(0)).await.expect("told").is_empty());
}

pub async fn tickets_are_leased_by_due_time_then_by_chunk(queue: &dyn Queue) {
    publish(queue, &[ticket(4, 2), ticket(9, 1), ticket(3, 2), ticket(1, 3)]).await;
    publish(queue, &[ticket(2, 2)]).await;
    let (first, rest) = (numbers(&take(queue, 3, 10).await), numbers(&take(queue, 3, 10).await));
    if queue.abilities().orders {
        assert_eq!((first, rest), (vec![9, 2, 3], vec![4, 1]));
    } else {
        let mut all = [first, rest].concat();
        all.sort_unstable();
        assert_eq!(all, [1, 2, 3, 4, 9], "in whatever order it says");
    }
}

pub async fn a_ticket_is_not_leased_before_it_is_due(queue: &dyn Queue) {
    publish(queue, &[ticket(1, 60), ticket(2, 10)]).await;
    assert!(take(queue, 10, 9).await.is_empty());
    assert_eq!(numbers(&take(queue, 10, 10).await), [2]);
    assert_eq!(numbers(&take(queue, 10, 60).await), [1]);
}

pub async fn publishing_again_changes_nothing(queue: &dyn Queue) {
    publish(queue, &[ticket(1, 5), ticket(1, 5)]).await;
    publish(queue, &[ticket(1, 0)]).await;
    assert!(take(queue, 10, 4).await.is_empty(), "the first due time stays");
    assert_eq!(numbers(&take(queue, 10, 5).await), [1]);
    publish(queue, &[ticket(1, 0)]).await;
    assert!(take(queue, 10, 6).await.is_empty(), "it is leased");
}

pub async fn a_chunk_taken_out_can_be_published_anew(queue: &dyn Queue) {
    publish(queue, &[ticket(1, 0)]).await;
    queue.ack(take(queue, 1, 0).await).await.expect("acked");
    publish(queue, &[ticket(1, 7)]).await;
    assert_eq!(take(queue, 1, 7).await[0].ticket, ticket(1, 7));
}

pub async fn lanes_do_not_mix(queue: &dyn Queue) {
    let other = Ticket { lane: lane(2, TrafficClass::Bulk), ..ticket(1, 0) };
    let urgent = Ticket { lane: lane(1, TrafficClass::Urgent), ..ticket(2, 0) };
    let mut apns = bulk();
    apns.provider = ProviderKind::Apns;
    let apple = Ticket { lane: apns, ..ticket(3, 0) };
    publish(queue, &[other, urgent, apple, ticket(4, 0)]).await;
    assert_eq!(numbers(&take(queue, 10, 0).await), [4]);
    for expected in [other, urgent, apple] {
        let leases = queue.lease(expected.lane, 10, MINUTE, at(0)).await.expect("asked");
        assert_eq!(leases.len(), 1);
        assert_eq!(leases[0].ticket, expected);
    }
}

pub async fn withdrawn_chunks_are_gone_leased_or_not(queue: &dyn Queue) {
    publish(queue, &[ticket(1, 0), ticket(2, 0), ticket(3, 0)]).await;
    let leases = take(queue, 1, 0).await;
    let gone = [1, 2, 404].map(ChunkId::from_raw);
    queue.withdraw(&gone).await.expect("withdrawn");
    queue.nack(leases, at(0)).await.expect("ignored");
    assert_eq!(numbers(&take(queue, 10, 1_000).await), [3]);
    publish(queue, &[ticket(1, 0)]).await;
    assert_eq!(numbers(&take(queue, 10, 1_000).await), [1], "it can be put in again");
}

pub async fn clearing_throws_everything_away(queue: &dyn Queue) {
    publish(queue, &[ticket(1, 0), ticket(2, 0), ticket(3, 500)]).await;
    let leases = take(queue, 1, 0).await;
    queue.clear().await.expect("cleared");
    queue.ack(leases).await.expect("ignored");
    assert!(take(queue, 10, 1_000).await.is_empty());
    assert!(queue.depths(at(0)).await.expect("told").is_empty());
    publish(queue, &[ticket(1, 0)]).await;
    assert_eq!(numbers(&take(queue, 10, 0).await), [1], "and can be filled again");
}

pub async fn a_thousand_tickets_come_out_once_each(queue: &dyn Queue) {
    let tickets: Vec<_> = (1..=1_000).map(|chunk| ticket(chunk, 0)).collect();
    publish(queue, &tickets).await;
    let mut seen = Vec::new();
    loop {
        let leases = take(queue, 64, 0).await;
        assert!(leases.len() <= 64);
        if leases.is_empty() {
            break;
        }
        seen.extend(numbers(&leases));
        queue.ack(leases).await.expect("acked");
    }
    if !queue.abilities().orders {
        seen.sort_unstable();
    }
    assert_eq!(seen, (1..=1_000).collect::<Vec<_>>());
}

pub async fn publishing_wakes_who_waits_for_a_change(queue: &dyn Queue) {
    publish(queue, &[ticket(1, 0)]).await;
    within_patience(queue.changed()).await;
    let woken = async {
        while take(queue, 1, 0).await.iter().all(|lease| lease.ticket.chunk.raw() != 2) {
            queue.changed().await;
        }
    };
    let second = [ticket(2, 0)];
    within_patience(async { tokio::join!(woken, publish(queue, &second)) }).await;
}

pub async fn giving_back_wakes_who_waits_for_a_change(queue: &dyn Queue) {
    publish(queue, &[ticket(1, 0)]).await;
    let held = take(queue, 1, 0).await;
    let woken = async {
        while take(queue, 1, 0).await.is_empty() {
            queue.changed().await;
        }
    };
    let back = async { queue.nack(held, at(0)).await.expect("given back") };
    within_patience(async { tokio::join!(woken, back) }).await;
}

/// Fails instead of hanging if the waiting task is not woken.
async fn within_patience<T>(work: impl Future<Output = T>) -> T {
    let patience = std::time::Duration::from_secs(30);
    tokio::time::timeout(patience, work).await.expect("woken by the change")
}
