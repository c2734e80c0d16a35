use secrecy::ExposeSecret;
use stentor_core::app::{App, Scope, Scopes};
use stentor_core::name::Label;
use stentor_core::time::Timestamp;
use stentor_storage::conformance::PlainChanges;
use stentor_storage::memory::MemoryStore;
use tempfile::TempDir;

use super::*;
use crate::keys::new_secret;

const APP: AppId = AppId::from_raw(1);

async fn store() -> MemoryStore {
    let store = MemoryStore::new();
    let name = Label::new("an app").expect("a label");
    let app = App { id: APP, name, created_at: Timestamp::from_millis(0) };
    store.create_app(&app).await.expect("kept");
    store
}

fn keyring() -> Keyring {
    let folder = TempDir::new().expect("a folder");
    Keyring::new(Pepper::of(folder.path()).expect("made"), new_secret().expose_secret())
}

/// Keeps a key of which the keyring is not told.
async fn keep(store: &MemoryStore, keyring: &Keyring, id: u64, secret: &str) -> ApiKey {
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
    // The store has it by now: whoever looked it up would find it.
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
