//! Devices and networks that misbehave: nothing is lost, and other devices do not notice.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use stentor_core::ports::clock::Clock;
use stentor_core::time::Timestamp;
use stentor_server::clock::SystemClock;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::*;
use crate::harness::{durable_server_at, server_with};

const PATIENCE: Duration = Duration::from_secs(30);
/// Longest silence of a device with a keep-alive of one second, with a margin for a busy machine.
const SILENCE: Duration = Duration::from_secs(10);

async fn mqtt_server(change: impl FnOnce(&mut stentor_server::config::Config)) -> Server {
    let any: Option<SocketAddr> = Some("127.0.0.1:0".parse().expect("an address"));
    server_with(|config| {
        config.gateway.mqtt_listen = any;
        change(config);
    })
    .await
}

async fn connect(server: &Server) -> TcpStream {
    connect_to(server, "mqtt.addr").await
}

pub(super) async fn connect_to(server: &Server, file: &str) -> TcpStream {
    let address = std::fs::read_to_string(server.folder.path().join(file)).expect("told");
    TcpStream::connect(address.trim()).await.expect("connected")
}

/// A device over MQTT 3.1.1 that acts only on calls of the test.
struct MqttDevice {
    stream: TcpStream,
    read: Vec<u8>,
}

fn packet(first: u8, parts: &[&[u8]]) -> Vec<u8> {
    let body = parts.concat();
    let (mut bytes, mut left) = (vec![first], body.len());
    while left >= 128 {
        bytes.push((left % 128) as u8 | 128);
        left /= 128;
    }
    bytes.push(left as u8);
    bytes.extend(body);
    bytes
}

fn text(text: &str) -> Vec<u8> {
    let length = u16::try_from(text.len()).expect("short");
    [&length.to_be_bytes()[..], text.as_bytes()].concat()
}

impl MqttDevice {
    async fn log_in(server: &Server, device: &Device, keep_alive_seconds: u8) -> Self {
        let mut stream = connect(server).await;
        let head = [4, 0b1100_0010, 0, keep_alive_seconds];
        let (id, token, secret) = (text(&device.id), text(&device.token), text(&device.secret));
        let login = packet(0x10, &[&text("MQTT"), &head, &id, &token, &secret]);
        stream.write_all(&login).await.expect("written");
        let subscription = packet(0x82, &[&[0, 1], &text("messages/#"), &[1]]);
        stream.write_all(&subscription).await.expect("written");
        let mut client = Self { stream, read: Vec::new() };
        assert_eq!(client.packet().await.map(|(first, _)| first), Some(0x20), "let in");
        assert_eq!(client.packet().await.map(|(first, _)| first), Some(0x90), "subscribed");
        client
    }

    /// Waits for a packet; `None` at the end of the connection.
    async fn packet(&mut self) -> Option<(u8, Vec<u8>)> {
        loop {
            if let Some(packet) = self.whole() {
                return Some(packet);
            }
            match timeout(PATIENCE, self.stream.read_buf(&mut self.read)).await.expect("in time") {
                Ok(0) | Err(_) => return None,
                Ok(_) => {}
            }
        }
    }

    fn whole(&mut self) -> Option<(u8, Vec<u8>)> {
        let mut length = 0;
        let mut begin = 1;
        loop {
            let byte = *self.read.get(begin)?;
            length |= usize::from(byte & 127) << (7 * (begin - 1));
            begin += 1;
            if byte < 128 {
                break;
            }
        }
        let body = self.read.get(begin..begin + length)?.to_vec();
        let first = self.read[0];
        self.read.drain(..begin + length);
        Some((first, body))
    }

    /// Waits for a message; returns its packet's number and its id, or nothing at the end.
    async fn message(&mut self) -> Option<(u16, String)> {
        let (first, body) = self.packet().await?;
        assert_eq!(first & 0xf0, 0x30, "a message");
        let topic = usize::from(u16::from_be_bytes([body[0], body[1]])) + 2;
        let number = u16::from_be_bytes([body[topic], body[topic + 1]]);
        let content: Value = serde_json::from_slice(&body[topic + 2..]).expect("JSON");
        Some((number, content["id"].as_str().expect("an id").to_owned()))
    }

    async fn confirm(&mut self, number: u16) {
        let [high, low] = number.to_be_bytes();
        self.stream.write_all(&[0x40, 2, high, low]).await.expect("written");
    }
}

pub(super) async fn until_delivered(server: &Server, tenant: &Tenant, message: &str, count: u64) {
    let waiting = async {
        while totals(server, tenant, message).await.1 != count {
            tokio::task::yield_now().await;
        }
    };
    timeout(PATIENCE, waiting).await.expect("confirmed in time");
}

pub(super) async fn to(server: &Server, tenant: &Tenant, device: &Device) -> String {
    send(server, tenant, json!({"devices": [device.id]}), "Hi").await
}

#[tokio::test]
async fn whoever_connects_and_says_nothing_keeps_no_device_out() {
    let server = mqtt_server(|config| config.gateway.connections_max_count = 20).await;
    let tenant = server.tenant().await;
    let (inside, outside) =
        (Device::join(&server, &tenant, json!({})).await, Device::join(&server, &tenant, json!({})).await);
    let mut before = MqttDevice::log_in(&server, &inside, 60).await;
    let mut silent = Vec::new();
    for _ in 0..50 {
        silent.push(connect(&server).await);
    }
    let mut after = MqttDevice::log_in(&server, &outside, 60).await;
    let (one, two) = (to(&server, &tenant, &inside).await, to(&server, &tenant, &outside).await);
    assert_eq!(before.message().await.map(|(_, id)| id), Some(one), "it did not lose its place");
    assert_eq!(after.message().await.map(|(_, id)| id), Some(two));
}

#[tokio::test]
async fn whoever_connects_as_an_app_server_and_does_not_log_in_keeps_no_device_out() {
    let server = mqtt_server(|config| {
        config.gateway.connections_max_count = 20;
        config.gateway.ccs_listen = Some("127.0.0.1:0".parse().expect("an address"));
    })
    .await;
    let tenant = server.tenant().await;
    let device = Device::join(&server, &tenant, json!({})).await;
    let mut silent = Vec::new();
    for _ in 0..50 {
        silent.push(connect_to(&server, "ccs.addr").await);
    }
    let mut client = MqttDevice::log_in(&server, &device, 60).await;
    let message = to(&server, &tenant, &device).await;
    assert_eq!(client.message().await.map(|(_, id)| id), Some(message));
}

#[tokio::test]
async fn a_second_connection_gets_what_the_first_one_did_not_confirm() {
    let server = mqtt_server(|_| {}).await;
    let tenant = server.tenant().await;
    let device = Device::join(&server, &tenant, json!({})).await;
    let mut first = MqttDevice::log_in(&server, &device, 60).await;
    let (one, two) = (to(&server, &tenant, &device).await, to(&server, &tenant, &device).await);
    let (number, id) = first.message().await.expect("a message");
    assert_eq!(id, one);
    first.confirm(number).await;
    assert_eq!(first.message().await.map(|(_, id)| id), Some(two.clone()));
    until_delivered(&server, &tenant, &one, 1).await;
    let mut second = MqttDevice::log_in(&server, &device, 60).await;
    assert_eq!(first.message().await, None, "it is told to go");
    let (number, id) = second.message().await.expect("a message");
    assert_eq!(id, two, "the confirmed one does not come again");
    second.confirm(number).await;
    until_delivered(&server, &tenant, &two, 1).await;
}

#[tokio::test]
async fn what_is_confirmed_twice_or_was_never_given_changes_nothing() {
    let server = mqtt_server(|_| {}).await;
    let tenant = server.tenant().await;
    let (device, other) =
        (Device::join(&server, &tenant, json!({})).await, Device::join(&server, &tenant, json!({})).await);
    let (own, foreign) = (to(&server, &tenant, &device).await, to(&server, &tenant, &other).await);
    let mut client = MqttDevice::log_in(&server, &device, 60).await;
    client.confirm(999).await;
    let (number, id) = client.message().await.expect("a message");
    assert_eq!(id, own);
    client.confirm(number).await;
    client.confirm(number).await;
    until_delivered(&server, &tenant, &own, 1).await;
    let receipt = device.ask(&server, Method::POST, "/gateway/v1/receipts");
    let read = receipt.json(&json!({"messages": [own, foreign]})).read().await;
    assert_eq!((read.status, &read.body["confirmed"]), (200, &json!(0)), "{read:?}");
    assert_eq!(totals(&server, &tenant, &foreign).await, (1, 0));
    let mut theirs = MqttDevice::log_in(&server, &other, 60).await;
    assert_eq!(theirs.message().await.map(|(_, id)| id), Some(foreign));
    assert_eq!(totals(&server, &tenant, &own).await, (1, 1));
}

#[tokio::test]
async fn a_device_that_confirms_nothing_gets_its_window_and_holds_nobody_up() {
    let server = mqtt_server(|_| {}).await;
    let tenant = server.tenant().await;
    let (device, other) =
        (Device::join(&server, &tenant, json!({})).await, Device::join(&server, &tenant, json!({})).await);
    let mut client = MqttDevice::log_in(&server, &device, 60).await;
    let mut theirs = MqttDevice::log_in(&server, &other, 60).await;
    for _ in 0..130 {
        to(&server, &tenant, &device).await;
    }
    let last = to(&server, &tenant, &other).await;
    assert_eq!(theirs.message().await.map(|(_, id)| id), Some(last));
    let mut numbers = Vec::new();
    for _ in 0..100 {
        numbers.push(client.message().await.expect("a message").0);
    }
    // The response to a ping follows all earlier writes: nothing else was written.
    client.stream.write_all(&[0xc0, 0]).await.expect("written");
    assert_eq!(client.packet().await.map(|(first, _)| first), Some(0xd0), "the window is full");
    for number in numbers {
        client.confirm(number).await;
    }
    for _ in 0..30 {
        assert!(client.message().await.is_some(), "the rest comes late");
    }
}

#[tokio::test]
async fn r16_a_device_that_reconnects_at_the_moment_of_delivery_gets_each_message() {
    let server = mqtt_server(|_| {}).await;
    let tenant = server.tenant().await;
    let device = Device::join(&server, &tenant, json!({})).await;
    let (mut sent, mut got) = (BTreeSet::new(), BTreeSet::new());
    for _ in 0..20 {
        let (message, mut client) =
            tokio::join!(to(&server, &tenant, &device), MqttDevice::log_in(&server, &device, 60));
        sent.insert(message);
        // It disconnects with or without its messages, confirmed or not.
        if let Ok(Some((number, id))) = timeout(Duration::from_millis(3), client.message()).await {
            got.insert(id);
            if got.len() % 2 == 0 {
                client.confirm(number).await;
            }
        }
    }
    let mut client = MqttDevice::log_in(&server, &device, 60).await;
    let last = to(&server, &tenant, &device).await;
    sent.insert(last.clone());
    while !got.contains(&last) {
        let (number, id) = client.message().await.expect("a message");
        got.insert(id);
        client.confirm(number).await;
    }
    assert_eq!(got, sent);
    for message in &sent {
        until_delivered(&server, &tenant, message, 1).await;
    }
}

#[tokio::test]
async fn a_device_that_is_gone_without_a_word_is_given_up_and_misses_nothing() {
    let server = mqtt_server(|_| {}).await;
    let tenant = server.tenant().await;
    let device = Device::join(&server, &tenant, json!({})).await;
    let mut gone = MqttDevice::log_in(&server, &device, 1).await;
    let message = to(&server, &tenant, &device).await;
    assert_eq!(gone.message().await.map(|(_, id)| id), Some(message.clone()));
    let end = timeout(SILENCE, gone.message()).await.expect("it is given up after one and a half seconds");
    assert_eq!(end, None);
    let mut back = MqttDevice::log_in(&server, &device, 60).await;
    assert_eq!(back.message().await.map(|(_, id)| id), Some(message));
}

/// The machine's clock, put forward or back.
struct PutClock(AtomicI64);

impl Clock for PutClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(SystemClock.now().as_millis() + self.0.load(Ordering::SeqCst))
    }
}

#[tokio::test]
async fn a_clock_that_jumps_neither_loses_nor_holds_back_what_waits() {
    const HOUR_MS: i64 = 3_600_000;
    let clock = Arc::new(PutClock(AtomicI64::new(HOUR_MS)));
    let server = durable_server_at(clock.clone(), tempfile::tempdir().expect("a folder")).await;
    let tenant = server.tenant().await;
    let device = Device::join(&server, &tenant, json!({})).await;
    let ahead = to(&server, &tenant, &device).await;
    assert_eq!(totals(&server, &tenant, &ahead).await, (1, 0));
    clock.0.store(0, Ordering::SeqCst);
    let back = to(&server, &tenant, &device).await;
    assert_eq!(totals(&server, &tenant, &back).await, (1, 0), "accepted though its time was before");
    let mut events = device.events(&server, "").await;
    assert_eq!((events.next().await.0, events.next().await.0), (ahead.clone(), back.clone()));
    clock.0.store(-HOUR_MS, Ordering::SeqCst);
    let earlier = to(&server, &tenant, &device).await;
    assert_eq!(totals(&server, &tenant, &earlier).await, (1, 0), "accepted, and two hours before the first");
    assert_eq!(events.next().await.0, earlier, "who is connected gets it at once");
    let receipt = device.ask(&server, Method::POST, "/gateway/v1/receipts");
    let read = receipt.json(&json!({"messages": [ahead, back, earlier]})).read().await;
    assert_eq!(read.body["confirmed"], json!(3));
    for message in [ahead, back, earlier] {
        assert_eq!(totals(&server, &tenant, &message).await, (1, 1));
    }
}

#[tokio::test]
async fn a_paused_campaign_is_held_back_and_given_when_it_goes_on() {
    for engine in [Engine::Memory, Engine::Sqlite] {
        let server = server_on(engine, |_| {}).await;
        let tenant = server.tenant().await;
        let device = Device::join(&server, &tenant, json!({})).await;
        let held = to(&server, &tenant, &device).await;
        assert_eq!(totals(&server, &tenant, &held).await, (1, 0), "all of it is accepted");
        let campaign = format!("/v1/campaigns/{}", held.replace("msg_", "cmp_"));
        let paused = server.post(&tenant, &format!("{campaign}/pause"), json!({})).await;
        assert_eq!(paused["state"], json!("paused"));
        let mut events = device.events(&server, "").await;
        let other = to(&server, &tenant, &device).await;
        assert_eq!(events.next().await.0, other, "the paused one would come first");
        let resumed = server.post(&tenant, &format!("{campaign}/resume"), json!({})).await;
        assert_eq!(resumed["state"], json!("finished"));
        assert_eq!(events.next().await.0, held);
    }
}

#[tokio::test]
async fn one_app_holds_back_nothing_of_another() {
    let server = server().await;
    let (tenant, stranger) = (server.tenant().await, server.tenant().await);
    let device = Device::join(&server, &tenant, json!({})).await;
    let mut events = device.events(&server, "").await;
    let message = to(&server, &tenant, &device).await;
    let pause = format!("/v1/campaigns/{}/pause", message.replace("msg_", "cmp_"));
    let read = server.send(&stranger, Method::POST, &pause).json(&json!({})).read().await;
    assert_eq!(read.status, 404, "{read:?}");
    assert_eq!(events.next().await.0, message);
}

#[tokio::test]
async fn a_campaign_goes_on_for_its_devices_though_the_caller_hung_up_meanwhile() {
    let server = server_on(Engine::Sqlite, |_| {}).await;
    let tenant = server.tenant().await;
    let device = Device::join(&server, &tenant, json!({})).await;
    let message = to(&server, &tenant, &device).await;
    assert_eq!(totals(&server, &tenant, &message).await, (1, 0), "all of it is accepted");
    let campaign = format!("/v1/campaigns/{}", message.replace("msg_", "cmp_"));
    for tries in 0..50 {
        server.post(&tenant, &format!("{campaign}/pause"), json!({})).await;
        // At every point of the request, some of them while the ledger is being written.
        let hangs_up_after = Duration::from_micros(100 * tries);
        let resume = || server.send(&tenant, Method::POST, &format!("{campaign}/resume")).json(&json!({}));
        let _it_hung_up = resume().timeout(hangs_up_after).send().await;
        // Only if the request did not reach the ledger: a caller that sees the campaign running has no reason to retry.
        if server.get(&tenant, &campaign).await["state"] == "paused" {
            let again = resume().read().await.status;
            assert!(matches!(again, 200 | 409), "{again}");
        }
        let got = device.poll(&server, "wait_seconds=10").await;
        assert_eq!(got["messages"][0]["id"], json!(message), "after {hangs_up_after:?}");
    }
}
