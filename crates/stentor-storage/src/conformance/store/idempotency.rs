//! Requests that are repeated.

use crate::conformance::PlainChanges;
use stentor_core::ports::store::{Idempotent, NewMessage, Page, Store, StoreError};
use stentor_core::target::Target;

use crate::conformance::scene::{Draft, Scene, at, reply};

pub async fn a_repeated_request_gets_the_first_reply_and_sends_nothing(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let device = scene.fcm(1).await[0];
    let draft = Draft::to(Target::Device(device));
    let one = scene.accept(repeatable(&scene, draft.clone(), 1, "first")).await.expect("kept");
    assert_eq!(one, Idempotent::Done(()));
    let two = scene.accept(repeatable(&scene, draft, 1, "second")).await;
    assert_eq!(two, Ok(Idempotent::Replayed(reply("key", 1, "first").reply)));
    assert_eq!(campaigns(store, &scene).await, 1);
}

pub async fn a_key_used_for_another_request_is_refused(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let draft = Draft::to(Target::Everyone);
    scene.accept(repeatable(&scene, draft.clone(), 1, "first")).await.expect("kept");
    let other = scene.accept(repeatable(&scene, draft, 2, "second")).await;
    assert_eq!(other, Ok(Idempotent::KeyReused));
    assert_eq!(campaigns(store, &scene).await, 1);
}

pub async fn repeats_within_one_batch_are_repeats(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let draft = Draft::to(Target::Everyone);
    let batch = (0..5).map(|_| repeatable(&scene, draft.clone(), 1, "same")).collect();
    let replies = store.accept(batch).await;
    let done = replies.iter().filter(|reply| matches!(reply, Ok(Idempotent::Done(_)))).count();
    let replayed = replies.iter().filter(|reply| matches!(reply, Ok(Idempotent::Replayed(_)))).count();
    assert_eq!((done, replayed), (1, 4));
    assert_eq!(campaigns(store, &scene).await, 1);
}

pub async fn repeats_at_the_same_time_are_kept_once(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let send = || scene.accept(repeatable(&scene, Draft::to(Target::Everyone), 1, "same"));
    let (a, b, c, d, e, f) = tokio::join!(send(), send(), send(), send(), send(), send());
    let replies = [a, b, c, d, e, f];
    let done = replies.iter().filter(|reply| matches!(reply, Ok(Idempotent::Done(_)))).count();
    let replayed = replies.iter().filter(|reply| matches!(reply, Ok(Idempotent::Replayed(_)))).count();
    assert_eq!((done, replayed), (1, 5));
    assert_eq!(campaigns(store, &scene).await, 1);
}

pub async fn a_key_is_looked_up_before_any_work(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let given = reply("key", 1, "first");
    let look = async |hash: u8| store.replay(scene.app, &given.key, &[hash; 32]).await.expect("looked up");
    assert_eq!(look(1).await, None);
    scene.accept(repeatable(&scene, Draft::to(Target::Everyone), 1, "first")).await.expect("kept");
    assert_eq!(look(1).await, Some(Idempotent::Replayed(given.reply.clone())));
    assert_eq!(look(2).await, Some(Idempotent::KeyReused));
}

pub async fn a_reply_is_kept_by_itself_and_the_first_one_stays(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let keep = async |given| store.keep_reply(scene.app, &given, at(0)).await;
    assert_eq!(keep(reply("key", 1, "first")).await, Ok(Idempotent::Done(())));
    let first = Idempotent::Replayed(reply("key", 1, "first").reply);
    assert_eq!(keep(reply("key", 1, "second")).await, Ok(first.clone()));
    assert_eq!(keep(reply("key", 2, "other")).await, Ok(Idempotent::KeyReused));
    let look = store.replay(scene.app, &reply("key", 1, "").key, &[1; 32]).await;
    assert_eq!(look, Ok(Some(first)));
    let nowhere = stentor_core::id::AppId::from_raw(987_654);
    let refused = store.keep_reply(nowhere, &reply("key", 1, "x"), at(0)).await;
    assert!(matches!(refused, Err(StoreError::NotFound(_))), "{refused:?}");
}

pub async fn each_app_has_its_own_keys(store: &dyn Store) {
    let one = Scene::in_app(store, 1).await;
    let two = Scene::in_app(store, 2).await;
    one.accept(repeatable(&one, Draft::to(Target::Everyone), 1, "one")).await.expect("kept");
    let accepted = two.accept(repeatable(&two, Draft::to(Target::Everyone), 2, "two")).await;
    assert!(matches!(accepted, Ok(Idempotent::Done(_))), "{accepted:?}");
}

pub async fn a_refused_message_leaves_its_key_free(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let missing = Target::Device(stentor_core::id::DeviceId::from_raw(123_456));
    let refused = scene.accept(repeatable(&scene, Draft::to(missing), 1, "no")).await;
    assert!(matches!(refused, Err(StoreError::NotFound(_))));
    assert_eq!(store.replay(scene.app, &reply("key", 1, "").key, &[1; 32]).await, Ok(None));
    let accepted = scene.accept(repeatable(&scene, Draft::to(Target::Everyone), 2, "yes")).await;
    assert!(matches!(accepted, Ok(Idempotent::Done(_))), "{accepted:?}");
}

pub async fn old_keys_are_forgotten(store: &dyn Store) {
    let scene = Scene::new(store).await;
    scene.accept(repeatable(&scene, Draft::to(Target::Everyone), 1, "old")).await.expect("kept");
    let key = reply("key", 1, "").key;
    store.prune_campaigns(at(-100), at(0), 100).await.expect("pruned");
    assert!(store.replay(scene.app, &key, &[1; 32]).await.expect("looked up").is_some(), "not old enough");
    assert_eq!(store.prune_campaigns(at(-100), at(1), 100).await, Ok(1));
    assert_eq!(store.replay(scene.app, &key, &[1; 32]).await, Ok(None));
}

async fn campaigns(store: &dyn Store, scene: &Scene<'_>) -> usize {
    store.campaigns(scene.app, Page { after: 0, limit: 100 }).await.expect("listed").readable.len()
}

fn repeatable(scene: &Scene<'_>, draft: Draft, request: u8, body: &str) -> NewMessage {
    NewMessage { idempotency: Some(reply("key", request, body)), ..scene.new_message(draft) }
}
