//! Violations of the standards, packet by packet: each ends the connection and changes nothing.

use stentor_gateway::DeviceCredentials;
use stentor_gateway::mqtt::MqttLimits;

use super::client::{CONNACK, Hello, MqttClient, PUBACK, UNSUBACK, counted, packet, text, with_length};
use super::upstream::waiting;
use crate::room::Room;

const BOTH: &[u8] = &[4, 5];
const OLD: &[u8] = &[4];
const NEW: &[u8] = &[5];
const MALFORMED: u8 = 0x81;
const PROTOCOL: u8 = 0x82;
/// Bytes that are no valid text: U+0000, which MQTT forbids, an overlong encoding, half of a surrogate pair, and a byte outside of UTF-8.
const NO_TEXTS: [&[u8]; 4] = [b"a\0b", b"\xC0\x80", b"\xED\xA0\x80", b"a\xFF"];

/// A violation: its description, the versions it concerns, the packet in a version, and the reason code of MQTT 5.
struct Wrong {
    what: String,
    versions: &'static [u8],
    packet: Box<dyn Fn(u8) -> Vec<u8>>,
    code: u8,
}

fn wrong(
    what: impl Into<String>,
    versions: &'static [u8],
    code: u8,
    packet: impl Fn(u8) -> Vec<u8> + 'static,
) -> Wrong {
    Wrong { what: what.into(), versions, packet: Box::new(packet), code }
}

/// Encodes properties of MQTT 5; empty for a version without properties.
fn properties(version: u8, properties: &[u8]) -> Vec<u8> {
    if version == 5 { with_length(properties) } else { Vec::new() }
}

/// The parts of a CONNECT.
#[derive(Clone)]
struct Connect {
    flags: u8,
    properties: Vec<u8>,
    client_id: Vec<u8>,
    will_properties: Vec<u8>,
    will_topic: Vec<u8>,
    name: Vec<u8>,
    secret: Vec<u8>,
}

impl Connect {
    fn new(credentials: &DeviceCredentials) -> Self {
        let hello = Hello::new(4, credentials);
        Self {
            flags: 0xC2,
            properties: Vec::new(),
            client_id: b"a".to_vec(),
            will_properties: Vec::new(),
            will_topic: b"upstream".to_vec(),
            name: hello.token.expect("a token").into_bytes(),
            secret: hello.secret.expect("a secret").into_bytes(),
        }
    }

    fn bytes(&self, version: u8) -> Vec<u8> {
        let mut body = [text("MQTT"), vec![version, self.flags, 0, 60]].concat();
        body.extend(properties(version, &self.properties));
        body.extend(counted(&self.client_id));
        if self.flags & 4 != 0 {
            body.extend(properties(version, &self.will_properties));
            body.extend([counted(&self.will_topic), counted(b"{}")].concat());
        }
        body.extend((self.flags & 0x80 != 0).then(|| counted(&self.name)).into_iter().flatten());
        body.extend((self.flags & 0x40 != 0).then(|| counted(&self.secret)).into_iter().flatten());
        packet(0x10, &body)
    }
}

fn pair(key: &[u8], value: &[u8]) -> Vec<u8> {
    [vec![38], counted(key), counted(value)].concat()
}

fn property(id: u8, value: &[u8]) -> Vec<u8> {
    [vec![id], counted(value)].concat()
}

/// Logins that violate a rule.
fn wrong_logins(right: &Connect) -> Vec<Wrong> {
    let mut all = Vec::new();
    let mut put = |what: &str, versions, code, change: &dyn Fn(&mut Connect)| {
        let mut connect = right.clone();
        change(&mut connect);
        all.push(wrong(what, versions, code, move |version| connect.bytes(version)));
    };
    put("the reserved flag", BOTH, MALFORMED, &|it| it.flags |= 1);
    put("a will of QoS 3", BOTH, MALFORMED, &|it| it.flags |= 0x1C);
    put("a will's QoS without a will", BOTH, MALFORMED, &|it| it.flags |= 0x08);
    put("a will's QoS 2 without a will", BOTH, MALFORMED, &|it| it.flags |= 0x10);
    put("a will's retain flag without a will", BOTH, MALFORMED, &|it| it.flags |= 0x20);
    put("a password without a user name", OLD, 0, &|it| it.flags = 0x42);
    for no_text in NO_TEXTS {
        put("no text as client id", BOTH, MALFORMED, &|it| it.client_id = no_text.to_vec());
        put("no text as user name", BOTH, MALFORMED, &|it| it.name = no_text.to_vec());
        put("no text as the will's topic", BOTH, MALFORMED, &|it| {
            it.flags |= 4;
            it.will_topic = [b"upstream/", no_text].concat();
        });
        for own in [pair(no_text, b"v"), pair(b"k", no_text), property(21, no_text)] {
            put("no text in a property", NEW, MALFORMED, &|it| it.properties.clone_from(&own));
        }
        for own in [pair(no_text, b"v"), pair(b"k", no_text), property(3, no_text), property(8, no_text)] {
            put("no text in a property of the will", NEW, MALFORMED, &|it| {
                it.flags |= 4;
                it.will_properties.clone_from(&own);
            });
        }
    }
    put("a will whose response topic has a wildcard", NEW, PROTOCOL, &|it| {
        it.flags |= 4;
        it.will_properties = property(8, b"a/+");
    });
    put("a will to a wildcard", NEW, 0x90, &|it| {
        it.flags |= 4;
        it.will_topic = b"upstream/+".to_vec();
    });
    let once: [&[u8]; 6] =
        [&[17, 0, 0, 0, 1], &[33, 0, 1], &[39, 0, 1, 0, 0], &[34, 0, 1], &[25, 0], &[23, 1]];
    for own in once {
        put("a property twice", NEW, PROTOCOL, &|it| it.properties = own.repeat(2));
    }
    for own in [&[33, 0, 0][..], &[39, 0, 0, 0, 0], &[25, 2], &[23, 2]] {
        put("a value that a property may not have", NEW, PROTOCOL, &|it| it.properties = own.to_vec());
    }
    put("proof without a method", NEW, PROTOCOL, &|it| it.properties = property(22, b"a"));
    put("another packet's property", NEW, PROTOCOL, &|it| it.properties = vec![35, 0, 1]);
    put("a property that does not exist", NEW, MALFORMED, &|it| it.properties = vec![0x7F, 0]);
    all
}

fn publish(first: u8, topic: &'static [u8], rest: &'static [u8]) -> impl Fn(u8) -> Vec<u8> {
    move |version| {
        let packet_id: &[u8] = if first & 6 == 0 { &[] } else { &[0, 9] };
        let body = [&counted(topic)[..], packet_id, &properties(version, &[]), rest].concat();
        packet(first, &body)
    }
}

fn publish_with(own: Vec<u8>) -> impl Fn(u8) -> Vec<u8> {
    move |_| packet(0x30, &[text("upstream"), with_length(&own), b"{}".to_vec()].concat())
}

/// Messages of a device that violate a rule.
fn wrong_messages() -> Vec<Wrong> {
    let mut all = vec![
        wrong("QoS 0 that is repeated", BOTH, MALFORMED, publish(0x38, b"upstream", b"{}")),
        wrong("QoS 3", BOTH, MALFORMED, publish(0x36, b"upstream", b"{}")),
        wrong("QoS 3 that is repeated", BOTH, MALFORMED, publish(0x3E, b"upstream", b"{}")),
        wrong("QoS 2", BOTH, 0x9B, publish(0x34, b"upstream", b"{}")),
        wrong("a wildcard for a level", BOTH, 0x90, publish(0x30, b"upstream/+", b"{}")),
        wrong("a wildcard for all levels", BOTH, 0x90, publish(0x32, b"upstream/#", b"{}")),
        wrong("no topic", NEW, PROTOCOL, publish(0x30, b"", b"{}")),
        wrong("no topic", OLD, 0, publish(0x30, b"", b"{}")),
        wrong("no packet identifier", BOTH, PROTOCOL, |version| {
            packet(0x32, &[text("upstream"), vec![0, 0], properties(version, &[])].concat())
        }),
        wrong("a topic that ends too early", BOTH, MALFORMED, |_| packet(0x30, &[0, 9, b'u'])),
        wrong("no length of properties", NEW, MALFORMED, |_| packet(0x30, &text("upstream"))),
        wrong("an alias", NEW, 0x94, publish_with(vec![35, 0, 1])),
        wrong("the alias zero", NEW, PROTOCOL, publish_with(vec![35, 0, 0])),
        wrong("a subscription identifier", NEW, PROTOCOL, publish_with(vec![11, 1])),
        wrong("a payload format that does not exist", NEW, PROTOCOL, publish_with(vec![1, 2])),
        wrong("another packet's property", NEW, PROTOCOL, publish_with(vec![17, 0, 0, 0, 1])),
        wrong("a property that does not exist", NEW, MALFORMED, publish_with(vec![0x7F, 0])),
    ];
    for topic in [&b"a/+"[..], b"#", b""] {
        all.push(wrong("a response topic that is none", NEW, PROTOCOL, publish_with(property(8, topic))));
    }
    let once = [
        vec![1, 1],
        vec![2, 0, 0, 0, 9],
        property(3, b"a"),
        property(8, b"a"),
        property(9, b"a"),
        vec![35, 0, 1],
    ];
    for own in once {
        all.push(wrong(format!("property {} twice", own[0]), NEW, PROTOCOL, publish_with(own.repeat(2))));
    }
    for no_text in NO_TEXTS {
        let topic = [b"upstream/", no_text].concat();
        all.push(wrong(format!("no text as topic: {no_text:?}"), BOTH, MALFORMED, move |version| {
            packet(0x30, &[counted(&topic), properties(version, &[])].concat())
        }));
        for own in [property(3, no_text), property(8, no_text), pair(no_text, b"v"), pair(b"k", no_text)] {
            all.push(wrong(format!("no text in {own:?}"), NEW, MALFORMED, publish_with(own)));
        }
    }
    all
}

/// Writes a SUBSCRIBE or UNSUBSCRIBE with one filter.
fn filtered(first: u8, filter: Vec<u8>, options: Option<u8>) -> impl Fn(u8) -> Vec<u8> {
    move |version| {
        let options: Vec<u8> = options.into_iter().collect();
        packet(first, &[vec![0, 7], properties(version, &[]), counted(&filter), options].concat())
    }
}

/// Subscriptions that violate a rule.
fn wrong_subscriptions() -> Vec<Wrong> {
    let mut all = vec![
        wrong("reserved bits of SUBSCRIBE", BOTH, MALFORMED, filtered(0x80, b"#".to_vec(), Some(0))),
        wrong("reserved bits of UNSUBSCRIBE", BOTH, MALFORMED, filtered(0xA0, b"#".to_vec(), None)),
        wrong("a wish for QoS 3", BOTH, MALFORMED, filtered(0x82, b"#".to_vec(), Some(3))),
        wrong("reserved bits of a filter", BOTH, MALFORMED, filtered(0x82, b"#".to_vec(), Some(0x40))),
        wrong(
            "a retain handling that does not exist",
            BOTH,
            MALFORMED,
            filtered(0x82, b"#".to_vec(), Some(0x30)),
        ),
        wrong("one's own share alone", NEW, PROTOCOL, filtered(0x82, b"$share/a/topics/b".to_vec(), Some(5))),
        wrong("a share of nothing", NEW, MALFORMED, filtered(0x82, b"$share/a".to_vec(), Some(1))),
        wrong("a share of nobody", NEW, MALFORMED, filtered(0x82, b"$share//topics/b".to_vec(), Some(1))),
        wrong("a share of anybody", NEW, MALFORMED, filtered(0x82, b"$share/+/topics/b".to_vec(), Some(1))),
        wrong("a subscription identifier", NEW, 0xA1, |_| {
            packet(0x82, &[vec![0, 7, 2, 11, 5], text("#"), vec![0]].concat())
        }),
        wrong("no text in a property", NEW, MALFORMED, |_| {
            packet(0x82, &[vec![0, 7], with_length(&pair(b"a\0", b"v")), text("#"), vec![0]].concat())
        }),
        wrong("no text in a property", NEW, MALFORMED, |_| {
            packet(0xA2, &[vec![0, 7], with_length(&pair(b"a\0", b"v")), text("#")].concat())
        }),
    ];
    for options in [0x04, 0x08, 0x10] {
        let what = "an option that 3.1.1 does not have";
        all.push(wrong(what, OLD, 0, filtered(0x82, b"#".to_vec(), Some(options))));
    }
    for first in [0x82, 0xA2] {
        let options = (first == 0x82).then_some(1);
        all.push(wrong("no filter", BOTH, PROTOCOL, move |version| {
            packet(first, &[vec![0, 7], properties(version, &[])].concat())
        }));
        all.push(wrong("no packet identifier", BOTH, PROTOCOL, move |version| {
            let options: Vec<u8> = options.into_iter().collect();
            packet(first, &[vec![0, 0], properties(version, &[]), text("#"), options].concat())
        }));
        let filters: [&[u8]; 8] = [b"", b"a/#/b", b"#/a", b"a#", b"a+", b"+a/b", b"a/b+/c", b"topics/#x"];
        for filter in NO_TEXTS.into_iter().chain(filters) {
            let what = format!("the filter {filter:?}");
            all.push(wrong(what, BOTH, MALFORMED, filtered(first, filter.to_vec(), options)));
        }
    }
    all
}

/// Other packets that violate a rule.
fn wrong_others() -> Vec<Wrong> {
    let reason = || property(31, b"a\0");
    vec![
        wrong("a second CONNECT", BOTH, PROTOCOL, |version| {
            packet(
                0x10,
                &[text("MQTT"), vec![version, 2, 0, 60], properties(version, &[]), text("a")].concat(),
            )
        }),
        wrong("a server's packet", BOTH, PROTOCOL, |_| packet(0xD0, &[])),
        wrong("packet type 0", BOTH, MALFORMED, |_| packet(0x0F, &[])),
        wrong("another way to prove oneself", NEW, PROTOCOL, |_| packet(0xF0, &[])),
        wrong("a packet of QoS 2", BOTH, PROTOCOL, |_| packet(0x62, &[0, 1])),
        wrong("reserved bits of a packet of QoS 2", BOTH, MALFORMED, |_| packet(0x60, &[0, 1])),
        wrong("reserved bits of PUBACK", BOTH, MALFORMED, |_| packet(0x42, &[0, 1])),
        wrong("an acknowledgement of nothing", BOTH, MALFORMED, |_| packet(0x40, &[0, 0])),
        wrong("a reason that does not exist", BOTH, MALFORMED, |_| packet(0x40, &[0, 1, 5])),
        wrong("no text in an acknowledgement", NEW, MALFORMED, move |_| {
            packet(0x40, &[vec![0, 1, 0], with_length(&reason())].concat())
        }),
        wrong("reserved bits of PINGREQ", BOTH, MALFORMED, |_| packet(0xC1, &[])),
        wrong("a PINGREQ with something", BOTH, MALFORMED, |_| packet(0xC0, &[0])),
        wrong("reserved bits of DISCONNECT", BOTH, MALFORMED, |_| packet(0xE1, &[])),
        wrong("a goodbye for a reason that does not exist", NEW, MALFORMED, |_| packet(0xE0, &[5])),
        wrong("a goodbye with something", OLD, 0, |_| packet(0xE0, &[0])),
        wrong("no text in a goodbye", NEW, MALFORMED, move |_| {
            packet(0xE0, &[vec![0], with_length(&reason())].concat())
        }),
        wrong("a session that is prolonged at its end", NEW, PROTOCOL, |_| {
            packet(0xE0, &[0, 5, 17, 0, 0, 0, 9])
        }),
        wrong("a length of five bytes", BOTH, MALFORMED, |_| vec![0x30, 0xFF, 0xFF, 0xFF, 0xFF, 0x01]),
    ]
}

#[tokio::test]
async fn a_login_that_breaks_a_rule_is_refused_and_its_connection_closed() {
    let room = Room::new().await;
    let (_, credentials) = room.device().await;
    let right = Connect::new(&credentials);
    for Wrong { what, versions, packet, code } in wrong_logins(&right) {
        for version in versions {
            let mut client = MqttClient::open(&room, *version, MqttLimits::default());
            client.say(&packet(*version)).await;
            if *version == 5 {
                let body = client.expect(CONNACK).await;
                assert_eq!(body[..2], [0, code], "{what}");
            }
            assert_eq!(client.packet().await, None, "{what}, version {version}");
        }
    }
    // Counter-checks: the same packets without the violation are accepted.
    for version in BOTH {
        for flags in [0, 0x04, 0x0C, 0x24] {
            let right = Connect { flags: right.flags | flags, ..right.clone() };
            let mut client = MqttClient::open(&room, *version, MqttLimits::default());
            client.say(&right.bytes(*version)).await;
            assert_eq!(client.expect(CONNACK).await[..2], [0, 0], "flags {flags:x}");
            client.say(&packet(0xE0, &[])).await;
        }
    }
}

#[tokio::test]
async fn a_password_without_a_user_name_is_allowed_in_mqtt_5_and_opens_nothing() {
    let room = Room::new().await;
    let (_, credentials) = room.device().await;
    let connect = Connect { flags: 0x42, ..Connect::new(&credentials) };
    let mut client = MqttClient::open(&room, 5, MqttLimits::default());
    client.say(&connect.bytes(5)).await;
    assert_eq!(client.expect(CONNACK).await[..2], [0, 0x87]);
    assert_eq!(client.packet().await, None);
}

#[tokio::test]
async fn a_packet_that_breaks_a_rule_ends_the_connection_and_changes_nothing() {
    let room = Room::new().await;
    let tables = [wrong_messages(), wrong_subscriptions(), wrong_others()];
    for Wrong { what, versions, packet, code } in tables.into_iter().flatten() {
        for version in versions {
            let (identity, _, mut client) = MqttClient::device(&room, *version).await;
            client.say(&packet(*version)).await;
            let first = client.packet().await;
            match version {
                5 => assert_eq!(first.map(|(first, body)| (first, body[0])), Some((0xE0, code)), "{what}"),
                _ => assert_eq!(first, None, "{what} in 3.1.1"),
            }
            assert_eq!(client.packet().await, None, "{what}, version {version}");
            let topics = room.store.topics_of(room.app, identity.device).await.expect("listed");
            assert!(topics.is_empty(), "{what}");
        }
    }
    assert!(waiting(&room).await.is_empty(), "nothing was kept");
}

#[tokio::test]
async fn what_the_standards_allow_is_taken() {
    let room = Room::new().await;
    for version in [4, 5] {
        let (_, _, mut client) = MqttClient::device(&room, version).await;
        // Repeated, retained, both, and again with the same identifier: each is a message.
        for first in [0x32, 0x3A, 0x33, 0x3B] {
            client.say(&publish(first, b"upstream/\xC3\xA4\xEF\xBB\xBF", b"{}")(version)).await;
            assert_eq!(client.expect(PUBACK).await[..2], [0, 9]);
        }
        // Byte by byte, and three at once.
        for byte in publish(0x32, b"upstream", b"")(version) {
            client.say(&[byte]).await;
        }
        client.expect(PUBACK).await;
        client
            .say(&[publish(0x30, b"upstream", b"")(version), packet(0xC0, &[]), packet(0xC0, &[])].concat())
            .await;
        client.expect(0xD0).await;
        client.expect(0xD0).await;
        // Valid wildcards, also those that match nothing here.
        for filter in ["+", "+/a", "a/+/b", "a/+", "/", "//", "a/#", "/#", "+/#"] {
            let refused = if version == 5 { 0x87 } else { 0x80 };
            assert_eq!(client.subscribe(filter, 2).await, refused, "{filter}");
            client.say(&filtered(0xA2, filter.as_bytes().to_vec(), None)(version)).await;
            client.expect(UNSUBACK).await;
        }
        assert_eq!(client.subscribe("messages/#", 2).await, 1, "QoS 1 is what is there");
    }
    let stored = waiting(&room).await;
    assert_eq!(stored.len(), 12);
    assert!(stored[0].body.contains("ä\u{feff}"), "nothing is stripped off: {}", stored[0].body);
}

#[tokio::test]
async fn names_are_compared_letter_by_letter() {
    let room = Room::new().await;
    let (_, credentials) = room.device().await;
    let hello =
        |client_id: &str| Hello { client_id: client_id.to_owned(), ..Hello::new(4, &credentials).kept() };
    // Twenty-three letters and digits are always accepted; a byte order mark is an ordinary character.
    for client_id in ["0123456789abcdefghijABC", "a", "\u{feff}a", "A", "a\u{308}", "\u{e4}"] {
        let (_, connack) = MqttClient::hello(&room, &hello(client_id)).await;
        assert_eq!(connack, [0, 0], "{client_id:?} is another client than those before");
        let (_, connack) = MqttClient::hello(&room, &hello(client_id)).await;
        assert_eq!(connack, [1, 0], "{client_id:?}");
    }
}

#[tokio::test]
async fn a_device_is_told_nothing_that_is_larger_than_it_takes() {
    let room = Room::new().await;
    let (_, credentials) = room.device().await;
    // The code of the refusal fits, its text does not.
    let hello = |bytes: u8| Hello {
        properties: vec![39, 0, 0, 0, bytes],
        secret: Some("wrong".to_owned()),
        ..Hello::new(5, &credentials)
    };
    let (_, connack) = MqttClient::hello(&room, &hello(20)).await;
    assert_eq!(connack, [0, 0x86, 0]);
    let mut client = MqttClient::open(&room, 5, MqttLimits::default());
    client.say(&hello(4).bytes()).await;
    assert_eq!(client.packet().await, None);
    let hello = Hello { properties: vec![39, 0, 0, 0, 64], ..Hello::new(5, &credentials) };
    let (mut client, _) = MqttClient::hello(&room, &hello).await;
    let mut many = vec![0, 7, 0];
    (0..60).for_each(|_| many.extend([text("a"), vec![1]].concat()));
    client.say(&packet(0x82, &many)).await;
    client.ping().await;
}

#[tokio::test]
async fn before_and_after_its_login_a_connection_is_told_nothing() {
    let room = Room::new().await;
    let (_, credentials) = room.device().await;
    let right = Connect::new(&credentials);
    for version in [4, 5] {
        // Packets after a rejected login are ignored.
        let refused = Connect { secret: b"wrong".to_vec(), ..right.clone() };
        let mut client = MqttClient::open(&room, version, MqttLimits::default());
        client.say(&[refused.bytes(version), publish(0x32, b"upstream", b"{}")(version)].concat()).await;
        assert_ne!(client.expect(CONNACK).await[1], 0);
        assert_eq!(client.packet().await, None);
        // Packets after a successful login are processed after the CONNACK; packets after a DISCONNECT never.
        let mut client = MqttClient::open(&room, version, MqttLimits::default());
        let goodbye = [packet(0xE0, &[]), publish(0x32, b"upstream", b"{}")(version)].concat();
        client.say(&[right.bytes(version), packet(0xC0, &[]), goodbye].concat()).await;
        assert_eq!(client.expect(CONNACK).await[1], 0);
        client.expect(0xD0).await;
        assert_eq!(client.packet().await, None);
    }
    assert!(waiting(&room).await.is_empty());
}
