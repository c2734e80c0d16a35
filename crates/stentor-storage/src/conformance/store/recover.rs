//! After a crash.

use stentor_core::campaign::{CampaignAction, CampaignState, Tally};
use stentor_core::delivery::{DeliveryState, Record};
use stentor_core::id::ChunkId;
use stentor_core::outcome::Reason;
use stentor_core::ports::store::{QueuedFilter, Recovery, SettleReply, Store, WriteProof};
use stentor_core::target::Target;

use crate::conformance::scene::{Draft, INSTANCE, Scene, accept_all, at, lease_of, settle_all};

const NEXT: u64 = INSTANCE + 1;

pub async fn leases_of_a_dead_process_are_released_and_counted(store: &dyn Store) {
    let scene = Scene::new(store).await;
    scene.fcm(10).await;
    let (message, tickets) = scene.send_wide(Draft::to(Target::Everyone)).await;
    scene.deliver(&tickets[..1], at(1)).await;
    scene.lease(tickets[1].chunk, at(2)).await;
    let (recovery, released) = store.recover(NEXT, at(3)).await.expect("recovered");
    assert_eq!(recovery, Recovery { chunks: 1, deliveries: 4 });
    let released: Vec<ChunkId> = released.iter().map(|ticket| ticket.chunk).collect();
    assert_eq!(released, [tickets[1].chunk], "to be published again");
    let books = scene.books(message).await;
    assert_eq!(books.tally, Tally { accepted: 4, queued: 6, ..Tally::default() });
    assert_eq!((books.duplicate_bound, books.ambiguous), (4, 0), "nothing has ended yet");
    let queued = store.queued(QueuedFilter::After(ChunkId::from_raw(0), 10)).await.expect("listed");
    let again = queued.iter().find(|ticket| ticket.chunk == tickets[1].chunk).expect("queued again");
    assert!(again.due_at <= at(3));
}

pub async fn what_was_sent_before_a_crash_is_marked_ambiguous(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let devices = scene.fcm(5).await;
    let (message, tickets) = scene.send_wide(Draft::to(Target::Everyone)).await;
    scene.lease(tickets[0].chunk, at(1)).await;
    store.recover(NEXT, at(2)).await.expect("recovered");
    let again = scene.lease(tickets[0].chunk, at(3)).await;
    assert!(again.ambiguous);
    let spared = scene.lease(tickets[1].chunk, at(3)).await;
    assert!(!spared.ambiguous, "it had not been leased");
    scene.settled(settle_all(&again, Record::new(DeliveryState::Accepted, Reason::None, true), at(4))).await;
    scene.settled(accept_all(&spared, at(4))).await;
    assert_eq!(scene.books(message).await.ambiguous, 4);
    assert!(scene.last_record(message, devices[0]).await.expect("a record").is_ambiguous());
    assert!(!scene.last_record(message, devices[4]).await.expect("a record").is_ambiguous());
}

pub async fn a_dead_process_settles_nothing_any_more(store: &dyn Store) {
    let scene = Scene::new(store).await;
    scene.fcm(2).await;
    let (message, tickets) = scene.send_wide(Draft::to(Target::Everyone)).await;
    let old = scene.lease(tickets[0].chunk, at(1)).await;
    store.recover(NEXT, at(2)).await.expect("recovered");
    assert_eq!(scene.settle(accept_all(&old, at(3))).await, SettleReply::Stale);
    scene.lease(tickets[0].chunk, at(4)).await;
    assert_eq!(scene.settle(accept_all(&old, at(5))).await, SettleReply::Stale);
    assert_eq!(scene.tally(message).await.sending, 2);
}

pub async fn own_leases_are_left_alone(store: &dyn Store) {
    let scene = Scene::new(store).await;
    scene.fcm(2).await;
    let (message, tickets) = scene.send_wide(Draft::to(Target::Everyone)).await;
    scene.lease(tickets[0].chunk, at(1)).await;
    assert_eq!(store.recover(INSTANCE, at(2)).await, Ok((Recovery::default(), Vec::new())));
    assert_eq!(scene.tally(message).await.sending, 2);
}

pub async fn every_crash_adds_to_the_bound(store: &dyn Store) {
    let scene = Scene::new(store).await;
    scene.fcm(3).await;
    let (message, tickets) = scene.send_wide(Draft::to(Target::Everyone)).await;
    for crash in 1..=3 {
        let instance = INSTANCE + crash;
        store.lease(&[tickets[0].chunk], lease_of(instance, at(1))).await.expect("leased");
        let (recovery, _) = store.recover(instance + 1, at(2)).await.expect("recovered");
        assert_eq!(recovery, Recovery { chunks: 1, deliveries: 3 });
        assert_eq!(scene.books(message).await.duplicate_bound, 3 * crash);
        let again = store.recover(instance + 1, at(2)).await;
        assert_eq!(again, Ok((Recovery::default(), Vec::new())), "once per crash");
    }
}

pub async fn a_crash_during_a_cancel_leaves_nothing_open(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let device = scene.fcm(1).await[0];
    let (message, tickets) = scene.send(Draft::to(Target::Device(device))).await;
    scene.lease(tickets[0].chunk, at(1)).await;
    scene.act(message, CampaignAction::Cancel, at(2)).await;
    store.recover(NEXT, at(3)).await.expect("recovered");
    let ledger = scene.ledger(message).await;
    assert_eq!(ledger.total(), Tally { canceled: 1, ..Tally::default() });
    assert_eq!(ledger.campaign.state, CampaignState::Canceled);
    assert!(ledger.campaign.ended_at.is_some());
    let last = scene.last_record(message, device).await.expect("a record");
    assert!(last.is_ambiguous(), "it may have been sent");
    assert_eq!((ledger.providers[0].duplicate_bound, ledger.providers[0].ambiguous), (1, 1));
}

pub async fn a_crash_while_paused_leaves_chunks_waiting(store: &dyn Store) {
    let scene = Scene::new(store).await;
    scene.fcm(2).await;
    let (message, tickets) = scene.send_wide(Draft::to(Target::Everyone)).await;
    scene.lease(tickets[0].chunk, at(1)).await;
    scene.act(message, CampaignAction::Pause, at(2)).await;
    store.recover(NEXT, at(3)).await.expect("recovered");
    assert_eq!(store.queued(QueuedFilter::After(ChunkId::from_raw(0), 10)).await, Ok(Vec::new()));
    assert_eq!(scene.tally(message).await, Tally { queued: 2, ..Tally::default() });
    assert_eq!(scene.act(message, CampaignAction::Resume, at(4)).await.len(), 1);
}

pub async fn a_lease_that_ran_out_is_released_like_a_crash(store: &dyn Store) {
    let scene = Scene::new(store).await;
    scene.fcm(2).await;
    let (message, tickets) = scene.send_wide(Draft::to(Target::Everyone)).await;
    let old = scene.lease(tickets[0].chunk, at(0)).await;
    assert!(store.sweep(100, at(59)).await.expect("swept").released.is_empty());
    let swept = store.sweep(100, at(61)).await.expect("swept");
    assert_eq!((swept.released.len(), swept.released[0].chunk), (1, old.id));
    assert_eq!(swept.released[0].lane, tickets[0].lane);
    assert_eq!(scene.books(message).await.duplicate_bound, 2);
    assert_eq!(scene.settle(accept_all(&old, at(62))).await, SettleReply::Stale);
    assert!(scene.lease(old.id, at(62)).await.ambiguous);
}

pub async fn the_number_of_an_instance_counts_as_given_out(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let before = store.last_id().await.expect("the last id");
    let first = before + 1_000_000;
    store.recover(first, at(1)).await.expect("recovered");
    assert_eq!(
        store.last_id().await,
        Ok(first),
        "the next start takes another number, whatever the clock says"
    );
    scene.fcm(1).await;
    let (message, tickets) = scene.send_wide(Draft::to(Target::Everyone)).await;
    store.lease(&[tickets[0].chunk], lease_of(first, at(2))).await.expect("leased");
    let next = store.last_id().await.expect("the last id") + 1;
    let (recovery, _) = store.recover(next, at(3)).await.expect("recovered");
    assert_eq!(recovery, Recovery { chunks: 1, deliveries: 1 });
    assert_eq!(scene.tally(message).await.sending, 0);
}

pub async fn a_store_that_keeps_says_so_and_shows_nothing_of_the_trial(store: &dyn Store) {
    let before = store.last_id().await.expect("the last id");
    store.keeps(WriteProof::Recent).await.expect("it keeps");
    assert_eq!(store.last_id().await, Ok(before));
    let scene = Scene::new(store).await;
    store.keeps(WriteProof::Recent).await.expect("it keeps");
    assert_eq!(scene.fcm(1).await.len(), 1);
}
