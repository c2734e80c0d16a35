//! Limits that no client can exceed.

use stentor_core::name::TopicName;
use stentor_gateway::mqtt::MqttLimits;
use tokio::io::AsyncReadExt;

use super::client::{Hello, MqttClient, packet, text};
use crate::allocations::held_bytes;
use crate::room::{Room, to};

/// Most bytes held by a waiting connection, including its task but not its socket. It held 472 bytes when this was written; a new version
/// of the compiler or of the runtime may need a little more.
const IDLE_MAX_BYTES: isize = 512;

#[tokio::test]
async fn a_packet_that_is_too_large_ends_the_connection_before_it_is_read() {
    let room = Room::new().await;
    for version in [4, 5] {
        let (_, _, mut client) = MqttClient::device(&room, version).await;
        // A remaining length of 65,536 bytes, which with the header of four bytes exceeds the limit.
        client.say(&[0x30, 0x80, 0x80, 0x04]).await;
        client.ends_with(0x95).await;
    }
}

#[tokio::test]
async fn what_breaks_the_protocol_ends_the_connection_with_its_reason() {
    let room = Room::new().await;
    let alias = [text("upstream"), vec![3, 35, 0, 1]].concat();
    let identified = [vec![0, 1, 2, 11, 5], text("messages/#"), vec![1]].concat();
    let wrong: [(&str, Vec<u8>, u8); 7] = [
        ("a second CONNECT", packet(0x10, &[text("MQTT"), vec![5, 2, 0, 0, 0], text("a")].concat()), 0x82),
        ("QoS 2", packet(0x34, &[text("upstream"), vec![0, 1, 0]].concat()), 0x9B),
        ("an alias", packet(0x30, &alias), 0x94),
        ("a subscription identifier", packet(0x82, &identified), 0xA1),
        ("a server's packet", packet(0xD0, &[]), 0x82),
        ("reserved bits", packet(0x80, &[0, 1, 0, 0, 1, b'#', 0]), 0x81),
        ("a wildcard in a topic", packet(0x30, &[text("upstream/+"), vec![0]].concat()), 0x90),
    ];
    for (what, bytes, code) in wrong {
        let (_, _, mut client) = MqttClient::device(&room, 5).await;
        client.say(&bytes).await;
        let (first, body) = client.packet().await.expect(what);
        assert_eq!((first, body[0]), (0xE0, code), "{what}");
        assert_eq!(client.packet().await, None);
    }
}

#[tokio::test(start_paused = true)]
async fn a_device_that_takes_nothing_is_cut_off_and_misses_nothing() {
    let room = Room::new().await;
    let (identity, credentials, mut client) = MqttClient::device(&room, 4).await;
    client.subscribe("messages/#", 0).await;
    let mut sent = 0_u64;
    // More than fits into the pipe and the server's output.
    for _ in 0..800 {
        room.send(to(&[identity.device])).await;
        sent += 1;
    }
    // The client does not read: time passes only when nothing else can happen.
    let MqttClient { mut stream, server, stopping, .. } = client;
    server.await.expect("cut off");
    drop(stopping);
    let mut taken = Vec::new();
    stream.read_to_end(&mut taken).await.expect("read");
    let received = taken.windows(6).filter(|part| *part == b"{\"id\":").count() as u64;
    assert!(received < sent, "it was not cut off");
    let (mut client, _) = MqttClient::hello(&room, &Hello::new(4, &credentials)).await;
    client.subscribe("messages/#", 1).await;
    let mut again = 0;
    while again + received < sent {
        let given = client.given().await;
        client.acknowledge(&given).await;
        again += 1;
    }
}

#[tokio::test]
async fn a_connection_takes_only_so_many_filters_and_what_it_refuses_subscribes_to_nothing() {
    let room = Room::new().await;
    let (identity, credentials) = room.device().await;
    let limits = MqttLimits { filters_max_count: 2, ..MqttLimits::default() };
    let mut client = MqttClient::open(&room, 5, limits);
    client.say(&Hello::new(5, &credentials).bytes()).await;
    client.expect(0x20).await;
    assert_eq!(client.subscribe("messages/#", 1).await, 1);
    assert_eq!(client.subscribe("topics/a", 1).await, 1);
    assert_eq!(client.subscribe("topics/b", 1).await, 0x97);
    let topics = room.store.topics_of(room.app, identity.device).await.expect("listed");
    assert_eq!(topics.iter().map(TopicName::as_str).collect::<Vec<_>>(), ["a"]);
    let mut many = vec![0, 7, 0];
    (0..65).for_each(|_| many.extend([text("messages/#"), vec![1]].concat()));
    client.say(&packet(0x82, &many)).await;
    let body = client.expect(0x90).await;
    assert_eq!((body[3], body[66], body[67]), (1, 1, 0x97));
}

#[tokio::test]
async fn a_connection_holds_little_while_it_waits() {
    const CONNECTIONS: usize = 64;
    let room = Room::new().await;
    let (mut clients, mut ids) = (Vec::new(), Vec::new());
    for version in [4, 5].repeat(CONNECTIONS / 2) {
        let (identity, _, mut client) = MqttClient::device(&room, version).await;
        client.subscribe("messages/#", 1).await;
        ids.push(identity.device);
        clients.push(client);
    }
    // Each connection gets a message and confirms it; the memory used for it is freed again.
    room.send(to(&ids)).await;
    for client in &mut clients {
        let given = client.given().await;
        client.acknowledge(&given).await;
        client.ping().await;
    }
    room.gateway.flush().await;
    let (mut streams, held) = (Vec::with_capacity(CONNECTIONS), held_bytes());
    room.gateway.stop();
    for MqttClient { stream, server, .. } in clients {
        server.await.expect("over");
        streams.push(stream);
    }
    let each = (held - held_bytes()) / CONNECTIONS.cast_signed();
    assert!(each > 0 && each <= IDLE_MAX_BYTES, "{each} bytes in each connection");
}
