//! A database that is a copy, a server that has a double, and a start while nothing is free.

use std::time::{Duration, Instant};

use stentor_core::ports::store::{NodeStore, StoreError};
use stentor_core::target::Target;
use stentor_storage::conformance::scene::{Draft, Scene, accept_all, at, joining};
use stentor_storage::postgres::{PostgresAddress, PostgresSettings, PostgresStore};

use crate::postgres_nodes::join;
use crate::postgres_server::{TestDatabase, server};

fn open(database: &TestDatabase) -> PostgresStore {
    PostgresStore::open(&database.address(), &PostgresSettings::default()).expect("opened")
}

#[tokio::test]
async fn what_waits_in_a_copy_of_a_database_is_marked_as_possibly_sent_and_in_the_original_it_is_not() {
    let Some(server) = server() else { return };
    let database = server.database();
    let store = open(&database);
    let scene = Scene::new(&store).await;
    scene.fcm(3).await;
    let (message, tickets) = scene.send_wide(Draft::to(Target::Everyone)).await;
    drop(store);
    let copy = database.copied();
    for (store, may_be_sent) in [(open(&database), false), (open(&copy), true)] {
        let scene = Scene::again(&store, 1);
        let leased = scene.lease(tickets[0].chunk, at(1)).await;
        assert_eq!(leased.ambiguous, may_be_sent, "what ends after it bears the mark");
        scene.settled(accept_all(&leased, at(2))).await;
        let books = scene.books(message).await;
        assert_eq!((books.tally.accepted, books.duplicate_bound), (3, if may_be_sent { 3 } else { 0 }));
    }
    // The copy is a database of its own from now on.
    let store = open(&copy);
    let scene = Scene::again(&store, 1);
    let bound = scene.books(message).await.duplicate_bound;
    assert_eq!(bound, 3, "it is marked once");
    drop((store, copy));
}

#[tokio::test]
async fn a_server_whose_node_id_another_has_is_told_so_and_throws_it_out_no_more() {
    let Some(server) = server() else { return };
    let database = server.database();
    let (one, other) = (open(&database), open(&database));
    let first = join(&one, 7).await;
    let second = join(&other, 7).await;
    assert!(
        !one.beat(first.instance, None, at(2)).await.expect("noted").is_known,
        "the later one has its place"
    );
    let again = one.join(joining(7), at(2)).await;
    assert!(matches!(&again, Err(StoreError::Conflict(why)) if why.contains("node.id")), "{again:?}");
    assert!(other.beat(second.instance, None, at(3)).await.expect("noted").is_known, "it stays");
    // Once the double is gone, its place is free.
    other.leave(second.instance, at(3)).await.expect("left");
    one.join(joining(7), at(4)).await.expect("joined");
    // A restarted server replaces its former instance.
    join(&open(&database), 7).await;
}

#[tokio::test]
async fn a_store_that_is_opened_while_no_connection_is_free_waits_for_one() {
    let Some(server) = server() else { return };
    let database = server.database();
    let role = format!("plain_{}", database.name());
    database.command(&format!("CREATE ROLE {role} LOGIN CONNECTION LIMIT 0; GRANT postgres TO {role}"));
    let url = database.url_at(server.port()).replace("postgres@", &format!("{role}@"));
    let address: PostgresAddress = url.parse().expect("an address");
    let refused = PostgresStore::open(
        &address,
        &PostgresSettings { start_patience_ms: 300, ..PostgresSettings::default() },
    );
    assert!(
        matches!(&refused, Err(StoreError::Unavailable(why)) if why.contains("53300")),
        "{:?}",
        refused.err()
    );
    let begun = Instant::now();
    let opening = std::thread::spawn({
        let address = address.clone();
        move || PostgresStore::open(&address, &PostgresSettings::default()).map(drop)
    });
    while !opening.is_finished() && begun.elapsed() < Duration::from_millis(500) {
        std::thread::yield_now();
    }
    assert!(!opening.is_finished(), "it waits");
    database.command(&format!("ALTER ROLE {role} CONNECTION LIMIT -1"));
    assert_eq!(opening.join().expect("no panic"), Ok(()));
    drop(database);
    server.command(&format!("DROP OWNED BY {role}; DROP ROLE {role}"));
}

#[tokio::test]
async fn a_database_that_nobody_serves_or_that_refuses_the_user_ends_the_start_at_once() {
    let Some(server) = server() else { return };
    let begun = Instant::now();
    for url in [
        "postgres://postgres@127.0.0.1:1/none?sslmode=disable".to_owned(),
        format!("postgres://postgres@127.0.0.1:{}/none?sslmode=disable", server.port()),
    ] {
        let address: PostgresAddress = url.parse().expect("an address");
        assert!(PostgresStore::open(&address, &PostgresSettings::default()).is_err());
    }
    assert!(begun.elapsed() < Duration::from_secs(30), "nothing to wait for");
}
