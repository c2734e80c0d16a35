//! Apps, keys, credentials.

use stentor_core::account::IssuedAccount;
use stentor_core::app::{ApiKey, Credential, Scope, Scopes};
use stentor_core::device::ProviderKind;
use stentor_core::id::{AppId, KeyId};
use stentor_core::limits::{ACCOUNTS_PER_APP_MAX_COUNT, KEYS_PER_APP_MAX_COUNT};
use stentor_core::name::Label;
use stentor_core::ports::store::{AccountFilter, DeviceFilter, KeyFilter, QueuedFilter, Store, StoreError};
use stentor_core::target::Target;

use crate::conformance::PlainChanges;
use crate::conformance::scene::{Draft, Scene, app, at, finish_work, first, person, topic};

const NO_APP: AppId = AppId::from_raw(999);

pub async fn an_app_is_given_as_it_was_kept(store: &dyn Store) {
    store.create_app(&app(2)).await.expect("kept");
    store.create_app(&app(1)).await.expect("kept");
    assert_eq!(store.app(AppId::from_raw(2)).await, Ok(app(2)));
    assert_eq!(store.apps().await, Ok(vec![app(1), app(2)]), "in order of id");
}

pub async fn an_app_id_is_not_given_twice(store: &dyn Store) {
    store.create_app(&app(1)).await.expect("kept");
    let again = store.create_app(&app(1)).await;
    assert!(matches!(again, Err(StoreError::Conflict(_))), "{again:?}");
}

pub async fn an_unknown_app_is_not_found(store: &dyn Store) {
    let not_found = |found: Result<(), StoreError>| assert!(matches!(found, Err(StoreError::NotFound(_))));
    not_found(store.app(NO_APP).await.map(|_| ()));
    not_found(store.delete_app(NO_APP).await);
    not_found(store.register(NO_APP, &[], at(0)).await.map(|_| ()));
    not_found(store.create_user(NO_APP, &person("ada"), at(0)).await.map(|_| ()));
    not_found(store.subscribe(NO_APP, &topic("news"), &[]).await.map(|_| ()));
    not_found(store.create_key(&key(1, Some(NO_APP), 1)).await);
    not_found(store.put_credential(&credential(NO_APP, "secret")).await);
}

pub async fn a_deleted_app_takes_everything_along(store: &dyn Store) {
    let scene = Scene::new(store).await;
    scene.fcm(3).await;
    store.create_key(&key(50, Some(scene.app), 5)).await.expect("kept");
    store.create_account(&account(51, scene.app)).await.expect("kept");
    store.put_credential(&credential(scene.app, "secret")).await.expect("kept");
    let (message, tickets) = scene.send_wide(Draft::to(Target::Everyone)).await;
    store.delete_app(scene.app).await.expect("deleted");
    assert!(store.app(scene.app).await.is_err());
    assert_eq!(store.keys(KeyFilter::Hash([5; 32])).await, Ok(Vec::new()));
    assert_eq!(store.accounts(AccountFilter::Id(KeyId::from_raw(51))).await, Ok(Vec::new()));
    assert_eq!(store.credentials().await, Ok(Vec::new()));
    finish_work(store).await;
    assert!(store.message(scene.app, message).await.is_err());
    assert!(store.producers().await.expect("listed").is_empty());
    let queued = store.queued(QueuedFilter::After(stentor_core::id::ChunkId::from_raw(0), 10)).await;
    assert_eq!(queued, Ok(Vec::new()), "a campaign that ran is gone with its app");
    let leased = scene.ask(&[tickets[0].chunk], at(1)).await;
    assert!(matches!(leased[0], stentor_core::ports::store::LeaseReply::Void));
}

pub async fn deleting_an_app_leaves_the_others_alone(store: &dyn Store) {
    let gone = Scene::in_app(store, 1).await;
    let stays = Scene::in_app(store, 2).await;
    gone.fcm(1).await;
    let device = stays.fcm(1).await[0];
    let (message, _) = stays.send(Draft::to(Target::Device(device))).await;
    store.delete_app(gone.app).await.expect("deleted");
    assert!(store.device(stays.app, device).await.is_ok());
    assert_eq!(stays.tally(message).await.queued, 1);
}

pub async fn a_key_is_found_by_its_hash_and_gone_when_deleted(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let stored = key(10, Some(scene.app), 1);
    store.create_key(&stored).await.expect("kept");
    assert_eq!(store.keys(KeyFilter::Hash([1; 32])).await, Ok(vec![stored.clone()]));
    assert_eq!(store.keys(KeyFilter::Hash([2; 32])).await, Ok(Vec::new()));
    assert_eq!(store.keys(KeyFilter::App(scene.app)).await, Ok(vec![stored.clone()]));
    let other = Scene::in_app(store, 2).await;
    let foreign = store.delete_key(other.app, stored.id).await;
    assert!(matches!(foreign, Err(StoreError::NotFound(_))), "another app's key is not visible");
    store.delete_key(scene.app, stored.id).await.expect("deleted");
    assert_eq!(store.keys(KeyFilter::Hash([1; 32])).await, Ok(Vec::new()));
}

pub async fn an_account_is_found_by_its_id_and_gone_when_deleted(store: &dyn Store) {
    let (scene, other) = (Scene::new(store).await, Scene::in_app(store, 2).await);
    let stored = account(60, scene.app);
    store.create_account(&stored).await.expect("kept");
    let again = store.create_account(&stored).await;
    assert!(matches!(again, Err(StoreError::Conflict(_))), "{again:?}");
    assert!(matches!(store.create_account(&account(61, NO_APP)).await, Err(StoreError::NotFound(_))));
    assert_eq!(store.accounts(AccountFilter::Id(stored.id)).await, Ok(vec![stored.clone()]));
    assert_eq!(store.accounts(AccountFilter::App(scene.app)).await, Ok(vec![stored.clone()]));
    assert_eq!(store.accounts(AccountFilter::App(other.app)).await, Ok(Vec::new()));
    assert!(matches!(store.delete_account(other.app, stored.id).await, Err(StoreError::NotFound(_))));
    store.delete_account(scene.app, stored.id).await.expect("deleted");
    assert_eq!(store.accounts(AccountFilter::Id(stored.id)).await, Ok(Vec::new()));
}

pub async fn an_app_has_so_many_accounts_and_no_more(store: &dyn Store) {
    let (app, other) = (Scene::in_app(store, 1).await.app, Scene::in_app(store, 2).await.app);
    let first = 100;
    let last = first + ACCOUNTS_PER_APP_MAX_COUNT as u64;
    for id in first..last {
        store.create_account(&account(id, app)).await.expect("there is room");
    }
    let refused = store.create_account(&account(last, app)).await;
    assert!(matches!(refused, Err(StoreError::LimitReached(_))), "{refused:?}");
    assert_eq!(store.accounts(AccountFilter::Id(KeyId::from_raw(last))).await, Ok(Vec::new()));
    store.create_account(&account(last, other)).await.expect("each app has room of its own");
    store.delete_account(app, KeyId::from_raw(first)).await.expect("deleted");
    store.create_account(&account(last + 1, app)).await.expect("a deleted one makes room");
}

pub async fn an_app_has_so_many_keys_and_no_more(store: &dyn Store) {
    let (app, other) = (Scene::in_app(store, 1).await.app, Scene::in_app(store, 2).await.app);
    let numbered = |number: usize, app| ApiKey {
        hash: std::array::from_fn(|at| number.to_be_bytes().get(at).copied().unwrap_or_default()),
        ..key(1_000 + number as u64, Some(app), 0)
    };
    for number in 1..=KEYS_PER_APP_MAX_COUNT {
        store.create_key(&numbered(number, app)).await.expect("there is room");
    }
    let last = KEYS_PER_APP_MAX_COUNT + 1;
    let refused = store.create_key(&numbered(last, app)).await;
    assert!(matches!(refused, Err(StoreError::LimitReached(_))), "{refused:?}");
    store.create_key(&numbered(last, other)).await.expect("each app has room of its own");
    store.delete_key(app, KeyId::from_raw(1_001)).await.expect("deleted");
    store.create_key(&numbered(last + 1, app)).await.expect("a deleted one makes room");
}

pub async fn the_hashes_of_all_keys_are_given_up_to_a_limit(store: &dyn Store) {
    assert_eq!(store.key_hashes(10).await, Ok(Vec::new()));
    let scene = Scene::new(store).await;
    for no in [1, 2, 3] {
        store.create_key(&key(u64::from(no), Some(scene.app), no)).await.expect("kept");
    }
    let mut all = store.key_hashes(10).await.expect("given");
    all.sort_unstable();
    assert_eq!(all, [[1; 32], [2; 32], [3; 32]]);
    assert_eq!(store.key_hashes(2).await.map(|some| some.len()), Ok(2));
}

pub async fn a_root_key_belongs_to_no_app(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let root = key(11, None, 3);
    store.create_key(&root).await.expect("kept");
    assert_eq!(store.keys(KeyFilter::Hash([3; 32])).await, Ok(vec![root]));
    assert_eq!(store.keys(KeyFilter::App(scene.app)).await, Ok(Vec::new()));
}

pub async fn a_credential_is_replaced_and_removed(store: &dyn Store) {
    let scene = Scene::new(store).await;
    store.put_credential(&credential(scene.app, "old")).await.expect("kept");
    store.put_credential(&credential(scene.app, "new")).await.expect("replaced");
    let stored = store.credential(scene.app, ProviderKind::Fcm).await.expect("found");
    assert_eq!(stored.secret, "new");
    assert_eq!(store.credentials().await.expect("listed").len(), 1);
    store.delete_credential(scene.app, ProviderKind::Fcm).await.expect("removed");
    let gone = store.credential(scene.app, ProviderKind::Fcm).await;
    assert!(matches!(gone, Err(StoreError::NotFound(_))));
    assert!(store.delete_credential(scene.app, ProviderKind::Fcm).await.is_err());
}

pub async fn the_last_id_is_the_largest_in_use(store: &dyn Store) {
    assert_eq!(store.last_id().await, Ok(0));
    let scene = Scene::new(store).await;
    store.create_key(&key(77, Some(scene.app), 1)).await.expect("kept");
    assert_eq!(store.last_id().await, Ok(77));
    let (message, _) = scene.send(Draft::to(Target::Everyone)).await;
    assert_eq!(store.last_id().await, Ok(message.raw()));
}

pub async fn an_apps_things_are_invisible_to_another_app(store: &dyn Store) {
    let own = Scene::in_app(store, 1).await;
    let other = Scene::in_app(store, 2).await;
    let device = own.fcm(1).await[0];
    let (message, _) = own.send(Draft::to(Target::Device(device))).await;
    assert!(matches!(store.device(other.app, device).await, Err(StoreError::NotFound(_))));
    assert!(matches!(store.remove_device(other.app, device).await, Err(StoreError::NotFound(_))));
    assert!(matches!(store.message(other.app, message).await, Err(StoreError::NotFound(_))));
    assert!(matches!(store.ledger(other.app, message.into()).await, Err(StoreError::NotFound(_))));
    assert_eq!(store.devices(other.app, &DeviceFilter::default(), first(10)).await, Ok(Vec::new()));
    assert_eq!(store.campaigns(other.app, first(10)).await.map(|listed| listed.readable), Ok(Vec::new()));
}

fn key(id: u64, app: Option<AppId>, hash: u8) -> ApiKey {
    ApiKey {
        id: KeyId::from_raw(id),
        app,
        name: Label::new("a key").expect("a label"),
        scopes: Scopes::of(&[Scope::Send, Scope::Register]),
        hash: [hash; 32],
        created_at: at(0),
    }
}

fn account(id: u64, app: AppId) -> IssuedAccount {
    IssuedAccount {
        id: KeyId::from_raw(id),
        app,
        name: Label::new("an account").expect("a label"),
        scopes: Scopes::of(&[Scope::Send]),
        public_key: vec![1, 2, 3],
        token_uri: "https://push.example/token".to_owned(),
        created_at: at(0),
    }
}

fn credential(app: AppId, secret: &str) -> Credential {
    Credential { app, provider: ProviderKind::Fcm, secret: secret.to_owned(), updated_at: at(0) }
}
