use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::FutureExt as _;
use futures_util::future::join_all;
use secrecy::ExposeSecret;
use stentor_core::app::{App, Scope, Scopes};
use stentor_core::name::Label;
use stentor_core::time::Timestamp;
use stentor_storage::conformance::PlainChanges;
use stentor_storage::sqlite::SqliteStore;
use tempfile::TempDir;

use super::*;
use crate::keys::new_secret;

const APP: AppId = AppId::from_raw(1);

async fn store() -> SqliteStore {
    let store = SqliteStore::temporary().expect("a store");
    let name = Label::new("an app").expect("a label");
    let app = App { id: APP, name, created_at: Timestamp::from_millis(0) };
    store.create_app(&app).await.expect("kept");
    store
}

fn keyring() -> Keyring {
    let folder = TempDir::new().expect("a folder");
    Keyring::new(Pepper::of(folder.path()).expect("made"), new_secret().expose_secret())
}

/// Stores a key without a mark in the keyring.
async fn keep(store: &SqliteStore, keyring: &Keyring, id: u64, secret: &str) -> ApiKey {
    let key = ApiKey {
        id: KeyId::from_raw(id),
        app: Some(APP),
        name: Label::new("a key").expect("a label"),
        scopes: Scopes::of(&[Scope::Send]),
        hash: keyring.hash(secret),
        created_at: Timestamp::from_millis(0),
    };
    store.create_key(&key).await.expect("kept");
    key
}

#[tokio::test]
async fn keys_that_do_not_exist_are_refused_without_a_look_up_and_those_that_do_are_found() {
    let (store, keyring) = (store().await, keyring());
    let (early, late) = (new_secret(), new_secret());
    keep(&store, &keyring, 10, early.expose_secret()).await;
    keyring.learn(&store).await.expect("learned");
    assert!(keyring.identify(&store, early.expose_secret()).await.is_ok());
    // The store has the key by now, so a look-up would find it.
    let key = keep(&store, &keyring, 11, late.expose_secret()).await;
    let refused = keyring.identify(&store, late.expose_secret()).await.expect_err("refused");
    assert_eq!(refused.code, ErrorCode::Unauthorized);
    keyring.expect(&key.hash);
    assert!(keyring.identify(&store, late.expose_secret()).await.is_ok());
}

#[tokio::test]
async fn a_key_that_was_removed_is_looked_up_once_more_at_most() {
    let (store, keyring) = (store().await, keyring());
    let secret = new_secret();
    let key = keep(&store, &keyring, 10, secret.expose_secret()).await;
    keyring.learn(&store).await.expect("learned");
    store.delete_key(APP, key.id).await.expect("removed");
    keyring.forget_key(key.id);
    assert!(keyring.identify(&store, secret.expose_secret()).await.is_err());
    assert!(!keyring.marks.may_have(&key.hash));
}

#[tokio::test]
async fn before_the_keys_were_read_none_is_refused_unseen() {
    let (store, keyring) = (store().await, keyring());
    let secret = new_secret();
    keep(&store, &keyring, 10, secret.expose_secret()).await;
    assert!(keyring.identify(&store, secret.expose_secret()).await.is_ok());
}

#[tokio::test]
async fn of_many_that_ask_the_same_at_once_one_looks_and_none_is_refused() {
    let (look_ups, looks) = (LookUps::<u64, u64>::default(), AtomicUsize::new(0));
    let look = |question| {
        look_ups.once((question, 0), async {
            looks.fetch_add(1, Ordering::Relaxed);
            tokio::task::yield_now().await;
            Ok(7)
        })
    };
    let same = join_all((0..200).map(|_| look(1))).await;
    assert!(same.iter().all(|found| *found.as_ref().expect("found") == 7));
    assert_eq!(looks.swap(0, Ordering::Relaxed), 1);
    // Look-ups beyond the concurrent limit wait; beyond the limit of waiting ones they are refused.
    let several = join_all((0..1_000).map(look)).await;
    assert!(several.iter().all(Result::is_ok));
    let too_many = join_all((0..2_000).map(look)).await;
    assert_eq!(too_many.iter().filter(|found| found.is_err()).count(), 2_000 - 1_024);
    assert!(look(1).await.is_ok(), "who was refused leaves nothing");
}

#[tokio::test]
async fn what_was_asked_before_a_removal_is_no_answer_to_who_asks_after_it() {
    let look_ups = LookUps::<u64, u64>::default();
    let (reply_sender, is_told) = tokio::sync::oneshot::channel();
    let before = look_ups.once((1, 0), async { Ok(is_told.await.expect("told")) });
    let after = async {
        let found = look_ups.once((1, 1), async { Ok(8) }).await;
        reply_sender.send(7).expect("it waits");
        found
    };
    let (before, after) = tokio::join!(before, after);
    assert_eq!((before.expect("found"), after.expect("found")), (7, 8));
}

#[tokio::test]
async fn where_the_one_that_looks_goes_away_another_that_waits_looks() {
    let look_ups = LookUps::<u64, u64>::default();
    let mut first = Box::pin(look_ups.once((1, 0), std::future::pending()));
    assert!((&mut first).now_or_never().is_none());
    let mut second = Box::pin(look_ups.once((1, 0), async { Ok(9) }));
    assert!((&mut second).now_or_never().is_none(), "the first one looks");
    drop(first);
    assert_eq!(second.await.expect("found"), 9);
}

#[test]
fn an_app_that_is_removed_while_it_is_looked_up_is_not_remembered() {
    let keyring = keyring();
    let (_, removals) = keyring.knows_app(APP);
    keyring.forget_app(APP);
    keyring.remember_app(APP, removals);
    assert!(!keyring.knows_app(APP).0);
    let (_, removals) = keyring.knows_app(APP);
    keyring.remember_app(APP, removals);
    assert!(keyring.knows_app(APP).0);
}
