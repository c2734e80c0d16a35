//! Expanding audiences.

use crate::conformance::PlainChanges;
use stentor_core::campaign::{CampaignAction, CampaignState};
use stentor_core::device::ProviderKind;
use stentor_core::group::Member;
use stentor_core::id::{AppId, MessageId};
use stentor_core::outcome::Reason;
use stentor_core::ports::store::{BrokenWork, Expansion, ProducerTask, Store, StoreError, WriteProof};
use stentor_core::target::Target;
use stentor_core::topic::Condition;

use crate::conformance::scene::{Draft, Scene, accept_all, at, group, topic};

pub async fn a_wide_message_waits_for_its_producers(store: &dyn Store) {
    let scene = Scene::new(store).await;
    scene.fcm(3).await;
    let (message, tickets) = scene.send(Draft::to(Target::Everyone)).await;
    assert!(tickets.is_empty(), "accepting expands nothing");
    let task = task_at_fcm(store, message).await;
    assert_eq!((task.app, task.provider), (scene.app, ProviderKind::Fcm));
    let ledger = scene.ledger(message).await;
    assert_eq!((ledger.campaign.state, ledger.audience()), (CampaignState::Running, 0));
    let open = ledger.providers.iter().find(|one| one.provider == ProviderKind::Fcm);
    assert!(!open.expect("an entry for what is to come").audience_complete);
}

pub async fn a_step_makes_as_many_chunks_as_asked_and_goes_on_where_it_stopped(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let devices = scene.fcm(7).await;
    let (message, _) = scene.send(Draft::to(Target::Everyone)).await;
    let task = task_at_fcm(store, message).await;
    let how = Expansion { chunk_max_devices: 3, max_chunks: 2, now: at(1) };
    let one = store.expand(task, how).await.expect("expanded");
    assert_eq!((one.tickets.len(), one.done, one.paused), (2, false, false));
    assert_eq!(
        (scene.books(message).await.audience, scene.books(message).await.audience_complete),
        (6, false)
    );
    let two = store.expand(task, how).await.expect("expanded");
    assert_eq!((two.tickets.len(), two.done), (1, true));
    let mut seen = Vec::new();
    for ticket in one.tickets.iter().chain(&two.tickets) {
        seen.extend(scene.lease(ticket.chunk, at(1)).await.devices);
    }
    assert_eq!(seen, devices, "each device once, in order");
    assert!(scene.books(message).await.audience_complete);
}

pub async fn every_kind_of_audience_is_walked_once_in_many_steps(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let devices = scene.fcm(11).await;
    store.subscribe(scene.app, &topic("news"), &devices).await.expect("subscribed");
    store.create_group(scene.app, &group("team"), at(0)).await.expect("made");
    let members: Vec<_> = devices.iter().copied().map(Member::Device).collect();
    store.add_members(scene.app, &group("team"), &members, at(0)).await.expect("added");
    let condition = Condition::parse("'news' in topics && !('sport' in topics)").expect("a condition");
    let targets = [
        Target::Everyone,
        Target::Topic(topic("news")),
        Target::Group(group("team")),
        Target::Condition(condition),
    ];
    let how = Expansion { chunk_max_devices: 2, max_chunks: 1, now: at(1) };
    for target in targets {
        let (message, _) = scene.send(Draft::to(target.clone())).await;
        let task = task_at_fcm(store, message).await;
        let mut seen = Vec::new();
        loop {
            let step = store.expand(task, how).await.expect("expanded");
            for ticket in step.tickets {
                seen.extend(scene.lease(ticket.chunk, at(1)).await.devices);
            }
            assert!(seen.len() <= devices.len(), "walked twice: {target:?}");
            if step.done {
                break;
            }
        }
        assert_eq!(seen, devices, "{target:?}");
    }
}

pub async fn what_is_queued_of_a_campaign_is_counted_for_its_producer(store: &dyn Store) {
    let scene = Scene::new(store).await;
    scene.fcm(3).await;
    scene.devices(ProviderKind::Apns, 4).await;
    let (message, _) = scene.send(Draft::to(Target::Everyone)).await;
    let task = task_at_fcm(store, message).await;
    assert_eq!(store.queued_deliveries(task).await, Ok(0), "nothing is expanded");
    let tickets = scene.expand(message, at(1)).await;
    assert_eq!(store.queued_deliveries(task).await, Ok(3), "at its own provider");
    let own = tickets.iter().find(|ticket| ticket.lane.provider == ProviderKind::Fcm).expect("a chunk");
    scene.lease(own.chunk, at(1)).await;
    assert_eq!(store.queued_deliveries(task).await, Ok(0), "it is being sent");
    let another = ProducerTask { app: AppId::from_raw(2), ..task };
    assert!(matches!(store.queued_deliveries(another).await, Err(StoreError::NotFound(_))));
}

pub async fn a_producer_that_has_ended_makes_nothing_more(store: &dyn Store) {
    let scene = Scene::new(store).await;
    scene.fcm(2).await;
    let (message, _) = scene.send(Draft::to(Target::Everyone)).await;
    let task = task_at_fcm(store, message).await;
    assert_eq!(scene.expand(message, at(1)).await.len(), 1);
    let how = Expansion { chunk_max_devices: 3, max_chunks: 2, now: at(1) };
    let again = store.expand(task, how).await.expect("harmless");
    assert_eq!((again.tickets.len(), again.done), (0, true));
    assert!(store.producers().await.expect("listed").is_empty());
}

pub async fn later_devices_are_not_in_the_audience(store: &dyn Store) {
    let scene = Scene::new(store).await;
    scene.fcm(2).await;
    let (message, _) = scene.send(Draft::to(Target::Everyone)).await;
    scene.fcm(5).await;
    scene.expand(message, at(1)).await;
    assert_eq!(scene.ledger(message).await.audience(), 2);
}

pub async fn a_campaign_without_audience_finishes_with_its_last_producer(store: &dyn Store) {
    let scene = Scene::new(store).await;
    store.create_group(scene.app, &group("empty"), at(0)).await.expect("made");
    let (message, tickets) = scene.send_wide(Draft::to(Target::Group(group("empty")))).await;
    assert!(tickets.is_empty());
    let ledger = scene.ledger(message).await;
    assert_eq!((ledger.campaign.state, ledger.audience()), (CampaignState::Finished, 0));
    assert!(ledger.campaign.ended_at.is_some());
}

pub async fn a_campaign_finishes_only_after_its_producers(store: &dyn Store) {
    let scene = Scene::new(store).await;
    scene.fcm(2).await;
    let (message, _) = scene.send(Draft::to(Target::Everyone)).await;
    let task = task_at_fcm(store, message).await;
    let how = Expansion { chunk_max_devices: 1, max_chunks: 1, now: at(1) };
    let step = store.expand(task, how).await.expect("expanded");
    scene.deliver(&step.tickets, at(2)).await;
    assert_eq!(scene.state(message).await, CampaignState::Running, "more may come");
    let rest = scene.expand(message, at(3)).await;
    scene.deliver(&rest, at(3)).await;
    assert_eq!(scene.state(message).await, CampaignState::Finished);
}

pub async fn campaigns_are_expanded_side_by_side(store: &dyn Store) {
    let scene = Scene::new(store).await;
    scene.fcm(5).await;
    let (one, _) = scene.send(Draft::to(Target::Everyone)).await;
    let (two, _) = scene.send(Draft::to(Target::Everyone)).await;
    let how = Expansion { chunk_max_devices: 2, max_chunks: 1, now: at(1) };
    for message in [one, two, one, two] {
        let task = task_at_fcm(store, message).await;
        assert_eq!(store.expand(task, how).await.expect("expanded").tickets.len(), 1);
    }
    assert_eq!(scene.books(one).await.audience, 4);
    assert_eq!(scene.books(two).await.audience, 4);
}

pub async fn a_paused_campaign_expands_nothing_until_resumed(store: &dyn Store) {
    let scene = Scene::new(store).await;
    scene.fcm(2).await;
    let (message, _) = scene.send(Draft::to(Target::Everyone)).await;
    let task = task_at_fcm(store, message).await;
    scene.act(message, CampaignAction::Pause, at(1)).await;
    assert!(store.producers().await.expect("listed").is_empty(), "only of campaigns that run");
    let how = Expansion { chunk_max_devices: 2, max_chunks: 1, now: at(1) };
    let step = store.expand(task, how).await.expect("asked");
    assert_eq!((step.tickets.len(), step.done, step.paused), (0, false, true));
    scene.act(message, CampaignAction::Resume, at(2)).await;
    assert_eq!(scene.expand(message, at(2)).await.len(), 1);
}

pub async fn a_canceled_campaign_ends_its_producers(store: &dyn Store) {
    let scene = Scene::new(store).await;
    scene.fcm(2).await;
    let (message, _) = scene.send(Draft::to(Target::Everyone)).await;
    let task = task_at_fcm(store, message).await;
    scene.act(message, CampaignAction::Cancel, at(1)).await;
    assert!(store.producers().await.expect("listed").is_empty());
    let how = Expansion { chunk_max_devices: 2, max_chunks: 1, now: at(1) };
    let step = store.expand(task, how).await.expect("asked");
    assert_eq!((step.tickets.len(), step.done), (0, true));
    assert_eq!(scene.ledger(message).await.audience(), 0);
}

pub async fn an_audience_cut_short_by_a_cancel_is_complete(store: &dyn Store) {
    let scene = Scene::new(store).await;
    scene.fcm(4).await;
    let (message, _) = scene.send(Draft::to(Target::Everyone)).await;
    let task = task_at_fcm(store, message).await;
    let how = Expansion { chunk_max_devices: 1, max_chunks: 2, now: at(1) };
    assert!(!store.expand(task, how).await.expect("expanded").done);
    scene.act(message, CampaignAction::Cancel, at(2)).await;
    let ledger = scene.ledger(message).await;
    assert_eq!((ledger.audience(), ledger.total().canceled, ledger.total().open()), (2, 2, 0));
    assert!(ledger.providers.iter().all(|books| books.audience_complete), "nothing more will come");
}

pub async fn a_device_removed_before_its_turn_is_not_in_the_audience(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let devices = scene.fcm(3).await;
    let (message, _) = scene.send(Draft::to(Target::Everyone)).await;
    store.remove_device(scene.app, devices[1]).await.expect("removed");
    scene.expand(message, at(1)).await;
    assert_eq!(scene.ledger(message).await.audience(), 2);
}

async fn task_at_fcm(store: &dyn Store, message: MessageId) -> ProducerTask {
    let tasks = store.producers().await.expect("listed");
    let mut own = tasks.into_iter().filter(|task| task.message == message);
    own.find(|task| task.provider == ProviderKind::Fcm).expect("a producer at fcm")
}

pub async fn a_producer_given_up_stops_its_campaign_at_its_provider_alone(store: &dyn Store) {
    let scene = Scene::new(store).await;
    scene.fcm(7).await;
    let (message, _) = scene.send(Draft::to(Target::Everyone)).await;
    let task = task_at_fcm(store, message).await;
    let how = Expansion { chunk_max_devices: 3, max_chunks: 1, now: at(1) };
    let tickets = store.expand(task, how).await.expect("expanded").tickets;
    let leased = scene.lease(tickets[0].chunk, at(1)).await;
    store.expand(task, how).await.expect("expanded");
    store.quarantine(BrokenWork::Producer(task), at(2)).await.expect("given up");
    assert!(store.producers().await.expect("listed").iter().all(|one| one.provider != ProviderKind::Fcm));
    let books = scene.books(message).await;
    assert_eq!(books.stop.expect("stopped").reason, Reason::Damaged);
    assert_eq!((books.tally.sending, books.tally.failed, books.audience_complete), (3, 3, true));
    scene.settled(accept_all(&leased, at(3))).await;
    scene.expand(message, at(4)).await;
    assert_eq!(scene.ledger(message).await.campaign.state, CampaignState::Finished);
    store.quarantine(BrokenWork::Producer(task), at(5)).await.expect("once is enough");
    assert_eq!(store.keeps(WriteProof::Now).await, Ok(()));
}
