//! A database that is far away, or falls silent.

use std::time::{Duration, Instant};

use stentor_core::campaign::{CampaignAction, CampaignState};
use stentor_core::ports::store::{AppStore, Idempotent, MessageStore, PipelineStore, StoreError};
use stentor_core::target::Target;
use stentor_storage::conformance::PlainChanges as _;
use stentor_storage::conformance::scene::{Draft, Scene, at, finish_work};
use stentor_storage::postgres::{PostgresAddress, PostgresSettings, PostgresStore, inspect};

use crate::postgres_server::{PostgresServer, TestDatabase, server};
use crate::postgres_way::Way;

/// Half of the way to the other side of the world and back.
const FAR: Duration = Duration::from_millis(80);
/// Longer than any of these takes on a busy machine, and far shorter than for ever.
const SOON: Duration = Duration::from_secs(60);

fn over(way: &Way, database: &TestDatabase, settings: &PostgresSettings) -> PostgresStore {
    let address: PostgresAddress = database.url_at(way.port).parse().expect("an address");
    PostgresStore::open(&address, settings).expect("opened")
}

fn at_hand(server: &PostgresServer) -> Way {
    Way::to(server, Duration::ZERO)
}

#[tokio::test]
async fn with_160_ms_to_the_database_and_back_campaigns_begin_and_are_sent_and_canceled() {
    let Some(server) = server() else { return };
    let database = server.database();
    let way = at_hand(server);
    let store = over(&way, &database, &PostgresSettings::default());
    let scene = Scene::new(&store).await;
    let devices = scene.fcm(4).await;
    way.set_length(FAR);
    let mut accepted = Vec::new();
    for device in &devices[..3] {
        let new = scene.new_message(Draft::to(Target::Device(*device)));
        accepted.push(new.message.id);
        assert_eq!(scene.accept(new).await, Ok(Idempotent::Done(())));
    }
    let first = store.start_due(100, 1_000, at(0)).await.expect("begun");
    assert!(!first.begun.is_empty(), "each step begins one campaign at least");
    let mut tickets = first.tickets;
    tickets.extend(scene.start(at(0)).await);
    assert_eq!(tickets.len(), 3);
    scene.deliver(&tickets, at(1)).await;
    for id in accepted {
        assert_eq!(scene.state(id).await, CampaignState::Finished);
    }
    let (wide, _) = scene.send_wide(Draft::to(Target::Everyone)).await;
    scene.act(wide, CampaignAction::Cancel, at(1)).await;
    finish_work(&store).await;
    assert_eq!(scene.tally(wide).await.canceled, 4);
    let inspected = inspect(&database.url_at(way.port).parse().expect("an address")).expect("looked at");
    assert!(inspected.round_trip_us >= 160_000, "the way is measured: {}", inspected.round_trip_us);
}

#[tokio::test]
async fn with_160_ms_to_the_database_and_back_what_is_removed_goes_on_being_removed() {
    let Some(server) = server() else { return };
    let database = server.database();
    let way = at_hand(server);
    let store = over(&way, &database, &PostgresSettings::default());
    let scene = Scene::new(&store).await;
    scene.fcm(3).await;
    scene.send(Draft::to(Target::Everyone)).await;
    way.set_length(FAR);
    store.delete_app(scene.app).await.expect("removed");
    let begun = Instant::now();
    while store.continue_work(at(1)).await.expect("gone on") {
        assert!(begun.elapsed() < SOON, "it never ends");
    }
    assert_eq!(database.count("devices"), 0);
    assert_eq!(database.count("leftovers"), 0);
}

#[tokio::test]
async fn connections_that_fall_silent_are_replaced_while_the_old_ones_stay_silent() {
    let Some(server) = server() else { return };
    let database = server.database();
    let way = at_hand(server);
    let settings =
        PostgresSettings { statement_max_ms: 1_500, patience_ms: 10_000, ..PostgresSettings::default() };
    let store = over(&way, &database, &settings);
    let scene = Scene::new(&store).await;
    scene.fcm(2).await;
    let (before, _) = scene.send(Draft::to(Target::Everyone)).await;
    way.freeze();
    let begun = Instant::now();
    // Writers and readers alike: each of the first may meet its own silent connection.
    let accepted = loop {
        let new = scene.new_message(Draft::to(Target::Everyone));
        match scene.accept(new).await {
            Err(StoreError::Unavailable(_)) if begun.elapsed() < SOON => {}
            accepted => break accepted,
        }
    };
    assert_eq!(accepted, Ok(Idempotent::Done(())));
    while store.ledger(scene.app, before.into()).await.is_err() {
        assert!(begun.elapsed() < SOON, "readers are never replaced");
    }
    assert!(!scene.start(at(0)).await.is_empty() || begun.elapsed() < SOON);
}

#[tokio::test]
async fn while_nothing_comes_through_callers_are_told_and_afterwards_all_goes_on() {
    let Some(server) = server() else { return };
    let database = server.database();
    let way = at_hand(server);
    let settings =
        PostgresSettings { statement_max_ms: 600, patience_ms: 500, ..PostgresSettings::default() };
    let store = over(&way, &database, &settings);
    let scene = Scene::new(&store).await;
    way.freeze_all();
    let begun = Instant::now();
    let refused = scene.accept(scene.new_message(Draft::to(Target::Everyone))).await;
    assert!(matches!(refused, Err(StoreError::Unavailable(_))), "{refused:?}");
    let read = store.last_id().await;
    assert!(matches!(&read, Err(StoreError::Unavailable(why)) if why.contains("no answer")), "{read:?}");
    assert!(begun.elapsed() < SOON, "nobody waits for the thaw");
    way.thaw();
    while scene.accept(scene.new_message(Draft::to(Target::Everyone))).await.is_err() {
        assert!(begun.elapsed() < SOON, "nothing goes on");
    }
}
