//! Repeating a request is harmless.

use std::collections::BTreeSet;

use reqwest::Method;
use serde_json::json;

use crate::harness::{Reading, durable_server, server};

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
    let body = json!({"cron": "0 9 * * *", "time_zone": "UTC", "message": {"target": "everyone", "data": {"k": "v"}}});
    let ask =
        || server.send(&tenant, Method::POST, "/v1/schedules").header("Idempotency-Key", "s").json(&body);
    let (first, again) = (ask().read().await, ask().read().await);
    assert_eq!((first.status, again.status, &first.body), (201, 201, &again.body));
    assert_eq!(again.headers["idempotent-replayed"], "true");
}
