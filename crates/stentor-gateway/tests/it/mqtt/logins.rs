//! Logins, and the ends of connections.

use std::time::Duration;

use stentor_gateway::mqtt::MqttLimits;

use super::client::{CONNACK, Hello, MqttClient, packet, text};
use crate::room::{Room, to};

const VERSIONS: [(u8, u8, u8, u8); 2] = [(4, 4, 5, 2), (5, 0x86, 0x87, 0x85)];

#[tokio::test]
async fn a_wrong_token_or_secret_is_refused_and_so_is_a_login_without() {
    let room = Room::new().await;
    let (_, credentials) = room.device().await;
    for (version, wrong, missing, _) in VERSIONS {
        let right = Hello::new(version, &credentials);
        let refused = [
            (Hello { secret: Some("wrong".to_owned()), ..right.clone() }, wrong),
            (Hello { token: Some("wrong".to_owned()), ..right.clone() }, wrong),
            (Hello { token: None, secret: None, ..right.clone() }, missing),
            (Hello { secret: None, ..right.clone() }, missing),
        ];
        for (hello, code) in refused {
            let (mut client, connack) = MqttClient::hello(&room, &hello).await;
            assert_eq!(connack[..2], [0, code], "version {version}");
            assert_eq!(client.packet().await, None);
        }
    }
    assert_eq!(room.gateway.stats().refused_logins, 4);
}

#[tokio::test]
async fn a_client_without_a_name_gets_one_where_its_version_can_say_it() {
    let room = Room::new().await;
    let (_, credentials) = room.device().await;
    let nameless = |version| Hello { client_id: String::new(), ..Hello::new(version, &credentials) };
    let (_, connack) = MqttClient::hello(&room, &nameless(5)).await;
    let assigned = connack.windows(8).any(|part| part == b"stentor-");
    assert!(connack[1] == 0 && assigned, "{connack:?}");
    assert_eq!(MqttClient::hello(&room, &nameless(4)).await.1, [0, 0]);
    let (_, connack) = MqttClient::hello(&room, &nameless(4).kept()).await;
    assert_eq!(connack, [0, 2], "a session without a name could not be found again");
}

#[tokio::test]
async fn a_session_is_present_when_the_client_was_here_and_wants_it_back() {
    let room = Room::new().await;
    for version in [4, 5] {
        let (identity, credentials) = room.device().await;
        let hello = Hello::new(version, &credentials).kept();
        assert_eq!(MqttClient::hello(&room, &hello).await.1[..2], [0, 0]);
        let message = room.send(to(&[identity.device])).await;
        let (mut client, connack) = MqttClient::hello(&room, &hello).await;
        assert_eq!(connack[..2], [1, 0], "version {version}");
        assert_eq!(client.given().await.field("id"), message.to_string(), "without another SUBSCRIBE");
        let stranger = Hello { client_id: "other".to_owned(), ..hello.clone() };
        assert_eq!(MqttClient::hello(&room, &stranger).await.1[..2], [0, 0]);
        assert_eq!(MqttClient::hello(&room, &stranger).await.1[..2], [1, 0]);
        let clean = Hello { client_id: "other".to_owned(), ..Hello::new(version, &credentials) };
        assert_eq!(MqttClient::hello(&room, &clean).await.1[..2], [0, 0], "a clean start");
        assert_eq!(MqttClient::hello(&room, &stranger).await.1[..2], [0, 0], "it has forgotten the session");
    }
}

/// Connects, disconnects with these properties of MQTT 5, and waits until the end is processed. Returns true if a session was present.
async fn visit(room: &Room, hello: &Hello, properties: &[u8]) -> bool {
    let (mut client, connack) = MqttClient::hello(room, hello).await;
    assert_eq!(connack[1], 0);
    let reason_and_length = [0, u8::try_from(properties.len()).expect("few")];
    let leave = if hello.version == 5 { [&reason_and_length, properties].concat() } else { Vec::new() };
    client.say(&packet(0xE0, &leave)).await;
    client.server.await.expect("over");
    connack[0] == 1
}

#[tokio::test]
async fn a_session_expires_when_its_client_has_been_away_for_as_long_as_it_asked() {
    let room = Room::new().await;
    let (_, credentials) = room.device().await;
    let hour = Hello::new(5, &credentials).kept();
    assert!(!visit(&room, &hour, &[]).await);
    room.set_seconds(3_000);
    assert!(visit(&room, &hour, &[]).await, "within the hour, which begins anew");
    room.set_seconds(6_500);
    assert!(visit(&room, &hour, &[]).await);
    room.set_seconds(10_100);
    assert!(!visit(&room, &hour, &[]).await, "an hour after");
    let endless = Hello::new(5, &credentials).kept_for(u32::MAX);
    assert!(visit(&room, &endless, &[]).await, "the same session, which expires no more");
    room.set_seconds(1_000_000);
    assert!(visit(&room, &endless, &[]).await);
    let old = Hello::new(4, &credentials).kept();
    assert!(visit(&room, &old, &[]).await, "3.1.1 knows no time");
    room.set_seconds(2_000_000);
    assert!(visit(&room, &old, &[]).await);
}

#[tokio::test]
async fn a_client_may_say_at_its_end_how_long_its_session_goes_on() {
    let room = Room::new().await;
    let (_, credentials) = room.device().await;
    let hour = Hello::new(5, &credentials).kept();
    assert!(!visit(&room, &hour, &[17, 0, 0, 0, 60]).await);
    room.set_seconds(69);
    assert!(visit(&room, &hour, &[17, 0, 0, 0, 60]).await);
    room.set_seconds(129);
    assert!(!visit(&room, &hour, &[17, 0, 0, 0, 0]).await, "a minute after");
    assert!(!visit(&room, &hour, &[]).await, "it has ended the session at once");
}

#[tokio::test]
async fn a_session_does_not_expire_while_it_has_its_connection() {
    let room = Room::new().await;
    let (_, credentials) = room.device().await;
    let minute = Hello::new(5, &credentials).kept_for(60);
    let (mut client, _) = MqttClient::hello(&room, &minute).await;
    room.set_seconds(1_000);
    client.ping().await;
    let (mut second, connack) = MqttClient::hello(&room, &minute).await;
    assert_eq!(connack[..2], [1, 0]);
    client.ends_with(0x8E).await;
    client.server.await.expect("over");
    room.set_seconds(2_000);
    second.ping().await;
    assert!(visit(&room, &minute, &[]).await, "the end of the first is not that of the second");
}

#[tokio::test]
async fn a_second_connection_takes_the_session_over_and_the_first_is_told() {
    let room = Room::new().await;
    for version in [4, 5] {
        let (_, credentials, mut first) = MqttClient::device(&room, version).await;
        let (mut second, _) = MqttClient::hello(&room, &Hello::new(version, &credentials)).await;
        first.ends_with(0x8E).await;
        second.ping().await;
    }
}

#[tokio::test]
async fn a_device_that_is_removed_and_a_server_that_stops_say_so() {
    for version in [4, 5] {
        let room = Room::new().await;
        let (identity, _, mut client) = MqttClient::device(&room, version).await;
        client.ping().await;
        room.gateway.withdraw(identity).await.expect("removed");
        client.ends_with(0x98).await;
        let (_, _, mut client) = MqttClient::device(&room, version).await;
        room.gateway.stop();
        client.ends_with(0x8B).await;
        client.server.await.expect("over");
        let (_, _, mut late) = MqttClient::device(&room, version).await;
        late.ends_with(0x8B).await;
    }
}

#[tokio::test]
async fn another_version_is_told_which_ones_are_spoken() {
    let room = Room::new().await;
    let (_, credentials) = room.device().await;
    for version in [3, 6] {
        let hello = Hello { version, ..Hello::new(4, &credentials) };
        let (mut client, connack) = MqttClient::hello(&room, &hello).await;
        assert_eq!(connack, [0, 1]);
        assert_eq!(client.packet().await, None);
    }
}

#[tokio::test(start_paused = true)]
async fn whoever_does_not_log_in_is_cut_off() {
    let room = Room::new().await;
    let login_timeout = Duration::from_secs(3);
    let limits = MqttLimits { login_timeout, ..MqttLimits::default() };
    let began = tokio::time::Instant::now();
    let mut silent = MqttClient::open(&room, 4, limits);
    let mut slow = MqttClient::open(&room, 4, limits);
    slow.say(&[0x10, 0x20, 0, 4]).await;
    assert_eq!((silent.packet().await, slow.packet().await), (None, None));
    assert_eq!(began.elapsed(), login_timeout);
}

#[tokio::test(start_paused = true)]
async fn a_device_that_is_silent_for_one_and_a_half_keep_alives_is_cut_off() {
    let room = Room::new().await;
    // With the last keep alive, the permitted silence exceeds the longest time between two checks.
    for (version, keep_alive_seconds) in [(4, 10), (5, 10), (5, 100)] {
        let (_, credentials) = room.device().await;
        let hello = Hello { keep_alive_seconds, ..Hello::new(version, &credentials) };
        // A device that has reconnected is distinguished from its former connection.
        let (mut left, _) = MqttClient::hello(&room, &hello).await;
        tokio::time::advance(Duration::from_secs(5)).await;
        let (mut client, _) = MqttClient::hello(&room, &hello).await;
        left.ends_with(0x8E).await;
        let longest = Duration::from_millis(1_500 * u64::from(keep_alive_seconds));
        tokio::time::advance(longest - Duration::from_secs(1)).await;
        client.ping().await;
        let pinged = tokio::time::Instant::now();
        tokio::time::advance(longest - Duration::from_secs(10)).await;
        client.ends_with(0x8D).await;
        let late = pinged.elapsed().checked_sub(longest).expect("not before");
        assert!(late <= Duration::from_secs(1), "{late:?} too late");
    }
}

#[tokio::test]
async fn a_device_without_a_keep_alive_is_given_one() {
    let room = Room::new().await;
    let (_, credentials) = room.device().await;
    let hello = Hello { keep_alive_seconds: 0, ..Hello::new(5, &credentials) };
    let (_, connack) = MqttClient::hello(&room, &hello).await;
    let server_keep_alive = [19, 0x07, 0x08];
    assert!(connack.windows(3).any(|part| part == server_keep_alive), "{connack:?}");
}

#[tokio::test]
async fn what_comes_before_a_login_is_not_listened_to() {
    let room = Room::new().await;
    for first in [packet(0x82, &[0, 1, 0, 1, b'#', 0]), packet(0xC0, &[]), vec![0xFF, 0xFF, 0xFF, 0xFF, 0xFF]]
    {
        let mut client = MqttClient::open(&room, 4, MqttLimits::default());
        client.say(&first).await;
        assert_eq!(client.packet().await, None);
    }
    let (_, credentials) = room.device().await;
    let hello = Hello { client_id: "x".repeat(20_000), ..Hello::new(5, &credentials) };
    let mut client = MqttClient::open(&room, 5, MqttLimits::default());
    client.say(&hello.bytes()).await;
    assert_eq!(client.packet().await, None, "too large for a login");
    let hello = Hello { client_id: "x".repeat(300), ..Hello::new(5, &credentials) };
    let mut client = MqttClient::open(&room, 5, MqttLimits::default());
    client.say(&hello.bytes()).await;
    assert_eq!(client.expect(CONNACK).await[1], 0x85);
}

#[tokio::test]
async fn a_login_that_cannot_be_read_is_answered_where_its_version_has_words_for_it() {
    let room = Room::new().await;
    let (_, credentials) = room.device().await;
    let cut = |version| {
        let mut bytes = Hello::new(version, &credentials).bytes();
        bytes.pop();
        bytes[1] -= 1;
        bytes
    };
    let mut client = MqttClient::open(&room, 5, MqttLimits::default());
    client.say(&cut(5)).await;
    assert_eq!(client.expect(CONNACK).await[..2], [0, 0x81]);
    assert_eq!(client.packet().await, None);
    let mut client = MqttClient::open(&room, 4, MqttLimits::default());
    client.say(&cut(4)).await;
    assert_eq!(client.packet().await, None);
    let mut wants_qos_2 = Hello { will: Some(("upstream", b"x")), ..Hello::new(5, &credentials) }.bytes();
    // The flags follow the version; two bits of them are the QoS of the will.
    let place = wants_qos_2.windows(5).position(|part| part == b"MQTT\x05").expect("a version") + 5;
    wants_qos_2[place] |= 0x10;
    let mut client = MqttClient::open(&room, 5, MqttLimits::default());
    client.say(&wants_qos_2).await;
    assert_eq!(client.expect(CONNACK).await[..2], [0, 0x9B]);
}

#[tokio::test]
async fn another_way_to_log_in_is_refused() {
    let room = Room::new().await;
    let (_, credentials) = room.device().await;
    let method = [vec![21], text("SCRAM-SHA-1")].concat();
    let hello = Hello { properties: method, ..Hello::new(5, &credentials) };
    let (mut client, connack) = MqttClient::hello(&room, &hello).await;
    assert_eq!(connack[..2], [0, 0x8C]);
    assert_eq!(client.packet().await, None);
}
