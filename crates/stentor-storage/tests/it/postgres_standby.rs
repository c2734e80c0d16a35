//! A database with commits that wait for a missing standby.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use stentor_core::ports::store::{Idempotent, MessageStore, NewMessage, StoreError};
use stentor_core::target::Target;
use stentor_storage::conformance::scene::{Draft, Scene, reply};
use stentor_storage::postgres::{PostgresSettings, PostgresStore};

use crate::postgres_server::{PostgresServer, own_server};

fn set_standbys(server: &PostgresServer, names: &str) {
    // Neither waits for a standby: no transaction of theirs has anything to write.
    server.command(&format!("ALTER SYSTEM SET synchronous_standby_names = '{names}'"));
    server.command("SELECT pg_reload_conf()");
}

/// Stops commits from waiting at the end: otherwise the database could not be removed.
struct WithoutStandbys(&'static PostgresServer);

impl Drop for WithoutStandbys {
    fn drop(&mut self) {
        set_standbys(self.0, "");
    }
}

fn given(scene: &Scene<'_>) -> NewMessage {
    let idempotency = Some(reply("once", 1, "first"));
    NewMessage { idempotency, ..scene.new_message(Draft::to(Target::Everyone)) }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_no_standby_has_is_not_answered_as_kept_and_its_repetition_neither() {
    let Some(server) = own_server("standby") else { return };
    let database = server.database();
    let settings = PostgresSettings { patience_ms: 1_000, ..PostgresSettings::default() };
    let store = PostgresStore::open(&database.address(), &settings).expect("opened");
    let scene = Scene::new(&store).await;
    let new = given(&scene);
    let _without = WithoutStandbys(server);
    set_standbys(server, "nobody");
    // Every wait for the standby is canceled, as by an operator: the server warns, and has committed.
    let canceling = Arc::new(AtomicBool::new(true));
    let goes_on = Arc::clone(&canceling);
    std::thread::spawn(move || {
        while goes_on.load(Ordering::SeqCst) {
            server
                .command("SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'");
            std::thread::sleep(Duration::from_millis(20));
        }
    });
    let mut refused = scene.accept(new.clone()).await;
    for _ in 0..100 {
        if refused.is_err() {
            break;
        }
        // The setting was not read yet.
        tokio::time::sleep(Duration::from_millis(50)).await;
        refused = scene.accept(given(&scene)).await;
    }
    let is_refused =
        |done: &Result<Idempotent<()>, StoreError>| matches!(done, Err(StoreError::Unavailable(_)));
    assert!(is_refused(&refused), "{refused:?}");
    assert!(format!("{refused:?}").contains("primary alone"), "{refused:?}");
    assert!(database.count("messages") > 0, "the primary has it");
    let again = scene.accept(new.clone()).await;
    assert!(is_refused(&again), "a repetition has nothing to write and must wait all the same: {again:?}");
    let given = new.idempotency.as_ref().expect("repeatable");
    let looked_up = store.replay(scene.app, &given.key, &given.request_hash).await;
    assert!(looked_up.is_err(), "{looked_up:?}");
    canceling.store(false, Ordering::SeqCst);
    set_standbys(server, "");
    for _ in 0..100 {
        if let Ok(done) = scene.accept(new.clone()).await {
            assert!(matches!(done, Idempotent::Replayed(_)), "it was kept once: {done:?}");
            return;
        }
    }
    panic!("it is never answered");
}
