//! The last states of topics, and the subscriptions that get them.

use stentor_core::name::TopicName;
use stentor_core::target::Target;
use stentor_gateway::DeviceIdentity;
use stentor_storage::conformance::PlainChanges;
use stentor_storage::conformance::scene::Draft;

use super::client::{Hello, MqttClient, SUBACK, packet, text};
use crate::room::Room;

const RETAIN: &str = r#"{"retain":true}"#;
/// The retain handling of subscriptions of MQTT 5.
const WHEN_NEW: u8 = 0x10;
const NEVER: u8 = 0x20;
const AS_PUBLISHED: u8 = 0x08;

fn name(name: &str) -> TopicName {
    TopicName::new(name).expect("a name")
}

fn to_topic(topic: &str) -> Draft {
    Draft::to(Target::Topic(name(topic))).ttl(1_000)
}

/// Creates a topic with a subscribed device, and returns the id of its last state.
async fn topic_with_state(room: &Room, topic: &str) -> String {
    let (identity, _) = room.device().await;
    room.store.subscribe(room.app, &name(topic), &[identity.device]).await.expect("subscribed");
    room.send(to_topic(topic).for_gateway(RETAIN)).await.to_string()
}

async fn subscribe_elsewhere(room: &Room, identity: DeviceIdentity, topic: &str) {
    room.store.subscribe(room.app, &name(topic), &[identity.device]).await.expect("subscribed");
}

/// Checks that the next delivery is this last state.
async fn gets(client: &mut MqttClient, topic: &str, state: &str) {
    let given = client.given().await;
    assert_eq!((given.is_retained, given.packet_id, given.topic.as_str()), (true, None, topic));
    assert_eq!(given.field("id"), state);
}

#[tokio::test]
async fn a_subscription_gets_the_last_state_of_its_topic_whenever_it_is_made() {
    let room = Room::new().await;
    topic_with_state(&room, "door").await;
    let newest = room.send(to_topic("door").for_gateway(RETAIN)).await.to_string();
    room.send(to_topic("door")).await;
    topic_with_state(&room, "window").await;
    room.send(to_topic("door").ttl(5).for_gateway(RETAIN)).await;
    for version in [4, 5] {
        let (_, credentials, mut client) = MqttClient::device(&room, version).await;
        for _ in 0..2 {
            client.subscribe("topics/door", 1).await;
            gets(&mut client, "topics/door", &newest).await;
            client.ping().await;
        }
        // By now the device is subscribed, but its new session is not.
        let (mut client, _) = MqttClient::hello(&room, &Hello::new(version, &credentials)).await;
        client.subscribe("topics/door", 0).await;
        gets(&mut client, "topics/door", &newest).await;
        client.ping().await;
    }
}

#[tokio::test]
async fn a_device_that_was_subscribed_in_another_way_gets_the_last_state_too() {
    let room = Room::new().await;
    let door = topic_with_state(&room, "door").await;
    for version in [4, 5] {
        for filter in ["topics/door", "topics/+", "topics/#", "#"] {
            let (identity, _, mut client) = MqttClient::device(&room, version).await;
            subscribe_elsewhere(&room, identity, "door").await;
            client.subscribe(filter, 1).await;
            gets(&mut client, "topics/door", &door).await;
            client.ping().await;
        }
    }
}

#[tokio::test]
async fn a_filter_of_all_topics_gets_the_last_states_of_the_devices_own_and_of_no_others() {
    let room = Room::new().await;
    let (door, window) = (topic_with_state(&room, "door").await, topic_with_state(&room, "window").await);
    topic_with_state(&room, "foreign").await;
    let (identity, _, mut client) = MqttClient::device(&room, 5).await;
    for topic in ["door", "window", "without-one"] {
        subscribe_elsewhere(&room, identity, topic).await;
    }
    for filters in [&["#"][..], &["topics/#", "topics/door", "#"]] {
        let mut body = vec![0, 7, 0];
        filters.iter().for_each(|filter| body.extend([text(filter), vec![1]].concat()));
        client.say(&packet(0x82, &body)).await;
        client.expect(SUBACK).await;
        gets(&mut client, "topics/door", &door).await;
        gets(&mut client, "topics/window", &window).await;
        client.ping().await;
    }
    let (_, _, mut client) = MqttClient::device(&room, 5).await;
    client.subscribe("messages/#", 1).await;
    client.ping().await;
}

#[tokio::test]
async fn retain_handling_says_when_the_last_state_comes() {
    let room = Room::new().await;
    let door = topic_with_state(&room, "door").await;
    for filter in ["topics/door", "topics/#"] {
        let (identity, credentials, mut client) = MqttClient::device(&room, 5).await;
        subscribe_elsewhere(&room, identity, "door").await;
        for (options, comes) in
            [(NEVER, false), (WHEN_NEW, false), (0, true), (WHEN_NEW, false), (NEVER, false)]
        {
            assert_eq!(client.subscribe(filter, options | 1).await, 1);
            if comes {
                gets(&mut client, "topics/door", &door).await;
            }
            client.ping().await;
        }
        client.unsubscribe(filter).await;
        subscribe_elsewhere(&room, identity, "door").await;
        let (mut client, _) = MqttClient::hello(&room, &Hello::new(5, &credentials)).await;
        client.subscribe(filter, WHEN_NEW).await;
        gets(&mut client, "topics/door", &door).await;
        client.ping().await;
    }
}

#[tokio::test]
async fn a_session_that_goes_on_has_its_subscriptions_already() {
    let room = Room::new().await;
    let door = topic_with_state(&room, "door").await;
    let (_, credentials) = room.device().await;
    let hello = Hello::new(5, &credentials).kept();
    let (mut client, _) = MqttClient::hello(&room, &hello).await;
    client.subscribe("topics/door", WHEN_NEW | 1).await;
    gets(&mut client, "topics/door", &door).await;
    let (mut client, connack) = MqttClient::hello(&room, &hello).await;
    assert_eq!(connack[..2], [1, 0]);
    client.subscribe("topics/door", WHEN_NEW | 1).await;
    client.ping().await;
    client.unsubscribe("topics/door").await;
    client.subscribe("topics/door", WHEN_NEW | 1).await;
    gets(&mut client, "topics/door", &door).await;
}

#[tokio::test]
async fn the_retain_flag_of_what_comes_later_is_as_published_where_that_is_wanted() {
    let room = Room::new().await;
    for (version, options, flag) in [(4, 1, false), (5, 1, false), (5, AS_PUBLISHED | 1, true)] {
        let (_, _, mut client) = MqttClient::device(&room, version).await;
        let gate = format!("gate-{version}-{options}");
        client.subscribe(&format!("topics/{gate}"), options).await;
        for (fields, published) in [(RETAIN, true), ("{}", false)] {
            let message = room.send(to_topic(&gate).for_gateway(fields)).await;
            let given = client.given().await;
            assert_eq!(given.field("id"), message.to_string());
            assert_eq!(given.is_retained, flag && published, "version {version}, options {options}");
            client.acknowledge(&given).await;
        }
    }
}
