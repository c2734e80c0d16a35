//! Upstream messages of devices.

use stentor_core::limits::UPSTREAM_PER_DEVICE_MAX_COUNT;
use stentor_core::ports::store::UpstreamFilter;
use stentor_core::upstream::UpstreamMessage;
use stentor_storage::conformance::scene::{at, first};

use super::client::{MqttClient, PUBACK, text};
use crate::room::Room;

pub(super) async fn waiting(room: &Room) -> Vec<UpstreamMessage> {
    room.store.upstream(room.app, UpstreamFilter::Waiting, first(1_000), at(11)).await.expect("listed")
}

#[tokio::test]
async fn what_a_device_publishes_is_kept_before_it_is_acknowledged() {
    let room = Room::new().await;
    for version in [4, 5] {
        let (identity, _, mut client) = MqttClient::device(&room, version).await;
        client.publish("upstream/door", 9, &[], br#"{"open":true}"#).await;
        assert_eq!(client.expect(PUBACK).await[..2], [0, 9]);
        let stored = waiting(&room).await.pop().expect("kept");
        assert_eq!(
            (stored.device, stored.body.as_str()),
            (identity.device, r#"{"open":true,"topic":"door"}"#)
        );
    }
}

#[tokio::test]
async fn a_message_with_a_name_of_its_own_is_kept_once() {
    let room = Room::new().await;
    let (_, _, mut client) = MqttClient::device(&room, 5).await;
    let named = [vec![38], text("message_id"), text("m-1")].concat();
    let correlated = [9, 0, 2, 0xFF, 0xFE];
    for (packet_id, properties) in [(1, &named[..]), (2, &named), (3, &correlated), (4, &correlated)] {
        client.publish("upstream", packet_id, properties, b"{}").await;
        client.expect(PUBACK).await;
    }
    let mut keys: Vec<_> = waiting(&room).await.into_iter().map(|message| message.key).collect();
    keys.sort_unstable();
    assert_eq!(keys, ["__4", "m-1"]);
}

#[tokio::test]
async fn a_message_lives_as_long_as_the_device_says() {
    let room = Room::new().await;
    let (_, _, mut client) = MqttClient::device(&room, 5).await;
    client.publish("upstream", 1, &[2, 0, 0, 0, 30], b"{}").await;
    client.expect(PUBACK).await;
    assert_eq!(waiting(&room).await[0].expires_at, at(40));
}

#[tokio::test]
async fn a_message_that_is_not_kept_is_refused_by_its_acknowledgement_or_with_the_connection() {
    let room = Room::new().await;
    let large = vec![b'x'; 5_000];
    for (topic, payload, code) in [("messages/device", &b"{}"[..], 0x90), ("upstream", &large, 0x99)] {
        let (_, _, mut client) = MqttClient::device(&room, 5).await;
        client.publish(topic, 1, &[], payload).await;
        assert_eq!(client.expect(PUBACK).await, [0, 1, code]);
        client.ping().await;
        let (_, _, mut client) = MqttClient::device(&room, 4).await;
        client.publish(topic, 1, &[], payload).await;
        assert_eq!(client.packet().await, None);
    }
    assert!(waiting(&room).await.is_empty());
}

#[tokio::test]
async fn a_device_whose_messages_nobody_takes_reaches_its_quota() {
    let room = Room::new().await;
    let (_, _, mut client) = MqttClient::device(&room, 5).await;
    for packet_id in 1..=UPSTREAM_PER_DEVICE_MAX_COUNT {
        client.publish("upstream", u16::try_from(packet_id).expect("fits"), &[], b"{}").await;
        assert_eq!(client.expect(PUBACK).await.len(), 2);
    }
    client.publish("upstream", 500, &[], b"{}").await;
    assert_eq!(client.expect(PUBACK).await[2], 0x97);
}
