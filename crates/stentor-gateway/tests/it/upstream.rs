//! Upstream messages are with one consumer at a time, until one has taken them over.

use std::sync::Arc;
use stentor_storage::conformance::scene::at;

use serde_json::Map;
use stentor_core::id::UpstreamId;
use stentor_core::ports::store::{Page, UpstreamFilter};
use stentor_core::upstream::UpstreamMessage;
use stentor_gateway::{DeviceIdentity, UpstreamBroker, UpstreamDraft};

use crate::room::Room;

pub(crate) async fn keep(room: &Room, identity: DeviceIdentity, key: &str) {
    let draft =
        UpstreamDraft { key: key.to_owned(), data: Map::new(), ttl: std::time::Duration::from_secs(1_000) };
    assert!(room.gateway.keep_upstream(identity, draft).await.expect("kept"));
}

pub(crate) fn broker(room: &Room) -> Arc<UpstreamBroker> {
    let broker = UpstreamBroker::new(room.store.clone(), room.clock.clone());
    tokio::spawn(Arc::clone(&broker).follow(room.gateway.upstream_arrivals()));
    broker
}

fn keys(messages: &[UpstreamMessage]) -> Vec<&str> {
    messages.iter().map(|message| message.key.as_str()).collect()
}

fn ids(messages: &[UpstreamMessage]) -> Vec<UpstreamId> {
    messages.iter().map(|message| message.id).collect()
}

#[tokio::test]
async fn a_message_is_with_one_consumer_at_a_time() {
    let room = Room::new().await;
    let (phone, _) = room.device().await;
    let broker = broker(&room);
    let (mut one, mut other) = (broker.consume(room.app, 1), broker.consume(room.app, 5));
    for key in ["a", "b"] {
        keep(&room, phone, key).await;
    }
    assert_eq!(keys(&one.try_next().await.expect("read")), ["a"]);
    assert_eq!(keys(&other.try_next().await.expect("read")), ["b"]);
    assert!(one.try_next().await.expect("read").is_empty(), "its window is full");
    drop(one);
    let again = other.next().await.expect("read");
    assert_eq!((keys(&again), again[0].attempts), (vec!["a"], 1));
}

#[tokio::test]
async fn what_was_taken_over_makes_room_and_is_not_handed_out_again() {
    let room = Room::new().await;
    let (phone, _) = room.device().await;
    let broker = broker(&room);
    let mut one = broker.consume(room.app, 2);
    for key in ["a", "b", "c"] {
        keep(&room, phone, key).await;
    }
    let first = one.next().await.expect("read");
    assert_eq!(keys(&first), ["a", "b"]);
    assert_eq!(one.settle(&ids(&first)[..1]).await, Ok(1));
    assert_eq!(one.settle(&ids(&first)[..1]).await, Ok(0), "once");
    assert_eq!(keys(&one.next().await.expect("read")), ["c"]);
    // Settled from elsewhere, as by the operation.
    assert_eq!(broker.settle(room.app, &ids(&first)[1..]).await.map(|settled| settled.changed), Ok(1));
    keep(&room, phone, "d").await;
    assert_eq!(keys(&one.next().await.expect("read")), ["d"]);
    drop(one);
    assert_eq!(keys(&broker.consume(room.app, 9).next().await.expect("read")), ["c", "d"]);
}

#[tokio::test]
async fn an_arrival_wakes_who_waits() {
    let room = Room::new().await;
    let (phone, _) = room.device().await;
    let mut one = broker(&room).consume(room.app, 9);
    let waits = tokio::spawn(async move { one.next().await });
    keep(&room, phone, "a").await;
    assert_eq!(keys(&waits.await.expect("no panic").expect("read")), ["a"]);
}

#[tokio::test]
async fn what_is_buried_waits_no_more_and_has_its_reason() {
    let room = Room::new().await;
    let (phone, _) = room.device().await;
    let mut one = broker(&room).consume(room.app, 9);
    keep(&room, phone, "a").await;
    let found = one.next().await.expect("read");
    one.bury(found[0].id, "gone").await.expect("buried");
    assert_eq!(one.unsettled(), 0);
    let dead = room
        .store
        .upstream(room.app, UpstreamFilter::Dead, Page { after: 0, limit: 9 }, at(1))
        .await
        .expect("read");
    assert_eq!((dead[0].key.as_str(), dead[0].dead_reason.as_deref()), ("a", Some("gone")));
}

#[tokio::test]
async fn what_is_refused_of_one_device_holds_up_no_other_and_comes_again() {
    let room = Room::new().await;
    let ((noisy, _), (calm, _)) = (room.device().await, room.device().await);
    let broker = broker(&room);
    let mut one = broker.consume_by_device(room.app, 8);
    for key in ["n1", "n2", "n3"] {
        keep(&room, noisy, key).await;
    }
    let first = one.next().await.expect("read");
    assert_eq!(keys(&first), ["n1"], "of one device a part of the window");
    keep(&room, calm, "c1").await;
    assert_eq!(keys(&one.next().await.expect("read")), ["c1"]);
    one.rest(first[0].id);
    assert_eq!(keys(&one.next().await.expect("read")), ["n2"], "what rests takes no place");
    assert!(
        broker.consume(room.app, 1).try_next().await.expect("read").iter().all(|other| other.key == "n3")
    );
    let again = one.again(first[0].id).await.expect("read");
    assert_eq!(again.map(|message| message.key), Some("n1".to_owned()));
    one.settle(&[first[0].id]).await.expect("settled");
    assert_eq!(one.again(first[0].id).await, Ok(None), "it waits no more");
}

#[tokio::test]
async fn behind_many_that_rest_what_comes_is_found_at_once() {
    let room = Room::new().await;
    let mut one = broker(&room).consume_by_device(room.app, 100);
    // More than one scan reads.
    for _ in 0..20 {
        let (noisy, _) = room.device().await;
        for number in 0..100 {
            keep(&room, noisy, &number.to_string()).await;
        }
    }
    let mut resting = 0;
    while resting < 2_000 {
        for message in one.try_next().await.expect("read") {
            one.rest(message.id);
            resting += 1;
        }
    }
    let (calm, _) = room.device().await;
    keep(&room, calm, "c1").await;
    let found = tokio::time::timeout(std::time::Duration::from_millis(900), one.next()).await;
    assert_eq!(keys(&found.expect("in time").expect("read")), ["c1"]);
}
