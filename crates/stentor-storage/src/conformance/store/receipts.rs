//! Pending deliveries of the gateway's devices, and their receipts.

use crate::conformance::PlainChanges;
use stentor_core::campaign::{CampaignAction, CampaignState};
use stentor_core::chunk::Ticket;
use stentor_core::device::ProviderKind;
use stentor_core::id::{AppId, DeviceId, MessageId};
use stentor_core::outcome::Reason;
use stentor_core::ports::store::{
    Change, PendingDelivery, QueuedFilter, Receipt, ReceiptKind, Store, StoreError,
};
use stentor_core::target::Target;
use stentor_core::time::Timestamp;

use crate::conformance::scene::{Draft, Scene, at};

const DELIVERED: ReceiptKind = ReceiptKind::Delivered;

async fn waiting(scene: &Scene<'_>, device: DeviceId, now: Timestamp) -> Vec<PendingDelivery> {
    let listed = scene.store.pending(&[(scene.app, device)], 1_000, now).await.expect("listed");
    assert_eq!(listed.len(), 1);
    listed.into_iter().flatten().collect()
}

async fn messages(scene: &Scene<'_>, device: DeviceId, now: Timestamp) -> Vec<MessageId> {
    waiting(scene, device, now).await.into_iter().map(|one| one.message).collect()
}

async fn sent(scene: &Scene<'_>, draft: Draft) -> (MessageId, Vec<Ticket>) {
    let (message, tickets) = scene.send_wide(draft).await;
    scene.deliver(&tickets, at(1)).await;
    (message, tickets)
}

async fn receive(scene: &Scene<'_>, receipts: &[(&Ticket, DeviceId, ReceiptKind)]) -> Vec<bool> {
    let one = |(ticket, device, kind): &(&Ticket, DeviceId, ReceiptKind)| Receipt {
        chunk: ticket.chunk,
        device: *device,
        kind: *kind,
    };
    scene.store.receive(receipts.iter().map(one).collect(), at(2)).await.expect("written")
}

async fn delivered(scene: &Scene<'_>, message: MessageId) -> u64 {
    scene.ledger(message).await.providers.iter().map(|books| books.delivered).sum()
}

pub async fn what_waits_for_a_device_is_listed_until_it_confirms(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let devices = scene.devices(ProviderKind::Gateway, 5).await;
    let (wide, tickets) = sent(&scene, Draft::to(Target::Everyone)).await;
    let (single, own) = sent(&scene, Draft::to(Target::Devices(vec![devices[3]]))).await;
    assert_eq!(messages(&scene, devices[3], at(2)).await, [wide, single]);
    assert_eq!(messages(&scene, devices[0], at(2)).await, [wide]);
    let limited = store.pending(&[(scene.app, devices[3])], 1, at(2)).await.expect("listed");
    assert_eq!(limited[0].iter().map(|one| one.message).collect::<Vec<_>>(), [wide], "the oldest");
    let receipts = [(&tickets[0], devices[3], DELIVERED), (&own[0], devices[3], DELIVERED)];
    assert_eq!(receive(&scene, &receipts).await, [true, true]);
    assert!(messages(&scene, devices[3], at(2)).await.is_empty());
    assert_eq!(messages(&scene, devices[4], at(2)).await, [wide]);
    assert_eq!((delivered(&scene, wide).await, delivered(&scene, single).await), (1, 1));
    assert!(scene.last_record(wide, devices[3]).await.is_some_and(|record| record.is_delivered()));
}

pub async fn what_waits_for_many_devices_is_listed_at_once_as_for_each_of_them(store: &dyn Store) {
    let (scene, other) = (Scene::in_app(store, 1).await, Scene::in_app(store, 2).await);
    let devices = scene.devices(ProviderKind::Gateway, 70).await;
    let foreign = other.devices(ProviderKind::Gateway, 2).await;
    let mut tickets = Vec::new();
    for at in [0, 5, 69] {
        tickets.push(sent(&scene, Draft::to(Target::Everyone)).await.1);
        sent(&scene, Draft::to(Target::Devices(vec![devices[at]]))).await;
        sent(&scene, Draft::to(Target::Devices(vec![devices[1], devices[at], devices[40]]))).await;
    }
    sent(&other, Draft::to(Target::Everyone)).await;
    let confirmed =
        tickets[1].iter().flat_map(|ticket| [5, 40, 41].map(|at| (ticket, devices[at], DELIVERED)));
    receive(&scene, &confirmed.collect::<Vec<_>>()).await;
    let stranger = DeviceId::from_raw(9_999);
    let mut wanted: Vec<_> = devices.iter().rev().map(|device| (scene.app, *device)).collect();
    wanted.extend([
        (other.app, foreign[0]),
        (other.app, devices[0]),
        (scene.app, stranger),
        (scene.app, devices[5]),
    ]);
    wanted.push((AppId::from_raw(77), devices[5]));
    let found = store.pending(&wanted, 1_000, at(2)).await.expect("listed");
    for ((app, device), waits) in wanted.iter().zip(&found) {
        let alone = store.pending(&[(*app, *device)], 1_000, at(2)).await.expect("listed");
        assert_eq!(std::slice::from_ref(waits), alone, "{device}");
    }
    let counts: Vec<usize> = found.iter().map(Vec::len).collect();
    let of = |at: usize| counts[69 - at];
    assert_eq!((of(0), of(1), of(5), of(40), of(41), of(69), of(2)), (5, 6, 4, 5, 2, 5, 3));
    assert_eq!(counts[70..], [1, 0, 0, 4, 0]);
    let limited = store.pending(&wanted, 2, at(2)).await.expect("listed");
    assert!(limited.iter().zip(&found).all(|(some, all)| some[..] == all[..all.len().min(2)]));
    assert!(store.pending(&[], 1_000, at(2)).await.expect("listed").is_empty());
}

pub async fn a_receipt_counts_once_and_only_for_what_was_accepted(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let devices = scene.devices(ProviderKind::Gateway, 2).await;
    let (message, tickets) = scene.send_wide(Draft::to(Target::Everyone)).await;
    let receipt = (&tickets[0], devices[0], DELIVERED);
    assert_eq!(receive(&scene, &[receipt]).await, [false], "not accepted yet");
    scene.deliver(&tickets, at(1)).await;
    let stranger = (&tickets[0], DeviceId::from_raw(999), DELIVERED);
    assert_eq!(receive(&scene, &[receipt, receipt, stranger]).await, [true, false, false]);
    assert_eq!(receive(&scene, &[receipt]).await, [false], "confirmed before");
    assert_eq!(delivered(&scene, message).await, 1);
}

pub async fn what_expired_or_was_canceled_does_not_wait(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let device = scene.devices(ProviderKind::Gateway, 1).await[0];
    let (short, _) = sent(&scene, Draft::to(Target::Everyone).ttl(60)).await;
    let (long, _) = sent(&scene, Draft::to(Target::Everyone).ttl(600)).await;
    assert_eq!(messages(&scene, device, at(59)).await, [short, long]);
    assert_eq!(messages(&scene, device, at(60)).await, [long]);
    store.sweep(100, at(61)).await.expect("swept");
    assert_eq!(messages(&scene, device, at(61)).await, [long]);
    let other = scene.devices(ProviderKind::Fcm, 1).await;
    let (canceled, _) = scene.send_wide(Draft::to(Target::Everyone).ttl(600)).await;
    let gateway: Vec<Ticket> =
        store.queued(QueuedFilter::After(stentor_core::id::ChunkId::from_raw(0), 100)).await.expect("listed");
    let gateway: Vec<Ticket> =
        gateway.into_iter().filter(|ticket| ticket.lane.provider == ProviderKind::Gateway).collect();
    scene.deliver(&gateway, at(62)).await;
    assert_eq!(messages(&scene, device, at(62)).await, [long, canceled]);
    scene.act(canceled, CampaignAction::Cancel, at(63)).await;
    assert_eq!(messages(&scene, device, at(63)).await, [long]);
    assert_eq!(other.len(), 1);
}

pub async fn what_is_dropped_stays_accepted_and_waits_no_more(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let device = scene.devices(ProviderKind::Gateway, 1).await[0];
    let (message, tickets) = sent(&scene, Draft::to(Target::Everyone)).await;
    let dropped = ReceiptKind::Dropped(Reason::ReplacedByNewer);
    assert_eq!(receive(&scene, &[(&tickets[0], device, dropped)]).await, [true]);
    assert_eq!(receive(&scene, &[(&tickets[0], device, DELIVERED)]).await, [false]);
    assert!(messages(&scene, device, at(2)).await.is_empty());
    assert_eq!((scene.tally(message).await.accepted, delivered(&scene, message).await), (1, 0));
    let record = scene.last_record(message, device).await.expect("a delivery");
    assert_eq!((record.reason(), record.is_delivered()), (Reason::ReplacedByNewer, false));
}

pub async fn only_devices_of_the_gateway_have_something_waiting(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let device = scene.fcm(1).await[0];
    let (message, tickets) = sent(&scene, Draft::to(Target::Everyone)).await;
    assert!(messages(&scene, device, at(2)).await.is_empty());
    assert_eq!(receive(&scene, &[(&tickets[0], device, DELIVERED)]).await, [false]);
    assert_eq!(delivered(&scene, message).await, 0);
}

pub async fn what_waits_outlives_the_time_for_which_campaigns_are_kept(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let device = scene.devices(ProviderKind::Gateway, 1).await[0];
    let (message, tickets) = sent(&scene, Draft::to(Target::Everyone).ttl(600)).await;
    store.prune_campaigns(at(100), at(0), 100).await.expect("pruned");
    assert_eq!(messages(&scene, device, at(100)).await, [message]);
    receive(&scene, &[(&tickets[0], device, DELIVERED)]).await;
    store.prune_campaigns(at(100), at(0), 100).await.expect("pruned");
    assert!(store.ledger(scene.app, message.into()).await.is_err(), "nothing waits any more");
}

pub async fn what_is_paused_waits_and_says_so_also_when_all_of_it_was_accepted(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let device = scene.devices(ProviderKind::Gateway, 1).await[0];
    let (message, tickets) = sent(&scene, Draft::to(Target::Everyone)).await;
    let paused =
        async || waiting(&scene, device, at(2)).await.iter().map(|one| one.is_paused).collect::<Vec<_>>();
    let state = async || scene.ledger(message).await.campaign.state;
    assert_eq!((paused().await, state().await), (vec![false], CampaignState::Finished));
    scene.act(message, CampaignAction::Pause, at(2)).await;
    assert_eq!((paused().await, state().await), (vec![true], CampaignState::Paused));
    scene.act(message, CampaignAction::Resume, at(3)).await;
    assert_eq!((paused().await, state().await), (vec![false], CampaignState::Finished));
    scene.act(message, CampaignAction::Pause, at(4)).await;
    assert_eq!(receive(&scene, &[(&tickets[0], device, DELIVERED)]).await, [true], "it may be confirmed");
    scene.act(message, CampaignAction::Resume, at(5)).await;
    assert_eq!(state().await, CampaignState::Finished);
    let pause = Change::Act(scene.app, message.into(), CampaignAction::Pause, at(6));
    assert!(
        matches!(store.change(pause, None).await, Err(StoreError::Conflict(_))),
        "nothing waits any more"
    );
}
