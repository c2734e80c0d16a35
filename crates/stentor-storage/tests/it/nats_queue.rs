//! Events around the stream of the queue on NATS: two processes that share it, and its deletion.

use std::time::Duration;

use stentor_core::ports::queue::Queue;
use stentor_storage::conformance::scene::at;

use crate::nats_server::server;
use crate::shared_queue::{
    LANE, MINUTE, check_that_each_is_leased_once, check_that_who_waits_is_woken, drain, tickets,
};

const PATIENCE: Duration = Duration::from_secs(30);

#[tokio::test(flavor = "multi_thread")]
async fn two_that_share_a_stream_lease_each_ticket_once() {
    let Some(server) = server() else { return };
    let settings = server.stream();
    let (one, other) = (server.queue(&settings), server.queue(&settings));
    check_that_each_is_leased_once(&one, &other).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_waits_hears_of_what_another_process_puts_in() {
    let Some(server) = server() else { return };
    let settings = server.stream();
    let (one, other) = (server.queue(&settings), server.queue(&settings));
    // Connected before the first announcement.
    assert_eq!(other.depths(at(0)).await.expect("told"), []);
    check_that_who_waits_is_woken(&one, &other).await;
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
