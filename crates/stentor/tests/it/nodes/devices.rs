//! Devices and app servers connected to one of several servers, while another one changes the state that they depend on.

use std::collections::BTreeMap;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use reqwest::{Client, Method, RequestBuilder, Response};
use rustix::process::Signal;
use serde_json::{Value, json};
use stentor_stage::client::ApiClient;

use super::{LIMIT, Nodes, REVOKED_WITHIN, client, refused_in_time, until};
use crate::node_duties::rows;
use crate::server::Server;

/// A device of the gateway that has registered itself.
struct OwnDevice {
    client: Client,
    id: String,
    token: String,
    secret: String,
}

impl OwnDevice {
    async fn join(server: &Server, key: &str) -> Self {
        let client = Client::new();
        let url = format!("{}/gateway/v1/devices", server.process.url());
        let made = client.post(url).bearer_auth(key).json(&json!({})).send().await.unwrap();
        let mut device = Self { client, id: String::new(), token: String::new(), secret: String::new() };
        let made: Value = made.json().await.unwrap();
        device.id = made["device"].as_str().unwrap().to_owned();
        device.take(&made);
        device
    }

    fn take(&mut self, credentials: &Value) {
        self.token = credentials["token"].as_str().unwrap().to_owned();
        self.secret = credentials["secret"].as_str().unwrap().to_owned();
    }

    fn ask(&self, server: &Server, method: Method, path: &str) -> RequestBuilder {
        let url = format!("{}/gateway/v1/{path}", server.process.url());
        self.client.request(method, url).basic_auth(&self.token, Some(&self.secret))
    }

    async fn events(&self, server: &Server) -> Events {
        let response = self.ask(server, Method::GET, "events").send().await.unwrap();
        assert_eq!(response.status(), 200);
        Events { response, text: String::new() }
    }
}

/// A stream of events.
struct Events {
    response: Response,
    text: String,
}

impl Events {
    /// Returns the data of the next event; `None` at the end of the stream.
    async fn next(&mut self) -> Option<Value> {
        loop {
            while let Some((event, rest)) = self.text.split_once("\n\n") {
                let data = event.lines().find_map(|line| line.strip_prefix("data:"));
                let data = data.map(|data| serde_json::from_str(data).unwrap());
                self.text = rest.to_owned();
                if data.is_some() {
                    return data;
                }
            }
            let more = self.response.chunk().await.ok()??;
            self.text.push_str(std::str::from_utf8(&more).unwrap());
        }
    }

    /// Waits until the stream ends.
    async fn end(mut self, what: &str) {
        let ended = async { while self.next().await.is_some() {} };
        tokio::time::timeout(REVOKED_WITHIN, ended).await.unwrap_or_else(|_| panic!("{what} goes on"));
    }
}

/// Two servers over one database, and an app with a key by which devices join it.
struct Scene {
    nodes: Nodes,
    one: Server,
    other: Server,
    app: ApiClient,
    join_key: String,
}

impl Scene {
    /// Starts both; `None` if PostgreSQL is not installed.
    fn start(settings: &str) -> Option<Self> {
        let mut nodes = Nodes::new()?;
        let (one, other) = (nodes.start("one", settings), nodes.start("other", settings));
        let made = one.ok(&["app", "create", "kiosk"]);
        let join = one.ok(&["app", "key", "create", "--name", "devices", "--scope", "join"]);
        let app = client(&one, &one.root_key()).for_app(made["id"].as_str().unwrap().to_owned());
        let join_key = join["secret"].as_str().unwrap().to_owned();
        Some(Self { nodes, one, other, app, join_key })
    }
}

#[tokio::test]
async fn a_device_with_another_token_or_other_keys_is_cut_off_at_every_server() {
    let Some(Scene { nodes: _nodes, one, other, join_key, .. }) = Scene::start("") else { return };
    let mut device = OwnDevice::join(&one, &join_key).await;
    let session = device.events(&one).await;
    let offer = device.ask(&other, Method::POST, "device/token").send().await.unwrap();
    device.take(&offer.json().await.unwrap());
    // With its first use at the other server the new token becomes valid for the device.
    assert_eq!(device.ask(&other, Method::GET, "device").send().await.unwrap().status(), 200);
    session.end("the session with the former token").await;
    let session = device.events(&one).await;
    let keys = json!({
        "p256dh": "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4",
        "auth": "BTBZMqHH6r4Tts7J_aSIgg",
    });
    let put = device.ask(&other, Method::PUT, "device/keys").json(&keys).send().await.unwrap();
    assert!(put.status().is_success(), "{}", put.text().await.unwrap());
    session.end("the session that does not know of the keys").await;
}

#[tokio::test]
async fn a_device_that_comes_to_another_server_ends_its_session_at_the_first() {
    // It is paused for a moment, and not considered dead.
    let Some(scene) = Scene::start("[node]\nsilence_max_ms = 600000\n") else { return };
    let Scene { nodes: _nodes, one, other, app, join_key } = scene;
    let device = OwnDevice::join(&one, &join_key).await;
    let former = device.events(&one).await;
    let mut later = device.events(&other).await;
    former.end("the session at the first server").await;
    let body = json!({"target": {"device": device.id}, "notification": {"title": "hello"}});
    app.post("/v1/messages", &body).await.unwrap();
    let given = tokio::time::timeout(LIMIT, later.next()).await.expect("it comes").expect("it goes on");
    assert_eq!(given["notification"]["title"], "hello", "{given}");
    // And back, while the server that it leaves is paused: its later notice ends only its own session.
    other.process.signal(Signal::STOP);
    let mut back = device.events(&one).await;
    other.process.signal(Signal::CONT);
    later.end("the session at the second server").await;
    app.post("/v1/messages", &body).await.unwrap();
    tokio::time::timeout(LIMIT, back.next()).await.expect("it comes").expect("it goes on");
}

#[tokio::test]
async fn a_server_that_missed_that_a_campaign_goes_on_gives_its_messages_all_the_same() {
    // It is paused for a moment, and not considered dead.
    let Some(scene) = Scene::start("[node]\nsilence_max_ms = 600000\n") else { return };
    let Scene { nodes, one, other, app, join_key } = scene;
    let device = OwnDevice::join(&one, &join_key).await;
    let everyone = json!({"target": {"devices": [device.id]}, "notification": {"title": "hello"}});
    let sent = app.post("/v1/messages", &everyone).await.unwrap();
    let campaign = sent["campaign"].as_str().unwrap().to_owned();
    let (path, begun) = (format!("/v1/campaigns/{campaign}"), std::time::Instant::now());
    while app.get(&path).await.unwrap()["totals"]["accepted"] != 1 {
        assert!(begun.elapsed() < LIMIT, "it is not accepted");
    }
    app.act(&format!("{path}/pause")).await.unwrap();
    // Events before the removal of the first of two keys are processed when the second one is refused.
    for marker in ["first", "second"] {
        let key = one.ok(&["app", "key", "create", "--name", marker, "--scope", "admin"]);
        let with_key = client(&other, key["secret"].as_str().unwrap()).for_app(app.app().unwrap().to_owned());
        with_key.get("/v1/devices").await.unwrap();
        let path = format!("/v1/apps/{}/keys/{}", app.app().unwrap(), key["id"].as_str().unwrap());
        app.delete(&path).await.unwrap();
        refused_in_time("a key", async || with_key.get("/v1/devices").await.is_ok()).await;
    }
    let mut session = device.events(&other).await;
    other.process.signal(Signal::STOP);
    app.act(&format!("{path}/resume")).await.unwrap();
    rows(
        &nodes.database,
        "UPDATE sequences SET value = value + 50000 WHERE name = 'event'; DELETE FROM node_events",
    );
    other.process.signal(Signal::CONT);
    let given = async {
        loop {
            match session.next().await {
                Some(given) => return given,
                // A server that missed an event ends the sessions that it may affect: the device reconnects.
                None => session = device.events(&other).await,
            }
        }
    };
    let given = tokio::time::timeout(LIMIT, given).await.expect("it is held for ever");
    assert_eq!(given["notification"]["title"], "hello", "{given}");
    assert!(other.process.log().contains("are already deleted"));
}

#[tokio::test]
async fn a_message_of_a_device_is_with_one_consumer_at_one_server_and_with_another_when_that_is_gone() {
    const MESSAGES: usize = 40;
    let Some(Scene { nodes: _nodes, one, other, app, join_key }) = Scene::start("") else { return };
    let device = OwnDevice::join(&one, &join_key).await;
    let open = async |server: &Server| {
        let url = format!("{}/v1/upstream", server.process.url());
        let request = Client::new().get(url).bearer_auth(one.root_key());
        let response = request.header("X-Stentor-App", app.app().unwrap()).send().await.unwrap();
        assert_eq!(response.status(), 200);
        Events { response, text: String::new() }
    };
    let (mut at_one, mut at_other) = (open(&one).await, open(&other).await);
    for number in 0..MESSAGES {
        let body = json!({"message_id": format!("m-{number}"), "data": {}});
        let server = if number % 2 == 0 { &one } else { &other };
        let sent = device.ask(server, Method::POST, "upstream").json(&body).send().await.unwrap();
        assert_eq!(sent.status(), 202);
    }
    let mut came: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    let key = |event: Option<Value>| event.expect("a message")["key"].as_str().unwrap().to_owned();
    let all = async {
        while came.len() < MESSAGES {
            tokio::select! {
                event = at_one.next() => came.entry(key(event)).or_default().push("one"),
                event = at_other.next() => came.entry(key(event)).or_default().push("other"),
            }
        }
    };
    tokio::time::timeout(LIMIT, all).await.expect("all come");
    // Also two polls later.
    let more = async {
        tokio::select! {
            event = at_one.next() => event,
            event = at_other.next() => event,
        }
    };
    let more = tokio::time::timeout(Duration::from_secs(3), more).await;
    assert!(more.is_err() && came.values().all(|servers| servers.len() == 1), "{came:?} {more:?}");
    let left = came.values().filter(|servers| **servers == ["one"]).count();
    drop(at_one);
    let rest = async {
        for _ in 0..left {
            let event = at_other.next().await.expect("a message");
            assert_eq!((&event["again"], came[event["key"].as_str().unwrap()][0]), (&json!(true), "one"));
        }
    };
    tokio::time::timeout(LIMIT, rest).await.expect("what was given back comes to the other");
}

/// A statement that lasts until the value is dropped.
struct LastingStatement(Child);

impl LastingStatement {
    fn start(nodes: &Nodes, sql: &str) -> Self {
        let mut psql = Command::new("psql");
        psql.args([&nodes.database.url(), "-X", "-q", "-c", sql]).stdout(Stdio::null());
        Self(psql.spawn().unwrap())
    }
}

impl Drop for LastingStatement {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[tokio::test]
async fn a_server_whose_look_hangs_believes_no_key() {
    let Some(Scene { nodes, one, other, app, .. }) = Scene::start("") else { return };
    let made = one.ok(&["app", "key", "create", "--name", "ci", "--scope", "admin"]);
    let with_key = client(&other, made["secret"].as_str().unwrap()).for_app(app.app().unwrap().to_owned());
    with_key.get("/v1/devices").await.unwrap();
    // Simulates a removal by another server, with an event that cannot be read.
    let removal =
        "DELETE FROM api_keys WHERE name = 'ci'; UPDATE sequences SET value = value + 1 WHERE name = 'event'";
    let _locked = LastingStatement::start(
        &nodes,
        "BEGIN; LOCK TABLE node_events IN ACCESS EXCLUSIVE MODE; SELECT pg_sleep(60)",
    );
    let held = "SELECT 1 FROM pg_locks WHERE mode = 'AccessExclusiveLock' AND relation = 'node_events'::regclass AND granted";
    until("the lock", || !rows(&nodes.database, held).is_empty()).await;
    rows(&nodes.database, removal);
    refused_in_time("the key is believed", async || with_key.get("/v1/devices").await.is_ok()).await;
}
