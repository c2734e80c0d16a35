//! An MQTT client written from the standard, without code of the server or of its library.

use std::time::Duration;

use secrecy::ExposeSecret;
use stentor_gateway::mqtt::{MqttLimits, serve};
use stentor_gateway::{DeviceCredentials, DeviceIdentity};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio_util::sync::CancellationToken;

use crate::room::Room;

pub(crate) const CONNACK: u8 = 0x20;
pub(crate) const PUBLISH: u8 = 0x30;
pub(crate) const PUBACK: u8 = 0x40;
pub(crate) const SUBACK: u8 = 0x90;
pub(crate) const UNSUBACK: u8 = 0xB0;
pub(crate) const PINGRESP: u8 = 0xD0;
pub(crate) const DISCONNECT: u8 = 0xE0;

/// The contents of a CONNECT.
#[derive(Clone)]
pub(crate) struct Hello {
    pub(crate) version: u8,
    pub(crate) client_id: String,
    pub(crate) is_clean: bool,
    pub(crate) keep_alive_seconds: u16,
    pub(crate) token: Option<String>,
    pub(crate) secret: Option<String>,
    pub(crate) will: Option<(&'static str, &'static [u8])>,
    /// Encoded properties of MQTT 5.
    pub(crate) properties: Vec<u8>,
}

impl Hello {
    pub(crate) fn new(version: u8, credentials: &DeviceCredentials) -> Self {
        Self {
            version,
            client_id: "kiosk".to_owned(),
            is_clean: true,
            keep_alive_seconds: 60,
            token: Some(credentials.token.expose().to_owned()),
            secret: Some(credentials.secret.expose_secret().to_owned()),
            will: None,
            properties: Vec::new(),
        }
    }

    /// Requests a persistent session, with MQTT 5 for an hour.
    pub(crate) fn kept(self) -> Self {
        self.kept_for(3_600)
    }

    /// Requests a persistent session, with MQTT 5 for `seconds`.
    pub(crate) fn kept_for(mut self, seconds: u32) -> Self {
        self.is_clean = false;
        if self.version == 5 {
            self.properties.push(17);
            self.properties.extend(seconds.to_be_bytes());
        }
        self
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        let flag = |is_set: bool, bit: u8| u8::from(is_set) << bit;
        let flags = flag(self.is_clean, 1)
            | flag(self.will.is_some(), 2)
            | flag(self.secret.is_some(), 6)
            | flag(self.token.is_some(), 7);
        let mut body = text("MQTT");
        body.extend([self.version, flags]);
        body.extend(self.keep_alive_seconds.to_be_bytes());
        if self.version == 5 {
            body.extend(with_length(&self.properties));
        }
        body.extend(text(&self.client_id));
        if let Some((topic, payload)) = self.will {
            body.extend((self.version == 5).then_some(0));
            body.extend(text(topic));
            body.extend(counted(payload));
        }
        self.token.iter().chain(&self.secret).for_each(|one| body.extend(text(one)));
        packet(0x10, &body)
    }
}

/// Writes a packet.
pub(crate) fn packet(first: u8, body: &[u8]) -> Vec<u8> {
    let mut bytes = vec![first];
    bytes.extend(with_length(body));
    bytes
}

/// Prefixes bytes with their length, in seven bits a byte.
pub(crate) fn with_length(body: &[u8]) -> Vec<u8> {
    let (mut bytes, mut left) = (Vec::new(), body.len());
    loop {
        let more = left >= 0x80;
        bytes.push((left & 0x7F) as u8 | if more { 0x80 } else { 0 });
        left >>= 7;
        if !more {
            break;
        }
    }
    bytes.extend(body);
    bytes
}

pub(crate) fn counted(bytes: &[u8]) -> Vec<u8> {
    let length = u16::try_from(bytes.len()).expect("fits");
    [&length.to_be_bytes(), bytes].concat()
}

/// Prefixes a text with its length.
pub(crate) fn text(text: &str) -> Vec<u8> {
    counted(text.as_bytes())
}

/// A received PUBLISH.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Given {
    pub(crate) topic: String,
    pub(crate) packet_id: Option<u16>,
    pub(crate) is_retained: bool,
    /// Encoded properties of MQTT 5.
    pub(crate) properties: Vec<u8>,
    pub(crate) payload: Vec<u8>,
}

impl Given {
    /// Returns a field of the payload.
    pub(crate) fn field(&self, name: &str) -> serde_json::Value {
        let record: serde_json::Value = serde_json::from_slice(&self.payload).expect("JSON");
        record[name].clone()
    }
}

/// A connection of a device.
pub(crate) struct MqttClient {
    pub(crate) stream: DuplexStream,
    pub(crate) version: u8,
    pub(crate) stopping: CancellationToken,
    pub(crate) server: tokio::task::JoinHandle<()>,
}

impl MqttClient {
    /// Opens a connection without sending anything.
    pub(crate) fn open(room: &Room, version: u8, limits: MqttLimits) -> Self {
        let (stream, other) = tokio::io::duplex(64 * 1_024);
        let stopping = CancellationToken::new();
        let server = tokio::spawn(serve(
            room.gateway.clone(),
            other,
            stopping.clone(),
            CancellationToken::new(),
            limits,
        ));
        Self { stream, version, stopping, server }
    }

    /// Opens a connection and sends a CONNECT; also returns the CONNACK's body.
    pub(crate) async fn hello(room: &Room, hello: &Hello) -> (Self, Vec<u8>) {
        let mut client = Self::open(room, hello.version, MqttLimits::default());
        client.say(&hello.bytes()).await;
        let body = client.expect(CONNACK).await;
        (client, body)
    }

    /// Connects a new device of the room, with a successful login.
    pub(crate) async fn device(room: &Room, version: u8) -> (DeviceIdentity, DeviceCredentials, Self) {
        let (identity, credentials) = room.device().await;
        let (client, connack) = Self::hello(room, &Hello::new(version, &credentials)).await;
        assert_eq!(connack[..2], [0, 0]);
        (identity, credentials, client)
    }

    pub(crate) async fn say(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).await.expect("written");
    }

    /// Reads the next packet; `None` at the end.
    pub(crate) async fn packet(&mut self) -> Option<(u8, Vec<u8>)> {
        let reading = async {
            let first = self.stream.read_u8().await.ok()?;
            let (mut length, mut shift) = (0_usize, 0);
            loop {
                let byte = self.stream.read_u8().await.ok()?;
                length |= usize::from(byte & 0x7F) << shift;
                shift += 7;
                if byte & 0x80 == 0 {
                    break;
                }
            }
            let mut body = vec![0; length];
            self.stream.read_exact(&mut body).await.ok()?;
            Some((first, body))
        };
        tokio::time::timeout(Duration::from_secs(60), reading).await.expect("something comes")
    }

    /// Reads the next packet, which must be of this kind.
    pub(crate) async fn expect(&mut self, first: u8) -> Vec<u8> {
        let (came, body) = self.packet().await.expect("a packet");
        assert_eq!(came, first, "{body:?}");
        body
    }

    /// Checks that the connection ends, after a DISCONNECT with this code if the version has one.
    pub(crate) async fn ends_with(&mut self, code: u8) {
        if self.version == 5 {
            assert_eq!(self.expect(DISCONNECT).await[0], code);
        }
        assert_eq!(self.packet().await, None);
    }

    /// Reads the next message.
    pub(crate) async fn given(&mut self) -> Given {
        let (first, body) = self.packet().await.expect("a packet");
        assert_eq!(first & 0xF0, PUBLISH, "{body:?}");
        let length = usize::from(u16::from_be_bytes([body[0], body[1]]));
        let (topic, mut rest) = body[2..].split_at(length);
        let packet_id = (first & 6 != 0).then(|| u16::from_be_bytes([rest[0], rest[1]]));
        rest = if packet_id.is_some() { &rest[2..] } else { rest };
        let mut properties = Vec::new();
        if self.version == 5 {
            // The properties have some sixty bytes, so their length is one byte.
            let (own, payload) = rest[1..].split_at(usize::from(rest[0]));
            (properties, rest) = (own.to_vec(), payload);
        }
        let topic = String::from_utf8(topic.to_vec()).expect("a topic");
        Given { topic, packet_id, is_retained: first & 1 == 1, properties, payload: rest.to_vec() }
    }

    /// Subscribes; returns the code.
    pub(crate) async fn subscribe(&mut self, filter: &str, qos: u8) -> u8 {
        let bytes = packet(0x82, &[self.head(7), text(filter), vec![qos]].concat());
        self.say(&bytes).await;
        let body = self.expect(SUBACK).await;
        assert_eq!(body[..2], [0, 7]);
        *body.last().expect("a code")
    }

    /// Unsubscribes from a filter.
    pub(crate) async fn unsubscribe(&mut self, filter: &str) -> Vec<u8> {
        let bytes = packet(0xA2, &[self.head(8), text(filter)].concat());
        self.say(&bytes).await;
        self.expect(UNSUBACK).await
    }

    /// Acknowledges a message.
    pub(crate) async fn acknowledge(&mut self, given: &Given) {
        let id = given.packet_id.expect("QoS 1").to_be_bytes();
        self.say(&packet(PUBACK, &id)).await;
    }

    /// Publishes with QoS 1 and properties of MQTT 5, encoded.
    pub(crate) async fn publish(&mut self, topic: &str, packet_id: u16, properties: &[u8], payload: &[u8]) {
        let mut body = [text(topic), packet_id.to_be_bytes().to_vec()].concat();
        if self.version == 5 {
            body.extend(with_length(properties));
        }
        body.extend(payload);
        self.say(&packet(PUBLISH | 2, &body)).await;
    }

    /// Waits until all earlier packets are processed.
    pub(crate) async fn ping(&mut self) {
        self.say(&packet(0xC0, &[])).await;
        self.expect(PINGRESP).await;
    }

    /// The packet identifier, followed by empty properties if the version has them.
    fn head(&self, packet_id: u8) -> Vec<u8> {
        if self.version == 5 { vec![0, packet_id, 0] } else { vec![0, packet_id] }
    }
}
