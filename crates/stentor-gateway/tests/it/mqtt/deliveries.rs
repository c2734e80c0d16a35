//! Deliveries to devices.

use stentor_core::name::TopicName;
use stentor_core::target::Target;
use stentor_storage::conformance::PlainChanges;
use stentor_storage::conformance::scene::Draft;

use super::client::{Hello, MqttClient, UNSUBACK, packet, text};
use crate::room::{Room, to};

fn topic(name: &str) -> Target {
    Target::Topic(TopicName::new(name).expect("a name"))
}

#[tokio::test]
async fn a_message_is_given_and_its_acknowledgement_is_the_receipt() {
    let room = Room::new().await;
    for version in [4, 5] {
        let (identity, _, mut client) = MqttClient::device(&room, version).await;
        let message = room.send(to(&[identity.device]).collapsing("score")).await;
        assert_eq!(client.subscribe("messages/#", 1).await, 1);
        let given = client.given().await;
        assert_eq!((given.topic.as_str(), given.is_retained), ("messages/device", false));
        assert_eq!(given.field("id"), message.to_string());
        assert_eq!(given.field("notification")["title"], "Hello");
        assert_eq!((given.field("collapse_key"), given.field("priority")), ("score".into(), "high".into()));
        assert!(given.field("sent_at").is_i64());
        room.gateway.flush().await;
        assert_eq!(room.delivered(message).await, 0, "nothing has confirmed it");
        client.acknowledge(&given).await;
        client.ping().await;
        room.gateway.flush().await;
        assert_eq!(room.delivered(message).await, 1);
    }
}

#[tokio::test]
async fn a_message_of_qos_0_counts_as_received_when_it_is_written() {
    let room = Room::new().await;
    for version in [4, 5] {
        let (identity, _, mut client) = MqttClient::device(&room, version).await;
        assert_eq!(client.subscribe("messages/device", 0).await, 0);
        let message = room.send(to(&[identity.device])).await;
        assert_eq!(client.given().await.packet_id, None);
        client.ping().await;
        room.gateway.flush().await;
        assert_eq!(room.delivered(message).await, 1);
    }
}

#[tokio::test]
async fn nothing_is_given_before_a_subscription_and_everything_after() {
    let room = Room::new().await;
    let (identity, _, mut client) = MqttClient::device(&room, 5).await;
    let mut sent = Vec::new();
    for _ in 0..3 {
        sent.push(room.send(to(&[identity.device])).await.to_string());
    }
    client.ping().await;
    client.subscribe("messages/#", 2).await;
    for id in &sent {
        let given = client.given().await;
        assert_eq!(given.field("id"), id.as_str());
        client.acknowledge(&given).await;
    }
    client.unsubscribe("messages/#").await;
    let later = room.send(to(&[identity.device])).await;
    client.ping().await;
    client.subscribe("messages/#", 1).await;
    assert_eq!(client.given().await.field("id"), later.to_string());
}

#[tokio::test]
async fn a_subscription_to_a_topic_is_the_devices_in_the_store() {
    let room = Room::new().await;
    for (version, nothing) in [(4, vec![0, 8]), (5, vec![0, 8, 0, 0x11])] {
        let (identity, _, mut client) = MqttClient::device(&room, version).await;
        assert_eq!(client.subscribe("topics/news", 1).await, 1);
        let topics = room.store.topics_of(room.app, identity.device).await.expect("listed");
        assert_eq!(topics, [TopicName::new("news").expect("a name")]);
        let message = room.send(Draft::to(topic("news")).ttl(1_000)).await;
        let given = client.given().await;
        assert_eq!((given.topic.as_str(), given.field("id")), ("topics/news", message.to_string().into()));
        client.acknowledge(&given).await;
        client.unsubscribe("topics/news").await;
        assert!(room.store.topics_of(room.app, identity.device).await.expect("listed").is_empty());
        assert_eq!(client.unsubscribe("topics/news").await, nothing);
    }
}

#[tokio::test]
async fn filters_that_lead_nowhere_are_refused_one_by_one() {
    let room = Room::new().await;
    let refused = [("upstream/a", 0x87), ("a/b", 0x87), ("topics/a/b", 0x8F), ("topics/+/b", 0x8F)];
    for (filter, code) in refused {
        let (_, _, mut client) = MqttClient::device(&room, 5).await;
        assert_eq!(client.subscribe(filter, 1).await, code, "{filter}");
        let (_, _, mut client) = MqttClient::device(&room, 4).await;
        assert_eq!(client.subscribe(filter, 1).await, 0x80, "{filter}");
    }
    let (_, _, mut client) = MqttClient::device(&room, 5).await;
    assert_eq!(client.subscribe("$share/group/topics/a", 1).await, 0x9E);
}

#[tokio::test]
async fn mqtt_5_tells_the_life_that_is_left_and_the_id() {
    let room = Room::new().await;
    let (identity, _, mut client) = MqttClient::device(&room, 5).await;
    client.subscribe("messages/#", 1).await;
    let message = room.send(to(&[identity.device]).ttl(1_000)).await;
    let properties = client.given().await.properties;
    // The room's clock is ten seconds after the due time of the message: 990 are left.
    let expiry = [2, 0, 0, 0x03, 0xDE];
    assert!(properties.windows(5).any(|part| part == expiry), "{properties:?}");
    for word in ["application/json", "message_id", message.to_string().as_str()] {
        let is_there = properties.windows(word.len()).any(|part| part == word.as_bytes());
        assert!(is_there, "{word} in {properties:?}");
    }
}

#[tokio::test]
async fn an_app_may_send_bytes_of_its_own() {
    let room = Room::new().await;
    let (identity, _, mut client) = MqttClient::device(&room, 5).await;
    client.subscribe("messages/#", 1).await;
    room.send(to(&[identity.device]).for_gateway(r#"{"raw":"AAH/"}"#)).await;
    assert_eq!(client.given().await.payload, [0, 1, 0xFF]);
}

#[tokio::test]
async fn no_more_is_given_than_the_device_takes_at_once() {
    let room = Room::new().await;
    let (identity, credentials) = room.device().await;
    let receive_maximum = vec![33, 0, 2];
    let hello = Hello { properties: receive_maximum, ..Hello::new(5, &credentials) };
    let (mut client, _) = MqttClient::hello(&room, &hello).await;
    client.subscribe("messages/#", 1).await;
    for _ in 0..5 {
        room.send(to(&[identity.device])).await;
    }
    let mut unacknowledged = vec![client.given().await, client.given().await];
    // The reply to the ping would follow a third message.
    client.ping().await;
    for _ in 0..3 {
        client.acknowledge(&unacknowledged.remove(0)).await;
        unacknowledged.push(client.given().await);
        client.ping().await;
    }
}

#[tokio::test]
async fn what_a_device_is_too_small_for_is_given_up() {
    let room = Room::new().await;
    let (identity, credentials) = room.device().await;
    let maximum_packet_size = vec![39, 0, 0, 0, 64];
    let hello = Hello { properties: maximum_packet_size, ..Hello::new(5, &credentials) };
    let (mut client, _) = MqttClient::hello(&room, &hello).await;
    client.subscribe("messages/#", 1).await;
    let message = room.send(to(&[identity.device])).await;
    client.ping().await;
    let (mut client, _) = MqttClient::hello(&room, &Hello::new(5, &credentials)).await;
    room.gateway.flush().await;
    client.subscribe("messages/#", 1).await;
    let after = room.send(to(&[identity.device])).await;
    assert_eq!(client.given().await.field("id"), after.to_string());
    assert_eq!(room.delivered(message).await, 0);
}

#[tokio::test]
async fn a_device_for_which_too_much_waited_is_told() {
    let room = Room::new().await;
    let (identity, _, mut client) = MqttClient::device(&room, 4).await;
    for _ in 0..=stentor_gateway::limits::PENDING_MAX_COUNT {
        room.send(to(&[identity.device])).await;
    }
    client.subscribe("messages/#", 1).await;
    let given = client.given().await;
    let deleted = stentor_gateway::limits::PENDING_MAX_COUNT + 1;
    assert_eq!((given.topic.as_str(), given.field("deleted")), ("messages/deleted", deleted.into()));
}

#[tokio::test]
async fn a_device_has_only_so_many_topics() {
    let room = Room::new().await;
    let (identity, _, mut client) = MqttClient::device(&room, 5).await;
    for number in 0..stentor_core::limits::TOPICS_PER_DEVICE_MAX_COUNT {
        let name = TopicName::new(format!("t{number}")).expect("a name");
        room.store.subscribe(room.app, &name, &[identity.device]).await.expect("subscribed");
    }
    assert_eq!(client.subscribe("topics/one-more", 1).await, 0x97);
    assert_eq!(client.subscribe("topics/t0", 1).await, 1, "it has that one");
}

#[tokio::test]
async fn several_filters_are_taken_back_in_one_packet_each_with_its_answer() {
    let room = Room::new().await;
    for (version, answers) in [(4, vec![]), (5, vec![0, 0, 0x11, 0])] {
        let (identity, _, mut client) = MqttClient::device(&room, version).await;
        client.subscribe("topics/a", 1).await;
        client.subscribe("messages/#", 1).await;
        let no_properties = if version == 5 { vec![0] } else { vec![] };
        let filters = ["topics/a", "topics/b", "messages/#"].map(text).concat();
        client.say(&packet(0xA2, &[vec![0, 9], no_properties, filters].concat())).await;
        assert_eq!(client.expect(UNSUBACK).await, [vec![0, 9], answers].concat());
        assert!(room.store.topics_of(room.app, identity.device).await.expect("listed").is_empty());
    }
}

#[tokio::test]
async fn an_acknowledgement_with_any_reason_ends_a_delivery() {
    let room = Room::new().await;
    let (identity, credentials, mut client) = MqttClient::device(&room, 5).await;
    client.subscribe("messages/#", 1).await;
    let refused = room.send(to(&[identity.device])).await;
    let id = client.given().await.packet_id.expect("QoS 1").to_be_bytes();
    // 0x80 means that the device could not use it.
    client.say(&packet(0x40, &[id[0], id[1], 0x80])).await;
    client.ping().await;
    room.gateway.flush().await;
    assert_eq!(room.delivered(refused).await, 1);
    let (mut client, _) = MqttClient::hello(&room, &Hello::new(5, &credentials)).await;
    client.subscribe("messages/#", 1).await;
    let after = room.send(to(&[identity.device])).await;
    assert_eq!(client.given().await.field("id"), after.to_string());
}

#[tokio::test]
async fn a_delivery_that_was_begun_is_finished_when_its_filter_is_gone() {
    let room = Room::new().await;
    for version in [4, 5] {
        let (identity, _, mut client) = MqttClient::device(&room, version).await;
        client.subscribe("messages/#", 1).await;
        let begun = room.send(to(&[identity.device])).await;
        let given = client.given().await;
        client.unsubscribe("messages/#").await;
        room.send(to(&[identity.device])).await;
        client.ping().await;
        client.acknowledge(&given).await;
        client.ping().await;
        room.gateway.flush().await;
        assert_eq!(room.delivered(begun).await, 1);
    }
}
