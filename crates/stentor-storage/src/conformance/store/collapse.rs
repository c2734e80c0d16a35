//! Newer replaces older.

use stentor_core::campaign::{CampaignAction, Stop, Tally};
use stentor_core::chunk::Ticket;
use stentor_core::delivery::DeliveryState;
use stentor_core::device::ProviderKind;
use stentor_core::outcome::Reason;
use stentor_core::ports::store::{Fate, Store};
use stentor_core::settlement::Settlement;
use stentor_core::target::Target;

use crate::conformance::scene::{Draft, Scene, accept_all, at, record, retry, settle_all, topic};

pub async fn a_newer_message_with_the_same_key_replaces_a_queued_one(store: &dyn Store) {
    let scene = Scene::new(store).await;
    scene.fcm(2).await;
    let (older, old) = scene.send_wide(Draft::to(Target::Everyone).collapsing("score")).await;
    let (_, new) = scene.send_wide(Draft::to(Target::Everyone).collapsing("score").sent_at(at(1))).await;
    let leased = scene.lease(old[0].chunk, at(2)).await;
    assert_eq!(leased.fates, [Fate::Collapsed, Fate::Collapsed]);
    assert!(leased.tokens.is_empty());
    scene
        .settled(settle_all(&leased, record(DeliveryState::Collapsed, Reason::ReplacedByNewer), at(2)))
        .await;
    assert_eq!(scene.tally(older).await, Tally { collapsed: 2, ..Tally::default() });
    assert_eq!(scene.lease(new[0].chunk, at(3)).await.fates, [Fate::Send, Fate::Send]);
}

pub async fn only_devices_that_the_newer_message_reaches_are_replaced(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let devices = scene.fcm(3).await;
    store.subscribe(scene.app, &topic("news"), &devices[1..2]).await.expect("subscribed");
    let (_, old) = scene.send_wide(Draft::to(Target::Everyone).collapsing("score")).await;
    scene.send_wide(Draft::to(Target::Topic(topic("news"))).collapsing("score").sent_at(at(1))).await;
    let leased = scene.lease(old[0].chunk, at(2)).await;
    assert_eq!(leased.fates, [Fate::Send, Fate::Collapsed, Fate::Send]);
}

pub async fn a_newer_message_replaces_nothing_before_it_is_expanded(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let device = scene.fcm(1).await[0];
    let (_, old) = scene.send(Draft::to(Target::Device(device)).collapsing("score")).await;
    let newer = scene.send(Draft::to(Target::Everyone).collapsing("score").sent_at(at(1))).await.0;
    let leased = scene.lease(old[0].chunk, at(2)).await;
    assert_eq!(leased.fates, [Fate::Send]);
    scene.expand(newer, at(2)).await;
    let children = scene.settled(retry(accept_all(&leased, at(3)), &[0], &leased, at(4))).await;
    let again = scene.lease(children[0].chunk, at(4)).await;
    assert_eq!(again.fates, [Fate::Collapsed], "looked at again before every attempt");
}

pub async fn a_newer_message_that_was_canceled_replaces_nothing(store: &dyn Store) {
    let scene = Scene::new(store).await;
    scene.fcm(2).await;
    let (_, old) = scene.send_wide(Draft::to(Target::Everyone).collapsing("score")).await;
    let newer = scene.send_wide(Draft::to(Target::Everyone).collapsing("score").sent_at(at(1))).await.0;
    scene.act(newer, CampaignAction::Cancel, at(2)).await;
    assert_eq!(scene.lease(old[0].chunk, at(3)).await.fates, [Fate::Send, Fate::Send]);
}

pub async fn a_newer_message_that_was_stopped_replaces_nothing(store: &dyn Store) {
    let scene = Scene::new(store).await;
    scene.fcm(2).await;
    let (_, old) = scene.send_wide(Draft::to(Target::Everyone).collapsing("score")).await;
    let (_, new) = scene.send_wide(Draft::to(Target::Everyone).collapsing("score").sent_at(at(1))).await;
    let leased = scene.lease(new[0].chunk, at(2)).await;
    let refused = settle_all(&leased, record(DeliveryState::Rejected, Reason::InvalidPayload), at(2));
    let stop = Some(Stop { reason: Reason::PayloadRefused, detail: "refused".into() });
    scene.settled(Settlement { stop, ..refused }).await;
    assert_eq!(scene.lease(old[0].chunk, at(3)).await.fates, [Fate::Send, Fate::Send]);
}

pub async fn a_newer_message_stopped_at_one_provider_still_replaces_at_the_other(store: &dyn Store) {
    let scene = Scene::new(store).await;
    scene.fcm(2).await;
    scene.devices(ProviderKind::Apns, 2).await;
    let (_, old) = scene.send_wide(Draft::to(Target::Everyone).collapsing("score")).await;
    let (_, new) = scene.send_wide(Draft::to(Target::Everyone).collapsing("score").sent_at(at(1))).await;
    let at_provider = |tickets: &[Ticket], provider| {
        let own = tickets.iter().find(|ticket| ticket.lane.provider == provider);
        own.expect("a chunk at the provider").chunk
    };
    let (old_fcm, old_apns) = (at_provider(&old, ProviderKind::Fcm), at_provider(&old, ProviderKind::Apns));
    let leased = scene.lease(at_provider(&new, ProviderKind::Fcm), at(2)).await;
    let refused = settle_all(&leased, record(DeliveryState::Rejected, Reason::InvalidPayload), at(2));
    let stop = Some(Stop { reason: Reason::PayloadRefused, detail: "refused".into() });
    scene.settled(Settlement { stop, ..refused }).await;
    assert_eq!(scene.lease(old_fcm, at(3)).await.fates, [Fate::Send, Fate::Send]);
    assert_eq!(scene.lease(old_apns, at(3)).await.fates, [Fate::Collapsed, Fate::Collapsed]);
}

pub async fn another_key_or_no_key_replaces_nothing(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let device = scene.fcm(1).await[0];
    let target = Target::Device(device);
    let mut tickets = Vec::new();
    for key in [Some("score"), None, Some("weather"), None] {
        let draft = Draft { collapse_key: key, ..Draft::to(target.clone()) };
        tickets.extend(scene.send(draft).await.1);
    }
    for ticket in tickets {
        assert_eq!(scene.lease(ticket.chunk, at(1)).await.fates, [Fate::Send]);
    }
}

pub async fn an_older_message_never_replaces_a_newer_one(store: &dyn Store) {
    let scene = Scene::new(store).await;
    scene.fcm(1).await;
    let (older, _) = scene.send(Draft::to(Target::Everyone).collapsing("score")).await;
    let (_, new) = scene.send_wide(Draft::to(Target::Everyone).collapsing("score")).await;
    let old = scene.expand(older, at(1)).await;
    assert_eq!(scene.lease(new[0].chunk, at(2)).await.fates, [Fate::Send]);
    assert_eq!(scene.lease(old[0].chunk, at(2)).await.fates, [Fate::Collapsed], "though expanded later");
}

pub async fn another_app_replaces_nothing(store: &dyn Store) {
    let one = Scene::in_app(store, 1).await;
    let two = Scene::in_app(store, 2).await;
    one.fcm(1).await;
    two.fcm(1).await;
    let (_, old) = one.send_wide(Draft::to(Target::Everyone).collapsing("score")).await;
    two.send_wide(Draft::to(Target::Everyone).collapsing("score").sent_at(at(1))).await;
    assert_eq!(one.lease(old[0].chunk, at(2)).await.fates, [Fate::Send]);
}

pub async fn a_device_that_is_gone_is_gone_though_replaced(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let device = scene.fcm(1).await[0];
    let (_, old) = scene.send(Draft::to(Target::Device(device)).collapsing("score")).await;
    scene.send(Draft::to(Target::Device(device)).collapsing("score").sent_at(at(1))).await;
    store.remove_device(scene.app, device).await.expect("removed");
    assert_eq!(scene.lease(old[0].chunk, at(2)).await.fates, [Fate::Gone]);
}
