//! The sums.

use stentor_core::campaign::{CampaignState, ReasonCount, Stop, Tally};
use stentor_core::delivery::{DeliveryState, Record};
use stentor_core::device::ProviderKind;
use stentor_core::outcome::Reason;
use stentor_core::ports::store::Store;
use stentor_core::target::Target;

use crate::conformance::scene::{Draft, Scene, accept_all, at, record, retry, settle_all};

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

pub async fn attempts_are_counted_as_the_settlement_tells(store: &dyn Store) {
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

pub async fn a_stopped_campaign_fails_its_rest_and_keeps_its_reason(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let devices = scene.fcm(12).await;
    let (message, tickets) = scene.send_wide(Draft::to(Target::Everyone)).await;
    let leased = scene.lease(tickets[0].chunk, at(1)).await;
    let beside = scene.lease(tickets[1].chunk, at(1)).await;
    let stop = Stop { reason: Reason::PayloadRefused, detail: "the title is too long".to_owned() };
    let mut given = settle_all(&leased, record(DeliveryState::Rejected, Reason::InvalidPayload), at(2));
    given = retry(given, &[3], &leased, at(9));
    given.stop = Some(stop.clone());
    assert!(scene.settled(given).await.is_empty(), "its retries end with it");
    let ledger = scene.ledger(message).await;
    assert_eq!((ledger.campaign.state, &ledger.campaign.stop), (CampaignState::Stopped, &Some(stop)));
    assert_eq!(ledger.campaign.ended_at, None, "one chunk is still on its way");
    assert_eq!(ledger.total(), Tally { rejected: 3, failed: 5, sending: 4, ..Tally::default() });
    let failed = scene.last_record(message, devices[11]).await;
    assert_eq!(failed, Some(record(DeliveryState::Failed, Reason::PayloadRefused)));
    let children = scene.settled(retry(accept_all(&beside, at(3)), &[0], &beside, at(9))).await;
    assert!(children.is_empty());
    let ledger = scene.ledger(message).await;
    assert_eq!(ledger.total(), Tally { rejected: 3, failed: 6, accepted: 3, ..Tally::default() });
    assert_eq!((ledger.campaign.state, ledger.campaign.ended_at), (CampaignState::Stopped, Some(at(3))));
}

pub async fn a_stop_after_a_cancel_changes_nothing(store: &dyn Store) {
    let scene = Scene::new(store).await;
    scene.fcm(4).await;
    let (message, tickets) = scene.send_wide(Draft::to(Target::Everyone)).await;
    let leased = scene.lease(tickets[0].chunk, at(1)).await;
    scene.act(message, stentor_core::campaign::CampaignAction::Cancel, at(2)).await;
    let mut given = settle_all(&leased, record(DeliveryState::Rejected, Reason::InvalidPayload), at(3));
    given.stop = Some(Stop { reason: Reason::PayloadRefused, detail: String::new() });
    scene.settled(given).await;
    let campaign = scene.ledger(message).await.campaign;
    assert_eq!((campaign.state, campaign.stop), (CampaignState::Canceled, None));
}
