//! Messages, campaigns, schedules.

use std::time::{Duration, Instant};

use reqwest::Method;
use serde_json::{Value, json};
use stentor_storage::conformance::value_damage::{ValueDamage, apply, possible};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use crate::harness::{Reading, Server, Tenant, durable_server, server};
use crate::limits::metric;

fn text() -> Value {
    json!({"target": "everyone", "notification": {"title": "Hi", "body": "there"}})
}

async fn campaign(server: &Server, tenant: &Tenant, body: Value) -> String {
    let sent = server.post(tenant, "/v1/messages", body).await;
    sent["campaign"].as_str().expect("an id").to_owned()
}

#[tokio::test]
async fn every_message_of_many_callers_reaches_its_device() {
    let server = durable_server(tempfile::tempdir().expect("a folder")).await;
    let tenant = server.sender().await;
    let device = server.device(&tenant, "t0").await;
    let body = json!({"target": {"device": device}, "notification": {"title": "Hi"}});
    let ask = || server.send(&tenant, Method::POST, "/v1/messages").json(&body).read();
    // Far more concurrent callers than messages that can begin at once.
    let sent = futures_util::future::join_all((0..200).map(|_| ask())).await;
    for one in sent {
        assert_eq!(one.status, 202, "{:?}", one.body);
        let ledger = server.ended(&tenant, &one.text("campaign")).await;
        assert_eq!((&ledger["state"], &ledger["totals"]["accepted"]), (&json!("finished"), &json!(1)));
    }
}

/// Sends a request on a connection of its own, and closes it without waiting for the answer.
async fn send_and_leave(server: &Server, tenant: &Tenant, body: &str) {
    let host = server.url.strip_prefix("http://").expect("plain");
    let mut stream = TcpStream::connect(host).await.expect("connected");
    let head = format!(
        "POST /v1/messages HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        tenant.key,
        body.len()
    );
    stream.write_all(format!("{head}{body}").as_bytes()).await.expect("written");
}

#[tokio::test]
async fn a_message_of_a_caller_that_goes_away_is_sent_once_and_soon_or_not_at_all() {
    let server = durable_server(tempfile::tempdir().expect("a folder")).await;
    let tenant = server.sender().await;
    let device = server.device(&tenant, "t0").await;
    let body = json!({"target": {"device": device}, "notification": {"title": "Hi"}});
    // The first makes the provider ready; the others can be sent at once.
    server.ended(&tenant, &campaign(&server, &tenant, body.clone()).await).await;
    for _ in 0..50 {
        send_and_leave(&server, &tenant, &body.to_string()).await;
    }
    // The server has noticed that they are gone: the connection of the test's own client is left.
    while metric(&server, "stentor_connections_open").await > 1 {}
    // Well before a lease that nobody holds runs out.
    let patience = Instant::now() + Duration::from_secs(30);
    loop {
        let listed = server.get(&tenant, "/v1/campaigns?limit=100").await;
        let campaigns = listed["campaigns"].as_array().expect("a list");
        if campaigns.len() > 1 && campaigns.iter().all(|one| one["state"] == "finished") {
            break;
        }
        assert!(Instant::now() < patience, "{listed}");
    }
}

#[tokio::test]
async fn a_message_reaches_everyone_and_the_books_balance() {
    let server = server().await;
    let tenant = server.sender().await;
    for n in 0..7 {
        server.device(&tenant, &format!("t{n}")).await;
    }
    let sent = server.send(&tenant, Method::POST, "/v1/messages").json(&text()).read().await;
    assert_eq!((sent.status, sent.text("state")), (202, "running".to_owned()));
    assert_eq!(sent.headers["location"], format!("/v1/messages/{}", sent.text("id")));
    let ledger = server.ended(&tenant, &sent.text("campaign")).await;
    assert_eq!(
        (&ledger["state"], &ledger["audience"], &ledger["totals"]["accepted"]),
        (&json!("finished"), &json!(7), &json!(7))
    );
    assert_eq!((&ledger["audience_complete"], &ledger["attempts"]), (&json!(true), &json!(7)));
    let same = server.get(&tenant, &format!("/v1/messages/{}/ledger", sent.text("id"))).await;
    assert_eq!(same["totals"], ledger["totals"]);
    let shown = server.get(&tenant, &format!("/v1/messages/{}", sent.text("id"))).await;
    assert_eq!((&shown["target"], &shown["notification"]["body"]), (&json!("everyone"), &json!("there")));
    let listed = server.get(&tenant, "/v1/messages").await;
    assert_eq!(listed["messages"][0]["id"], sent.body["id"]);
}

#[tokio::test]
async fn each_target_reaches_its_devices() {
    let server = server().await;
    let tenant = server.sender().await;
    let body =
        json!({"platform": "android", "provider": "null", "token": "a", "user": "u", "topics": ["x", "y"]});
    let a = server.post(&tenant, "/v1/devices", body).await["id"].clone();
    let body = json!({"platform": "android", "provider": "null", "token": "b", "topics": ["x"]});
    let b = server.post(&tenant, "/v1/devices", body).await["id"].clone();
    server.send(&tenant, Method::PUT, "/v1/groups/g").read().await;
    server.post(&tenant, "/v1/groups/g/members", json!({"users": ["u"], "devices": [b]})).await;
    let cases = [
        (json!({"device": a}), 1),
        (json!({"devices": [a, b]}), 2),
        (json!({"token": {"platform": "android", "provider": "null", "token": "new"}}), 1),
        (json!({"user": "u"}), 1),
        (json!({"group": "g"}), 2),
        (json!({"topic": "x"}), 2),
        (json!({"condition": "'x' in topics && !('y' in topics)"}), 1),
        (json!("everyone"), 2),
    ];
    for (target, reached) in cases {
        let id = campaign(&server, &tenant, json!({"target": target, "data": {"k": "v"}})).await;
        let ledger = server.ended(&tenant, &id).await;
        assert_eq!(ledger["totals"]["accepted"], reached, "{target}: {ledger}");
    }
}

#[tokio::test]
async fn one_devices_history_can_be_asked_for() {
    let server = server().await;
    let tenant = server.sender().await;
    let device = server.device(&tenant, "t").await;
    let id = campaign(&server, &tenant, text()).await;
    server.ended(&tenant, &id).await;
    let history = server.get(&tenant, &format!("/v1/devices/{device}/deliveries")).await;
    let entry = &history["deliveries"][0];
    assert_eq!(
        (&entry["state"], &entry["attempt"], &entry["ambiguous"]),
        (&json!("accepted"), &json!(1), &json!(false))
    );
    let message = entry["message"].as_str().expect("an id");
    let one = server.get(&tenant, &format!("/v1/messages/{message}/deliveries/{device}")).await;
    assert_eq!(&one["deliveries"][0], entry);
    let stranger =
        server.send(&tenant, Method::GET, &format!("/v1/messages/{message}/deliveries/dev_0000000009999"));
    assert_eq!(stranger.read().await.refusal().0, 404);
}

#[tokio::test]
async fn a_dry_run_counts_and_keeps_nothing() {
    let server = server().await;
    let tenant = server.sender().await;
    server.device(&tenant, "t").await;
    let mut body = text();
    body["dry_run"] = json!(true);
    let read = server.send(&tenant, Method::POST, "/v1/messages").json(&body).read().await;
    assert_eq!((read.status, &read.body["dry_run"]), (200, &json!(true)));
    assert_eq!(read.body["audience"], json!({"total": 1, "providers": {"null": 1}}));
    assert_eq!(server.get(&tenant, "/v1/messages").await["messages"], json!([]));
}

#[tokio::test]
async fn without_a_credential_sending_is_a_conflict_that_says_what_to_do() {
    let server = server().await;
    let tenant = server.tenant().await;
    let read = server.send(&tenant, Method::POST, "/v1/messages").json(&text()).read().await;
    assert_eq!(read.refusal().1, "conflict");
    assert!(read.text("hint").contains("/credentials/"), "{read:?}");
}

#[tokio::test]
async fn a_target_that_does_not_exist_is_refused_by_field() {
    let server = server().await;
    let tenant = server.sender().await;
    for target in [json!({"device": "dev_0000000000009"}), json!({"group": "none"}), json!({"topic": "none"})]
    {
        let body = json!({"target": target, "data": {"k": "v"}});
        let read = server.send(&tenant, Method::POST, "/v1/messages").json(&body).read().await;
        assert_eq!(read.refusal(), (404, "not_found".to_owned(), Some("target".to_owned())), "{target}");
    }
}

#[tokio::test]
async fn an_audience_for_later_leaves_the_full_minute_unless_it_is_exact() {
    let server = server().await;
    let tenant = server.sender().await;
    let tomorrow = jiff::Timestamp::now() + jiff::SignedDuration::from_hours(24);
    let minute = jiff::Timestamp::from_second(tomorrow.as_second() / 60 * 60).expect("an instant");
    for exact in [true, false] {
        let body =
            json!({"target": "everyone", "data": {"k": "v"}, "send_at": minute.to_string(), "exact": exact});
        let sent = server.post(&tenant, "/v1/messages", body).await;
        let path = format!("/v1/campaigns/{}", sent["campaign"].as_str().expect("an id"));
        let due_at = server.get(&tenant, &path).await["due_at"].as_str().expect("an instant").to_owned();
        let due_at: jiff::Timestamp = due_at.parse().expect("an instant");
        let after = due_at.as_millisecond() - minute.as_millisecond();
        assert!((0..=30_000).contains(&after) && (after == 0) == exact, "exact {exact}: {after} ms after");
    }
}

#[tokio::test]
async fn a_scheduled_message_waits_and_can_be_canceled() {
    let server = server().await;
    let tenant = server.sender().await;
    server.device(&tenant, "t").await;
    let mut body = text();
    body["send_at"] = json!("2999-01-01T00:00:00Z");
    let far = server.send(&tenant, Method::POST, "/v1/messages").json(&body).read().await;
    assert_eq!(far.refusal().2.as_deref(), Some("send_at"));
    let soon = jiff::Timestamp::now() + jiff::SignedDuration::from_hours(24);
    body["send_at"] = json!(soon.to_string());
    let sent = server.send(&tenant, Method::POST, "/v1/messages").json(&body).read().await;
    assert_eq!(sent.text("state"), "scheduled");
    let path = format!("/v1/campaigns/{}", sent.text("campaign"));
    let paused = server.post(&tenant, &format!("{path}/pause"), json!({})).await;
    assert_eq!(paused["state"], "paused");
    assert_eq!(server.post(&tenant, &format!("{path}/resume"), json!({})).await["state"], "scheduled");
    assert_eq!(server.post(&tenant, &format!("{path}/cancel"), json!({})).await["state"], "canceled");
    let late = server.send(&tenant, Method::POST, &format!("{path}/resume")).read().await;
    assert_eq!(late.refusal().1, "conflict");
}

#[tokio::test]
async fn a_schedule_shows_what_comes_next_and_can_be_held_and_ended() {
    let server = server().await;
    let tenant = server.sender().await;
    let body = json!({"name": "morning", "cron": "0 9 * * *", "time_zone": "Europe/Rome",
        "message": {"target": {"token": {"platform": "android", "provider": "null", "token": "hush-token"}}, "data": {"k": "v"}}});
    let made = server.send(&tenant, Method::POST, "/v1/schedules").json(&body).read().await;
    assert_eq!((made.status, made.text("state")), (201, "active".to_owned()));
    assert_eq!(made.body["upcoming"].as_array().expect("a list").len(), 5);
    assert_eq!(made.body["upcoming"][0], made.body["next_due"]);
    assert!(!made.body.to_string().contains("hush-token"), "{made:?}");
    let path = format!("/v1/schedules/{}", made.text("id"));
    assert_eq!(made.headers["location"], path);
    let held = server.post(&tenant, &format!("{path}/pause"), json!({})).await;
    assert_eq!((&held["state"], &held["upcoming"]), (&json!("paused"), &json!([])));
    assert_eq!(server.post(&tenant, &format!("{path}/resume"), json!({})).await["state"], "active");
    assert_eq!(server.get(&tenant, "/v1/schedules").await["schedules"][0]["name"], "morning");
    assert_eq!(server.post(&tenant, &format!("{path}/cancel"), json!({})).await["state"], "canceled");
    assert_eq!(server.get(&tenant, &path).await["state"], "canceled");
    let late = server.send(&tenant, Method::POST, &format!("{path}/pause")).read().await;
    assert_eq!(late.refusal().1, "conflict");
    assert_eq!(server.send(&tenant, Method::DELETE, &path).read().await.status, 204);
    assert_eq!(server.get(&tenant, "/v1/schedules").await["schedules"], json!([]));
    for (method, path) in
        [(Method::GET, path.clone()), (Method::DELETE, path.clone()), (Method::POST, format!("{path}/pause"))]
    {
        assert_eq!(server.send(&tenant, method, &path).read().await.status, 404, "{path}");
    }
}

#[tokio::test]
async fn a_schedule_that_cannot_be_read_is_named_until_it_is_canceled_or_deleted() {
    let server = durable_server(tempfile::tempdir().expect("a folder")).await;
    let tenant = server.sender().await;
    let body = json!({"cron": "0 9 * * *", "time_zone": "UTC", "message": {"target": "everyone", "data": {"k": "v"}}});
    for _ in 0..2 {
        server.post(&tenant, "/v1/schedules", body.clone()).await;
    }
    let folder = server.stop().await;
    let path = folder.path().join("stentor.db");
    let before = folder.path().join("before.db");
    std::fs::copy(&path, &before).expect("copied");
    let is_meant = |damage: &ValueDamage| (&*damage.table, &*damage.column) == ("schedules", "recurrence");
    let damage = possible(&path).into_iter().find(is_meant).expect("a column");
    assert_eq!(apply(&path, &before, &damage), 2);
    let server = durable_server(folder).await;
    let damaged = server.get(&tenant, "/v1/schedules").await["damaged"].clone();
    let ids: Vec<_> =
        damaged.as_array().expect("a list").iter().map(|id| id.as_str().expect("an id")).collect();
    let canceled = format!("/v1/schedules/{}/cancel", ids[0]);
    assert_eq!(server.send(&tenant, Method::POST, &canceled).read().await.status, 204);
    assert_eq!(server.get(&tenant, "/v1/schedules").await["damaged"], json!([ids[1]]));
    let deleted = format!("/v1/schedules/{}", ids[1]);
    assert_eq!(server.send(&tenant, Method::DELETE, &deleted).read().await.status, 204);
    assert_eq!(server.get(&tenant, "/v1/schedules").await, json!({"schedules": []}));
}

#[tokio::test]
async fn a_schedule_that_makes_no_sense_is_refused_by_field() {
    let server = server().await;
    let tenant = server.sender().await;
    let good = json!({"cron": "0 9 * * *", "time_zone": "Europe/Rome", "message": {"target": "everyone", "data": {"k": "v"}}});
    let wrong = [
        ("cron", json!("whenever")),
        ("cron", json!("0 0 31 2 *")),
        ("time_zone", json!("Mars/Olympus")),
        ("until", json!("yesterday")),
        ("catch_up", json!("sometimes")),
        (
            "message.send_at",
            json!({"target": "everyone", "data": {"k": "v"}, "send_at": "2026-01-01T00:00:00Z"}),
        ),
        ("message.notification", json!({"target": "everyone"})),
    ];
    for (field, value) in wrong {
        let mut body = good.clone();
        body[field.split('.').next().expect("a name")] = value;
        let read = server.send(&tenant, Method::POST, "/v1/schedules").json(&body).read().await;
        assert_eq!(read.refusal(), (422, "invalid_field".to_owned(), Some(field.to_owned())), "{body}");
    }
}
