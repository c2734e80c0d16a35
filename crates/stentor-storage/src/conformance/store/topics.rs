//! Topics and subscriptions.

use crate::conformance::PlainChanges;
use stentor_core::id::DeviceId;
use stentor_core::limits::TOPICS_PER_DEVICE_MAX_COUNT;
use stentor_core::ports::store::{Removal, Store, StoreError, SubscriptionChange};
use stentor_core::target::Target;

use super::devices::many_topics;
use crate::conformance::scene::{Draft, Scene, at, registration, topic};

pub async fn subscribing_counts_new_old_and_unknown_devices(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let other = Scene::in_app(store, 2).await;
    let own = scene.fcm(2).await;
    let foreign = other.fcm(1).await[0];
    let subscribe = async |devices: &[DeviceId]| {
        store.subscribe(scene.app, &topic("news"), devices).await.expect("subscribed")
    };
    let nobody = DeviceId::from_raw(9_999);
    let unknown_devices = vec![nobody, foreign];
    let change = SubscriptionChange { changed: 1, unknown_devices: unknown_devices.clone(), ..none() };
    assert_eq!(subscribe(&[nobody, own[0], foreign]).await, change, "in the order of what was asked");
    assert_eq!(subscribe(&own).await, SubscriptionChange { changed: 1, unchanged: 1, ..none() });
    let taken = store.unsubscribe(scene.app, &topic("news"), &[nobody, foreign]).await.expect("done");
    assert_eq!(taken, SubscriptionChange { unknown_devices, ..none() });
    assert_eq!(store.topic(scene.app, &topic("news")).await.expect("there").device_count, 2);
    assert!(store.topics(other.app, None, 10).await.expect("listed").is_empty());
}

fn none() -> SubscriptionChange {
    SubscriptionChange::default()
}

pub async fn unsubscribing_takes_away_and_leaves_the_topic(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let devices = scene.fcm(2).await;
    store.subscribe(scene.app, &topic("news"), &devices[..1]).await.expect("subscribed");
    let change = store.unsubscribe(scene.app, &topic("news"), &devices).await.expect("done");
    assert_eq!(change, SubscriptionChange { changed: 1, unchanged: 1, ..none() });
    assert_eq!(store.topic(scene.app, &topic("news")).await.expect("stays").device_count, 0);
    assert!(store.topics_of(scene.app, devices[0]).await.expect("listed").is_empty());
    let (message, _) = scene.send_wide(Draft::to(Target::Topic(topic("news")))).await;
    assert_eq!(scene.ledger(message).await.audience(), 0);
}

pub async fn a_topic_that_nobody_needs_is_removed_and_no_other(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let devices = scene.fcm(2).await;
    let names = ["left", "used", "kept", "unknown"].map(topic);
    for name in &names[..3] {
        store.subscribe(scene.app, name, &devices).await.expect("subscribed");
    }
    for name in [&names[0], &names[2]] {
        store.unsubscribe(scene.app, name, &devices).await.expect("unsubscribed");
    }
    scene.send_wide(Draft::to(Target::Topic(names[2].clone())).for_gateway(r#"{"retain":true}"#)).await;
    let unused = Removal::UnusedTopics(names.to_vec(), at(1));
    store.remove(scene.app, unused).await.expect("removed");
    let left = store.topics(scene.app, None, 9).await.expect("listed");
    assert_eq!(left.iter().map(|one| one.name.as_str()).collect::<Vec<_>>(), ["kept", "used"]);
    store.subscribe(scene.app, &names[0], &devices).await.expect("it is made again");
    assert_eq!(store.topic(scene.app, &names[0]).await.expect("there").device_count, 2);
}

pub async fn topics_are_listed_by_name(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let device = scene.fcm(1).await;
    for name in ["b", "c", "a"] {
        store.subscribe(scene.app, &topic(name), &device).await.expect("subscribed");
    }
    let page = store.topics(scene.app, None, 2).await.expect("listed");
    let names: Vec<_> = page.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(names, ["a", "b"]);
    let rest = store.topics(scene.app, Some(&topic("b")), 2).await.expect("listed");
    assert_eq!(rest.len(), 1);
    assert_eq!((rest[0].name.as_str(), rest[0].device_count), ("c", 1));
}

pub async fn a_removed_topic_takes_its_subscriptions_along(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let devices = scene.fcm(2).await;
    store.subscribe(scene.app, &topic("news"), &devices).await.expect("subscribed");
    store.remove_topic(scene.app, &topic("news")).await.expect("removed");
    assert!(matches!(store.topic(scene.app, &topic("news")).await, Err(StoreError::NotFound(_))));
    assert!(matches!(store.remove_topic(scene.app, &topic("news")).await, Err(StoreError::NotFound(_))));
    assert!(store.topics_of(scene.app, devices[0]).await.expect("listed").is_empty());
    let again = store.subscribe(scene.app, &topic("news"), &devices[..1]).await.expect("subscribed");
    assert_eq!(again.changed, 1);
    assert_eq!(store.topic(scene.app, &topic("news")).await.expect("there").device_count, 1);
}

pub async fn a_device_has_at_most_two_thousand_topics(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let mut given = registration(stentor_core::device::ProviderKind::Fcm, "full");
    given.topics = many_topics(TOPICS_PER_DEVICE_MAX_COUNT);
    let full = scene.register(given).await;
    let free = scene.fcm(1).await[0];
    let refused = store.subscribe(scene.app, &topic("one-more"), &[free, full]).await;
    assert!(matches!(refused, Err(StoreError::LimitReached(_))), "{refused:?}");
    assert!(store.topics_of(scene.app, free).await.expect("listed").is_empty(), "nobody was subscribed");
    let known = store.subscribe(scene.app, &topic("topic-0"), &[full]).await.expect("harmless");
    assert_eq!(known.unchanged, 1);
}

pub async fn topics_of_an_unknown_device_are_not_found(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let foreign = Scene::in_app(store, 2).await.fcm(1).await[0];
    assert!(matches!(store.topics_of(scene.app, foreign).await, Err(StoreError::NotFound(_))));
}

pub async fn one_full_device_among_many_keeps_all_from_being_subscribed(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let mut devices = scene.fcm(300).await;
    let foreign = Scene::in_app(store, 2).await.fcm(1).await[0];
    let mut given = registration(stentor_core::device::ProviderKind::Fcm, "full");
    given.topics = many_topics(TOPICS_PER_DEVICE_MAX_COUNT);
    devices.push(scene.register(given).await);
    let refused = store.subscribe(scene.app, &topic("news"), &devices).await;
    assert!(matches!(refused, Err(StoreError::LimitReached(_))), "{refused:?}");
    for device in [devices[0], devices[299]] {
        assert_eq!(store.topics_of(scene.app, device).await, Ok(Vec::new()));
    }
    // One that is not known stands where a later portion finds it: the names outlive the transaction that met them.
    devices.pop();
    devices.insert(250, foreign);
    let change = store.subscribe(scene.app, &topic("news"), &devices).await.expect("subscribed");
    let expected = SubscriptionChange { changed: 300, unknown_devices: vec![foreign], ..none() };
    assert_eq!(change, expected);
    assert_eq!(store.topic(scene.app, &topic("news")).await.map(|topic| topic.device_count), Ok(300));
    let change = store.unsubscribe(scene.app, &topic("news"), &devices).await.expect("unsubscribed");
    assert_eq!(change.changed, 300);
    assert_eq!(store.topic(scene.app, &topic("news")).await.map(|topic| topic.device_count), Ok(0));
}
