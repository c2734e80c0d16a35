//! Requirements on every store for users.

use crate::conformance::PlainChanges;
use stentor_core::device::ProviderKind;
use stentor_core::group::Member;
use stentor_core::ports::store::{Store, StoreError};

use crate::conformance::scene::{Scene, at, group, person, registration};

pub async fn a_person_is_known_once_named(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let made = store.create_user(scene.app, &person("ada"), at(1)).await.expect("made");
    assert_eq!((made.created_at, made.devices.len()), (at(1), 0));
    let again = store.create_user(scene.app, &person("ada"), at(2)).await.expect("harmless");
    assert_eq!(again.created_at, at(1));
    assert_eq!(store.user(scene.app, &person("ada")).await, Ok(again));
}

pub async fn registering_a_device_makes_its_user_known(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let mut devices = Vec::new();
    for address in ["one", "two"] {
        let mut given = registration(ProviderKind::Fcm, address);
        given.facts.user = Some(person("ada"));
        devices.push(scene.register(given).await);
    }
    assert_eq!(store.user(scene.app, &person("ada")).await.expect("known").devices, devices);
}

pub async fn people_are_listed_by_external_id_without_devices(store: &dyn Store) {
    let scene = Scene::new(store).await;
    for name in ["carl", "ada", "bob"] {
        let mut given = registration(ProviderKind::Fcm, name);
        given.facts.user = Some(person(name));
        scene.register(given).await;
    }
    let page = store.users(scene.app, None, 2).await.expect("listed");
    assert_eq!(page.iter().map(|user| user.external_id.as_str()).collect::<Vec<_>>(), ["ada", "bob"]);
    assert!(page.iter().all(|user| user.devices.is_empty()));
    let rest = store.users(scene.app, Some(&person("bob")), 2).await.expect("listed");
    assert_eq!(rest.iter().map(|user| user.external_id.as_str()).collect::<Vec<_>>(), ["carl"]);
}

pub async fn a_forgotten_person_leaves_devices_without_owner(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let mut given = registration(ProviderKind::Fcm, "one");
    given.facts.user = Some(person("ada"));
    let device = scene.register(given).await;
    store.create_group(scene.app, &group("team"), at(0)).await.expect("made");
    let member = [Member::User(person("ada"))];
    store.add_members(scene.app, &group("team"), &member, at(0)).await.expect("added");
    store.remove_user(scene.app, &person("ada")).await.expect("forgotten");
    assert!(matches!(store.user(scene.app, &person("ada")).await, Err(StoreError::NotFound(_))));
    assert!(matches!(store.remove_user(scene.app, &person("ada")).await, Err(StoreError::NotFound(_))));
    assert_eq!(store.device(scene.app, device).await.expect("stays").facts.user, None);
    assert_eq!(store.group(scene.app, &group("team")).await.expect("stays").member_count, 0);
}

pub async fn an_unknown_person_is_not_found(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let other = Scene::in_app(store, 2).await;
    store.create_user(other.app, &person("ada"), at(0)).await.expect("made");
    assert!(matches!(store.user(scene.app, &person("ada")).await, Err(StoreError::NotFound(_))));
}
