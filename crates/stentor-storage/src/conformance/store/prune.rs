//! Forgetting what is over.

use stentor_core::campaign::CampaignAction;
use stentor_core::ports::store::{Store, StoreError};
use stentor_core::target::Target;

use crate::conformance::scene::{Draft, Scene, accept_all, at, first};

pub async fn a_campaign_that_ended_long_ago_is_forgotten(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let device = scene.fcm(1).await[0];
    let (message, tickets) = scene.send(Draft::to(Target::Device(device))).await;
    scene.deliver(&tickets, at(10)).await;
    assert_eq!(store.prune(at(10), at(-100), 100).await, Ok(0), "not before its end");
    assert!(store.message(scene.app, message).await.is_ok());
    assert!(store.prune(at(11), at(-100), 100).await.expect("pruned") > 0);
    assert!(matches!(store.message(scene.app, message).await, Err(StoreError::NotFound(_))));
    assert!(matches!(store.ledger(scene.app, message.into()).await, Err(StoreError::NotFound(_))));
    assert_eq!(store.history(scene.app, device, first(10)).await, Ok(Vec::new()));
    assert_eq!(store.campaigns(scene.app, first(10)).await, Ok(Vec::new()));
    assert_eq!(store.prune(at(11), at(-100), 100).await, Ok(0));
}

pub async fn a_campaign_that_has_not_ended_is_never_forgotten(store: &dyn Store) {
    let scene = Scene::new(store).await;
    scene.fcm(2).await;
    let (running, _) = scene.send_wide(Draft::to(Target::Everyone)).await;
    let (waiting, _) = scene.send(Draft::to(Target::Everyone).due(at(50))).await;
    let (canceled, tickets) = scene.send_wide(Draft::to(Target::Everyone)).await;
    let leased = scene.lease(tickets[0].chunk, at(1)).await;
    scene.act(canceled, CampaignAction::Cancel, at(2)).await;
    assert_eq!(store.prune(at(1_000_000), at(-100), 100).await, Ok(0));
    for message in [running, waiting, canceled] {
        assert!(store.message(scene.app, message).await.is_ok());
    }
    scene.settled(accept_all(&leased, at(3))).await;
    assert!(store.prune(at(1_000_000), at(-100), 100).await.expect("pruned") > 0);
    assert!(store.message(scene.app, canceled).await.is_err());
}

pub async fn pruning_goes_on_until_nothing_is_left(store: &dyn Store) {
    let scene = Scene::new(store).await;
    scene.fcm(1).await;
    for _ in 0..5 {
        let (_, tickets) = scene.send_wide(Draft::to(Target::Everyone)).await;
        scene.deliver(&tickets, at(1)).await;
    }
    let mut rounds = 0;
    while store.prune(at(100), at(-100), 2).await.expect("pruned") > 0 {
        rounds += 1;
        assert!(rounds < 100, "pruning does not end");
    }
    assert_eq!(store.campaigns(scene.app, first(10)).await, Ok(Vec::new()));
    assert!(rounds > 1, "a call forgets no more than its limit");
}
