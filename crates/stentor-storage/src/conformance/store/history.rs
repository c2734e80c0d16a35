//! The history of a device's deliveries.

use stentor_core::delivery::{DeliveryState, Record};
use stentor_core::id::ChunkId;
use stentor_core::outcome::Reason;
use stentor_core::ports::store::{AttemptFilter, AttemptRecord, ChunkRecords, Store, StoreError};
use stentor_core::target::Target;

use crate::conformance::scene::{Draft, Scene, accept_all, after, at, first, record, retry};

pub async fn a_delivery_lists_every_attempt_in_order(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let device = scene.fcm(3).await[1];
    let (message, tickets) = scene.send_wide(Draft::to(Target::Everyone)).await;
    let states = async || {
        let attempts =
            store.attempts(scene.app, device, AttemptFilter::Message(message)).await.expect("a delivery");
        attempts.into_iter().map(|one| (one.attempt, one.record.state())).collect::<Vec<_>>()
    };
    assert_eq!(states().await, [(1, DeliveryState::Queued)]);
    let leased = scene.lease(tickets[0].chunk, at(1)).await;
    assert_eq!(states().await, [(1, DeliveryState::Sending)]);
    let children = scene.settled(retry(accept_all(&leased, at(2)), &[1], &leased, at(5))).await;
    assert_eq!(states().await, [(1, DeliveryState::Queued), (2, DeliveryState::Queued)]);
    scene.deliver(&children, at(6)).await;
    assert_eq!(states().await, [(1, DeliveryState::Queued), (2, DeliveryState::Accepted)]);
}

pub async fn an_attempt_names_its_chunk_times_and_reason(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let device = scene.fcm(2).await[1];
    let (message, tickets) = scene.send_wide(Draft::to(Target::Everyone).sent_at(at(4))).await;
    let expected = |at, record| AttemptRecord {
        message,
        provider: tickets[0].lane.provider,
        chunk: tickets[0].chunk,
        attempt: 1,
        created_at: crate::conformance::scene::at(4),
        at,
        record,
    };
    let leased = scene.lease(tickets[0].chunk, at(7)).await;
    let sending = Record::new(DeliveryState::Sending, Reason::None, false);
    assert_eq!(
        store.attempts(scene.app, device, AttemptFilter::Message(message)).await,
        Ok(vec![expected(at(7), sending)])
    );
    let mut given = accept_all(&leased, at(9));
    given.records[1] = record(DeliveryState::Rejected, Reason::SenderMismatch);
    scene.settled(given).await;
    let ended = record(DeliveryState::Rejected, Reason::SenderMismatch);
    assert_eq!(
        store.attempts(scene.app, device, AttemptFilter::Message(message)).await,
        Ok(vec![expected(at(9), ended)])
    );
}

pub async fn the_chunks_of_a_message_show_each_device_once_and_where_it_is(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let other = Scene::in_app(store, 2).await;
    let devices = scene.fcm(6).await;
    let (message, tickets) = scene.send_wide(Draft::to(Target::Everyone)).await;
    let listed = async || {
        let from = ChunkId::from_raw(0);
        let chunks = store.chunk_records(scene.app, message, from, 10).await.expect("chunks");
        let mut listed: Vec<_> = chunks.iter().flat_map(ChunkRecords::last_attempts).collect();
        listed.sort_by_key(|(_, device, _)| *device);
        assert!(listed.iter().map(|(_, device, _)| device).eq(&devices), "each device once");
        listed.into_iter().map(|(_, _, record)| record.state()).collect::<Vec<_>>()
    };
    use DeliveryState::{Accepted, Queued, Rejected, Sending};
    assert_eq!(listed().await, [Queued; 6]);
    let leased = scene.lease(tickets[0].chunk, at(1)).await;
    assert_eq!(listed().await, [Sending, Sending, Sending, Sending, Queued, Queued]);
    let mut given = retry(accept_all(&leased, at(2)), &[1], &leased, at(5));
    given.records[2] = record(Rejected, Reason::Unregistered);
    scene.settled(given).await;
    assert_eq!(listed().await, [Accepted, Queued, Rejected, Accepted, Queued, Queued]);
    let second = store.chunk_records(scene.app, message, tickets[1].chunk, 1).await.expect("chunks");
    assert_eq!((second.len(), second[0].chunk, second[0].attempt), (1, tickets[1].chunk, 1));
    let foreign = store.chunk_records(other.app, message, tickets[0].chunk, 10).await;
    assert!(matches!(foreign, Err(StoreError::NotFound(_))), "{foreign:?}");
}

pub async fn the_sums_of_several_campaigns_are_given_at_once(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let other = Scene::in_app(store, 2).await;
    scene.fcm(3).await;
    let (sent, tickets) = scene.send_wide(Draft::to(Target::Everyone)).await;
    scene.deliver(&tickets, at(1)).await;
    let (waits, _) = scene.send(Draft::to(Target::Everyone).due(at(99))).await;
    let ids = vec![sent.into(), waits.into()];
    let sums = store.sums(scene.app, ids.clone()).await.expect("sums");
    let found: Vec<_> =
        sums.iter().map(|(id, books)| (*id, books[0].audience, books[0].tally.accepted)).collect();
    assert_eq!(found, [(sent.into(), 3, 3)]);
    assert_eq!(store.sums(other.app, ids).await, Ok(Vec::new()), "they are another app's");
}

pub async fn a_device_outside_the_audience_has_no_delivery(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let devices = scene.fcm(3).await;
    let (message, _) = scene.send(Draft::to(Target::Devices(vec![devices[0], devices[2]]))).await;
    assert_eq!(store.attempts(scene.app, devices[1], AttemptFilter::Message(message)).await, Ok(Vec::new()));
    assert_eq!(
        store.attempts(scene.app, devices[2], AttemptFilter::Message(message)).await.expect("found").len(),
        1
    );
}

pub async fn another_apps_delivery_is_not_found(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let other = Scene::in_app(store, 2).await;
    let device = scene.fcm(1).await[0];
    let (message, _) = scene.send(Draft::to(Target::Device(device))).await;
    let foreign = store.attempts(other.app, device, AttemptFilter::Message(message)).await;
    assert!(matches!(foreign, Err(StoreError::NotFound(_))), "{foreign:?}");
}

pub async fn a_history_is_listed_newest_message_first_page_by_page(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let devices = scene.fcm(2).await;
    let mut messages = Vec::new();
    for number in 0..5 {
        let target = if number == 3 { Target::Device(devices[1]) } else { Target::Device(devices[0]) };
        let (message, tickets) = scene.send(Draft::to(target)).await;
        if number != 3 {
            messages.push(message);
        }
        if number == 1 {
            let leased = scene.lease(tickets[0].chunk, at(1)).await;
            scene.settled(retry(accept_all(&leased, at(2)), &[0], &leased, at(3))).await;
        }
    }
    messages.reverse();
    let listed = async |page| {
        let attempts =
            store.attempts(scene.app, devices[0], AttemptFilter::Page(page)).await.expect("a history");
        attempts.into_iter().map(|one| (one.message, one.attempt)).collect::<Vec<_>>()
    };
    let [newest, third, second, oldest] = messages[..] else { panic!("four messages") };
    assert_eq!(listed(first(2)).await, [(newest, 1), (third, 1)]);
    let rest = listed(after(third.raw(), 2)).await;
    assert_eq!(rest, [(second, 1), (second, 2), (oldest, 1)], "a message's attempts stay together");
    assert!(listed(after(oldest.raw(), 2)).await.is_empty());
}

pub async fn every_device_of_a_long_audience_is_found(store: &dyn Store) {
    let scene = Scene::new(store).await;
    let devices = scene.fcm(23).await;
    let (message, tickets) = scene.send_wide(Draft::to(Target::Everyone)).await;
    scene.deliver(&tickets[..3], at(1)).await;
    for (index, device) in devices.iter().enumerate() {
        let state = scene.last_record(message, *device).await.map(Record::state);
        let expected = if index < 12 { DeliveryState::Accepted } else { DeliveryState::Queued };
        assert_eq!(state, Some(expected), "device {index}");
    }
}
