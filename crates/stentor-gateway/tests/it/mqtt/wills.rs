//! Wills of disconnected devices.

use std::time::Duration;

use stentor_gateway::DeviceCredentials;
use stentor_gateway::mqtt::MqttLimits;

use super::client::{Hello, MqttClient, packet};
use super::upstream::waiting;
use crate::room::Room;

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

/// Connects a device with a will delay of thirty seconds and a session expiry of a minute.
async fn patient(room: &Room) -> (DeviceCredentials, MqttClient) {
    let (_, credentials) = room.device().await;
    let mut hello = Hello::new(5, &credentials).kept_for(60);
    hello.will = Some(("upstream/gone", b"{}"));
    let mut bytes = hello.bytes();
    // The properties of the will precede its topic: a delay in place of none.
    let place = bytes.windows(2).position(|part| part == [0, 13]).expect("the will's topic") - 1;
    bytes.splice(place..=place, [5, 24, 0, 0, 0, 30]);
    bytes[1] += 5;
    let mut client = MqttClient::open(room, 5, MqttLimits::default());
    client.say(&bytes).await;
    client.expect(0x20).await;
    (credentials, client)
}

/// Waits until a connection has ended, or `seconds` have passed.
async fn passes(server: &mut tokio::task::JoinHandle<()>, seconds: u64) {
    let _over = tokio::time::timeout(Duration::from_secs(seconds), server).await;
}

#[tokio::test(start_paused = true)]
async fn a_will_waits_for_its_delay_and_is_not_sent_when_the_device_returns_to_its_session() {
    for is_back in [true, false] {
        let room = Room::new().await;
        let (credentials, mut client) = patient(&room).await;
        drop(client.stream);
        passes(&mut client.server, 20).await;
        assert!(waiting(&room).await.is_empty());
        let hello = Hello::new(5, &credentials).kept_for(60);
        let back = match is_back {
            true => Some(MqttClient::hello(&room, &hello).await),
            false => None,
        };
        assert!(back.as_ref().is_none_or(|(_, connack)| connack[..2] == [1, 0]));
        passes(&mut client.server, 60).await;
        assert_eq!(waiting(&room).await.is_empty(), is_back);
    }
}

#[tokio::test(start_paused = true)]
async fn a_will_is_sent_at_once_when_its_session_ends_by_a_new_one() {
    for (what, client_id) in [("a clean start", "kiosk"), ("another client", "other")] {
        for is_cut in [true, false] {
            let room = Room::new().await;
            let (credentials, mut client) = patient(&room).await;
            let mut stream = Some(client.stream);
            if is_cut {
                stream = None;
                passes(&mut client.server, 5).await;
                assert!(waiting(&room).await.is_empty());
            }
            let hello = Hello { client_id: client_id.to_owned(), ..Hello::new(5, &credentials) };
            let (_back, connack) = MqttClient::hello(&room, &hello).await;
            assert_eq!(connack[..2], [0, 0]);
            passes(&mut client.server, 5).await;
            assert_eq!(waiting(&room).await.len(), 1, "{what}, the connection cut: {is_cut}");
            drop(stream);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_takeover_that_goes_on_with_the_session_sends_no_will_that_has_a_delay() {
    let room = Room::new().await;
    let (credentials, mut client) = patient(&room).await;
    let hello = Hello::new(5, &credentials).kept_for(60);
    let (_back, connack) = MqttClient::hello(&room, &hello).await;
    assert_eq!(connack[..2], [1, 0]);
    passes(&mut client.server, 90).await;
    assert!(waiting(&room).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_goodbye_may_shorten_what_a_will_waits_for() {
    // The reason code 4 (disconnect with will), then the session expiry interval.
    for (seconds, after) in [(0, 1), (10, 11)] {
        let room = Room::new().await;
        let (_, mut client) = patient(&room).await;
        client.say(&packet(0xE0, &[4, 5, 17, 0, 0, 0, seconds])).await;
        passes(&mut client.server, after).await;
        assert_eq!(waiting(&room).await.len(), 1, "after {after} s");
    }
    let room = Room::new().await;
    let (_, mut client) = patient(&room).await;
    client.say(&packet(0xE0, &[4])).await;
    passes(&mut client.server, 29).await;
    assert!(waiting(&room).await.is_empty(), "as the login said");
    passes(&mut client.server, 2).await;
    assert_eq!(waiting(&room).await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_will_that_was_sent_or_dropped_is_not_sent_again() {
    let room = Room::new().await;
    let (credentials, mut client) = patient(&room).await;
    drop(client.stream);
    passes(&mut client.server, 31).await;
    assert_eq!(waiting(&room).await.len(), 1);
    assert!(client.server.is_finished());
    let (_back, _) = MqttClient::hello(&room, &Hello::new(5, &credentials)).await;
    tokio::time::sleep(Duration::from_secs(90)).await;
    assert_eq!(waiting(&room).await.len(), 1);
}
