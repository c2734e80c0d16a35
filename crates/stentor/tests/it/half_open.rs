//! Devices and callers with a vanished end of the connection: the network is cut and they are gone, so that no FIN and no RST reaches the
//! server. Server and devices have network namespaces of their own, and a real link between them.

use std::io::{BufRead as _, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};
use stentor_rig::{Link, Plan, Rig, RigLevel, Side, Wanted};
use tempfile::TempDir;

use crate::http2_frames::{
    DATA, END_HEADERS, END_STREAM, HEAD_BYTES, HEADERS, HELLO, PING, SETTINGS, frame, request,
};
use crate::process::stentor;

const PATIENCE: Duration = Duration::from_secs(180);
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// The server's timeout for a device with a keep-alive of one second, minus a tolerance.
const SILENCE_MIN: Duration = Duration::from_millis(1_400);
/// TCP's state of an established connection, without a known error.
const ESTABLISHED: &str = "01";

/// A server in its own namespace, which ends with the test.
struct Scene {
    rig: Rig,
    process: Child,
    directory: TempDir,
    api: SocketAddr,
    mqtt: SocketAddr,
    socket: SocketAddr,
    key: String,
}

/// A registered device.
struct Device {
    id: String,
    token: String,
    secret: String,
}

impl Scene {
    /// Starts the scene, or logs the reason if it cannot.
    fn open() -> Option<Self> {
        let rig =
            match Rig::raise(&Plan { level: Wanted::Exactly(RigLevel::Netns), ..Plan::new(Link::open()) }) {
                Ok(rig) => rig,
                Err(refusal) => return skip(&refusal.to_string()),
            };
        let directory = TempDir::new().unwrap();
        let (data, config) = (directory.path().join("data"), directory.path().join("stentor.toml"));
        let listen = SocketAddr::new(rig.address(Side::Server), 0).to_string();
        let settings = format!(
            "[api]\nsocket_listen = \"{listen}\"\nconnection_idle_timeout_seconds = 2\n\
             [gateway]\nmqtt_listen = \"{listen}\"\n"
        );
        std::fs::write(&config, settings).unwrap();
        let (data_dir, config) = (data.to_str().unwrap(), config.to_str().unwrap());
        let serve = ["serve", "--listen", &listen, "--data-dir", data_dir, "--config", config, "--json"];
        let mut command = stentor(&serve);
        command.stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = rig.spawn(Side::Server, command).unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let ready: Value = serde_json::from_str(&line).unwrap();
        let api = ready["url"].as_str().unwrap().trim_start_matches("http://").parse().unwrap();
        let address = |name: &str| std::fs::read_to_string(data.join(name)).unwrap().trim().parse().unwrap();
        let (mqtt, socket) = (address("mqtt.addr"), address("socket.addr"));
        let mut scene = Self { rig, process, directory, api, mqtt, socket, key: String::new() };
        let root = std::fs::read_to_string(data.join("root.key")).unwrap();
        scene.key = root.trim().to_owned();
        let app = scene.ask("POST", "/v1/apps", &json!({"name": "kiosk"}));
        let keys = format!("/v1/apps/{}/keys", app["id"].as_str().unwrap());
        let key = scene.ask("POST", &keys, &json!({"name": "all", "scopes": ["send", "join"]}));
        scene.key = key["secret"].as_str().unwrap().to_owned();
        Some(scene)
    }

    /// Opens a connection from a side.
    fn connect(&self, from: Side, to: SocketAddr) -> TcpStream {
        let connect = move || TcpStream::connect_timeout(&to, PATIENCE).unwrap();
        let stream = self.rig.within(from, connect).unwrap().join().unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    /// Calls the API from the server's side, which the cut does not affect.
    fn ask(&self, method: &str, path: &str, body: &Value) -> Value {
        let text = self.text(method, path, &body.to_string());
        serde_json::from_str(&text).unwrap_or_else(|_| panic!("{method} {path}: {text}"))
    }

    fn text(&self, method: &str, path: &str, body: &str) -> String {
        let mut stream = self.connect(Side::Server, self.api);
        let head = format!(
            "{method} {path} HTTP/1.0\r\nhost: server\r\nauthorization: Bearer {}\r\ncontent-type: application/json\r\n\
             content-length: {}\r\n\r\n{body}",
            self.key,
            body.len()
        );
        stream.write_all(head.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{answer}"));
        assert!(
            head.split(' ').nth(1).is_some_and(|status| status.starts_with('2')),
            "{method} {path}: {answer}"
        );
        body.to_owned()
    }

    fn register(&self) -> Device {
        let joined = self.ask("POST", "/gateway/v1/devices", &json!({}));
        let text = |name: &str| joined[name].as_str().unwrap().to_owned();
        Device { id: text("device"), token: text("token"), secret: text("secret") }
    }

    fn send(&self, device: &Device) -> String {
        let message = json!({"target": {"device": device.id}, "data": {"n": "1"}, "ttl_seconds": 3_600});
        self.ask("POST", "/v1/messages", &message)["id"].as_str().unwrap().to_owned()
    }

    fn delivered(&self, message: &str) -> u64 {
        let ledger = self.ask("GET", &format!("/v1/messages/{message}/ledger"), &Value::Null);
        assert_eq!(ledger["balanced"], true, "{ledger}");
        ledger["totals"]["delivered"].as_u64().unwrap()
    }

    /// Counts the sessions of a protocol at the server.
    fn sessions(&self, protocol: &str) -> u64 {
        self.metric(&format!("stentor_gateway_sessions{{protocol=\"{protocol}\"}}"))
    }

    fn metric(&self, name: &str) -> u64 {
        let metrics = self.text("GET", "/metrics", "");
        let found = metrics.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        found.map_or(0, |count| count.trim().parse::<f64>().unwrap() as u64)
    }

    /// Waits until a metric has a value; returns the duration.
    fn until_metric(&self, name: &str, value: u64) -> Duration {
        let began = Instant::now();
        while self.metric(name) != value {
            assert!(began.elapsed() < PATIENCE, "{name} is {}", self.metric(name));
            std::thread::sleep(LOOK_EVERY);
        }
        began.elapsed()
    }

    /// Returns true if the server's kernel considers the connection to a device's port established.
    fn is_established(&self, port: u16) -> bool {
        let table = move || std::fs::read_to_string("/proc/thread-self/net/tcp").unwrap();
        let table = self.rig.within(Side::Server, table).unwrap().join().unwrap();
        let peer = format!(":{port:04X}");
        table.lines().any(|row| {
            let fields: Vec<&str> = row.split_whitespace().collect();
            fields.get(2).is_some_and(|remote| remote.ends_with(&peer)) && fields.get(3) == Some(&ESTABLISHED)
        })
    }

    /// Cuts the network and closes a device's end of a connection: the packets of its kernel reach no one.
    fn vanish(&self, stream: TcpStream) {
        let port = stream.local_addr().unwrap().port();
        assert!(self.rig.cut(true));
        drop(stream);
        assert!(self.is_established(port), "nobody has told the server");
    }

    /// Waits until a protocol has this number of sessions; returns the duration.
    fn until_sessions(&self, protocol: &str, count: u64) -> Duration {
        let began = Instant::now();
        while self.sessions(protocol) != count {
            assert!(began.elapsed() < PATIENCE, "{protocol}: {} sessions", self.sessions(protocol));
            std::thread::sleep(LOOK_EVERY);
        }
        began.elapsed()
    }

    fn until_delivered(&self, message: &str) {
        let began = Instant::now();
        while self.delivered(message) == 0 {
            assert!(began.elapsed() < PATIENCE, "{message} is not confirmed");
            std::thread::sleep(LOOK_EVERY);
        }
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _kept: &Path = self.directory.path();
    }
}

/// Logs that a test is skipped, outside the captured output, or fails if `STENTOR_TEST_REQUIRE` lists `rig`.
fn skip(why: &str) -> Option<Scene> {
    let required = std::env::var("STENTOR_TEST_REQUIRE").unwrap_or_default();
    let is_required = required.split(',').any(|word| word.trim() == "rig");
    assert!(!is_required, "{why} (STENTOR_TEST_REQUIRE does not allow to skip it)");
    let _ = writeln!(std::io::stderr(), "skipped: a half-open connection, {why}");
    None
}

/// A device over MQTT 3.1.1.
struct MqttDevice(TcpStream);

impl MqttDevice {
    fn log_in(scene: &Scene, from: Side, device: &Device, keep_alive_seconds: u8) -> Self {
        let mut stream = scene.connect(from, scene.mqtt);
        let head = [4, 0b1100_0010, 0, keep_alive_seconds];
        let (id, token, secret) = (text(&device.id), text(&device.token), text(&device.secret));
        stream.write_all(&packet(0x10, &[&text("MQTT"), &head, &id, &token, &secret])).unwrap();
        stream.write_all(&packet(0x82, &[&[0, 1], &text("messages/#"), &[1]])).unwrap();
        let mut client = Self(stream);
        assert_eq!((client.packet().0, client.packet().0), (0x20, 0x90), "let in and subscribed");
        client
    }

    fn packet(&mut self) -> (u8, Vec<u8>) {
        let mut first = [0];
        self.0.read_exact(&mut first).unwrap();
        let (mut length, mut shift) = (0, 0);
        loop {
            let mut byte = [0];
            self.0.read_exact(&mut byte).unwrap();
            length |= usize::from(byte[0] & 127) << shift;
            shift += 7;
            if byte[0] < 128 {
                break;
            }
        }
        let mut body = vec![0; length];
        self.0.read_exact(&mut body).unwrap();
        (first[0], body)
    }

    /// Waits for a message, and confirms it.
    fn confirmed(&mut self) -> String {
        let (first, body) = self.packet();
        assert_eq!(first & 0xf0, 0x30, "a message");
        let topic = usize::from(u16::from_be_bytes([body[0], body[1]])) + 2;
        let content: Value = serde_json::from_slice(&body[topic + 2..]).unwrap();
        self.0.write_all(&[0x40, 2, body[topic], body[topic + 1]]).unwrap();
        content["id"].as_str().unwrap().to_owned()
    }
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
    let length = u16::try_from(text.len()).unwrap();
    [&length.to_be_bytes()[..], text.as_bytes()].concat()
}

/// A device that reads its events.
struct EventDevice(BufReader<TcpStream>);

impl EventDevice {
    fn connect(scene: &Scene, device: &Device, after: &str) -> Self {
        let mut stream = scene.connect(Side::Device, scene.api);
        let login = BASE64_STANDARD.encode(format!("{}:{}", device.token, device.secret));
        let ask = format!(
            "GET /gateway/v1/events{after} HTTP/1.1\r\nhost: server\r\nauthorization: Basic {login}\r\n\r\n"
        );
        stream.write_all(ask.as_bytes()).unwrap();
        let mut client = Self(BufReader::new(stream));
        assert!(client.line().starts_with("HTTP/1.1 200"));
        client
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        assert!(self.0.read_line(&mut line).unwrap() > 0, "it has ended");
        line
    }

    /// Waits for a message; returns its id.
    fn message(&mut self) -> String {
        loop {
            if let Some(id) = self.line().strip_prefix("id:") {
                return id.trim().to_owned();
            }
        }
    }
}

#[test]
fn r16_a_device_of_mqtt_that_vanishes_is_cut_off_by_its_silence_and_gets_what_waits_when_it_is_back() {
    let Some(scene) = Scene::open() else { return };
    let (lost, other) = (scene.register(), scene.register());
    let first = scene.send(&lost);
    let mut client = MqttDevice::log_in(&scene, Side::Device, &lost, 1);
    assert_eq!(client.confirmed(), first);
    scene.until_delivered(&first);
    // A device that is not affected by the cut, with a keep-alive of a minute.
    let mut beside = MqttDevice::log_in(&scene, Side::Server, &other, 60);
    assert_eq!(scene.sessions("mqtt"), 2);

    scene.vanish(client.0);
    let (began, waits) = (Instant::now(), scene.send(&lost));
    let own = scene.send(&other);
    assert_eq!(beside.confirmed(), own, "others do not notice");
    scene.until_sessions("mqtt", 1);
    assert!(began.elapsed() < PATIENCE && scene.delivered(&waits) == 0);
    let later = scene.send(&lost);

    assert!(scene.rig.cut(false));
    let mut back = MqttDevice::log_in(&scene, Side::Device, &lost, 60);
    assert_eq!([back.confirmed(), back.confirmed()], [waits.clone(), later.clone()]);
    scene.until_delivered(&waits);
    scene.until_delivered(&later);
}

#[test]
fn r16_a_device_that_vanishes_from_its_stream_is_cut_off_and_gets_what_waits_when_it_is_back() {
    let Some(scene) = Scene::open() else { return };
    let lost = scene.register();
    let mut client = EventDevice::connect(&scene, &lost, "");
    let first = scene.send(&lost);
    assert_eq!(client.message(), first);
    assert_eq!(scene.sessions("stream"), 1);

    scene.vanish(client.0.into_inner());
    let waits = scene.send(&lost);
    let took = scene.until_sessions("stream", 0);
    assert!(took > SILENCE_MIN, "it was not told of it, and could not know it so soon: {took:?}");
    assert_eq!((scene.delivered(&first), scene.delivered(&waits)), (0, 0));

    assert!(scene.rig.cut(false));
    let mut back = EventDevice::connect(&scene, &lost, &format!("?after={first}"));
    assert_eq!(back.message(), waits, "the first one it has confirmed now");
    scene.until_delivered(&first);
}

/// A caller of the raw socket; its requests and replies are frames of JSON.
struct SocketCaller(TcpStream);

impl SocketCaller {
    fn connect(scene: &Scene, from: Side) -> Self {
        let mut caller = Self(scene.connect(from, scene.socket));
        caller.ask(&json!({"stentor": 1, "key": scene.key}));
        caller
    }

    fn ask(&mut self, request: &Value) -> Value {
        let text = request.to_string();
        self.0.write_all(&[&(text.len() as u32).to_be_bytes()[..], text.as_bytes()].concat()).unwrap();
        let mut length = [0; 4];
        self.0.read_exact(&mut length).unwrap();
        let mut reply = vec![0; u32::from_be_bytes(length) as usize];
        self.0.read_exact(&mut reply).unwrap();
        let reply: Value = serde_json::from_slice(&reply).unwrap();
        assert!(reply.get("error").is_none(), "{reply}");
        reply
    }
}

#[test]
fn a_caller_of_the_raw_socket_that_vanishes_gives_its_place_back_and_others_go_on() {
    const OPEN: &str = "stentor_socket_connections_open";
    let Some(scene) = Scene::open() else { return };
    let list = json!({"id": 1, "operation": "topics.list", "record": {}});
    let mut lost = SocketCaller::connect(&scene, Side::Device);
    lost.ask(&list);
    assert_eq!(scene.metric(OPEN), 1);

    scene.vanish(lost.0);
    let mut beside = SocketCaller::connect(&scene, Side::Server);
    assert_eq!(beside.ask(&list)["id"], 1, "others do not notice");
    drop(beside);
    // The idle timeout is two seconds; the notice about it cannot be delivered and is given up as well.
    scene.until_metric(OPEN, 0);

    assert!(scene.rig.cut(false));
    assert_eq!(SocketCaller::connect(&scene, Side::Device).ask(&list)["id"], 1);
}

/// Watches the ledger of a campaign over gRPC, and waits for its first state.
fn watching(scene: &Scene, from: Side, campaign: &str) -> TcpStream {
    let mut stream = scene.connect(from, scene.api);
    let key = format!("Bearer {}", scene.key);
    let head = request(
        "POST",
        "/stentor.v1.Campaigns/WatchLedger",
        &[("authorization", key.as_str()), ("content-type", "application/grpc"), ("te", "trailers")],
    );
    // The first field of the record is the campaign.
    let message = [&[0x0a, campaign.len() as u8][..], campaign.as_bytes()].concat();
    let body = [&[0][..], &(message.len() as u32).to_be_bytes(), &message].concat();
    stream.write_all(HELLO).unwrap();
    stream.write_all(&frame(SETTINGS, END_STREAM, 0, &[])).unwrap();
    stream.write_all(&frame(HEADERS, END_HEADERS, 1, &head)).unwrap();
    stream.write_all(&frame(DATA, END_STREAM, 1, &body)).unwrap();
    loop {
        let (kind, flags, payload) = next_frame(&mut stream).unwrap();
        assert!(kind != HEADERS || flags & END_STREAM == 0, "it is refused: {payload:?}");
        if kind == DATA && payload.len() > 5 {
            return stream;
        }
    }
}

/// Reads a frame of HTTP/2: its kind, its flags and its payload.
fn next_frame(stream: &mut TcpStream) -> std::io::Result<(u8, u8, Vec<u8>)> {
    let mut head = [0; HEAD_BYTES];
    stream.read_exact(&mut head)?;
    let mut payload = vec![0; u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize];
    stream.read_exact(&mut payload)?;
    Ok((head[3], head[4], payload))
}

/// Answers each PING of the server until the connection ends; returns their number.
fn alive(mut stream: TcpStream) -> usize {
    let mut count = 0;
    while let Ok((kind, flags, payload)) = next_frame(&mut stream) {
        if (kind, flags) == (PING, 0) {
            stream.write_all(&frame(PING, END_STREAM, 0, &payload)).unwrap();
            count += 1;
        }
    }
    count
}

#[test]
fn a_watch_whose_caller_vanishes_ends_and_gives_its_connection_back() {
    const OPEN: &str = "stentor_connections_open";
    let Some(scene) = Scene::open() else { return };
    let device = scene.register();
    let tomorrow = Command::new("date").args(["-u", "-d", "tomorrow", "+%FT%TZ"]).output().unwrap().stdout;
    let tomorrow = String::from_utf8(tomorrow).unwrap();
    let later = json!({"target": {"device": device.id}, "data": {"n": "1"}, "send_at": tomorrow.trim()});
    let campaign = scene.ask("POST", "/v1/messages", &later)["campaign"].as_str().unwrap().to_owned();
    scene.until_metric(OPEN, 1);
    let lost = watching(&scene, Side::Device, &campaign);
    let beside = watching(&scene, Side::Server, &campaign);
    let other = beside.try_clone().unwrap();
    let beside = std::thread::spawn(move || alive(beside));
    assert_eq!(scene.metric(OPEN), 3, "two watches, and who asks");

    scene.vanish(lost);
    // Nothing is written to it, because nothing changes: the PING of HTTP/2 detects it, after a minute and the timeout of its response.
    let took = scene.until_metric(OPEN, 2);
    assert!(took > SILENCE_MIN, "it was not told of it, and could not know it so soon: {took:?}");

    assert!(scene.rig.cut(false));
    drop(watching(&scene, Side::Device, &campaign));
    other.shutdown(Shutdown::Both).unwrap();
    assert!(beside.join().unwrap() > 0, "it was asked as well, and its watch went on");
    scene.until_metric(OPEN, 1);
}
