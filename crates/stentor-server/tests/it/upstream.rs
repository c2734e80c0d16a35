//! Upstream messages of devices: listed, streamed, acknowledged, and retried.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use stentor_core::ports::store::UpstreamAction;

use reqwest::{Method, Response};
use serde_json::{Value, json};
use stentor_core::id::{DeviceId, UpstreamId};
use stentor_core::ports::store::UpstreamStore as _;
use stentor_core::time::Timestamp;
use stentor_core::upstream::{UpstreamKind, UpstreamMessage};
use stentor_server::config::Config;
use stentor_storage::sqlite::SqliteStore;

use crate::harness::{Reading, Server, Tenant, server_on_store};

/// A server with devices simulated in its store.
pub(crate) struct Devices {
    pub(crate) server: Server,
    pub(crate) tenant: Tenant,
    pub(crate) store: Arc<SqliteStore>,
}

impl Devices {
    pub(crate) async fn new() -> Self {
        Self::with(|_| {}).await
    }

    pub(crate) async fn with(change: impl FnOnce(&mut Config)) -> Self {
        let store = Arc::new(SqliteStore::temporary().expect("a store"));
        let server = server_on_store(Arc::clone(&store), change).await;
        let tenant = server.tenant().await;
        Self { server, tenant, store }
    }

    /// Stores a message of a device, as the gateway does; its number is its key.
    pub(crate) async fn says(&self, number: u64) -> UpstreamId {
        let millis = SystemTime::now().duration_since(UNIX_EPOCH).expect("a time").as_millis();
        let now = Timestamp::from_millis(i64::try_from(millis).expect("a time"));
        let message = UpstreamMessage {
            id: UpstreamId::from_raw(number),
            app: self.tenant.id.parse().expect("an id"),
            // The number of waiting messages of one device is limited.
            device: DeviceId::from_raw(1 + number / 90),
            kind: UpstreamKind::Message,
            key: number.to_string(),
            body: json!({"n": number.to_string()}).to_string(),
            created_at: now,
            expires_at: now.plus(Duration::from_secs(600)),
            attempts: 0,
            dead_reason: None,
        };
        let id = message.id;
        assert_eq!(self.store.keep_upstream(vec![message]).await, Ok(vec![true]));
        id
    }

    async fn events(&self) -> Events {
        let response =
            self.server.send(&self.tenant, Method::GET, "/v1/upstream").send().await.expect("an answer");
        assert_eq!(response.status(), 200);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Events { response, text: String::new() }
    }

    async fn acknowledge(&self, ids: &[String]) -> u64 {
        let reply = self.server.post(&self.tenant, "/v1/upstream/acknowledge", json!({"ids": ids})).await;
        reply["changed"].as_u64().expect("a count")
    }
}

/// An id that no message has.
const NOTHING: &str = "ups_0000000009999";

/// A stream that is read.
struct Events {
    response: Response,
    text: String,
}

impl Events {
    /// Reads this number of events; fails if the next one does not come within ten seconds.
    async fn take(&mut self, count: usize) -> Vec<Value> {
        let mut found = Vec::new();
        while found.len() < count {
            let Some((block, rest)) = self.text.split_once("\n\n") else {
                let piece = tokio::time::timeout(Duration::from_secs(10), self.response.chunk()).await;
                let piece = piece.expect("something comes").expect("it can be read").expect("it goes on");
                self.text.push_str(std::str::from_utf8(&piece).expect("UTF-8"));
                continue;
            };
            let data = block.lines().find_map(|line| line.strip_prefix("data: "));
            found.extend(data.map(|data| serde_json::from_str::<Value>(data).expect("JSON")));
            self.text = rest.to_owned();
        }
        found
    }
}

fn ids(events: &[Value]) -> Vec<String> {
    events.iter().map(|event| event["id"].as_str().expect("an id").to_owned()).collect()
}

#[tokio::test]
async fn what_waits_is_listed_by_the_page_until_it_is_acknowledged() {
    let devices = Devices::new().await;
    for number in 1..=3 {
        devices.says(number).await;
    }
    let page = devices.server.get(&devices.tenant, "/v1/upstream/messages?limit=2").await;
    let next = page["next"].as_str().expect("a cursor");
    assert_eq!(page["messages"][0]["data"], json!({"n": "1"}));
    let rest = devices.server.get(&devices.tenant, &format!("/v1/upstream/messages?after={next}")).await;
    assert_eq!(rest["messages"][0]["key"], "3");
    let all = ids(page["messages"].as_array().expect("a list"));
    assert_eq!(devices.acknowledge(&all).await, 2);
    assert_eq!(devices.acknowledge(&all).await, 0);
    let left = devices.server.get(&devices.tenant, "/v1/upstream/messages").await;
    assert_eq!(left["messages"].as_array().expect("a list").len(), 1);
    let none = devices.server.send(&devices.tenant, Method::POST, "/v1/upstream/acknowledge");
    let none = none.json(&json!({"ids": []})).read().await.refusal();
    assert_eq!((none.1.as_str(), none.2.as_deref()), ("invalid_field", Some("ids")));
}

#[tokio::test]
async fn a_stream_gives_a_hundred_and_more_when_they_are_acknowledged() {
    let devices = Devices::new().await;
    for number in 1..=101 {
        devices.says(number).await;
    }
    let mut events = devices.events().await;
    let first = events.take(100).await;
    assert_eq!((first[0]["key"].as_str(), first[0]["attempt"].as_u64()), (Some("1"), Some(1)));
    assert!(first.iter().all(|event| event.get("again").is_none()));
    assert!(events.text.is_empty(), "{}", events.text);
    assert_eq!(devices.acknowledge(&ids(&first)[..1]).await, 1);
    assert_eq!(events.take(1).await[0]["key"], "101");
    drop(events);
    let again = devices.events().await.take(100).await;
    assert_eq!((again[0]["key"].as_str(), again[0]["again"].as_bool()), (Some("2"), Some(true)));
    assert_eq!(again[0]["attempt"], 2);
}

#[tokio::test]
async fn a_dead_letter_is_listed_with_its_reason_and_waits_again() {
    let devices = Devices::new().await;
    let id = devices.says(7).await;
    let app = devices.tenant.id.parse().expect("an id");
    devices
        .store
        .change_upstream(app, &[id], UpstreamAction::Bury { reason: "nobody answered".to_owned() })
        .await
        .expect("buried");
    let dead = devices.server.get(&devices.tenant, "/v1/upstream/dead-letters").await;
    assert_eq!(dead["dead_letters"][0]["reason"], "nobody answered");
    let mut events = devices.events().await;
    let named = json!({"ids": [NOTHING, id.to_string()]});
    let retried = devices.server.post(&devices.tenant, "/v1/upstream/dead-letters/retry", named).await;
    let expected = json!({"changed": 1, "unchanged": 0, "unknown": 1, "unknown_ids": [NOTHING]});
    assert_eq!(retried, expected, "the rest waits again");
    assert_eq!(events.take(1).await[0]["id"], id.to_string());
}

#[tokio::test]
async fn a_key_of_another_app_or_without_the_scope_gets_no_stream() {
    let devices = Devices::new().await;
    let id = devices.says(1).await;
    let other = devices.server.tenant().await;
    let named = json!({"ids": [id.to_string()]});
    let reply = devices.server.post(&other, "/v1/upstream/acknowledge", named).await;
    let expected = json!({"changed": 0, "unchanged": 0, "unknown": 1, "unknown_ids": [id.to_string()]});
    assert_eq!(reply, expected, "as one that is not there");
    let own = json!({"ids": [id.to_string(), NOTHING, id.to_string()]});
    let reply = devices.server.post(&devices.tenant, "/v1/upstream/acknowledge", own).await;
    let expected = json!({"changed": 1, "unchanged": 1, "unknown": 1, "unknown_ids": [NOTHING]});
    assert_eq!(reply, expected, "the second time it was taken over already");
    let key = devices.server.key(&devices.tenant.id, &["register"]).await;
    let refused = devices.server.with_key(&key, Method::GET, "/v1/upstream").read().await;
    assert_eq!(refused.refusal().1, "forbidden");
}

fn shell(script: String) -> Vec<String> {
    vec!["/bin/sh".to_owned(), "-c".to_owned(), script]
}

/// Polls a path until its response fits.
pub(crate) async fn eventually(devices: &Devices, path: &str, fits: impl Fn(&Value) -> bool) -> Value {
    let patience = std::time::Instant::now() + Duration::from_secs(30);
    loop {
        let found = devices.server.get(&devices.tenant, path).await;
        if fits(&found) {
            return found;
        }
        assert!(std::time::Instant::now() < patience, "{path}: {found}");
    }
}

#[tokio::test]
async fn the_operators_command_gets_a_message_again_until_it_takes_it_over() {
    let folder = tempfile::tempdir().expect("a folder");
    let (seen, once) = (folder.path().join("seen"), folder.path().join("once"));
    let script =
        format!("cat >> {0}; echo >> {0}; mkdir {1} && exit 1; exit 0", seen.display(), once.display());
    let devices = Devices::with(|config| {
        config.upstream.command = shell(script);
        config.upstream.retry_base_ms = 10;
    })
    .await;
    let id = devices.says(1).await.to_string();
    let none = |found: &Value| found["messages"].as_array().is_some_and(Vec::is_empty);
    eventually(&devices, "/v1/upstream/messages", none).await;
    let seen = std::fs::read_to_string(seen).expect("what it was given");
    let seen: Vec<Value> = seen.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let received: Vec<_> = seen.iter().map(|one| (one["id"].as_str(), one["attempt"].as_u64())).collect();
    assert_eq!(received, [(Some(id.as_str()), Some(1)), (Some(id.as_str()), Some(2))]);
    assert_eq!((&seen[0]["app"], &seen[0]["data"]), (&json!(devices.tenant.id), &json!({"n": "1"})));
    assert_eq!((&seen[0]["again"], &seen[1]["again"]), (&json!(false), &json!(true)));
}

#[tokio::test]
async fn what_the_command_refuses_too_often_is_a_dead_letter() {
    let devices = Devices::with(|config| {
        config.upstream.command = shell("exit 7".to_owned());
        (config.upstream.retry_base_ms, config.upstream.attempts_max_count) = (1, 3);
    })
    .await;
    devices.says(1).await;
    let one = |found: &Value| found["dead_letters"].as_array().is_some_and(|all| all.len() == 1);
    let dead = eventually(&devices, "/v1/upstream/dead-letters", one).await;
    assert_eq!(dead["dead_letters"][0]["attempts"], 3);
    assert_eq!(dead["dead_letters"][0]["reason"], "the command ended with exit status: 7");
}
