//! Devices of the gateway over HTTP: they register themselves, receive messages, confirm them, and send upstream messages.

mod audiences;
mod claims;
mod cursor;
mod faults;
mod mcs_faults;
mod sealed;
mod stream_faults;

use std::time::Duration;

use reqwest::{Method, RequestBuilder, Response};
use serde_json::{Value, json};
use stentor_server::config::Engine;

use crate::harness::{Read, Reading, Server, Tenant, server, server_on, server_with};

/// A device that has registered itself.
struct Device {
    id: String,
    token: String,
    secret: String,
}

impl Device {
    async fn join(server: &Server, tenant: &Tenant, details: Value) -> Self {
        let key = server.key(&tenant.id, &["join"]).await;
        let read = server.with_key(&key, Method::POST, "/gateway/v1/devices").json(&details).read().await;
        assert_eq!(read.status, 201, "{read:?}");
        Self::of(&read.body)
    }

    fn of(joined: &Value) -> Self {
        let text = |name: &str| joined[name].as_str().expect("a text").to_owned();
        Self { id: text("device"), token: text("token"), secret: text("secret") }
    }

    fn ask(&self, server: &Server, method: Method, path: &str) -> RequestBuilder {
        server.open(method, path).basic_auth(&self.token, Some(&self.secret))
    }

    async fn poll(&self, server: &Server, query: &str) -> Value {
        let read = self.ask(server, Method::GET, &format!("/gateway/v1/messages?{query}")).read().await;
        assert_eq!(read.status, 200, "{read:?}");
        read.body
    }

    async fn events(&self, server: &Server, query: &str) -> Events {
        Events::of(self.ask(server, Method::GET, &format!("/gateway/v1/events{query}"))).await
    }
}

/// A stream of events.
struct Events {
    response: Response,
    text: String,
    /// The id of the last one.
    last_id: String,
}

impl Events {
    async fn of(request: RequestBuilder) -> Self {
        let mut response = request.send().await.expect("a stream");
        // At once, so that a client that waits for the first bytes knows that the stream is open.
        assert_eq!(response.chunk().await.expect("open").as_deref(), Some(&b": open\n\n"[..]));
        Self { response, text: String::new(), last_id: String::new() }
    }

    /// Waits for the next message; returns its id and content.
    async fn next(&mut self) -> (String, Value) {
        loop {
            if let Some((event, rest)) = self.text.split_once("\n\n") {
                let field =
                    |name: &str| event.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
                let found: Option<(String, Value)> = field("id:")
                    .zip(field("data:"))
                    .map(|(id, data)| (id.to_owned(), serde_json::from_str(data).expect("JSON")));
                self.text = rest.to_owned();
                let Some((id, data)) = found else { continue };
                self.last_id = id;
                return (data["id"].as_str().expect("an id").to_owned(), data);
            }
            let more = tokio::time::timeout(Duration::from_secs(20), self.response.chunk()).await;
            let more = more.expect("an event in time").expect("read").expect("not at its end");
            self.text.push_str(std::str::from_utf8(&more).expect("text"));
        }
    }
}

async fn send(server: &Server, tenant: &Tenant, target: Value, title: &str) -> String {
    let body = json!({"target": target, "notification": {"title": title}, "data": {"n": "1"}});
    let sent = server.post(tenant, "/v1/messages", body).await;
    sent["id"].as_str().expect("an id").to_owned()
}

async fn totals(server: &Server, tenant: &Tenant, message: &str) -> (u64, u64) {
    let ledger = server.ended(tenant, &message.replace("msg_", "cmp_")).await;
    let count = |name: &str| ledger["totals"][name].as_u64().expect("a count");
    (count("accepted"), count("delivered"))
}

#[tokio::test]
async fn devices_that_their_app_registers_or_imports_need_no_credential() {
    let server = server().await;
    let device = json!({"platform": "linux", "provider": "gateway", "token": "from-elsewhere"});
    let ways = [
        ("/v1/devices", device.clone()),
        ("/v1/devices/bulk", json!({"devices": [device]})),
        ("/v1/devices/import?format=ndjson", device.clone()),
    ];
    let message = json!({"target": "everyone", "notification": {"title": "Hi"}});
    for (path, body) in ways {
        let tenant = server.tenant().await;
        server.post(&tenant, "/v1/devices/import?format=ndjson&dry_run=true", device.clone()).await;
        let refused = server.send(&tenant, Method::POST, "/v1/messages").json(&message).read().await;
        assert_eq!(refused.refusal().1, "conflict", "a dry run changes nothing");
        server.post(&tenant, path, body).await;
        let sent = server.post(&tenant, "/v1/messages", message.clone()).await;
        let id = sent["id"].as_str().expect("an id").to_owned();
        assert_eq!(totals(&server, &tenant, &id).await, (1, 0), "{path}");
    }
}

#[tokio::test]
async fn a_device_gets_what_is_sent_to_it_and_the_ledger_counts_what_it_confirms() {
    for engine in [Engine::Memory, Engine::Sqlite] {
        let server = server_on(engine, |_| {}).await;
        let tenant = server.tenant().await;
        let device = Device::join(&server, &tenant, json!({})).await;
        let message = send(&server, &tenant, json!({"devices": [device.id]}), "Hi").await;
        assert_eq!(totals(&server, &tenant, &message).await, (1, 0), "accepted, nobody has it yet");
        let got = device.poll(&server, "wait_seconds=20").await;
        let first = &got["messages"][0];
        assert_eq!(
            (first["id"].as_str(), &first["notification"]["title"]),
            (Some(message.as_str()), &json!("Hi"))
        );
        assert_eq!(first["data"], json!({"n": "1"}));
        let again = device.poll(&server, "wait_seconds=20").await;
        assert_eq!(again["messages"][0]["id"], json!(message), "it was not confirmed");
        let cursor = again["cursor"].as_str().expect("a cursor");
        let after = device.poll(&server, &format!("wait_seconds=0&after={cursor}")).await;
        assert_eq!(after["messages"], json!([]));
        assert_eq!(totals(&server, &tenant, &message).await, (1, 1));
        let history = server.get(&tenant, &format!("/v1/devices/{}/deliveries", device.id)).await;
        assert!(history.to_string().contains("delivered"), "{history}");
    }
}

#[tokio::test]
async fn a_connected_device_gets_messages_as_events_and_confirms_them() {
    let server = server().await;
    let tenant = server.tenant().await;
    let device = Device::join(&server, &tenant, json!({})).await;
    let mut events = device.events(&server, "").await;
    let everyone = send(&server, &tenant, json!("everyone"), "All").await;
    let (id, data) = events.next().await;
    assert_eq!((&id, &data["notification"]["title"]), (&everyone, &json!("All")));
    let receipt = device.ask(&server, Method::POST, "/gateway/v1/receipts");
    let read = receipt.json(&json!({"messages": [everyone, everyone]})).read().await;
    assert_eq!((read.status, &read.body["confirmed"]), (200, &json!(1)));
    assert_eq!(totals(&server, &tenant, &everyone).await, (1, 1));
    let second = send(&server, &tenant, json!({"devices": [device.id]}), "Two").await;
    assert_eq!(events.next().await.0, second);
}

#[tokio::test]
async fn what_is_written_counts_as_delivered_where_the_device_asks_for_that() {
    let server = server().await;
    let tenant = server.tenant().await;
    let device = Device::join(&server, &tenant, json!({})).await;
    let one = send(&server, &tenant, json!({"devices": [device.id]}), "One").await;
    let mut events = device.events(&server, "?confirm=written").await;
    assert_eq!(events.next().await.0, one);
    let two = send(&server, &tenant, json!({"devices": [device.id]}), "Two").await;
    assert_eq!(events.next().await.0, two);
    assert_eq!(totals(&server, &tenant, &one).await, (1, 1), "the second was written after the first");
}

#[tokio::test]
async fn topics_that_a_device_subscribes_to_reach_it() {
    let server = server().await;
    let tenant = server.tenant().await;
    let device = Device::join(&server, &tenant, json!({"topics": ["news"]})).await;
    let path = "/gateway/v1/device/topics/sport";
    assert_eq!(device.ask(&server, Method::PUT, path).read().await.status, 204);
    let own = device.ask(&server, Method::GET, "/gateway/v1/device").read().await;
    assert_eq!(own.body["topics"], json!(["news", "sport"]));
    let sport = send(&server, &tenant, json!({"topic": "sport"}), "Goal").await;
    let got = device.poll(&server, "wait_seconds=20").await;
    assert_eq!(got["messages"][0]["id"], json!(sport));
    assert_eq!(device.ask(&server, Method::DELETE, path).read().await.status, 204);
    let own = device.ask(&server, Method::GET, "/gateway/v1/device").read().await;
    assert_eq!(own.body["topics"], json!(["news"]));
}

#[tokio::test]
async fn a_key_of_devices_registers_and_does_nothing_else() {
    let server = server().await;
    let tenant = server.tenant().await;
    let key = server.key(&tenant.id, &["join"]).await;
    for path in ["/v1/devices", "/v1/messages", "/v1/topics"] {
        let read = server.with_key(&key, Method::GET, path).read().await;
        assert_eq!(read.status, 403, "{path}: {read:?}");
    }
    let sender = server.key(&tenant.id, &["send"]).await;
    let read = server.with_key(&sender, Method::POST, "/gateway/v1/devices").json(&json!({})).read().await;
    assert_eq!(read.status, 403);
    let read = server.open(Method::POST, "/gateway/v1/devices").json(&json!({})).read().await;
    assert_eq!(read.status, 401);
}

#[tokio::test]
async fn a_wrong_secret_an_old_token_and_a_removed_device_are_refused() {
    let server = server().await;
    let tenant = server.tenant().await;
    let device = Device::join(&server, &tenant, json!({})).await;
    let refused = async |device: &Device| {
        let read: Read = device.ask(&server, Method::GET, "/gateway/v1/device").read().await;
        read.status == 401
    };
    assert!(!refused(&device).await);
    let wrong = Device { id: device.id.clone(), token: device.token.clone(), secret: "wrong".to_owned() };
    assert!(refused(&wrong).await);
    let read = device.ask(&server, Method::POST, "/gateway/v1/device/token").read().await;
    let renewed = Device::of(&read.body);
    assert_eq!(renewed.id, device.id);
    assert!(!refused(&device).await, "a device that has not kept the new token yet is not locked out");
    assert!(!refused(&renewed).await);
    assert!(refused(&device).await, "the old token opens nothing once the new one was used");
    let message = send(&server, &tenant, json!({"devices": [device.id]}), "Hi").await;
    assert_eq!(renewed.poll(&server, "wait_seconds=20").await["messages"][0]["id"], json!(message));
    let mut events = renewed.events(&server, "").await;
    assert_eq!(events.next().await.0, message);
    let removed = server.send(&tenant, Method::DELETE, &format!("/v1/devices/{}", device.id)).read().await;
    assert_eq!(removed.status, 204);
    assert!(refused(&renewed).await);
    let end = tokio::time::timeout(Duration::from_secs(20), events.response.chunk()).await;
    assert!(matches!(end.expect("in time"), Ok(None) | Err(_)), "a lost device is cut off at once");
}

#[tokio::test]
async fn a_device_that_its_app_gives_another_token_is_cut_off_and_one_that_keeps_its_own_is_not() {
    let server = server().await;
    let tenant = server.tenant().await;
    let device = Device::join(&server, &tenant, json!({})).await;
    let path = format!("/v1/devices/{}", device.id);
    let platform = server.get(&tenant, &path).await["platform"].clone();
    let put = async |token: &str| {
        let details = json!({"platform": platform, "provider": "gateway", "token": token});
        let read = server.send(&tenant, Method::PUT, &path).json(&details).read().await;
        assert_eq!(read.status, 200, "{read:?}");
    };
    let mut events = device.events(&server, "").await;
    put(&device.token).await;
    let message = send(&server, &tenant, json!({"devices": [device.id]}), "Hi").await;
    assert_eq!(events.next().await.0, message, "nothing has changed for it");
    put("another").await;
    let end = tokio::time::timeout(Duration::from_secs(20), events.response.chunk()).await;
    assert!(matches!(end.expect("in time"), Ok(None) | Err(_)), "the former token reads nothing more");
}

#[tokio::test]
async fn a_quiet_stream_is_kept_longer_than_an_idle_connection() {
    let server = server_with(|config| config.api.connection_idle_timeout_seconds = 1).await;
    let tenant = server.tenant().await;
    let device = Device::join(&server, &tenant, json!({})).await;
    let mut events = device.events(&server, "").await;
    // It comes after 30 seconds, when an idle connection is long closed.
    let heartbeat = tokio::time::timeout(Duration::from_secs(60), events.response.chunk()).await;
    assert_eq!(heartbeat.expect("in time").expect("not cut off").as_deref(), Some(&b":\n\n"[..]));
    let message = send(&server, &tenant, json!({"devices": [device.id]}), "Hi").await;
    assert_eq!(events.next().await.0, message);
}

#[tokio::test]
async fn a_message_of_a_device_is_kept_once() {
    let server = server().await;
    let tenant = server.tenant().await;
    let device = Device::join(&server, &tenant, json!({})).await;
    let ask = |body: Value| device.ask(&server, Method::POST, "/gateway/v1/upstream").json(&body).read();
    let body = json!({"message_id": "m-1", "data": {"temperature": "21"}});
    let first = ask(body.clone()).await;
    assert_eq!((first.status, &first.body["repeated"]), (202, &json!(false)));
    assert_eq!(ask(body).await.body["repeated"], json!(true));
    let bad = ask(json!({"message_id": "", "data": {}})).await;
    assert_eq!((bad.status, &bad.body["field"]), (422, &json!("message_id")));
    let large = ask(json!({"message_id": "m-2", "data": {"x": "y".repeat(5_000)}})).await;
    assert_eq!((large.status, &large.body["field"]), (422, &json!("data")));
}
