//! The sums.

use crate::conformance::PlainChanges;
use stentor_core::campaign::{CampaignState, ReasonCount, Stop, Tally};
use stentor_core::chunk::Ticket;
use stentor_core::delivery::{DeliveryState, Record};
use stentor_core::device::ProviderKind;
use stentor_core::id::{ChunkId, MessageId};
use stentor_core::outcome::Reason;
use stentor_core::ports::store::{
    BrokenWork, Expansion, LeaseReply, LeasedChunk, ProducerTask, QueuedFilter, SettleReply, Store,
};
use stentor_core::settlement::Settlement;
use stentor_core::target::Target;
use stentor_core::time::Timestamp;

use crate::conformance::scene::{Draft, Scene, accept_all, at, chunks, record, retry, settle_all};

pub async fn the_books_follow_a_campaign_from_first_to_last(store: &dyn Store) {
    let scene = Scene::new(store).await;
    scene.fcm(6).await;
    let (message, tickets) = scene.send_wide(Draft::to(Target::Everyone)).await;
    assert_eq!(scene.tally(message).await, Tally { queued: 6, ..Tally::default() });
    let leased = scene.lease(tickets[0].chunk, at(5)).await;
    assert_eq!(scene.tally(message).await, Tally { queued: 2, sending: 4, ..Tally::default() });
    scene.settled(accept_all(&leased, at(6))).await;
    assert_eq!(scene.tally(message).await, Tally { queued: 2, accepted: 4, ..Tally::default() });
    scene.deliver(&tickets[1..], at(7)).await;
    let ledger = scene.ledger(message).await;
    assert_eq!(ledger.total(), Tally { accepted: 6, ..Tally::default() });
    let campaign = ledger.campaign;
    assert_eq!(campaign.state, CampaignState::Finished);
    assert_eq!((campaign.started_at, campaign.ended_at), (Some(at(5)), Some(at(7))));
}

pub async fn the_books_are_kept_by_provider(store: &dyn Store) {
    let scene = Scene::new(store).await;
    scene.fcm(2).await;
    scene.devices(ProviderKind::Apns, 3).await;
    let (message, tickets) = scene.send_wide(Draft::to(Target::Everyone)).await;
    let apns: Vec<_> =
        tickets.into_iter().filter(|ticket| ticket.lane.provider == ProviderKind::Apns).collect();
    scene.deliver(&apns, at(1)).await;
    let ledger = scene.ledger(message).await;
    let of = |provider| ledger.providers.iter().find(|one| one.provider == provider).expect("an entry");
    assert_eq!(of(ProviderKind::Fcm).tally, Tally { queued: 2, ..Tally::default() });
    assert_eq!(of(ProviderKind::Apns).tally, Tally { accepted: 3, ..Tally::default() });
    assert_eq!((of(ProviderKind::Fcm).attempts, of(ProviderKind::Apns).attempts), (0, 3));
}

pub async fn ends_are_counted_by_reason(store: &dyn Store) {
    let scene = Scene::new(store).await;
    scene.fcm(4).await;
    let (message, tickets) = scene.send_wide(Draft::to(Target::Everyone)).await;
    let leased = scene.lease(tickets[0].chunk, at(1)).await;
    let mut given = accept_all(&leased, at(2));
    given.records[0] = record(DeliveryState::Rejected, Reason::InvalidToken);
    given.records[2] = record(DeliveryState::Rejected, Reason::InvalidToken);
    given.records[3] = record(DeliveryState::Failed, Reason::AttemptsExhausted);
    scene.settled(given).await;
    let mut reasons = scene.books(message).await.reasons;
    reasons.retain(|one| one.reason != Reason::None);
    reasons.sort_by_key(|one| (one.state, one.reason));
    let of = |state, reason, count| ReasonCount { state, reason, count };
    let expected = [
        of(DeliveryState::Rejected, Reason::InvalidToken, 2),
        of(DeliveryState::Failed, Reason::AttemptsExhausted, 1),
    ];
    assert_eq!(reasons, expected);
}

pub async fn attempts_are_counted_as_the_settlement_says(store: &dyn Store) {
    let scene = Scene::new(store).await;
    scene.fcm(3).await;
    let (message, tickets) = scene.send_wide(Draft::to(Target::Everyone)).await;
    let leased = scene.lease(tickets[0].chunk, at(1)).await;
    let mut given = retry(accept_all(&leased, at(2)), &[1], &leased, at(3));
    given.attempts = 2;
    let children = scene.settled(given).await;
    assert_eq!(scene.books(message).await.attempts, 2, "one of three never left");
    scene.deliver(&children, at(4)).await;
    assert_eq!(scene.books(message).await.attempts, 3);
}

pub async fn ambiguous_ends_are_counted_once_they_ended(store: &dyn Store) {
    let scene = Scene::new(store).await;
    scene.fcm(2).await;
    let (message, tickets) = scene.send_wide(Draft::to(Target::Everyone)).await;
    let leased = scene.lease(tickets[0].chunk, at(1)).await;
    let mut given = settle_all(&leased, Record::new(DeliveryState::Accepted, Reason::None, true), at(2));
    given = retry(given, &[1], &leased, at(2));
    given.records[1] = Record::new(DeliveryState::Queued, Reason::Unanswered, true);
    given.children[0].ambiguous = true;
    let children = scene.settled(given).await;
    assert_eq!(scene.books(message).await.ambiguous, 1, "what goes on has not ended");
    let leased = scene.lease(children[0].chunk, at(3)).await;
    assert!(leased.ambiguous);
    scene.settled(settle_all(&leased, Record::new(DeliveryState::Accepted, Reason::None, true), at(3))).await;
    assert_eq!(scene.books(message).await.ambiguous, 2);
}

pub async fn a_lease_shows_the_books_with_itself_as_sending(store: &dyn Store) {
    let scene = Scene::new(store).await;
    scene.fcm(6).await;
    let (_, tickets) = scene.send_wide(Draft::to(Target::Everyone)).await;
    let leased = scene.lease(tickets[0].chunk, at(1)).await;
    assert_eq!(leased.tally, Tally { queued: 2, sending: 4, ..Tally::default() });
}

pub async fn a_stopped_provider_fails_its_rest_and_keeps_its_reason(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let devices = scene.fcm(12).await;
    let (message, tickets) = scene.send_wide(Draft::to(Target::Everyone)).await;
    let leased = scene.lease(tickets[0].chunk, at(1)).await;
    let beside = scene.lease(tickets[1].chunk, at(1)).await;
    let mut given = refused(&leased, "the title is too long", at(2));
    given = retry(given, &[3], &leased, at(9));
    assert!(scene.settled(given).await.is_empty(), "its retries end with it");
    let books = scene.books(message).await;
    assert_eq!(books.stop, Some(stop("the title is too long")));
    assert_eq!(books.tally, Tally { rejected: 3, failed: 5, sending: 4, ..Tally::default() });
    assert_eq!(scene.ledger(message).await.campaign.ended_at, None, "one chunk is still on its way");
    let failed = scene.last_record(message, devices[11]).await;
    assert_eq!(failed, Some(record(DeliveryState::Failed, Reason::PayloadRefused)));
    let again = scene.settled(retry(refused(&beside, "later", at(3)), &[0], &beside, at(9))).await;
    assert!(again.is_empty());
    let ledger = scene.ledger(message).await;
    assert_eq!(ledger.total(), Tally { rejected: 6, failed: 6, ..Tally::default() });
    assert_eq!((ledger.campaign.state, ledger.campaign.ended_at), (CampaignState::Stopped, Some(at(3))));
    assert_eq!(ledger.campaign.stop, Some(stop("the title is too long")), "the first reason counts");
}

pub async fn a_stop_at_one_provider_leaves_the_others_alone(store: &dyn Store) {
    let scene = Scene::new(store).await;
    scene.fcm(8).await;
    scene.devices(ProviderKind::Apns, 8).await;
    let (message, _) = scene.send(Draft::to(Target::Everyone)).await;
    let (fcm, apns) = (task(&scene, message, ProviderKind::Fcm), task(&scene, message, ProviderKind::Apns));
    let step = |max_chunks| Expansion { chunk_max_devices: 2, max_chunks, now: at(1) };
    let first = store.expand(fcm, step(2)).await.expect("expanded").tickets;
    let other = store.expand(apns, step(2)).await.expect("expanded").tickets;
    let leased = scene.lease(first[0].chunk, at(1)).await;
    scene.settled(refused(&leased, "no", at(2))).await;
    assert!(store.expand(fcm, step(2)).await.expect("asked").done, "its producer has ended");
    assert!(matches!(scene.ask(&[first[1].chunk], at(2)).await[0], LeaseReply::Void));
    let queued: Vec<_> = store.queued(QueuedFilter::After(ChunkId::from_raw(0), 10)).await.expect("listed");
    assert_eq!(chunks(&queued), chunks(&other), "the other provider's chunks wait as before");
    let rest = scene.expand(message, at(2)).await;
    assert_eq!(rest.iter().map(|ticket| ticket.lane.provider).collect::<Vec<_>>(), [ProviderKind::Apns]);
    scene.deliver(&other, at(3)).await;
    scene.deliver(&rest, at(3)).await;
    let ledger = scene.ledger(message).await;
    assert_eq!(ledger.total(), Tally { accepted: 8, rejected: 2, failed: 2, ..Tally::default() });
    assert_eq!((ledger.campaign.state, &ledger.campaign.stop), (CampaignState::Finished, &None));
    assert_eq!(ledger.campaign.ended_at, Some(at(3)));
    let stops: Vec<_> = ledger.providers.iter().map(|books| (books.provider, books.stop.is_some())).collect();
    assert!(stops.contains(&(ProviderKind::Fcm, true)) && stops.contains(&(ProviderKind::Apns, false)));
}

pub async fn a_campaign_with_a_stop_and_nothing_accepted_ends_stopped(store: &dyn Store) {
    let scene = Scene::new(store).await;
    scene.fcm(2).await;
    scene.devices(ProviderKind::Apns, 2).await;
    let (message, tickets) = scene.send_wide(Draft::to(Target::Everyone)).await;
    let at_fcm = |ticket: &&Ticket| ticket.lane.provider == ProviderKind::Fcm;
    let fcm = tickets.iter().find(at_fcm).expect("a chunk at fcm").chunk;
    let apns = tickets.iter().find(|ticket| !at_fcm(ticket)).expect("a chunk at apns").chunk;
    let leased = scene.lease(fcm, at(1)).await;
    scene.settled(refused(&leased, "no", at(2))).await;
    assert_eq!(scene.state(message).await, CampaignState::Running, "the other provider is still to answer");
    let leased = scene.lease(apns, at(3)).await;
    let gone = record(DeliveryState::Rejected, Reason::Unregistered);
    scene.settled(settle_all(&leased, gone, at(3))).await;
    let campaign = scene.ledger(message).await.campaign;
    assert_eq!((campaign.state, campaign.ended_at), (CampaignState::Stopped, Some(at(3))));
    assert_eq!(campaign.stop, Some(stop("no")));
}

pub async fn a_stop_ends_what_was_settled_beside_it(store: &dyn Store) {
    let scene = Scene::new(store).await;
    scene.fcm(12).await;
    let (message, tickets) = scene.send_wide(Draft::to(Target::Everyone)).await;
    let mut leased = Vec::new();
    for ticket in &tickets {
        leased.push(scene.lease(ticket.chunk, at(1)).await);
    }
    let again = |one| retry(accept_all(one, at(2)), &[0], one, at(9));
    let given = vec![again(&leased[0]), refused(&leased[1], "no", at(2)), again(&leased[2])];
    store.settle(given).await.expect("settled");
    let ledger = scene.ledger(message).await;
    assert_eq!(ledger.total(), Tally { accepted: 6, rejected: 4, failed: 2, ..Tally::default() });
    assert!(ledger.campaign.ended_at.is_some(), "nothing is left open");
}

pub async fn a_chunk_given_back_to_a_stopped_provider_fails(store: &dyn Store) {
    let scene = Scene::new(store).await;
    scene.fcm(8).await;
    let (message, tickets) = scene.send_wide(Draft::to(Target::Everyone)).await;
    let leased = scene.lease(tickets[0].chunk, at(1)).await;
    let beside = scene.lease(tickets[1].chunk, at(1)).await;
    scene.settled(refused(&leased, "no", at(2))).await;
    let back = store.release(&[beside.lease()], at(3)).await.expect("given back");
    assert!(
        store.queued(QueuedFilter::After(ChunkId::from_raw(0), 10)).await.expect("listed").is_empty(),
        "{back:?}"
    );
    assert_eq!(scene.tally(message).await, Tally { rejected: 4, failed: 4, ..Tally::default() });
    assert_eq!(scene.state(message).await, CampaignState::Stopped);
}

pub async fn a_stop_after_a_cancel_changes_nothing(store: &dyn Store) {
    let scene = Scene::new(store).await;
    scene.fcm(4).await;
    let (message, tickets) = scene.send_wide(Draft::to(Target::Everyone)).await;
    let leased = scene.lease(tickets[0].chunk, at(1)).await;
    scene.act(message, stentor_core::campaign::CampaignAction::Cancel, at(2)).await;
    scene.settled(refused(&leased, "", at(3))).await;
    let campaign = scene.ledger(message).await.campaign;
    assert_eq!((campaign.state, campaign.stop), (CampaignState::Canceled, None));
    assert_eq!(scene.books(message).await.stop, None);
}

pub async fn a_queued_chunk_in_quarantine_fails_as_damaged_and_the_rest_goes_on(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let devices = scene.fcm(8).await;
    let (message, tickets) = scene.send_wide(Draft::to(Target::Everyone)).await;
    assert_eq!(
        store.quarantine(BrokenWork::Chunk { chunk: tickets[0].chunk, epoch: Some(1) }, at(1)).await,
        Ok(false),
        "it is not leased"
    );
    assert_eq!(
        store.quarantine(BrokenWork::Chunk { chunk: tickets[0].chunk, epoch: None }, at(1)).await,
        Ok(true)
    );
    assert_eq!(
        store.quarantine(BrokenWork::Chunk { chunk: tickets[0].chunk, epoch: None }, at(1)).await,
        Ok(false),
        "once is enough"
    );
    assert!(matches!(scene.ask(&[tickets[0].chunk], at(2)).await[0], LeaseReply::Void));
    let queued = store.queued(QueuedFilter::After(ChunkId::from_raw(0), 10)).await.expect("listed");
    assert_eq!(chunks(&queued), [tickets[1].chunk]);
    let last = scene.last_record(message, devices[0]).await;
    assert_eq!(last, Some(record(DeliveryState::Failed, Reason::Damaged)));
    scene.deliver(&tickets[1..], at(3)).await;
    assert_eq!(scene.tally(message).await, Tally { accepted: 4, failed: 4, ..Tally::default() });
    assert_eq!(scene.state(message).await, CampaignState::Finished);
    assert_eq!(store.figures().await.expect("counted").quarantined_chunks, 1);
}

pub async fn a_leased_chunk_in_quarantine_is_ambiguous_and_its_settlement_stale(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let devices = scene.fcm(4).await;
    let (message, tickets) = scene.send_wide(Draft::to(Target::Everyone)).await;
    let leased = scene.lease(tickets[0].chunk, at(1)).await;
    assert_eq!(
        store.quarantine(BrokenWork::Chunk { chunk: leased.id, epoch: None }, at(2)).await,
        Ok(false),
        "it is not queued"
    );
    assert_eq!(
        store.quarantine(BrokenWork::Chunk { chunk: leased.id, epoch: Some(leased.epoch + 1) }, at(2)).await,
        Ok(false)
    );
    assert_eq!(
        store.quarantine(BrokenWork::Chunk { chunk: leased.id, epoch: Some(leased.epoch) }, at(2)).await,
        Ok(true)
    );
    let last = scene.last_record(message, devices[3]).await;
    assert_eq!(last, Some(Record::new(DeliveryState::Failed, Reason::Damaged, true)));
    assert_eq!(
        (scene.books(message).await.ambiguous, scene.state(message).await),
        (4, CampaignState::Finished)
    );
    assert_eq!(scene.settle(accept_all(&leased, at(3))).await, SettleReply::Stale);
    assert_eq!(store.sweep(10, at(10_000)).await.expect("swept").released, []);
}

pub async fn what_is_in_quarantine_is_pruned_with_its_campaign(store: &dyn Store) {
    let scene = Scene::new(store).await;
    scene.fcm(4).await;
    let (_, tickets) = scene.send_wide(Draft::to(Target::Everyone)).await;
    store
        .quarantine(BrokenWork::Chunk { chunk: tickets[0].chunk, epoch: None }, at(1))
        .await
        .expect("set aside");
    while store.prune_campaigns(at(100), at(100), 10).await.expect("pruned") > 0 {}
    assert_eq!(store.figures().await.expect("counted").quarantined_chunks, 0);
}

fn stop(detail: &str) -> Stop {
    Stop { reason: Reason::PayloadRefused, detail: detail.to_owned() }
}

/// Settles a chunk: the payload is refused for each device, and the provider is to be stopped.
fn refused(leased: &LeasedChunk, detail: &str, now: Timestamp) -> Settlement {
    let rejected = record(DeliveryState::Rejected, Reason::InvalidPayload);
    Settlement { stop: Some(stop(detail)), ..settle_all(leased, rejected, now) }
}

const fn task(scene: &Scene<'_>, message: MessageId, provider: ProviderKind) -> ProducerTask {
    ProducerTask { message, app: scene.app, provider }
}
