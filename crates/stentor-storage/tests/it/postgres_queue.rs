//! Events around the table of the queue on PostgreSQL: two processes that share it, and the loss of the table.

use stentor_core::ports::queue::Queue;
use stentor_storage::conformance::scene::at;
use stentor_storage::postgres::{PostgresQueue, PostgresSettings};

use crate::postgres_server::{TestDatabase, server};
use crate::shared_queue::{LANE, MINUTE, check_that_each_is_leased_once, drain, tickets};

fn open(database: &TestDatabase) -> PostgresQueue {
    PostgresQueue::open(&database.address(), &PostgresSettings::default()).expect("opened")
}

/// Opens a queue that checks for changes only when it is notified: no test takes an hour.
fn open_without_looks(database: &TestDatabase) -> PostgresQueue {
    let settings = PostgresSettings { look_interval_ms: 3_600_000, ..PostgresSettings::default() };
    PostgresQueue::open(&database.address(), &settings).expect("opened")
}

/// Waits until a ticket is present, and leases it; checks again only after a notification.
async fn until_leased(queue: &PostgresQueue) {
    while queue.lease(LANE, 1, MINUTE, at(1)).await.expect("asked").is_empty() {
        tokio::time::timeout(MINUTE, queue.changed()).await.expect("nobody is told");
    }
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
    let (one, other) = (open_without_looks(&database), open_without_looks(&database));
    for number in 1..=20 {
        let waits = until_leased(&other);
        let publishes = async { one.publish(&tickets(number..=number)).await.expect("published") };
        tokio::join!(waits, publishes);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_put_in_while_the_listening_connection_is_lost_is_found_with_the_next_one() {
    let Some(server) = server() else { return };
    let database = server.database();
    let (one, other) = (open(&database), open_without_looks(&database));
    one.publish(&tickets(1..=1)).await.expect("published");
    until_leased(&other).await;
    let of_listeners = "FROM pg_stat_activity WHERE datname = current_database() AND query LIKE 'LISTEN %'";
    database.command(&format!("SELECT pg_terminate_backend(pid, 60000) {of_listeners}"));
    one.publish(&tickets(2..=2)).await.expect("published");
    until_leased(&other).await;
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
