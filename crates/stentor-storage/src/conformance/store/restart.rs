//! The data after the store was closed and reopened.

use crate::conformance::PlainChanges;
use stentor_core::campaign::{CampaignAction, CampaignState, Tally};
use stentor_core::id::ChunkId;
use stentor_core::ports::store::{Expansion, Idempotent, NewMessage, QueuedFilter, Recovery};
use stentor_core::target::Target;

use crate::conformance::StoreHome;
use crate::conformance::scene::{
    CHUNK_MAX_DEVICES, Draft, INSTANCE, Scene, accept_all, at, chunks, registration, reply, retry, topic,
};

pub async fn devices_and_topics_are_there_after_a_restart(home: &dyn StoreHome) {
    let store = home.open().await;
    let scene = Scene::new(&*store).await;
    let devices = scene.fcm(3).await;
    store.subscribe(scene.app, &topic("news"), &devices).await.expect("subscribed");
    let before = store.device(scene.app, devices[0]).await;
    drop(store);
    let store = home.open().await;
    let scene = Scene::again(&*store, 1);
    assert_eq!(store.device(scene.app, devices[0]).await, before);
    assert_eq!(store.topic(scene.app, &topic("news")).await.expect("there").device_count, 3);
    let given = registration(stentor_core::device::ProviderKind::Fcm, "later");
    let later = store.register(scene.app, &[given], at(1)).await.expect("registered");
    assert!(later[0].device > devices[2], "ids go on");
}

pub async fn an_accepted_message_is_there_after_a_restart(home: &dyn StoreHome) {
    let store = home.open().await;
    let scene = Scene::new(&*store).await;
    let device = scene.fcm(1).await[0];
    let new = scene.new_message(Draft::to(Target::Device(device)));
    let new = NewMessage { idempotency: Some(reply("key", 1, "first")), ..new };
    let message = new.message.clone();
    assert_eq!(scene.accept(new).await, Ok(Idempotent::Done(())));
    drop(store);
    let store = home.open().await;
    let scene = Scene::again(&*store, 1);
    assert_eq!(store.message(scene.app, message.id).await, Ok(message.clone()));
    let again = store.replay(scene.app, &reply("key", 1, "").key, &[1; 32]).await;
    assert_eq!(again, Ok(Some(Idempotent::Replayed(reply("key", 1, "first").reply))));
    let begun = scene.start(at(1)).await;
    let queued = store.queued(QueuedFilter::After(ChunkId::from_raw(0), 10)).await.expect("listed");
    assert_eq!(chunks(&queued), chunks(&begun), "its chunk can be published again");
    scene.deliver(&queued, at(1)).await;
    assert_eq!(scene.state(message.id).await, CampaignState::Finished);
}

pub async fn a_producer_goes_on_after_a_restart(home: &dyn StoreHome) {
    let store = home.open().await;
    let scene = Scene::new(&*store).await;
    let devices = scene.fcm(10).await;
    let (message, _) = scene.send(Draft::to(Target::Everyone)).await;
    let task = store.producers().await.expect("listed");
    let task = task.into_iter().find(|task| task.provider == stentor_core::device::ProviderKind::Fcm);
    let how = Expansion { chunk_max_devices: CHUNK_MAX_DEVICES, max_chunks: 1, now: at(1) };
    store.expand(task.expect("a producer"), how).await.expect("expanded");
    drop(store);
    let store = home.open().await;
    let scene = Scene::again(&*store, 1);
    scene.expand(message, at(2)).await;
    let mut seen = Vec::new();
    for ticket in store.queued(QueuedFilter::After(ChunkId::from_raw(0), 10)).await.expect("listed") {
        seen.extend(scene.lease(ticket.chunk, at(3)).await.devices);
    }
    assert_eq!(seen, devices, "each device once");
}

pub async fn a_crash_between_lease_and_settlement_loses_nothing(home: &dyn StoreHome) {
    let store = home.open().await;
    let scene = Scene::new(&*store).await;
    scene.fcm(8).await;
    let (message, tickets) = scene.send_wide(Draft::to(Target::Everyone)).await;
    let one = scene.lease(tickets[0].chunk, at(1)).await;
    scene.settled(retry(accept_all(&one, at(2)), &[3], &one, at(3))).await;
    scene.lease(tickets[1].chunk, at(2)).await;
    drop(store);
    let store = home.open().await;
    let scene = Scene::again(&*store, 1);
    assert_eq!(scene.tally(message).await, Tally { accepted: 3, queued: 1, sending: 4, ..Tally::default() });
    let recovery = store.recover(INSTANCE + 1, at(4)).await.map(|(recovery, _)| recovery);
    assert_eq!(recovery, Ok(Recovery { chunks: 1, deliveries: 4 }));
    let queued = store.queued(QueuedFilter::After(ChunkId::from_raw(0), 10)).await.expect("listed");
    assert_eq!(queued.len(), 2);
    scene.deliver(&queued, at(5)).await;
    let ledger = scene.ledger(message).await;
    assert_eq!(ledger.total(), Tally { accepted: 8, ..Tally::default() });
    assert_eq!(ledger.providers[0].duplicate_bound, 4);
}

pub async fn a_paused_campaign_is_paused_after_a_restart(home: &dyn StoreHome) {
    let store = home.open().await;
    let scene = Scene::new(&*store).await;
    scene.fcm(2).await;
    let (message, _) = scene.send_wide(Draft::to(Target::Everyone)).await;
    scene.act(message, CampaignAction::Pause, at(1)).await;
    drop(store);
    let store = home.open().await;
    let scene = Scene::again(&*store, 1);
    assert_eq!(scene.state(message).await, CampaignState::Paused);
    assert_eq!(store.queued(QueuedFilter::After(ChunkId::from_raw(0), 10)).await, Ok(Vec::new()));
    assert_eq!(scene.act(message, CampaignAction::Resume, at(2)).await.len(), 1);
}
