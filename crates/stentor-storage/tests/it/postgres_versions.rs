//! Programs of several versions on one database: their admission, and the steps that wait for older servers.

use stentor_core::device::{ProviderKind, Registration};
use stentor_core::ports::store::{LeaseReply, MessageStore, NodeStore, PipelineStore, StoreError};
use stentor_core::target::Target;
use stentor_storage::conformance::scene::{Draft, Scene, app, at, joining, lease_of, registration, topic};
use stentor_storage::postgres::{PostgresSettings, PostgresStore};
use stentor_storage::schema::{SchemaChange, SchemaGoal};
use stentor_storage::store_place::{StorePlace, migrate};

use crate::postgres_server::{TestDatabase, server};

fn open(database: &TestDatabase) -> Result<PostgresStore, StoreError> {
    PostgresStore::open(&database.address(), &PostgresSettings::default())
}

/// Changes the schema on a thread on which the driver may wait.
fn take(database: &TestDatabase, goal: SchemaGoal) -> Result<SchemaChange, StoreError> {
    let place = StorePlace::Postgres(Box::new(database.address()));
    std::thread::scope(|scope| scope.spawn(|| migrate(&place, goal)).join().expect("no panic"))
}

#[tokio::test]
async fn a_database_of_a_newer_program_is_refused_and_left_alone() {
    let Some(server) = server() else { return };
    let database = server.database();
    database.command("UPDATE schema_version SET version = version + 1, usable_by = version + 1");
    let opened = open(&database);
    assert!(matches!(opened, Err(StoreError::Conflict(why)) if why.contains("newer")));
}

#[tokio::test]
async fn a_database_of_the_next_version_is_used_while_it_says_that_it_may_be() {
    let Some(server) = server() else { return };
    let database = server.database();
    database.command(
        "UPDATE schema_version SET version = version + 1;
        ALTER TABLE devices ADD COLUMN of_later INTEGER NOT NULL DEFAULT 7; CREATE TABLE of_later (id BIGINT)",
    );
    let store = open(&database).expect("opened");
    let joined = store.join(joining(1), at(1)).await.expect("joined");
    let scene = Scene::new(&store).await;
    scene.fcm(3).await;
    let (message, tickets) = scene.send_wide(Draft::to(Target::Everyone)).await;
    let leased = store.lease(&[tickets[0].chunk], lease_of(joined.instance, at(1))).await;
    assert!(matches!(leased.expect("leased").as_slice(), [LeaseReply::Leased(_)]));
    assert_eq!(scene.tally(message).await.sending, 3);
    // The next step removes data that this version needs: this version can no longer join, and its node does no work.
    database.command("UPDATE schema_version SET version = version + 1, usable_by = version + 1");
    let refused = store.join(joining(1), at(2)).await;
    assert!(matches!(refused, Err(StoreError::Conflict(why)) if why.contains("this program knows")));
}

#[tokio::test]
async fn the_last_state_of_a_topic_is_found_where_an_earlier_version_accepted_it() {
    let Some(server) = server() else { return };
    let database = server.database();
    let door = topic("door");
    let last = {
        let store = open(&database).expect("opened");
        let scene = Scene::new(&store).await;
        let given = registration(ProviderKind::Gateway, "t");
        scene.register(Registration { topics: vec![door.clone()], ..given }).await;
        scene.send(Draft::to(Target::Topic(door.clone())).for_gateway(r#"{"retain":true}"#)).await.0
    };
    for (from, to) in [(13, 12), (12, 11), (11, 10), (10, 9), (9, 8), (8, 7)] {
        assert_eq!(take(&database, SchemaGoal::OneBack), Ok(SchemaChange { from, to }));
    }
    let store = open(&database).expect("brought forward again");
    assert_eq!(store.retained(app(1).id, &door, at(1)).await, Ok(Some(last)));
}

#[tokio::test]
async fn a_step_that_servers_of_an_older_version_cannot_go_on_with_waits_until_they_are_gone() {
    let Some(server) = server() else { return };
    let database = server.database();
    let store = open(&database).expect("opened");
    store.join(joining(1), at(1)).await.expect("joined");
    // Simulates a missing last step, and a server that knows less than the step requires.
    let knows = |version: u32| {
        format!(
            "UPDATE schema_version SET version = 5; ALTER TABLE upstream DROP COLUMN IF EXISTS claimed_by;
            UPDATE nodes SET schema_version = {version}"
        )
    };
    database.command(&knows(4));
    let refused = take(&database, SchemaGoal::Newest);
    assert!(
        matches!(refused, Err(StoreError::Conflict(why)) if why.contains("1 servers") && why.contains("up to 4"))
    );
    let opened = open(&database);
    assert!(
        matches!(opened, Err(StoreError::Conflict(why)) if why.contains("cannot go on")),
        "nor does a start"
    );
    database.command(&knows(5));
    assert_eq!(
        take(&database, SchemaGoal::Newest),
        Ok(SchemaChange { from: 5, to: 13 }),
        "beside a server that goes on with it"
    );
    let back = take(&database, SchemaGoal::OneBack);
    assert!(matches!(back, Err(StoreError::Conflict(why)) if why.contains("servers use this database")));
}
