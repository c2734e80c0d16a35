//! Accepting messages: every kind of target.

use crate::conformance::PlainChanges;
use std::collections::BTreeSet;

use stentor_core::campaign::{CampaignAction, CampaignState};
use stentor_core::chunk::{Ticket, TrafficClass};
use stentor_core::delivery::DeliveryState;
use stentor_core::device::{ProviderKind, Registration};
use stentor_core::group::Member;
use stentor_core::id::{DeviceId, MessageId, first_number_at};
use stentor_core::outcome::Reason;
use stentor_core::ports::store::{NewMessage, SendDecision, Store, StoreError};
use stentor_core::settlement::TokenChange;
use stentor_core::target::{Target, TokenTarget};
use stentor_core::topic::Condition;

use crate::conformance::scene::{
    Draft, Scene, accept_all, after, at, first, group, owned_registration, person, record, registration,
    settle_all, topic,
};

pub async fn a_message_is_given_as_it_was_accepted(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let new = scene.new_message(Draft::to(Target::Everyone).collapsing("score").ttl(60));
    let message = new.message.clone();
    scene.accept(new).await.expect("accepted");
    assert_eq!(store.message(scene.app, message.id).await, Ok(message.clone()));
    let campaign = scene.ledger(message.id).await.campaign;
    assert_eq!((campaign.id, campaign.app), (message.id.into(), scene.app));
    assert_eq!((campaign.created_at, campaign.due_at, campaign.expires_at), (at(0), at(0), at(60)));
    assert_eq!((campaign.started_at, campaign.stop), (None, None));
}

pub async fn several_messages_are_given_at_once_and_only_those_of_the_app(store: &dyn Store) {
    let scene = Scene::in_app(store, 1).await;
    let other = Scene::in_app(store, 2).await;
    let mut stored = Vec::new();
    for draft in [Draft::to(Target::Everyone), Draft::to(Target::Everyone).collapsing("score").ttl(60)] {
        let new = scene.new_message(draft);
        stored.push(new.message.clone());
        scene.accept(new).await.expect("accepted");
    }
    let foreign = other.new_message(Draft::to(Target::Everyone));
    let foreign_id = foreign.message.id;
    other.accept(foreign).await.expect("accepted");
    let ids = vec![stored[1].id, foreign_id, MessageId::from_raw(404), stored[0].id];
    let mut given = store.messages(scene.app, ids).await.expect("read");
    given.sort_unstable_by_key(|message| message.id);
    assert_eq!(given, stored);
    assert_eq!(store.messages(scene.app, Vec::new()).await, Ok(Vec::new()));
}

/// Creates a message that is to be the last state of a topic.
fn state_of(name: &str) -> Draft {
    Draft::to(Target::Topic(topic(name))).for_gateway(r#"{"retain":true}"#)
}

/// Makes an app with a device that has subscribed to topics, so that they exist.
async fn with_topics<'a>(store: &'a dyn Store, raw: u64, topics: &[&str]) -> Scene<'a> {
    let scene = Scene::in_app(store, raw).await;
    let topics = topics.iter().map(|name| topic(name)).collect();
    scene.register(Registration { topics, ..registration(ProviderKind::Gateway, "keeper") }).await;
    scene
}

pub async fn the_last_state_of_a_topic_is_found_behind_any_number_of_messages(store: &dyn Store) {
    let scene = with_topics(store, 1, &["door", "window"]).await;
    let other = with_topics(store, 2, &["door"]).await;
    scene.send(state_of("door")).await;
    let (newest, _) = scene.send(state_of("door")).await;
    let (window, _) = scene.send(state_of("window")).await;
    let plain = || scene.new_message(Draft::to(Target::Topic(topic("door"))));
    for stored in store.accept((0..300).map(|_| plain()).collect()).await {
        stored.expect("accepted");
    }
    let last = async |scene: &Scene<'_>, name| store.retained(scene.app, &topic(name), at(1)).await;
    assert_eq!(last(&scene, "door").await, Ok(Some(newest)));
    assert_eq!(last(&scene, "window").await, Ok(Some(window)));
    assert_eq!(last(&scene, "roof").await, Ok(None));
    assert_eq!(last(&other, "door").await, Ok(None), "of another app");
}

pub async fn a_last_state_that_is_over_or_held_back_leaves_the_one_before(store: &dyn Store) {
    let scene = with_topics(store, 1, &["door"]).await;
    let mut sent = Vec::new();
    for ttl in [600, 900, 900, 60, 0] {
        sent.push(scene.send(state_of("door").ttl(ttl)).await.0);
    }
    let last = async |now| store.retained(scene.app, &topic("door"), at(now)).await.expect("read");
    assert_eq!(last(0).await, Some(sent[3]), "what is for now or never is no state");
    assert_eq!((last(59).await, last(60).await), (Some(sent[3]), Some(sent[2])));
    scene.act(sent[2], CampaignAction::Pause, at(61)).await;
    assert_eq!(last(61).await, Some(sent[1]));
    scene.act(sent[1], CampaignAction::Cancel, at(62)).await;
    assert_eq!((last(62).await, last(600).await), (Some(sent[0]), None));
    scene.act(sent[2], CampaignAction::Resume, at(601)).await;
    assert_eq!((last(899).await, last(900).await), (Some(sent[2]), None));
}

pub async fn what_is_due_later_becomes_the_last_state_when_it_is_due(store: &dyn Store) {
    let scene = with_topics(store, 1, &["door"]).await;
    // Numbers that say when they were given out, as those of a server do.
    let accepted = async |number: u64, draft: Draft| {
        let id = first_number_at(draft.created_at) + number;
        let message = draft.message(scene.app, id);
        scene.accept(NewMessage { message, idempotency: None, at_once: None }).await.expect("accepted");
        MessageId::from_raw(id)
    };
    let later = accepted(1, state_of("door").due(at(50))).await;
    let at_once = accepted(2, state_of("door").sent_at(at(10))).await;
    let at_the_same_time = accepted(3, state_of("door").due(at(50))).await;
    let last = async |now| store.retained(scene.app, &topic("door"), at(now)).await.expect("read");
    assert_eq!((last(9).await, last(10).await, last(49).await), (None, Some(at_once), Some(at_once)));
    assert!(later < at_the_same_time);
    assert_eq!(last(50).await, Some(at_the_same_time));
    let newer = accepted(4, state_of("door").sent_at(at(51))).await;
    assert_eq!(last(51).await, Some(newer));
}

pub async fn a_device_gets_its_chunk_at_once(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let devices = scene.fcm(3).await;
    let (message, tickets) = scene.send(Draft::to(Target::Device(devices[1]))).await;
    assert_eq!(tickets.len(), 1);
    let lane = tickets[0].lane;
    assert_eq!((lane.provider, lane.app, lane.class), (ProviderKind::Fcm, scene.app, TrafficClass::Urgent));
    assert!(tickets[0].due_at <= at(0));
    assert_eq!(scene.lease(tickets[0].chunk, at(1)).await.devices, [devices[1]]);
    let books = scene.books(message).await;
    assert_eq!((books.audience, books.audience_complete), (1, true));
}

pub async fn named_devices_are_split_by_provider_and_size(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let mut all = scene.fcm(6).await;
    all.extend(scene.devices(ProviderKind::Apns, 1).await);
    let (message, tickets) = scene.send(Draft::to(Target::Devices(all.clone()))).await;
    assert_eq!(tickets.len(), 3, "two chunks of at most four devices, and one of the other provider");
    let mut seen = Vec::new();
    for ticket in &tickets {
        let leased = scene.lease(ticket.chunk, at(1)).await;
        assert_eq!(leased.provider, ticket.lane.provider);
        assert!(leased.devices.is_sorted());
        seen.extend(leased.devices);
    }
    seen.sort_unstable();
    assert_eq!(seen, all);
    assert_eq!(scene.ledger(message).await.audience(), 7);
}

pub async fn a_token_that_nobody_registered_is_reached(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let target = Target::Token(address(&registration(ProviderKind::Apns, "bare")));
    let (one, tickets) = scene.send(Draft::to(target.clone())).await;
    let leased = scene.lease(tickets[0].chunk, at(1)).await;
    assert_eq!(leased.provider, ProviderKind::Apns);
    assert_eq!(
        (leased.decisions.as_slice(), leased.tokens.get(0)),
        ([SendDecision::Send].as_slice(), Some("bare"))
    );
    scene.settled(accept_all(&leased, at(1))).await;
    assert_eq!(scene.state(one).await, CampaignState::Finished);
    let (_, tickets) = scene.send(Draft::to(target)).await;
    assert_eq!(scene.lease(tickets[0].chunk, at(2)).await.devices, leased.devices, "one device per token");
    let (everyone, _) = scene.send_wide(Draft::to(Target::Everyone)).await;
    assert_eq!(scene.ledger(everyone).await.audience(), 0, "it is in no wider audience");
}

pub async fn a_token_that_is_registered_leads_to_its_device(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let known = registration(ProviderKind::Fcm, "known");
    let device = scene.register(known.clone()).await;
    let (_, tickets) = scene.send(Draft::to(Target::Token(address(&known)))).await;
    assert_eq!(scene.lease(tickets[0].chunk, at(1)).await.devices, [device]);
    assert!(store.device(scene.app, device).await.expect("found").listed);
}

pub async fn a_user_gets_it_on_all_devices(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let mut own = Vec::new();
    for (provider, address) in [(ProviderKind::Fcm, "phone"), (ProviderKind::Apns, "pad")] {
        own.push(scene.register(owned_registration(provider, address, "ada")).await);
    }
    scene.fcm(2).await;
    let (_, tickets) = scene.send(Draft::to(Target::User(person("ada")))).await;
    assert_eq!(reached(&scene, &tickets).await, own);
    assert!(tickets.iter().all(|ticket| ticket.lane.class == TrafficClass::Urgent));
}

pub async fn a_user_without_devices_finishes_at_once(store: &dyn Store) {
    let scene = Scene::new(store).await;
    store.create_user(scene.app, &person("ada"), at(0)).await.expect("made");
    for name in ["ada", "nobody"] {
        let (message, tickets) = scene.send(Draft::to(Target::User(person(name)))).await;
        assert!(tickets.is_empty());
        let ledger = scene.ledger(message).await;
        assert_eq!((ledger.campaign.state, ledger.audience()), (CampaignState::Finished, 0));
        assert!(ledger.campaign.ended_at.is_some());
    }
}

pub async fn a_group_reaches_devices_and_people_once_each(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let phone = scene.register(owned_registration(ProviderKind::Fcm, "phone", "ada")).await;
    let others = scene.fcm(3).await;
    store.create_group(scene.app, &group("team"), at(0)).await.expect("made");
    let members = [Member::User(person("ada")), Member::Device(phone), Member::Device(others[1])];
    store.add_members(scene.app, &group("team"), &members, at(0)).await.expect("added");
    let (_, tickets) = scene.send_wide(Draft::to(Target::Group(group("team")))).await;
    assert_eq!(reached(&scene, &tickets).await, [phone, others[1]]);
}

pub async fn a_topic_reaches_its_devices(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let devices = scene.fcm(9).await;
    store.subscribe(scene.app, &topic("news"), &devices[2..8]).await.expect("subscribed");
    let (message, tickets) = scene.send_wide(Draft::to(Target::Topic(topic("news")))).await;
    assert_eq!(reached(&scene, &tickets).await, devices[2..8]);
    assert!(tickets.iter().all(|ticket| ticket.lane.class == TrafficClass::Bulk));
    assert!(scene.books(message).await.audience_complete);
}

pub async fn a_condition_reaches_whom_it_fits(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let devices = scene.fcm(4).await;
    for (name, subscribed) in [("a", &devices[..3]), ("b", &devices[1..2]), ("c", &devices[2..3])] {
        store.subscribe(scene.app, &topic(name), subscribed).await.expect("subscribed");
    }
    let cases: [(&str, &[usize]); 5] = [
        ("'a' in topics && ('b' in topics || !('c' in topics))", &[0, 1]),
        ("!('a' in topics)", &[3]),
        ("'b' in topics || 'c' in topics", &[1, 2]),
        ("'a' in topics && 'unheard-of' in topics", &[]),
        ("!('unheard-of' in topics)", &[0, 1, 2, 3]),
    ];
    for (text, fitting) in cases {
        let condition = Condition::parse(text).expect("a condition");
        let target = Target::Condition(condition);
        let (_, tickets) = scene.send_wide(Draft::to(target.clone())).await;
        let expected: Vec<_> = fitting.iter().map(|index| devices[*index]).collect();
        assert_eq!(reached(&scene, &tickets).await, expected, "{text}");
        let counted: u64 = count(store, &scene, &target).await.iter().map(|(_, count)| count).sum();
        assert_eq!(counted, expected.len() as u64, "{text}");
    }
}

pub async fn everyone_reaches_all_providers(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let other = Scene::in_app(store, 2).await;
    let mut devices = scene.fcm(5).await;
    other.fcm(2).await;
    devices.extend(scene.devices(ProviderKind::Apns, 3).await);
    let (message, tickets) = scene.send_wide(Draft::to(Target::Everyone)).await;
    assert_eq!(reached(&scene, &tickets).await, devices);
    let ledger = scene.ledger(message).await;
    let audiences: BTreeSet<_> = ledger.providers.iter().map(|one| (one.provider, one.audience)).collect();
    assert_eq!(audiences, [(ProviderKind::Fcm, 5), (ProviderKind::Apns, 3)].into());
}

pub async fn what_does_not_exist_in_the_app_is_not_found(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let other = Scene::in_app(store, 2).await;
    let own = scene.fcm(1).await[0];
    let foreign = other.fcm(1).await[0];
    store.subscribe(other.app, &topic("theirs"), &[foreign]).await.expect("subscribed");
    store.create_group(other.app, &group("theirs"), at(0)).await.expect("made");
    let targets = [
        Target::Device(foreign),
        Target::Devices(vec![own, foreign]),
        Target::Topic(topic("theirs")),
        Target::Group(group("theirs")),
        Target::Device(DeviceId::from_raw(123_456)),
    ];
    for target in targets {
        let refused = scene.accept(scene.new_message(Draft::to(target.clone()))).await;
        assert!(matches!(refused, Err(StoreError::NotFound(_))), "{target:?}: {refused:?}");
        let counted = store.count_audience(scene.app, &target).await;
        assert!(matches!(counted, Err(StoreError::NotFound(_))), "{target:?}: {counted:?}");
    }
    assert_eq!(
        store.campaigns(scene.app, first(10)).await.map(|listed| listed.readable),
        Ok(Vec::new()),
        "nothing was kept"
    );
}

pub async fn a_message_for_an_unknown_app_is_refused_alone(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let mut lost = scene.new_message(Draft::to(Target::Everyone));
    lost.message.app = stentor_core::id::AppId::from_raw(404);
    let missing = scene.new_message(Draft::to(Target::Device(DeviceId::from_raw(123_456))));
    let good = scene.new_message(Draft::to(Target::Everyone));
    let id = good.message.id;
    let replies = store.accept(vec![lost, missing, good]).await;
    assert!(matches!(replies[0], Err(StoreError::NotFound(_))));
    assert!(matches!(replies[1], Err(StoreError::NotFound(_))));
    assert!(replies[2].is_ok(), "each message stands for itself");
    assert!(store.message(scene.app, id).await.is_ok());
}

pub async fn a_message_id_is_not_taken_twice(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let new = scene.new_message(Draft::to(Target::Everyone));
    scene.accept(new.clone()).await.expect("accepted");
    let again = scene.accept(new).await;
    assert!(matches!(again, Err(StoreError::Conflict(_))), "{again:?}");
}

pub async fn a_retired_device_is_in_no_audience_unless_it_is_named(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let owned = owned_registration(ProviderKind::Fcm, "old", "ada");
    let given = Registration { topics: vec![topic("news")], ..owned };
    let device = scene.register(given.clone()).await;
    retire(&scene, device).await;
    for target in [Target::Everyone, Target::Topic(topic("news")), Target::User(person("ada"))] {
        let (message, _) = scene.send_wide(Draft::to(target.clone())).await;
        assert_eq!(scene.ledger(message).await.audience(), 0, "{target:?}");
        assert!(count(store, &scene, &target).await.is_empty(), "{target:?}");
    }
    for target in [Target::Device(device), Target::Devices(vec![device]), Target::Token(address(&given))] {
        let (_, tickets) = scene.send(Draft::to(target.clone())).await;
        assert_eq!(scene.lease(tickets[0].chunk, at(3)).await.decisions, [SendDecision::Gone], "{target:?}");
    }
}

pub async fn campaigns_are_listed_newest_first(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let mut ids = Vec::new();
    for _ in 0..4 {
        ids.push(scene.send(Draft::to(Target::Everyone)).await.0);
    }
    ids.reverse();
    let list = async |page| {
        let found = store.campaigns(scene.app, page).await.expect("listed").readable;
        found.into_iter().map(|campaign| MessageId::from(campaign.id)).collect::<Vec<_>>()
    };
    assert_eq!(list(first(3)).await, ids[..3]);
    assert_eq!(list(after(ids[2].raw(), 3)).await, ids[3..]);
}

pub async fn counting_an_audience_keeps_nothing(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let devices = scene.fcm(2).await;
    let bare = Target::Token(address(&registration(ProviderKind::Apns, "bare")));
    assert_eq!(count(store, &scene, &bare).await, [(ProviderKind::Apns, 1)]);
    assert_eq!(count(store, &scene, &Target::Everyone).await, [(ProviderKind::Fcm, 2)]);
    assert_eq!(count(store, &scene, &Target::Devices(devices.clone())).await, [(ProviderKind::Fcm, 2)]);
    assert_eq!(store.campaigns(scene.app, first(10)).await.map(|listed| listed.readable), Ok(Vec::new()));
    let next = scene.fcm(1).await[0];
    assert_eq!(next.raw(), devices[1].raw() + 1, "no device was made");
}

async fn count(
    store: &dyn Store,
    scene: &Scene<'_>,
    target: &Target,
) -> Vec<stentor_core::ports::store::AudienceCount> {
    let counted = store.count_audience(scene.app, target).await.expect("counted");
    counted.into_iter().filter(|(_, count)| *count > 0).collect()
}

/// Simulates a push service that retires a device.
pub(super) async fn retire(scene: &Scene<'_>, device: DeviceId) {
    let (_, tickets) = scene.send(Draft::to(Target::Device(device))).await;
    let leased = scene.lease(tickets[0].chunk, at(1)).await;
    let mut dead = settle_all(&leased, record(DeliveryState::Rejected, Reason::Unregistered), at(2));
    dead.tokens.push(TokenChange::Retire { device, reason: Reason::Unregistered, since: None });
    scene.settled(dead).await;
}

async fn reached(scene: &Scene<'_>, tickets: &[Ticket]) -> Vec<DeviceId> {
    let mut devices = Vec::new();
    for ticket in tickets {
        devices.extend(scene.lease(ticket.chunk, at(1)).await.devices);
    }
    devices.sort_unstable();
    devices
}

fn address(given: &Registration) -> TokenTarget {
    TokenTarget { platform: given.platform, provider: given.provider, token: given.token.clone() }
}
