//! Deletion of finished campaigns and old rows.

use crate::conformance::PlainChanges;
use stentor_core::campaign::CampaignAction;
use stentor_core::device::ProviderKind;
use stentor_core::ports::store::{AttemptFilter, PruneTask, Store, StoreError};
use stentor_core::target::{Target, TokenTarget};
use stentor_core::time::Timestamp;

use crate::conformance::scene::{Draft, Scene, accept_all, at, first, registration, topic};

pub async fn a_campaign_that_ended_long_ago_is_forgotten(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let device = scene.fcm(1).await[0];
    let (message, tickets) = scene.send(Draft::to(Target::Device(device))).await;
    scene.deliver(&tickets, at(10)).await;
    assert_eq!(store.prune_campaigns(at(10), at(-100), 100).await, Ok(0), "not before its end");
    assert!(store.message(scene.app, message).await.is_ok());
    assert!(store.prune_campaigns(at(11), at(-100), 100).await.expect("pruned") > 0);
    assert!(matches!(store.message(scene.app, message).await, Err(StoreError::NotFound(_))));
    assert!(matches!(store.ledger(scene.app, message.into()).await, Err(StoreError::NotFound(_))));
    assert_eq!(store.attempts(scene.app, device, AttemptFilter::Page(first(10))).await, Ok(Vec::new()));
    assert_eq!(store.campaigns(scene.app, first(10)).await.map(|listed| listed.readable), Ok(Vec::new()));
    assert_eq!(store.prune_campaigns(at(11), at(-100), 100).await, Ok(0));
}

pub async fn a_campaign_that_has_not_ended_is_never_forgotten(store: &dyn Store) {
    let scene = Scene::new(store).await;
    scene.fcm(2).await;
    let (running, _) = scene.send_wide(Draft::to(Target::Everyone)).await;
    let (waiting, _) = scene.send(Draft::to(Target::Everyone).due(at(50))).await;
    let (canceled, tickets) = scene.send_wide(Draft::to(Target::Everyone)).await;
    let leased = scene.lease(tickets[0].chunk, at(1)).await;
    scene.act(canceled, CampaignAction::Cancel, at(2)).await;
    assert_eq!(store.prune_campaigns(at(1_000_000), at(-100), 100).await, Ok(0));
    for message in [running, waiting, canceled] {
        assert!(store.message(scene.app, message).await.is_ok());
    }
    scene.settled(accept_all(&leased, at(3))).await;
    assert!(store.prune_campaigns(at(1_000_000), at(-100), 100).await.expect("pruned") > 0);
    assert!(store.message(scene.app, canceled).await.is_err());
}

pub async fn the_last_state_of_a_topic_outlives_the_time_for_which_campaigns_are_kept(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let device = scene.fcm(1).await[0];
    store.subscribe(scene.app, &topic("door"), &[device]).await.expect("subscribed");
    let to_door = || Draft::to(Target::Topic(topic("door"))).ttl(600);
    let (plain, tickets) = scene.send_wide(to_door()).await;
    scene.deliver(&tickets, at(1)).await;
    let (last, tickets) = scene.send_wide(to_door().for_gateway(r#"{"retain":true}"#)).await;
    scene.deliver(&tickets, at(1)).await;
    while store.prune_campaigns(at(599), at(-100), 100).await.expect("pruned") > 0 {}
    assert!(store.message(scene.app, plain).await.is_err());
    assert_eq!(store.retained(scene.app, &topic("door"), at(599)).await, Ok(Some(last)));
    while store.prune_campaigns(at(601), at(-100), 100).await.expect("pruned") > 0 {}
    assert!(store.message(scene.app, last).await.is_err(), "it has expired");
}

pub async fn pruning_goes_on_until_nothing_is_left(store: &dyn Store) {
    let scene = Scene::new(store).await;
    scene.fcm(1).await;
    for _ in 0..5 {
        let (_, tickets) = scene.send_wide(Draft::to(Target::Everyone)).await;
        scene.deliver(&tickets, at(1)).await;
    }
    let mut rounds = 0;
    while store.prune_campaigns(at(100), at(-100), 2).await.expect("pruned") > 0 {
        rounds += 1;
        assert!(rounds < 100, "pruning does not end");
    }
    assert_eq!(store.campaigns(scene.app, first(10)).await.map(|listed| listed.readable), Ok(Vec::new()));
    assert!(rounds > 1, "a call forgets no more than its limit");
}

pub async fn many_campaigns_are_forgotten_together_and_what_is_newer_stays_whole(store: &dyn Store) {
    for (limit, raw) in [1, 3, 4, 100].into_iter().zip(1..) {
        let scene = Scene::in_app(store, raw).await;
        let devices = scene.fcm(9).await;
        let mut old = Vec::new();
        for device in &devices[..5] {
            old.push(scene.send(Draft::to(Target::Device(*device))).await);
        }
        // Of three chunks, so that a limit cuts it.
        old.push(scene.send_wide(Draft::to(Target::Everyone)).await);
        for (_, tickets) in &old {
            scene.deliver(tickets, at(1)).await;
        }
        let (newer, tickets) = scene.send_wide(Draft::to(Target::Everyone)).await;
        scene.deliver(&tickets, at(90)).await;
        let mut rounds = 0;
        while store.prune_campaigns(at(50), at(-100), limit).await.expect("pruned") > 0 {
            rounds += 1;
            assert!(rounds < 100, "pruning does not end");
        }
        for (message, _) in old {
            assert!(store.message(scene.app, message).await.is_err(), "at most {limit} at once");
        }
        assert_eq!(scene.tally(newer).await.accepted, 9);
        for device in devices {
            let history =
                store.attempts(scene.app, device, AttemptFilter::Page(first(10))).await.expect("a history");
            assert_eq!(history.len(), 1, "at most {limit} at once");
        }
    }
}

pub async fn a_token_that_was_messaged_once_stays_as_long_as_a_campaign_counts_it(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let to_token = |address: &str| Draft::to(Target::Token(token_target(address)));
    let (message, tickets) = scene.send(to_token("once")).await;
    let once = scene.lease(tickets[0].chunk, at(1)).await.devices[0];
    let (_, tickets) = scene.send(to_token("twice")).await;
    let leased = scene.lease(tickets[0].chunk, at(1)).await;
    let twice = leased.devices[0];
    scene.settled(accept_all(&leased, at(2))).await;
    while store.prune_campaigns(at(100), at(-100), 100).await.expect("pruned") > 0 {}
    scene.send(Draft::to(Target::Devices(vec![once, twice]))).await;
    assert_eq!(forget_unlisted(store, at(100)).await, 0);
    assert_eq!(
        store.attempts(scene.app, once, AttemptFilter::Message(message)).await.map(|attempts| attempts.len()),
        Ok(1)
    );
    assert!(store.device(scene.app, twice).await.is_ok(), "the message that names both is kept");
}

pub async fn an_unlisted_device_goes_when_nothing_counts_it_and_a_listed_one_stays(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let (_, tickets) = scene.send(Draft::to(Target::Token(token_target("once")))).await;
    let leased = scene.lease(tickets[0].chunk, at(1)).await;
    let once = leased.devices[0];
    scene.settled(accept_all(&leased, at(2))).await;
    let (_, tickets) = scene.send(Draft::to(Target::Token(token_target("registered")))).await;
    let leased = scene.lease(tickets[0].chunk, at(1)).await;
    scene.register(registration(ProviderKind::Fcm, "registered")).await;
    scene.settled(accept_all(&leased, at(2))).await;
    assert_eq!(forget_unlisted(store, at(100)).await, 0, "their campaigns are kept");
    while store.prune_campaigns(at(100), at(-100), 100).await.expect("pruned") > 0 {}
    assert_eq!(forget_unlisted(store, at(0)).await, 0, "it is not old enough");
    assert_eq!(forget_unlisted(store, at(100)).await, 1);
    assert!(matches!(store.device(scene.app, once).await, Err(StoreError::NotFound(_))));
    assert!(store.device(scene.app, leased.devices[0]).await.is_ok(), "it was registered");
    let (_, tickets) = scene.send(Draft::to(Target::Token(token_target("once")))).await;
    assert_ne!(scene.lease(tickets[0].chunk, at(3)).await.devices[0], once, "it is made anew");
}

async fn forget_unlisted(store: &dyn Store, before: Timestamp) -> u64 {
    let (mut gone, mut next) = (0, Some(PruneTask::Unlisted { before, after: 0 }));
    while let Some(task) = next {
        let pruned = store.prune(task, 100).await.expect("pruned");
        gone += pruned.count;
        next = pruned.next;
    }
    gone
}

fn token_target(address: &str) -> TokenTarget {
    let given = registration(ProviderKind::Fcm, address);
    TokenTarget { platform: given.platform, provider: given.provider, token: given.token }
}
