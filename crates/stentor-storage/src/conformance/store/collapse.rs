//! Newer replaces older.

use crate::conformance::PlainChanges;
use stentor_core::campaign::{CampaignAction, Stop, Tally};
use stentor_core::chunk::Ticket;
use stentor_core::delivery::{DeliveryState, Record};
use stentor_core::device::ProviderKind;
use stentor_core::id::{MessageId, first_number_at};
use stentor_core::name::CollapseKey;
use stentor_core::outcome::Reason;
use stentor_core::ports::store::{Idempotent, Lease, SendDecision, Store};
use stentor_core::settlement::Settlement;
use stentor_core::target::Target;

use crate::conformance::scene::{Draft, Scene, accept_all, at, record, retry, settle_all, topic};

pub async fn a_newer_message_with_the_same_key_replaces_a_queued_one(store: &dyn Store) {
    let scene = Scene::new(store).await;
    scene.fcm(2).await;
    let (older, old) = scene.send_wide(Draft::to(Target::Everyone).collapsing("score")).await;
    let (_, new) = scene.send_wide(Draft::to(Target::Everyone).collapsing("score").sent_at(at(1))).await;
    let leased = scene.lease(old[0].chunk, at(2)).await;
    assert_eq!(leased.decisions, [SendDecision::Collapsed, SendDecision::Collapsed]);
    assert!(leased.tokens.is_empty());
    scene
        .settled(settle_all(&leased, record(DeliveryState::Collapsed, Reason::ReplacedByNewer), at(2)))
        .await;
    assert_eq!(scene.tally(older).await, Tally { collapsed: 2, ..Tally::default() });
    assert_eq!(scene.lease(new[0].chunk, at(3)).await.decisions, [SendDecision::Send, SendDecision::Send]);
}

pub async fn only_devices_that_the_newer_message_reaches_are_replaced(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let devices = scene.fcm(3).await;
    store.subscribe(scene.app, &topic("news"), &devices[1..2]).await.expect("subscribed");
    let (_, old) = scene.send_wide(Draft::to(Target::Everyone).collapsing("score")).await;
    scene.send_wide(Draft::to(Target::Topic(topic("news"))).collapsing("score").sent_at(at(1))).await;
    let leased = scene.lease(old[0].chunk, at(2)).await;
    assert_eq!(leased.decisions, [SendDecision::Send, SendDecision::Collapsed, SendDecision::Send]);
}

pub async fn a_newer_message_replaces_nothing_before_it_is_expanded(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let device = scene.fcm(1).await[0];
    let (_, old) = scene.send(Draft::to(Target::Device(device)).collapsing("score")).await;
    let newer = scene.send(Draft::to(Target::Everyone).collapsing("score").sent_at(at(1))).await.0;
    let leased = scene.lease(old[0].chunk, at(2)).await;
    assert_eq!(leased.decisions, [SendDecision::Send]);
    scene.expand(newer, at(2)).await;
    let children = scene.settled(retry(accept_all(&leased, at(3)), &[0], &leased, at(4))).await;
    let again = scene.lease(children[0].chunk, at(4)).await;
    assert_eq!(again.decisions, [SendDecision::Collapsed], "looked at again before every attempt");
}

pub async fn a_newer_message_that_was_canceled_replaces_nothing(store: &dyn Store) {
    let scene = Scene::new(store).await;
    scene.fcm(2).await;
    let (_, old) = scene.send_wide(Draft::to(Target::Everyone).collapsing("score")).await;
    let newer = scene.send_wide(Draft::to(Target::Everyone).collapsing("score").sent_at(at(1))).await.0;
    scene.act(newer, CampaignAction::Cancel, at(2)).await;
    assert_eq!(scene.lease(old[0].chunk, at(3)).await.decisions, [SendDecision::Send, SendDecision::Send]);
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
    assert_eq!(scene.lease(old[0].chunk, at(3)).await.decisions, [SendDecision::Send, SendDecision::Send]);
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
    assert_eq!(scene.lease(old_fcm, at(3)).await.decisions, [SendDecision::Send, SendDecision::Send]);
    assert_eq!(
        scene.lease(old_apns, at(3)).await.decisions,
        [SendDecision::Collapsed, SendDecision::Collapsed]
    );
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
        assert_eq!(scene.lease(ticket.chunk, at(1)).await.decisions, [SendDecision::Send]);
    }
}

pub async fn an_older_message_never_replaces_a_newer_one(store: &dyn Store) {
    let scene = Scene::new(store).await;
    scene.fcm(1).await;
    let (older, _) = scene.send(Draft::to(Target::Everyone).collapsing("score")).await;
    let (_, new) = scene.send_wide(Draft::to(Target::Everyone).collapsing("score")).await;
    let old = scene.expand(older, at(1)).await;
    assert_eq!(scene.lease(new[0].chunk, at(2)).await.decisions, [SendDecision::Send]);
    assert_eq!(
        scene.lease(old[0].chunk, at(2)).await.decisions,
        [SendDecision::Collapsed],
        "though expanded later"
    );
}

pub async fn another_app_replaces_nothing(store: &dyn Store) {
    let one = Scene::in_app(store, 1).await;
    let two = Scene::in_app(store, 2).await;
    one.fcm(1).await;
    two.fcm(1).await;
    let (_, old) = one.send_wide(Draft::to(Target::Everyone).collapsing("score")).await;
    two.send_wide(Draft::to(Target::Everyone).collapsing("score").sent_at(at(1))).await;
    assert_eq!(one.lease(old[0].chunk, at(2)).await.decisions, [SendDecision::Send]);
}

pub async fn a_device_that_is_gone_is_gone_though_replaced(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let device = scene.fcm(1).await[0];
    let (_, old) = scene.send(Draft::to(Target::Device(device)).collapsing("score")).await;
    scene.send(Draft::to(Target::Device(device)).collapsing("score").sent_at(at(1))).await;
    store.remove_device(scene.app, device).await.expect("removed");
    assert_eq!(scene.lease(old[0].chunk, at(2)).await.decisions, [SendDecision::Gone]);
}

/// Accepts a message under a number of its instant, as the server does.
async fn send_on_time(scene: &Scene<'_>, draft: Draft) -> (MessageId, Vec<Ticket>) {
    let mut new = scene.new_message(draft.collapsing("score"));
    let due = new.message.created_at;
    let number = first_number_at(due) + scene.next();
    new.message.id = MessageId::from_raw(number);
    match scene.accept(new).await.expect("accepted") {
        Idempotent::Done(()) => (MessageId::from_raw(number), scene.start(due).await),
        other => panic!("kept before: {other:?}"),
    }
}

/// Starts the messages that are due.
async fn start(scene: &Scene<'_>, seconds: i64) -> Vec<Ticket> {
    scene.store.start_due(10, 100, at(seconds)).await.expect("started").tickets
}

pub async fn what_is_due_later_replaces_what_was_sent_after_it_was_accepted(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let target = Target::Device(scene.fcm(1).await[0]);
    send_on_time(&scene, Draft::to(target.clone()).due(at(4))).await;
    let (_, at_once) = send_on_time(&scene, Draft::to(target).sent_at(at(2))).await;
    let leased = scene.lease(at_once[0].chunk, at(3)).await;
    assert_eq!(leased.decisions, [SendDecision::Send], "the other is not due yet");
    let again = scene.settled(retry(accept_all(&leased, at(3)), &[0], &leased, at(6))).await;
    assert_eq!(start(&scene, 5).await.len(), 1);
    assert_eq!(scene.lease(again[0].chunk, at(6)).await.decisions, [SendDecision::Collapsed]);
}

pub async fn what_was_sent_before_it_was_due_never_replaces_it(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let target = Target::Device(scene.fcm(1).await[0]);
    send_on_time(&scene, Draft::to(target.clone()).due(at(4))).await;
    let (_, before) = send_on_time(&scene, Draft::to(target.clone()).sent_at(at(2))).await;
    scene.deliver(&before, at(3)).await;
    let later = start(&scene, 5).await;
    assert_eq!(scene.lease(later[0].chunk, at(5)).await.decisions, [SendDecision::Send]);
    store.release(&[Lease { chunk: later[0].chunk, epoch: 1 }], at(5)).await.expect("given back");
    send_on_time(&scene, Draft::to(target).sent_at(at(6))).await;
    assert_eq!(
        scene.lease(later[0].chunk, at(7)).await.decisions,
        [SendDecision::Collapsed],
        "that one is newer"
    );
}

pub async fn of_two_that_are_due_together_the_one_accepted_last_counts(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let target = Target::Device(scene.fcm(1).await[0]);
    let (first, _) = send_on_time(&scene, Draft::to(target.clone()).due(at(4))).await;
    send_on_time(&scene, Draft::to(target).sent_at(at(1)).due(at(4))).await;
    let tickets = start(&scene, 5).await;
    let mut decisions = Vec::new();
    for ticket in tickets {
        let leased = scene.lease(ticket.chunk, at(5)).await;
        decisions.push((leased.message.id == first, leased.decisions[0]));
    }
    decisions.sort_unstable_by_key(|(is_first, _)| !is_first);
    assert_eq!(decisions, [(true, SendDecision::Collapsed), (false, SendDecision::Send)]);
}

pub async fn a_newer_message_that_expired_replaces_nothing(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let target = Target::Device(scene.fcm(1).await[0]);
    let (_, old) = send_on_time(&scene, Draft::to(target.clone())).await;
    send_on_time(&scene, Draft::to(target.clone()).sent_at(at(1)).ttl(10)).await;
    let leased = scene.lease(old[0].chunk, at(2)).await;
    assert_eq!(leased.decisions, [SendDecision::Collapsed], "it waits still");
    store.release(&[leased.lease()], at(3)).await.expect("given back");
    let leased = scene.lease(old[0].chunk, at(11)).await;
    assert_eq!(leased.decisions, [SendDecision::Send], "it will never be sent");
    store.release(&[leased.lease()], at(12)).await.expect("given back");
    assert_eq!(store.sweep(10, at(12)).await.expect("swept").expired.len(), 1);
    assert_eq!(scene.lease(old[0].chunk, at(13)).await.decisions, [SendDecision::Send], "it has ended");
}

pub async fn a_newer_message_that_may_have_arrived_replaces_though_it_expired(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let target = Target::Device(scene.fcm(1).await[0]);
    let (_, old) = send_on_time(&scene, Draft::to(target.clone())).await;
    let (_, new) = send_on_time(&scene, Draft::to(target).sent_at(at(1))).await;
    let leased = scene.lease(new[0].chunk, at(2)).await;
    let unseen = Record::new(DeliveryState::Expired, Reason::TtlPassed, true);
    scene.settled(settle_all(&leased, unseen, at(3))).await;
    assert_eq!(scene.lease(old[0].chunk, at(4)).await.decisions, [SendDecision::Collapsed]);
}

pub async fn a_newer_message_that_a_device_never_got_replaces_nothing_there(store: &dyn Store) {
    let scene = Scene::new(store).await;
    scene.fcm(4).await;
    let (older, _) = send_on_time(&scene, Draft::to(Target::Everyone)).await;
    let (newer, _) = send_on_time(&scene, Draft::to(Target::Everyone).sent_at(at(1))).await;
    let (old, new) = (scene.expand(older, at(1)).await, scene.expand(newer, at(1)).await);
    let leased = scene.lease(new[0].chunk, at(2)).await;
    let mut given = accept_all(&leased, at(3));
    given.records[1] = record(DeliveryState::Rejected, Reason::InvalidPayload);
    given.records[2] = record(DeliveryState::Failed, Reason::AttemptsExhausted);
    given.records[3] = record(DeliveryState::Collapsed, Reason::ReplacedByNewer);
    scene.settled(given).await;
    let wanted = [SendDecision::Collapsed, SendDecision::Send, SendDecision::Send, SendDecision::Send];
    assert_eq!(scene.lease(old[0].chunk, at(4)).await.decisions, wanted);
}

pub async fn a_newer_message_that_is_tried_again_replaces_until_it_is_given_up(store: &dyn Store) {
    let scene = Scene::new(store).await;
    scene.fcm(3).await;
    let (older, _) = send_on_time(&scene, Draft::to(Target::Everyone)).await;
    let (newer, _) = send_on_time(&scene, Draft::to(Target::Everyone).sent_at(at(1))).await;
    let (old, new) = (scene.expand(older, at(1)).await, scene.expand(newer, at(1)).await);
    let leased = scene.lease(new[0].chunk, at(2)).await;
    let children = scene.settled(retry(accept_all(&leased, at(3)), &[1, 2], &leased, at(4))).await;
    let held = scene.lease(old[0].chunk, at(3)).await;
    assert_eq!(held.decisions, [SendDecision::Collapsed; 3], "two of them wait again");
    store.release(&[held.lease()], at(3)).await.expect("given back");
    let again = scene.lease(children[0].chunk, at(4)).await;
    let mut given = accept_all(&again, at(5));
    given.records[1] = record(DeliveryState::Failed, Reason::AttemptsExhausted);
    scene.settled(given).await;
    let wanted = [SendDecision::Collapsed, SendDecision::Collapsed, SendDecision::Send];
    assert_eq!(scene.lease(old[0].chunk, at(6)).await.decisions, wanted);
}

pub async fn the_newest_message_with_a_key_is_found_in_its_app_alone(store: &dyn Store) {
    let (scene, other) = (Scene::new(store).await, Scene::in_app(store, 2).await);
    let device = scene.fcm(1).await[0];
    let key = CollapseKey::new("score").expect("a key");
    assert_eq!(store.newest_with_key(scene.app, &key).await, Ok(None));
    scene.send(Draft::to(Target::Device(device)).collapsing("score")).await;
    let newest = scene.send(Draft::to(Target::Device(device)).collapsing("score").sent_at(at(1))).await.0;
    scene.send(Draft::to(Target::Device(device)).collapsing("weather").sent_at(at(2))).await;
    assert_eq!(store.newest_with_key(scene.app, &key).await, Ok(Some(newest)));
    assert_eq!(store.newest_with_key(other.app, &key).await, Ok(None));
}
