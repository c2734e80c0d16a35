//! The tickets after the queue was closed and reopened: all or none, as the engine declares.

use stentor_core::id::ChunkId;

use super::{numbers, publish, take, ticket};
use crate::conformance::QueueHome;
use crate::conformance::scene::at;

pub async fn tickets_outlive_the_queue_if_the_engine_says_so(home: &dyn QueueHome) {
    let queue = home.open().await;
    publish(&*queue, &[ticket(2, 0), ticket(1, 0), ticket(3, 90)]).await;
    drop(queue);
    let queue = home.open().await;
    let found = numbers(&take(&*queue, 10, 0).await);
    let expected: &[u64] = if home.persists() { &[1, 2] } else { &[] };
    assert_eq!(found, expected);
    assert_eq!(queue.depths(at(0)).await.expect("told").is_empty(), !home.persists());
}

pub async fn a_queue_is_rebuilt_by_publishing_all_again(home: &dyn QueueHome) {
    let queue = home.open().await;
    publish(&*queue, &[ticket(1, 0), ticket(2, 0), ticket(3, 0)]).await;
    queue.ack(take(&*queue, 1, 0).await).await.expect("acked");
    take(&*queue, 1, 0).await;
    drop(queue);
    let queue = home.open().await;
    queue.clear().await.expect("cleared");
    publish(&*queue, &[ticket(2, 0), ticket(3, 0)]).await;
    assert_eq!(numbers(&take(&*queue, 10, 0).await), [2, 3], "also what a dead process had leased");
}

pub async fn what_a_dead_process_had_leased_is_freed_and_nothing_else(home: &dyn QueueHome) {
    if !home.persists() {
        return;
    }
    let queue = home.open().await;
    publish(&*queue, &[ticket(1, 0), ticket(2, 0), ticket(3, 0)]).await;
    let of_the_dead = numbers(&take(&*queue, 1, 0).await);
    let of_another = numbers(&take(&*queue, 1, 0).await);
    drop(queue);
    let queue = home.open().await;
    let freed: Vec<_> = of_the_dead.iter().map(|chunk| ChunkId::from_raw(*chunk)).collect();
    queue.withdraw(&freed).await.expect("withdrawn");
    publish(&*queue, &[ticket(1, 0), ticket(2, 0), ticket(3, 0)]).await;
    let mut taken = numbers(&take(&*queue, 10, 0).await);
    taken.sort_unstable();
    let others: Vec<u64> = [1, 2, 3].into_iter().filter(|chunk| !of_another.contains(chunk)).collect();
    assert_eq!(taken, others, "what another process has leased stays its own");
}
