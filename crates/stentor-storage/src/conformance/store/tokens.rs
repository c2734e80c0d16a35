//! The effects of settlements on tokens.

use crate::conformance::PlainChanges;
use stentor_core::delivery::DeliveryState;
use stentor_core::device::{DevicePatch, ProviderKind};
use stentor_core::id::DeviceId;
use stentor_core::outcome::Reason;
use stentor_core::ports::store::{LeasedChunk, SendDecision, Store};
use stentor_core::settlement::{Settlement, TokenChange};
use stentor_core::target::Target;
use stentor_core::time::Timestamp;

use super::messages::retire;
use crate::conformance::scene::{
    Draft, Scene, accept_all, at, await_some, awaited_chunk, chunks, first, record, registration, settle_all,
    token,
};

pub async fn the_holder_of_a_token_is_found_listed_or_not(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let device = scene.register(registration(ProviderKind::Fcm, "phone")).await;
    let tokens = [token("nobody"), token("phone")];
    let held = store.holders(scene.app, ProviderKind::Fcm, &tokens).await.expect("looked up");
    assert_eq!(held[0], None);
    assert_eq!(held[1].as_ref().map(|held| (held.id, held.retired)), Some((device, None)));
    let elsewhere = store.holders(scene.app, ProviderKind::Apns, &tokens).await;
    assert_eq!(elsewhere, Ok(vec![None, None]), "a token is its push service's");
    let leased = leased_to(&scene, device, at(10)).await;
    scene.settled(dead(&leased, None, at(12))).await;
    let held = store.holders(scene.app, ProviderKind::Fcm, &tokens[1..]).await.expect("looked up");
    assert!(held[0].as_ref().is_some_and(|held| held.retired.is_some()));
}

pub async fn a_dead_token_retires_its_device(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let device = scene.fcm(1).await[0];
    let leased = leased_to(&scene, device, at(10)).await;
    scene.settled(dead(&leased, None, at(12))).await;
    let kept = store.device(scene.app, device).await.expect("kept");
    let retired = kept.retired.expect("retired");
    assert_eq!((retired.at, retired.reason), (at(12), Reason::Unregistered));
    assert_eq!(store.count_audience(scene.app, &Target::Everyone).await, Ok(Vec::new()));
    let listed =
        store.devices(scene.app, &stentor_core::ports::store::DeviceFilter::default(), first(9)).await;
    assert_eq!(listed.expect("listed").len(), 1, "a retired device is still shown");
}

pub async fn a_device_registered_again_after_its_token_died_is_kept(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let device = scene.register(registration(ProviderKind::Fcm, "phone")).await;
    store.register(scene.app, &[registration(ProviderKind::Fcm, "phone")], at(20)).await.expect("again");
    let leased = leased_to(&scene, device, at(30)).await;
    scene.settled(dead(&leased, Some(at(10)), at(31))).await;
    assert_eq!(store.device(scene.app, device).await.expect("kept").retired, None);
    let leased = leased_to(&scene, device, at(40)).await;
    scene.settled(dead(&leased, Some(at(35)), at(41))).await;
    assert!(store.device(scene.app, device).await.expect("kept").retired.is_some());
}

pub async fn a_device_registered_again_while_its_old_token_was_tried_is_kept(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let device = scene.register(registration(ProviderKind::Fcm, "old")).await;
    let leased = leased_to(&scene, device, at(10)).await;
    let patch = DevicePatch { token: Some(token("new")), ..DevicePatch::default() };
    store.patch_device(scene.app, device, &patch, at(11)).await.expect("changed");
    scene.settled(dead(&leased, None, at(12))).await;
    assert_eq!(store.device(scene.app, device).await.expect("kept").retired, None);
}

pub async fn a_device_registered_again_while_its_answer_was_awaited_is_kept(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let device = scene.register(registration(ProviderKind::Fcm, "old")).await;
    let leased = leased_to(&scene, device, at(10)).await;
    let patch = DevicePatch { token: Some(token("new")), ..DevicePatch::default() };
    store.patch_device(scene.app, device, &patch, at(11)).await.expect("changed");
    // The awaited chunk is made after the registration; its token was read before, with the lease of its parent.
    let awaited = scene.settled_but(await_some(accept_all(&leased, at(12)), &[0], &leased)).await;
    scene.settled(dead(&awaited_chunk(&leased, awaited, &[0]), None, at(30))).await;
    assert_eq!(store.device(scene.app, device).await.expect("kept").retired, None);
}

pub async fn a_late_report_about_a_former_token_leaves_the_new_one_alone(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let device = scene.register(registration(ProviderKind::Fcm, "old")).await;
    let leased = leased_to(&scene, device, at(10)).await;
    let patch = DevicePatch { token: Some(token("new")), ..DevicePatch::default() };
    store.patch_device(scene.app, device, &patch, at(11)).await.expect("changed");
    scene.settled(dead(&leased, Some(at(12)), at(12))).await;
    assert_eq!(store.device(scene.app, device).await.expect("kept").retired, None);
    assert_eq!(leased_to(&scene, device, at(13)).await.tokens.get(0), Some("new"));
}

pub async fn registering_a_retired_device_revives_it(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let device = scene.register(registration(ProviderKind::Fcm, "phone")).await;
    retire(&scene, device).await;
    let again = registration(ProviderKind::Fcm, "phone");
    let registered = store.register(scene.app, &[again], at(9)).await.expect("again");
    assert_eq!((registered[0].device, registered[0].created), (device, false));
    assert_eq!(store.device(scene.app, device).await.expect("kept").retired, None);
    assert_eq!(leased_to(&scene, device, at(10)).await.decisions, [SendDecision::Send]);
}

pub async fn a_new_token_revives_a_retired_device(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let device = scene.fcm(1).await[0];
    retire(&scene, device).await;
    let patch = DevicePatch { token: Some(token("new")), ..DevicePatch::default() };
    let changed = store.patch_device(scene.app, device, &patch, at(9)).await.expect("changed");
    assert_eq!((changed.retired, changed.token_since), (None, at(9)));
}

pub async fn a_replaced_token_is_used_from_then_on(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let device = scene.register(registration(ProviderKind::Fcm, "old")).await;
    let leased = leased_to(&scene, device, at(1)).await;
    let mut given = accept_all(&leased, at(2));
    given.tokens.push(TokenChange::Replace { device, token: token("new") });
    scene.settled(given).await;
    assert_eq!(leased_to(&scene, device, at(3)).await.tokens.get(0), Some("new"));
    assert_eq!(scene.register(registration(ProviderKind::Fcm, "new")).await, device);
}

pub async fn a_token_that_changes_after_the_expansion_is_read_anew(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let (mut devices, mut chunk_ids) = (Vec::new(), Vec::new());
    for name in ["first", "second", "third"] {
        devices.push(scene.register(registration(ProviderKind::Fcm, name)).await);
    }
    for _ in 0..2 {
        let (_, tickets) = scene.send_wide(Draft::to(Target::Everyone)).await;
        chunk_ids.extend(chunks(&tickets));
    }
    let before = scene.lease(chunk_ids[0], at(1)).await;
    let patch = DevicePatch { token: Some(token("changed")), ..DevicePatch::default() };
    store.patch_device(scene.app, devices[1], &patch, at(2)).await.expect("changed");
    let after = scene.lease(chunk_ids[1], at(3)).await;
    assert_eq!(before.tokens.iter().collect::<Vec<_>>(), ["first", "second", "third"]);
    assert_eq!(after.tokens.iter().collect::<Vec<_>>(), ["first", "changed", "third"]);
}

pub async fn a_device_retired_after_the_expansion_is_not_sent_to(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let devices = scene.fcm(3).await;
    let (_, first) = scene.send_wide(Draft::to(Target::Everyone)).await;
    let (_, second) = scene.send_wide(Draft::to(Target::Everyone)).await;
    let leased = scene.lease(first[0].chunk, at(1)).await;
    let mut given = accept_all(&leased, at(2));
    given.tokens.push(TokenChange::Retire { device: devices[0], reason: Reason::Unregistered, since: None });
    scene.settled(given).await;
    let leased = scene.lease(second[0].chunk, at(3)).await;
    assert_eq!(leased.decisions, [SendDecision::Gone, SendDecision::Send, SendDecision::Send]);
}

pub async fn a_replacement_that_another_device_holds_retires_the_old_device(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let old = scene.register(registration(ProviderKind::Fcm, "old")).await;
    let new = scene.register(registration(ProviderKind::Fcm, "new")).await;
    let leased = leased_to(&scene, old, at(1)).await;
    let mut given = accept_all(&leased, at(2));
    given.tokens.push(TokenChange::Replace { device: old, token: token("new") });
    scene.settled(given).await;
    assert!(store.device(scene.app, old).await.expect("kept").retired.is_some());
    assert_eq!(scene.register(registration(ProviderKind::Fcm, "new")).await, new);
}

pub async fn a_replacement_older_than_the_last_registration_is_ignored(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let device = scene.register(registration(ProviderKind::Fcm, "old")).await;
    let leased = leased_to(&scene, device, at(1)).await;
    let patch = DevicePatch { token: Some(token("newest")), ..DevicePatch::default() };
    store.patch_device(scene.app, device, &patch, at(2)).await.expect("changed");
    let mut given = accept_all(&leased, at(3));
    given.tokens.push(TokenChange::Replace { device, token: token("new") });
    scene.settled(given).await;
    assert_eq!(leased_to(&scene, device, at(4)).await.tokens.get(0), Some("newest"));
}

pub async fn a_stale_settlement_changes_no_token(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let device = scene.fcm(1).await[0];
    let leased = leased_to(&scene, device, at(1)).await;
    store.release(&[leased.lease()], at(2)).await.expect("given back");
    scene.settle(dead(&leased, None, at(3))).await;
    assert_eq!(store.device(scene.app, device).await.expect("kept").retired, None);
}

pub async fn a_token_change_for_a_removed_device_is_harmless(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let device = scene.fcm(1).await[0];
    let leased = leased_to(&scene, device, at(1)).await;
    store.remove_device(scene.app, device).await.expect("removed");
    let mut given = dead(&leased, None, at(2));
    given.tokens.push(TokenChange::Replace { device, token: token("new") });
    scene.settled(given).await;
    assert!(store.device(scene.app, device).await.is_err());
}

async fn leased_to(scene: &Scene<'_>, device: DeviceId, now: Timestamp) -> LeasedChunk {
    let (_, tickets) = scene.send(Draft::to(Target::Device(device))).await;
    scene.lease(tickets[0].chunk, now).await
}

fn dead(leased: &LeasedChunk, since: Option<Timestamp>, now: Timestamp) -> Settlement {
    let mut given = settle_all(leased, record(DeliveryState::Rejected, Reason::Unregistered), now);
    let device = leased.devices[0];
    given.tokens.push(TokenChange::Retire { device, reason: Reason::Unregistered, since });
    given
}
