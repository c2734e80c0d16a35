//! What happens to the queue on PostgreSQL around its table: two that share it, and somebody who drops it.

use stentor_core::ports::queue::Queue;
use stentor_storage::conformance::scene::at;
use stentor_storage::postgres::{PostgresQueue, PostgresSettings};

use crate::postgres_server::{TestDatabase, server};
use crate::shared_queue::{
    LANE, MINUTE, check_that_each_is_leased_once, check_that_who_waits_is_woken, drain, tickets,
};

fn open(database: &TestDatabase) -> PostgresQueue {
    PostgresQueue::open(&database.address(), &PostgresSettings::default()).expect("opened")
}

#[tokio::test(flavor = "multi_thread")]
async fn two_that_share_a_queue_lease_each_ticket_once() {
    let Some(server) = server() else { return };
    let database = server.database();
    let (one, other) = (open(&database), open(&database));
    check_that_each_is_leased_once(&one, &other).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_waits_hears_of_what_another_process_puts_in() {
    let Some(server) = server() else { return };
    let database = server.database();
    let (one, other) = (open(&database), open(&database));
    // The first may come before the other listens.
    other.changed().await;
    check_that_who_waits_is_woken(&one, &other).await;
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
