//! Requirements on every store for devices.

use crate::conformance::PlainChanges;
use stentor_core::delivery::DeliveryState;
use stentor_core::device::{
    DEVICE_TEXTS, DeviceFacts, DevicePatch, DeviceState, Platform, ProviderKind, Registration,
};
use stentor_core::group::Member;
use stentor_core::id::{AppId, DeviceId};
use stentor_core::name::{Locale, TopicName};
use stentor_core::outcome::Reason;
use stentor_core::ports::store::{DeviceFilter, Store, StoreError};
use stentor_core::settlement::TokenChange;
use stentor_core::target::{Target, TokenTarget};

use crate::conformance::scene::{
    Draft, Scene, after, at, first, group, person, record, registration, settle_all, tag, token, topic,
};

pub async fn a_device_is_given_as_it_was_registered(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let given = full("one");
    let device = scene.register(given.clone()).await;
    let stored = store.device(scene.app, device).await.expect("found");
    let parts = (stored.platform, stored.provider, &stored.token);
    assert_eq!(parts, (given.platform, given.provider, &given.token));
    assert_eq!(stored.facts, given.facts);
    assert_eq!((stored.id, stored.app), (device, scene.app));
    assert_eq!((stored.registered_at, stored.token_since), (at(0), at(0)));
    assert!(stored.listed && stored.retired.is_none());
    assert_eq!(store.topics_of(scene.app, device).await, Ok(vec![topic("news")]));
}

pub async fn registering_the_same_again_changes_nothing_but_the_time(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let registered = store.register(scene.app, &[full("one"), full("one")], at(0)).await.expect("registered");
    assert!(registered[0].created && !registered[1].created);
    assert_eq!(registered[0].device, registered[1].device);
    let again = store.register(scene.app, &[full("one")], at(9)).await.expect("registered");
    assert!(!again[0].created);
    let stored = store.device(scene.app, again[0].device).await.expect("found");
    assert_eq!((stored.registered_at, stored.token_since), (at(0), at(9)));
    assert_eq!(store.count_audience(scene.app, &Target::Everyone).await, Ok(vec![(ProviderKind::Fcm, 1)]));
}

pub async fn a_repeated_registration_replaces_what_it_names_and_keeps_the_rest(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let device = scene.register(full("one")).await;
    let mut bare = registration(ProviderKind::Fcm, "one");
    bare.facts.user = Some(person("bob"));
    bare.topics = vec![topic("sport")];
    assert_eq!(scene.register(bare).await, device);
    let stored = store.device(scene.app, device).await.expect("found").facts;
    assert_eq!(stored.user, Some(person("bob")));
    assert_eq!(stored.texts(), full("one").facts.texts());
    assert_eq!(stored.tags, full("one").facts.tags);
    assert_eq!(store.topics_of(scene.app, device).await, Ok(vec![topic("news"), topic("sport")]));
    assert!(store.user(scene.app, &person("ada")).await.expect("known").devices.is_empty());
    assert_eq!(store.user(scene.app, &person("bob")).await.expect("known").devices, vec![device]);
}

pub async fn the_same_token_of_another_provider_or_app_is_another_device(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let other = Scene::in_app(store, 2).await;
    let one = scene.register(registration(ProviderKind::Fcm, "same")).await;
    let two = scene.register(registration(ProviderKind::Null, "same")).await;
    let three = other.register(registration(ProviderKind::Fcm, "same")).await;
    assert!(one < two && two < three, "later devices have larger ids");
}

pub async fn registrations_are_kept_together_or_not_at_all(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let mut greedy = registration(ProviderKind::Fcm, "two");
    greedy.topics = many_topics(2_001);
    let good = registration(ProviderKind::Fcm, "one");
    let refused = store.register(scene.app, &[good, greedy], at(0)).await;
    assert!(matches!(refused, Err(StoreError::LimitReached(_))), "{refused:?}");
    assert_eq!(store.devices(scene.app, &DeviceFilter::default(), first(10)).await, Ok(Vec::new()));
}

pub async fn a_rehearsal_refuses_what_would_be_refused_and_keeps_nothing(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let mut greedy = registration(ProviderKind::Fcm, "two");
    greedy.topics = many_topics(2_001);
    let mut good = registration(ProviderKind::Fcm, "one");
    good.topics = many_topics(1_500);
    assert_eq!(store.validate_some_registrations(scene.app, std::slice::from_ref(&good), at(0)).await, Ok(1));
    let refused = validated(store, scene.app, &[good.clone(), greedy]).await;
    assert!(matches!(refused, Err(StoreError::LimitReached(_))), "{refused:?}");
    assert_eq!(store.devices(scene.app, &DeviceFilter::default(), first(10)).await, Ok(Vec::new()));
    assert_eq!(store.topics(scene.app, None, 10).await, Ok(Vec::new()));
    let device = scene.register(good).await;
    let mut more = registration(ProviderKind::Fcm, "one");
    more.topics = (0..501).map(|number| topic(&format!("more-{number}"))).collect();
    let refused = store.validate_some_registrations(scene.app, &[more], at(1)).await;
    assert!(matches!(refused, Err(StoreError::LimitReached(_))), "with what it has already: {refused:?}");
    let stored = store.device(scene.app, device).await.expect("there");
    assert_eq!(stored.token_since, at(0), "nothing was renewed");
}

/// Validates all of them: a store may stop after some, when they have taken their time.
async fn validated(store: &dyn Store, app: AppId, registrations: &[Registration]) -> Result<(), StoreError> {
    let mut rest = registrations;
    while !rest.is_empty() {
        rest = &rest[store.validate_some_registrations(app, rest, at(0)).await?..];
    }
    Ok(())
}

pub async fn a_device_id_is_never_given_again(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let gone = scene.fcm(2).await;
    for device in &gone {
        store.remove_device(scene.app, *device).await.expect("removed");
    }
    assert!(scene.fcm(1).await[0] > gone[1]);
}

pub async fn devices_are_listed_in_order_page_by_page(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let all = scene.fcm(5).await;
    let none = DeviceFilter::default();
    let list = async |page| {
        let found = store.devices(scene.app, &none, page).await.expect("listed");
        found.into_iter().map(|device| device.id).collect::<Vec<_>>()
    };
    assert_eq!(list(first(3)).await, all[..3]);
    assert_eq!(list(after(all[2].raw(), 3)).await, all[3..]);
    assert!(list(after(all[4].raw(), 3)).await.is_empty());
}

pub async fn devices_are_listed_by_provider_user_and_tag(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let full = scene.register(full("one")).await;
    scene.fcm(2).await;
    let apple = scene.devices(ProviderKind::Apns, 1).await[0];
    let list = async |filter: DeviceFilter| {
        let found = store.devices(scene.app, &filter, first(10)).await.expect("listed");
        found.into_iter().map(|device| device.id).collect::<Vec<_>>()
    };
    let none = DeviceFilter::default;
    assert_eq!(list(none()).await.len(), 4);
    assert_eq!(list(DeviceFilter { provider: Some(ProviderKind::Apns), ..none() }).await, [apple]);
    assert_eq!(list(DeviceFilter { user: Some(person("ada")), ..none() }).await, [full]);
    assert_eq!(list(DeviceFilter { tag: Some(tag("beta")), ..none() }).await, [full]);
    let both = DeviceFilter { provider: Some(ProviderKind::Apns), tag: Some(tag("beta")), ..none() };
    assert!(list(both).await.is_empty());
    assert!(list(DeviceFilter { tag: Some(tag("bet")), ..none() }).await.is_empty(), "no part of a tag");
}

pub async fn devices_are_listed_by_their_state(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let active = scene.register(registration(ProviderKind::Fcm, "lives")).await;
    let dead = scene.register(full("dies")).await;
    let bare = TokenTarget { platform: Platform::Android, provider: ProviderKind::Fcm, token: token("bare") };
    let (_, tickets) = scene.send(Draft::to(Target::Token(bare))).await;
    let unlisted = scene.lease(tickets[0].chunk, at(1)).await.devices[0];
    retire(&scene, dead).await;
    let list = async |state, filter: DeviceFilter| {
        let filter = DeviceFilter { state, ..filter };
        let found = store.devices(scene.app, &filter, first(10)).await.expect("listed");
        found.into_iter().map(|device| device.id).collect::<Vec<_>>()
    };
    let all = DeviceFilter::default;
    assert_eq!(list(None, all()).await, [active, dead], "as without a word about states");
    assert_eq!(list(Some(DeviceState::Active), all()).await, [active]);
    assert_eq!(list(Some(DeviceState::Retired), all()).await, [dead]);
    assert_eq!(list(Some(DeviceState::Unlisted), all()).await, [unlisted]);
    for filter in [
        DeviceFilter { user: Some(person("ada")), ..all() },
        DeviceFilter { tag: Some(tag("beta")), ..all() },
        DeviceFilter { provider: Some(ProviderKind::Fcm), ..all() },
    ] {
        assert_eq!(list(Some(DeviceState::Retired), filter).await, [dead]);
    }
    retire(&scene, unlisted).await;
    assert_eq!(list(Some(DeviceState::Retired), all()).await, [dead, unlisted], "known by its token alone");
    assert!(list(Some(DeviceState::Unlisted), all()).await.is_empty());
}

/// Simulates a push service that reports a device's token as dead.
async fn retire(scene: &Scene<'_>, device: DeviceId) {
    let (_, tickets) = scene.send(Draft::to(Target::Device(device)).sent_at(at(2))).await;
    let leased = scene.lease(tickets[0].chunk, at(2)).await;
    let mut given = settle_all(&leased, record(DeliveryState::Rejected, Reason::Unregistered), at(3));
    given.tokens.push(TokenChange::Retire { device, reason: Reason::Unregistered, since: None });
    scene.settled(given).await;
}

pub async fn a_patch_changes_what_it_names(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let device = scene.register(full("one")).await;
    let patch = DevicePatch {
        user: Some(None),
        locale: Some(Some(Locale::new("fr").expect("a locale"))),
        tags: Some(vec![tag("old")]),
        ..DevicePatch::default()
    };
    let changed = store.patch_device(scene.app, device, &patch, at(5)).await.expect("changed");
    assert_eq!(store.device(scene.app, device).await, Ok(changed.clone()));
    assert_eq!(changed.facts.user, None);
    assert_eq!(changed.facts.locale, Locale::new("fr").ok());
    assert_eq!(changed.facts.time_zone, full("one").facts.time_zone);
    assert_eq!(changed.facts.tags, vec![tag("old")]);
    assert_eq!(changed.token_since, at(0), "the token is the old one");
    assert!(store.user(scene.app, &person("ada")).await.expect("known").devices.is_empty());
}

pub async fn a_patched_token_leads_to_the_same_device(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let device = scene.register(registration(ProviderKind::Fcm, "old")).await;
    let patch = DevicePatch { token: Some(token("new")), ..DevicePatch::default() };
    let changed = store.patch_device(scene.app, device, &patch, at(5)).await.expect("changed");
    assert_eq!(changed.token_since, at(5));
    assert_eq!(scene.register(registration(ProviderKind::Fcm, "new")).await, device);
    assert_ne!(scene.register(registration(ProviderKind::Fcm, "old")).await, device);
}

pub async fn a_token_that_another_device_holds_is_a_conflict(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let one = scene.register(registration(ProviderKind::Fcm, "one")).await;
    scene.register(registration(ProviderKind::Fcm, "two")).await;
    let patch =
        DevicePatch { token: Some(token("two")), tags: Some(vec![tag("x")]), ..DevicePatch::default() };
    let refused = store.patch_device(scene.app, one, &patch, at(1)).await;
    assert!(matches!(refused, Err(StoreError::Conflict(_))), "{refused:?}");
    let stored = store.device(scene.app, one).await.expect("found");
    let facts = registration(ProviderKind::Fcm, "one").facts;
    assert_eq!((stored.token, stored.facts), (token("one"), facts), "nothing else was changed");
}

pub async fn a_removed_device_is_gone_from_topics_groups_and_its_user(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let device = scene.register(full("one")).await;
    store.create_group(scene.app, &group("team"), at(0)).await.expect("made");
    let member = [Member::Device(device)];
    store.add_members(scene.app, &group("team"), &member, at(0)).await.expect("added");
    store.remove_device(scene.app, device).await.expect("removed");
    assert!(matches!(store.device(scene.app, device).await, Err(StoreError::NotFound(_))));
    assert!(matches!(store.remove_device(scene.app, device).await, Err(StoreError::NotFound(_))));
    assert_eq!(store.topic(scene.app, &topic("news")).await.expect("stays").device_count, 0);
    assert_eq!(store.group(scene.app, &group("team")).await.expect("stays").member_count, 0);
    assert!(store.user(scene.app, &person("ada")).await.expect("stays").devices.is_empty());
    assert_ne!(scene.register(full("one")).await, device, "its token is free");
}

pub async fn a_device_known_only_by_its_token_is_not_listed_until_registered(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let known = registration(ProviderKind::Fcm, "bare");
    let target =
        TokenTarget { platform: known.platform, provider: known.provider, token: known.token.clone() };
    let (message, tickets) = scene.send(Draft::to(Target::Token(target))).await;
    let leased = scene.lease(tickets[0].chunk, at(1)).await;
    let device = leased.devices[0];
    assert!(!store.device(scene.app, device).await.expect("kept").listed);
    assert_eq!(store.devices(scene.app, &DeviceFilter::default(), first(10)).await, Ok(Vec::new()));
    assert_eq!(store.count_audience(scene.app, &Target::Everyone).await, Ok(Vec::new()));
    let registered = store.register(scene.app, &[known], at(2)).await.expect("registered");
    assert_eq!((registered[0].device, registered[0].created), (device, false));
    assert!(store.device(scene.app, device).await.expect("kept").listed);
    assert_eq!(scene.tally(message).await.sending, 1);
}

pub async fn counts_are_by_provider(store: &dyn Store) {
    let scene = Scene::new(store).await;
    scene.fcm(3).await;
    scene.devices(ProviderKind::Apns, 2).await;
    let mut counts = store.count_audience(scene.app, &Target::Everyone).await.expect("counted");
    counts.sort_unstable();
    assert_eq!(counts, vec![(ProviderKind::Fcm, 3), (ProviderKind::Apns, 2)]);
}

pub(super) fn many_topics(count: usize) -> Vec<TopicName> {
    (0..count).map(|number| topic(&format!("topic-{number}"))).collect()
}

pub(super) fn full(address: &str) -> Registration {
    let facts = DeviceFacts {
        user: Some(person("ada")),
        tags: vec![tag("beta"), tag("tall")],
        ..DeviceFacts::of_texts(DEVICE_TEXTS.map(|text| Some(text.rule.example.to_owned())))
            .expect("examples")
    };
    Registration { facts, topics: vec![topic("news")], ..registration(ProviderKind::Fcm, address) }
}
