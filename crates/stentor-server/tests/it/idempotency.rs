//! Repeating a request is harmless.

use std::collections::BTreeSet;

use reqwest::Method;
use serde_json::{Value, json};
use stentor_core::app::App;
use stentor_core::id::{AppId, MessageId, ScheduleId};
use stentor_core::message::{Content, Message, MessageSpec, Priority, Ttl};
use stentor_core::name::{IdempotencyKey, Label, TimeZoneName, TopicName};
use stentor_core::ports::store::{Idempotent, IdempotentReply, MessageStore, NewMessage, StoredReply};
use stentor_core::schedule::{CatchUp, Recurrence, Schedule, ScheduleState};
use stentor_core::target::Target;
use stentor_core::time::Timestamp;
use stentor_node::store_file;
use stentor_storage::conformance::PlainChanges;
use stentor_storage::sqlite::{SqliteSettings, SqliteStore};

use crate::harness::{Reading, Tenant, durable_server, server};

/// Time of the writes by earlier versions.
const NOW: Timestamp = Timestamp::from_millis(1_790_000_000_000);
/// The text of a reply as versions before the contract kept it with a schedule.
const SCHEDULE_REPLY: &str = concat!(
    r#"{"id":"sch_0000100000000","name":"n","cron":"0 9 * * *","time_zone":"UTC","until":"2099-01-01T00:00:00.000Z","#,
    r#""catch_up":"skip","exact":false,"state":"active","created_at":"2026-09-21T14:13:20.000Z","#,
    r#""next_due":"2026-09-22T09:00:00.000Z","message":{"target":{"topic":"news"},"notification":{"title":"t"},"#,
    r##""data":{"k":"v"},"android":{"notification":{"color":"#ffffff"}},"apns":{"payload":{"aps":{"badge":1}}},"##,
    r#""priority":"normal","ttl_seconds":60,"collapse_key":"c"},"#,
    r#""upcoming":["2026-09-22T09:00:00.000Z","2026-09-23T09:00:00.000Z"]}"#
);

#[tokio::test]
async fn a_repeat_gets_the_first_reply_again() {
    let server = server().await;
    let tenant = server.sender().await;
    let body = json!({"target": "everyone", "data": {"k": "v"}});
    let ask =
        || server.send(&tenant, Method::POST, "/v1/messages").header("Idempotency-Key", "k-1").json(&body);
    let (first, again) = (ask().read().await, ask().read().await);
    assert_eq!((first.status, again.status), (202, 202));
    assert_eq!(first.body, again.body);
    assert_eq!(first.headers["location"], again.headers["location"]);
    assert!(!first.headers.contains_key("idempotent-replayed"));
    assert_eq!(again.headers["idempotent-replayed"], "true");
}

#[tokio::test]
async fn the_same_key_with_another_request_is_refused() {
    let server = server().await;
    let tenant = server.sender().await;
    let ask = |value: &str| {
        let body = json!({"target": "everyone", "data": {"k": value}});
        server.send(&tenant, Method::POST, "/v1/messages").header("Idempotency-Key", "k-1").json(&body)
    };
    assert_eq!(ask("v").read().await.status, 202);
    let refused = ask("w").read().await.refusal();
    assert_eq!((refused.0, refused.1.as_str()), (422, "idempotency_key_reused"));
}

#[tokio::test]
async fn another_app_may_use_the_same_key() {
    let server = server().await;
    let (one, two) = (server.sender().await, server.sender().await);
    let body = json!({"target": "everyone", "data": {"k": "v"}});
    let ask =
        |tenant| server.send(tenant, Method::POST, "/v1/messages").header("Idempotency-Key", "k").json(&body);
    let (first, second) = (ask(&one).read().await, ask(&two).read().await);
    assert_ne!(first.text("id"), second.text("id"));
    assert!(!second.headers.contains_key("idempotent-replayed"));
}

#[tokio::test]
async fn a_hundred_concurrent_repeats_make_one_campaign_on_every_engine() {
    for server in [server().await, durable_server(tempfile::tempdir().expect("a folder")).await] {
        let tenant = server.sender().await;
        let body = json!({"target": "everyone", "data": {"k": "v"}});
        let ask = || {
            server.send(&tenant, Method::POST, "/v1/messages").header("Idempotency-Key", "once").json(&body)
        };
        let all = futures_util::future::join_all((0..100).map(|_| ask().read())).await;
        assert!(
            all.iter().all(|read| read.status == 202),
            "{:?}",
            all.iter().find(|read| read.status != 202)
        );
        let ids: BTreeSet<_> = all.iter().map(|read| read.text("id")).collect();
        assert_eq!(ids.len(), 1);
        let replayed = all.iter().filter(|read| read.headers.contains_key("idempotent-replayed")).count();
        assert_eq!(replayed, 99);
        let listed = server.get(&tenant, "/v1/campaigns").await;
        assert_eq!(listed["campaigns"].as_array().expect("a list").len(), 1);
    }
}

#[tokio::test]
async fn a_repeat_after_a_restart_gets_the_first_reply_again() {
    let server = durable_server(tempfile::tempdir().expect("a folder")).await;
    let tenant = server.sender().await;
    let body = json!({"target": "everyone", "data": {"k": "v"}});
    let first = server.send(&tenant, Method::POST, "/v1/messages").header("Idempotency-Key", "k").json(&body);
    let first = first.read().await;
    let server = durable_server(server.stop().await).await;
    let again = server.send(&tenant, Method::POST, "/v1/messages").header("Idempotency-Key", "k").json(&body);
    let again = again.read().await;
    assert_eq!(first.body, again.body);
    assert_eq!(again.headers["idempotent-replayed"], "true");
}

#[tokio::test]
async fn a_refused_request_does_not_use_up_its_key() {
    let server = server().await;
    let tenant = server.sender().await;
    let ask = |body: serde_json::Value| {
        server.send(&tenant, Method::POST, "/v1/messages").header("Idempotency-Key", "k").json(&body)
    };
    assert_eq!(ask(json!({"target": "everyone"})).read().await.status, 422);
    assert_eq!(ask(json!({"target": "everyone", "data": {"k": "v"}})).read().await.status, 202);
}

#[tokio::test]
async fn a_schedule_is_made_once() {
    let server = server().await;
    let tenant = server.sender().await;
    let message = json!({"target": {"topic": "news"}, "data": {"k": "v"}, "notification": {"title": "t"}, "priority": "normal",
        "android": {"notification": {"color": "#ffffff"}}, "apns": {"payload": {"aps": {"badge": 1}}}, "collapse_key": "c"});
    let body = json!({"name": "n", "cron": "0 9 * * *", "time_zone": "UTC", "until": "2099-01-01T00:00:00Z",
        "catch_up": "skip", "message": message});
    let ask =
        || server.send(&tenant, Method::POST, "/v1/schedules").header("Idempotency-Key", "s").json(&body);
    let (first, again) = (ask().read().await, ask().read().await);
    assert_eq!((first.status, again.status, &first.body), (201, 201, &again.body));
    assert_eq!(again.headers["idempotent-replayed"], "true");
}

#[tokio::test]
async fn a_repeat_is_known_by_what_it_asks_and_not_by_its_bytes() {
    let server = server().await;
    let tenant = server.sender().await;
    let ask = |body: &'static str| {
        let request = server.send(&tenant, Method::POST, "/v1/messages").header("Idempotency-Key", "k");
        request.header("content-type", "application/json").body(body)
    };
    let first =
        ask(r#"{"target": "everyone", "ttl_seconds": 60, "data": {"a": "1", "b": "2"}}"#).read().await;
    let again = ask(r#"{"data":{"b":"2","a":"1"},"ttl_seconds":60.0,"dry_run":false,"target":"everyone"}"#);
    let again = again.read().await;
    assert_eq!((first.status, again.status, &first.body), (202, 202, &again.body));
    assert_eq!(again.headers["idempotent-replayed"], "true");
    let other =
        ask(r#"{"target": "everyone", "ttl_seconds": 61, "data": {"a": "1", "b": "2"}}"#).read().await;
    assert_eq!(other.refusal().1, "idempotency_key_reused");
}

#[tokio::test]
async fn a_request_that_differs_in_any_field_is_another_one() {
    let server = server().await;
    let tenant = server.sender().await;
    let ask = |key: &str, body: &Value| {
        server.send(&tenant, Method::POST, "/v1/messages").header("Idempotency-Key", key).json(body)
    };
    let other = [
        ("target", json!({"topic": "news"})),
        ("notification", json!({"title": "t"})),
        ("data", json!({"k": "w"})),
        ("android", json!({"notification": {"color": "#ffffff"}})),
        ("apns", json!({"payload": {"aps": {"badge": 1}}})),
        ("priority", json!("normal")),
        ("ttl_seconds", json!(60)),
        ("collapse_key", json!("c")),
        ("dry_run", json!(true)),
        ("send_at", json!("2026-01-01T00:00:00Z")),
        ("exact", json!(true)),
    ];
    for (field, value) in other {
        let mut body = json!({"target": "everyone", "data": {"k": "v"}});
        assert_eq!(ask(field, &body).read().await.status, 202);
        body[field] = value;
        assert_eq!(ask(field, &body).read().await.refusal().1, "idempotency_key_reused", "{field}");
    }
}

/// Returns the stored reply of a version before the contract: a hash over method, path and body, and the reply's text.
fn kept_before(path: &str, body: &str, record: String) -> IdempotentReply {
    let mut hasher = blake3::Hasher::new();
    for part in ["POST", path, body] {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part.as_bytes());
    }
    let key = IdempotencyKey::new("old").expect("fits");
    IdempotentReply { key, request_hash: *hasher.finalize().as_bytes(), reply: StoredReply { record } }
}

/// Opens a store as it was before the server starts, with one app.
async fn store_with(folder: &std::path::Path, app: AppId) -> SqliteStore {
    let store = SqliteStore::open(store_file(folder), SqliteSettings::store()).expect("opens");
    let name = Label::new("before").expect("fits");
    store.create_app(&App { id: app, name, created_at: NOW }).await.expect("kept");
    store
}

/// Stores a message as versions before the contract did.
async fn keep_as_before(folder: &std::path::Path, app: AppId, body: &str) -> String {
    let id = MessageId::from_raw(1 << 40);
    let content = Content { data: [("k".to_owned(), "v".to_owned())].into(), ..Content::default() };
    let (priority, ttl) = (Priority::High, Ttl::default());
    let spec = MessageSpec { target: Target::Everyone, content, priority, ttl, collapse_key: None };
    let message = Message { id, app, spec, created_at: NOW, due_at: NOW, occurrence: None };
    let record = json!({"id": id, "campaign": "cmp_0000100000000", "state": "running"}).to_string();
    let idempotency = Some(kept_before("/v1/messages", body, record));
    let new = NewMessage { message, idempotency, at_once: None };
    let accepted = store_with(folder, app).await.accept(vec![new]).await.remove(0).expect("kept");
    assert!(matches!(accepted, Idempotent::Done(_)), "{accepted:?}");
    id.to_string()
}

#[tokio::test]
async fn a_reply_that_an_older_version_kept_is_given_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let body = json!({"target": "everyone", "data": {"k": "v"}}).to_string();
    let app = AppId::from_raw(7);
    let id = keep_as_before(folder.path(), app, &body).await;
    let server = durable_server(folder).await;
    let tenant = Tenant { key: server.key(&app.to_string(), &["admin"]).await, id: app.to_string() };
    let ask = |body: String| {
        let request = server.send(&tenant, Method::POST, "/v1/messages").header("Idempotency-Key", "old");
        request.header("content-type", "application/json").body(body)
    };
    let again = ask(body).read().await;
    assert_eq!((again.status, again.text("id")), (202, id.clone()));
    assert_eq!(again.headers["location"], format!("/v1/messages/{id}"));
    assert_eq!(again.headers["idempotent-replayed"], "true");
    assert_eq!(again.body["state"], Value::from("running"));
    let other = ask(json!({"target": "everyone", "data": {"k": "w"}}).to_string()).read().await;
    assert_eq!(other.refusal().1, "idempotency_key_reused");
}

/// Stores a schedule as versions before the contract did.
async fn keep_schedule_as_before(folder: &std::path::Path, app: AppId, body: &str) {
    let content = Content { data: [("k".to_owned(), "v".to_owned())].into(), ..Content::default() };
    let target = Target::Topic(TopicName::new("news").expect("fits"));
    let (priority, ttl) = (Priority::Normal, Ttl::default());
    let schedule = Schedule {
        id: ScheduleId::from_raw(1 << 40),
        app,
        name: None,
        spec: MessageSpec { target, content, priority, ttl, collapse_key: None },
        recurrence: Recurrence {
            cron: "0 9 * * *".to_owned(),
            time_zone: TimeZoneName::new("UTC").expect("fits"),
            until: None,
            catch_up: CatchUp::Skip,
            exact: false,
        },
        state: ScheduleState::Active,
        created_at: NOW,
        next_due: None,
        last_fired: None,
    };
    let idempotency = kept_before("/v1/schedules", body, SCHEDULE_REPLY.to_owned());
    let accepted = store_with(folder, app).await.create_schedule(&schedule, Some(idempotency)).await;
    assert!(matches!(accepted.expect("kept"), Idempotent::Done(())));
}

#[tokio::test]
async fn a_schedules_reply_that_an_older_version_kept_is_given_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let message = json!({"target": {"topic": "news"}, "data": {"k": "v"}});
    let body = |cron: &str| json!({"cron": cron, "time_zone": "UTC", "message": message}).to_string();
    let app = AppId::from_raw(7);
    keep_schedule_as_before(folder.path(), app, &body("0 9 * * *")).await;
    let server = durable_server(folder).await;
    let tenant = Tenant { key: server.key(&app.to_string(), &["admin"]).await, id: app.to_string() };
    let ask = |body: String| {
        let request = server.send(&tenant, Method::POST, "/v1/schedules").header("Idempotency-Key", "old");
        request.header("content-type", "application/json").body(body)
    };
    let again = ask(body("0 9 * * *")).read().await;
    let stored: Value = serde_json::from_str(SCHEDULE_REPLY).expect("JSON");
    assert_eq!((again.status, &again.body), (201, &stored));
    assert_eq!(again.headers["location"], "/v1/schedules/sch_0000100000000");
    assert_eq!(again.headers["idempotent-replayed"], "true");
    assert_eq!(ask(body("0 8 * * *")).read().await.refusal().1, "idempotency_key_reused");
}
