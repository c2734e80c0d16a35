//! Canceling, pausing, resuming.

use stentor_core::campaign::{CampaignAction, CampaignState, Tally};
use stentor_core::delivery::{DeliveryState, Record};
use stentor_core::outcome::Reason;
use stentor_core::ports::store::{Expansion, LeaseReply, QueuedFilter, Store, StoreError};
use stentor_core::target::Target;

use crate::conformance::PlainChanges;
use crate::conformance::scene::{CHUNK_MAX_DEVICES, Draft, Scene, accept_all, at, chunks, record, retry};

pub async fn canceling_ends_what_is_queued_at_once(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let devices = scene.fcm(6).await;
    let (message, tickets) = scene.send_wide(Draft::to(Target::Everyone)).await;
    assert!(scene.act(message, CampaignAction::Cancel, at(3)).await.is_empty());
    let ledger = scene.ledger(message).await;
    assert_eq!(ledger.total(), Tally { canceled: 6, ..Tally::default() });
    assert_eq!((ledger.campaign.state, ledger.campaign.ended_at), (CampaignState::Canceled, Some(at(3))));
    let last = scene.last_record(message, devices[0]).await;
    assert_eq!(last, Some(record(DeliveryState::Canceled, Reason::CampaignCanceled)));
    assert!(matches!(scene.ask(&chunks(&tickets), at(4)).await[0], LeaseReply::Void));
}

pub async fn a_cancel_notes_where_the_expansion_of_the_audience_stopped(store: &dyn Store) {
    let scene = Scene::new(store).await;
    scene.fcm(6).await;
    let (whole, _) = scene.send_wide(Draft::to(Target::Everyone)).await;
    let (part, _) = scene.send(Draft::to(Target::Everyone)).await;
    let how = Expansion { chunk_max_devices: CHUNK_MAX_DEVICES, max_chunks: 1, now: at(0) };
    let producers = store.producers().await.expect("listed");
    let task = producers.into_iter().find(|task| task.message == part).expect("it expands");
    store.expand(task, how).await.expect("expanded");
    for message in [whole, part] {
        scene.act(message, CampaignAction::Cancel, at(3)).await;
    }
    assert_eq!(scene.books(whole).await.stop, None);
    let books = scene.books(part).await;
    assert_eq!((books.audience, books.audience_complete), (CHUNK_MAX_DEVICES as u64, true));
    let stop = books.stop.expect("its expansion stopped");
    assert_eq!(stop.reason, Reason::CampaignCanceled);
    assert!(stop.detail.contains("4 devices so far"), "{}", stop.detail);
    let campaign = scene.ledger(part).await.campaign;
    assert_eq!(
        (campaign.state, campaign.stop, campaign.ended_at),
        (CampaignState::Canceled, None, Some(at(3)))
    );
}

pub async fn what_is_leased_at_a_cancel_settles_and_its_retries_are_canceled(store: &dyn Store) {
    let scene = Scene::new(store).await;
    scene.fcm(6).await;
    let (message, tickets) = scene.send_wide(Draft::to(Target::Everyone)).await;
    let leased = scene.lease(tickets[0].chunk, at(1)).await;
    scene.act(message, CampaignAction::Cancel, at(2)).await;
    let campaign = scene.ledger(message).await.campaign;
    assert_eq!((campaign.state, campaign.ended_at), (CampaignState::Canceled, None), "four are on their way");
    let children = scene.settled(retry(accept_all(&leased, at(3)), &[2], &leased, at(9))).await;
    assert!(children.is_empty());
    let ledger = scene.ledger(message).await;
    assert_eq!(ledger.total(), Tally { accepted: 3, canceled: 3, ..Tally::default() });
    assert_eq!(ledger.campaign.ended_at, Some(at(3)));
}

pub async fn what_is_given_back_after_a_cancel_is_canceled(store: &dyn Store) {
    let scene = Scene::new(store).await;
    scene.fcm(2).await;
    let (message, tickets) = scene.send_wide(Draft::to(Target::Everyone)).await;
    let leased = scene.lease(tickets[0].chunk, at(1)).await;
    scene.act(message, CampaignAction::Cancel, at(2)).await;
    let back = store.release(&[leased.lease()], at(3)).await.expect("given back");
    assert!(back.is_empty());
    let ledger = scene.ledger(message).await;
    assert_eq!(ledger.total(), Tally { canceled: 2, ..Tally::default() });
    assert!(ledger.campaign.ended_at.is_some());
}

pub async fn a_canceled_retry_stays_ambiguous(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let device = scene.fcm(1).await[0];
    let (message, tickets) = scene.send(Draft::to(Target::Device(device))).await;
    let leased = scene.lease(tickets[0].chunk, at(1)).await;
    let mut given = retry(accept_all(&leased, at(2)), &[0], &leased, at(9));
    given.records[0] = Record::new(DeliveryState::Queued, Reason::Unanswered, true);
    given.children[0].ambiguous = true;
    scene.settled(given).await;
    scene.act(message, CampaignAction::Cancel, at(3)).await;
    let last = scene.last_record(message, device).await;
    assert_eq!(last, Some(Record::new(DeliveryState::Canceled, Reason::CampaignCanceled, true)));
    assert_eq!(scene.books(message).await.ambiguous, 1);
}

pub async fn a_paused_campaign_leases_nothing_until_resumed(store: &dyn Store) {
    let scene = Scene::new(store).await;
    scene.fcm(6).await;
    let (message, tickets) = scene.send_wide(Draft::to(Target::Everyone)).await;
    scene.act(message, CampaignAction::Pause, at(1)).await;
    assert_eq!(scene.state(message).await, CampaignState::Paused);
    let replies = scene.ask(&chunks(&tickets), at(2)).await;
    assert!(replies.iter().all(|reply| matches!(reply, LeaseReply::Paused)), "{replies:?}");
    assert_eq!(
        store.queued(QueuedFilter::After(stentor_core::id::ChunkId::from_raw(0), 10)).await,
        Ok(Vec::new())
    );
    let mut back = chunks(&scene.act(message, CampaignAction::Resume, at(3)).await);
    back.sort_unstable();
    assert_eq!(back, chunks(&tickets), "resuming gives back what is to be published");
    scene.deliver(&tickets, at(4)).await;
    assert_eq!(scene.state(message).await, CampaignState::Finished);
}

pub async fn what_is_leased_at_a_pause_settles_and_its_retries_wait(store: &dyn Store) {
    let scene = Scene::new(store).await;
    scene.fcm(2).await;
    let (message, tickets) = scene.send_wide(Draft::to(Target::Everyone)).await;
    let leased = scene.lease(tickets[0].chunk, at(1)).await;
    scene.act(message, CampaignAction::Pause, at(2)).await;
    let children = scene.settled(retry(accept_all(&leased, at(3)), &[1], &leased, at(9))).await;
    assert!(children.is_empty(), "no ticket while paused");
    assert_eq!(scene.tally(message).await, Tally { accepted: 1, queued: 1, ..Tally::default() });
    let back = scene.act(message, CampaignAction::Resume, at(4)).await;
    assert_eq!(back.len(), 1);
    scene.deliver(&back, at(9)).await;
    assert_eq!(scene.state(message).await, CampaignState::Finished);
}

pub async fn a_paused_campaign_finishes_when_its_last_lease_settles(store: &dyn Store) {
    let scene = Scene::new(store).await;
    scene.fcm(2).await;
    let (message, tickets) = scene.send_wide(Draft::to(Target::Everyone)).await;
    let leased = scene.lease(tickets[0].chunk, at(1)).await;
    scene.act(message, CampaignAction::Pause, at(2)).await;
    scene.settled(accept_all(&leased, at(3))).await;
    assert_eq!(scene.state(message).await, CampaignState::Finished);
}

pub async fn what_is_given_back_while_paused_waits_without_a_ticket(store: &dyn Store) {
    let scene = Scene::new(store).await;
    scene.fcm(2).await;
    let (message, tickets) = scene.send_wide(Draft::to(Target::Everyone)).await;
    let leased = scene.lease(tickets[0].chunk, at(1)).await;
    scene.act(message, CampaignAction::Pause, at(2)).await;
    let back = store.release(&[leased.lease()], at(3)).await.expect("given back");
    assert!(back.is_empty());
    assert_eq!(scene.act(message, CampaignAction::Resume, at(4)).await.len(), 1);
}

pub async fn repeating_an_action_is_harmless(store: &dyn Store) {
    let scene = Scene::new(store).await;
    scene.fcm(2).await;
    let (message, _) = scene.send_wide(Draft::to(Target::Everyone)).await;
    for action in [CampaignAction::Pause, CampaignAction::Resume, CampaignAction::Cancel] {
        scene.act(message, action, at(1)).await;
        let before = scene.ledger(message).await;
        scene.act(message, action, at(2)).await;
        assert_eq!(scene.ledger(message).await, before, "{action} twice");
    }
}

pub async fn what_makes_no_sense_is_a_conflict(store: &dyn Store) {
    let scene = Scene::new(store).await;
    scene.fcm(1).await;
    let (canceled, _) = scene.send_wide(Draft::to(Target::Everyone)).await;
    scene.act(canceled, CampaignAction::Cancel, at(1)).await;
    let (finished, tickets) = scene.send_wide(Draft::to(Target::Everyone)).await;
    scene.deliver(&tickets, at(1)).await;
    let nonsense = [
        (canceled, CampaignAction::Resume),
        (canceled, CampaignAction::Pause),
        (finished, CampaignAction::Cancel),
        (finished, CampaignAction::Pause),
        (finished, CampaignAction::Resume),
    ];
    for (message, action) in nonsense {
        let before = scene.ledger(message).await;
        let refused = store.act(scene.app, message.into(), action, at(2)).await;
        assert!(matches!(refused, Err(StoreError::Conflict(_))), "{action}: {refused:?}");
        assert_eq!(scene.ledger(message).await, before);
    }
}

pub async fn another_apps_campaign_cannot_be_touched(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let other = Scene::in_app(store, 2).await;
    scene.fcm(1).await;
    let (message, _) = scene.send_wide(Draft::to(Target::Everyone)).await;
    let refused = store.act(other.app, message.into(), CampaignAction::Cancel, at(1)).await;
    assert!(matches!(refused, Err(StoreError::NotFound(_))), "{refused:?}");
    assert_eq!(scene.state(message).await, CampaignState::Running);
}

pub async fn a_scheduled_campaign_is_canceled_before_it_begins(store: &dyn Store) {
    let scene = Scene::new(store).await;
    scene.fcm(1).await;
    let (message, _) = scene.send(Draft::to(Target::Everyone).due(at(100))).await;
    scene.act(message, CampaignAction::Cancel, at(1)).await;
    let campaign = scene.ledger(message).await.campaign;
    assert_eq!((campaign.state, campaign.ended_at), (CampaignState::Canceled, Some(at(1))));
    assert!(store.start_due(10, 4, at(100)).await.expect("nothing").tickets.is_empty());
    assert!(store.producers().await.expect("listed").is_empty());
    assert_eq!(store.next_due().await, Ok(None));
}

pub async fn a_scheduled_campaign_paused_past_its_time_begins_when_resumed(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let device = scene.fcm(1).await[0];
    let (message, _) = scene.send(Draft::to(Target::Device(device)).due(at(100))).await;
    scene.act(message, CampaignAction::Pause, at(1)).await;
    assert!(store.start_due(10, 4, at(100)).await.expect("nothing").tickets.is_empty());
    let mut tickets = scene.act(message, CampaignAction::Resume, at(200)).await;
    tickets.extend(store.start_due(10, 4, at(200)).await.expect("started").tickets);
    scene.deliver(&tickets, at(201)).await;
    assert_eq!(scene.tally(message).await, Tally { accepted: 1, ..Tally::default() });
}

pub async fn only_queued_chunks_of_running_campaigns_are_waiting(store: &dyn Store) {
    let scene = Scene::new(store).await;
    scene.fcm(6).await;
    let (message, tickets) = scene.send_wide(Draft::to(Target::Everyone)).await;
    let all = chunks(&tickets);
    scene.lease(all[0], at(1)).await;
    assert_eq!(store.queued(QueuedFilter::Among(&all)).await, Ok(tickets[1..].to_vec()));
    scene.act(message, CampaignAction::Pause, at(2)).await;
    assert_eq!(store.queued(QueuedFilter::Among(&all)).await, Ok(Vec::new()));
    let resumed = scene.act(message, CampaignAction::Resume, at(3)).await;
    assert_eq!(store.queued(QueuedFilter::Among(&all)).await, Ok(resumed));
    scene.act(message, CampaignAction::Cancel, at(4)).await;
    assert_eq!(store.queued(QueuedFilter::Among(&all)).await, Ok(Vec::new()));
}
