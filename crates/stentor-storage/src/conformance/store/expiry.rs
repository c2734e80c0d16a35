//! Too late.

use stentor_core::campaign::{CampaignAction, CampaignState, Tally};
use stentor_core::delivery::DeliveryState;
use stentor_core::outcome::Reason;
use stentor_core::ports::store::{LeaseReply, Store};
use stentor_core::target::Target;

use crate::conformance::scene::{Draft, Scene, accept_all, at, chunks, record, retry};
use stentor_core::ledger::ZERO_TTL_GRACE;

pub async fn what_is_queued_past_its_ttl_expires(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let devices = scene.fcm(6).await;
    let (message, tickets) = scene.send_wide(Draft::to(Target::Everyone).ttl(60)).await;
    let early = store.sweep(100, at(59)).await.expect("swept");
    assert!(early.expired.is_empty());
    let swept = store.sweep(100, at(60)).await.expect("swept");
    let mut expired = swept.expired;
    expired.sort_unstable();
    assert_eq!(expired, chunks(&tickets));
    let ledger = scene.ledger(message).await;
    assert_eq!(ledger.total(), Tally { expired: 6, ..Tally::default() });
    assert_eq!((ledger.campaign.state, ledger.campaign.ended_at), (CampaignState::Finished, Some(at(60))));
    let last = scene.last_record(message, devices[5]).await;
    assert_eq!(last, Some(record(DeliveryState::Expired, Reason::TtlPassed)));
    assert!(matches!(scene.ask(&[tickets[0].chunk], at(61)).await[0], LeaseReply::Void));
}

pub async fn a_paused_campaign_ages_and_expires(store: &dyn Store) {
    let scene = Scene::new(store).await;
    scene.fcm(2).await;
    let (message, _) = scene.send_wide(Draft::to(Target::Everyone).ttl(60)).await;
    scene.act(message, CampaignAction::Pause, at(1)).await;
    store.sweep(100, at(61)).await.expect("swept");
    let ledger = scene.ledger(message).await;
    assert_eq!(ledger.total(), Tally { expired: 2, ..Tally::default() });
    assert_eq!(ledger.campaign.state, CampaignState::Finished);
}

pub async fn what_is_leased_does_not_expire(store: &dyn Store) {
    let scene = Scene::new(store).await;
    scene.fcm(2).await;
    let (message, tickets) = scene.send_wide(Draft::to(Target::Everyone).ttl(60)).await;
    let leased = scene.lease(tickets[0].chunk, at(59)).await;
    assert!(store.sweep(100, at(61)).await.expect("swept").expired.is_empty());
    scene.settled(accept_all(&leased, at(62))).await;
    assert_eq!(scene.tally(message).await, Tally { accepted: 2, ..Tally::default() });
}

pub async fn a_retry_expires_while_it_waits(store: &dyn Store) {
    let scene = Scene::new(store).await;
    scene.fcm(2).await;
    let (message, tickets) = scene.send_wide(Draft::to(Target::Everyone).ttl(60)).await;
    let leased = scene.lease(tickets[0].chunk, at(1)).await;
    let children = scene.settled(retry(accept_all(&leased, at(2)), &[1], &leased, at(100))).await;
    let swept = store.sweep(100, at(60)).await.expect("swept");
    assert_eq!(swept.expired, chunks(&children));
    assert_eq!(scene.tally(message).await, Tally { accepted: 1, expired: 1, ..Tally::default() });
}

pub async fn a_message_of_no_ttl_waits_for_its_one_attempt(store: &dyn Store) {
    let scene = Scene::new(store).await;
    scene.fcm(1).await;
    let (message, tickets) = scene.send_wide(Draft::to(Target::Everyone).ttl(0)).await;
    assert!(store.sweep(100, at(59)).await.expect("swept").expired.is_empty());
    scene.deliver(&tickets, at(59)).await;
    assert_eq!(scene.tally(message).await.accepted, 1);
}

pub async fn a_message_of_no_ttl_that_cannot_be_tried_expires_after_its_grace(store: &dyn Store) {
    let scene = Scene::new(store).await;
    scene.fcm(1).await;
    let (message, tickets) = scene.send_wide(Draft::to(Target::Everyone).ttl(0)).await;
    assert_eq!(store.sweep(100, at(0).plus(ZERO_TTL_GRACE)).await.expect("swept").expired, chunks(&tickets));
    assert_eq!(scene.tally(message).await, Tally { expired: 1, ..Tally::default() });
    assert_eq!(scene.state(message).await, CampaignState::Finished);
}

pub async fn ttl_counts_from_the_due_time(store: &dyn Store) {
    let scene = Scene::new(store).await;
    scene.fcm(1).await;
    let draft = Draft::to(Target::Everyone).ttl(60).due(at(1_000));
    let (message, _) = scene.send(draft).await;
    store.start_due(10, 4, at(1_000)).await.expect("started");
    scene.expand(message, at(1_000)).await;
    assert!(store.sweep(100, at(1_059)).await.expect("swept").expired.is_empty());
    assert_eq!(store.sweep(100, at(1_060)).await.expect("swept").expired.len(), 1);
}

pub async fn a_sweep_ends_at_most_its_limit(store: &dyn Store) {
    let scene = Scene::new(store).await;
    scene.fcm(12).await;
    let (message, _) = scene.send_wide(Draft::to(Target::Everyone).ttl(60)).await;
    assert_eq!(store.sweep(2, at(60)).await.expect("swept").expired.len(), 2);
    assert_eq!(scene.state(message).await, CampaignState::Running);
    assert_eq!(store.sweep(2, at(60)).await.expect("swept").expired.len(), 1);
    assert_eq!(scene.tally(message).await.expired, 12);
    assert_eq!(scene.state(message).await, CampaignState::Finished);
}
