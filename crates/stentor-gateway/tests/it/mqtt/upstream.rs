//! What devices say.

use std::time::Duration;

use stentor_core::limits::UPSTREAM_PER_DEVICE_MAX_COUNT;
use stentor_core::upstream::UpstreamMessage;
use stentor_storage::conformance::scene::{at, first};
use tokio::io::AsyncWriteExt;

use super::client::{Hello, MqttClient, PUBACK, packet, text};
use crate::room::Room;

async fn waiting(room: &Room) -> Vec<UpstreamMessage> {
    room.store.waiting_upstream(room.app, first(1_000), at(11)).await.expect("listed")
}

#[tokio::test]
async fn what_a_device_publishes_is_kept_before_it_is_acknowledged() {
    let room = Room::new().await;
    for version in [4, 5] {
        let (identity, _, mut client) = MqttClient::device(&room, version).await;
        client.publish("upstream/door", 9, &[], br#"{"open":true}"#).await;
        assert_eq!(client.expect(PUBACK).await[..2], [0, 9]);
        let kept = waiting(&room).await.pop().expect("kept");
        assert_eq!((kept.device, kept.body.as_str()), (identity.device, r#"{"open":true,"topic":"door"}"#));
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
    let mut keys: Vec<_> = waiting(&room).await.into_iter().map(|kept| kept.key).collect();
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

async fn dying(room: &Room, version: u8) -> MqttClient {
    let (_, credentials) = room.device().await;
    let will = Some(("upstream/gone", &br#"{"kiosk":1}"#[..]));
    let hello = Hello { will, ..Hello::new(version, &credentials) };
    MqttClient::hello(room, &hello).await.0
}

#[tokio::test]
async fn a_will_is_sent_when_the_connection_dies_without_a_word() {
    for version in [4, 5] {
        let room = Room::new().await;
        let client = dying(&room, version).await;
        drop(client.stream);
        client.server.await.expect("over");
        assert_eq!(waiting(&room).await[0].body, r#"{"kiosk":1,"topic":"gone"}"#);
    }
}

#[tokio::test]
async fn a_will_is_not_sent_when_the_device_says_goodbye() {
    for version in [4, 5] {
        let room = Room::new().await;
        let mut client = dying(&room, version).await;
        client.say(&packet(0xE0, &[])).await;
        client.server.await.expect("over");
        assert!(waiting(&room).await.is_empty());
    }
    let room = Room::new().await;
    let mut client = dying(&room, 5).await;
    client.say(&packet(0xE0, &[4])).await;
    client.server.await.expect("over");
    assert_eq!(waiting(&room).await.len(), 1, "unless it wants that");
}

#[tokio::test]
async fn a_will_that_leads_nowhere_is_refused_at_once() {
    let room = Room::new().await;
    let (_, credentials) = room.device().await;
    for (version, code) in [(4, 5), (5, 0x90)] {
        let hello = Hello { will: Some(("topics/a", b"x")), ..Hello::new(version, &credentials) };
        assert_eq!(MqttClient::hello(&room, &hello).await.1[1], code);
    }
}

#[tokio::test(start_paused = true)]
async fn a_will_with_a_delay_is_not_sent_when_the_device_is_back_in_time() {
    for is_back in [true, false] {
        let room = Room::new().await;
        let (_, credentials) = room.device().await;
        let mut hello = Hello::new(5, &credentials).kept();
        hello.will = Some(("upstream/gone", b"{}"));
        let mut bytes = hello.bytes();
        // Will properties stand before the will's topic: a delay of ten seconds in place of none.
        let place = bytes.windows(2).position(|part| part == [0, 13]).expect("the will's topic") - 1;
        bytes.splice(place..=place, [5, 24, 0, 0, 0, 10]);
        bytes[1] += 5;
        let mut client = MqttClient::open(&room, 5, stentor_gateway::mqtt::MqttLimits::default());
        client.say(&bytes).await;
        client.expect(0x20).await;
        client.stream.shutdown().await.expect("shut down");
        let back = match is_back {
            true => Some(MqttClient::hello(&room, &Hello::new(5, &credentials)).await),
            false => None,
        };
        tokio::time::advance(Duration::from_secs(9)).await;
        assert!(waiting(&room).await.is_empty());
        client.server.await.expect("over");
        assert_eq!(waiting(&room).await.is_empty(), is_back);
        drop(back);
    }
}
