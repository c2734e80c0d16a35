//! The waiting messages of one app do not affect others.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{Read, Reading, Server, Tenant, server_with};

/// A refusal names the push service within this time. Several intervals between two readings of the depths.
const NAMED_WITHIN: Duration = Duration::from_secs(60);

/// Chunks that may wait.
pub(crate) const ROOM: u64 = 20;

async fn send(server: &Server, tenant: &Tenant, target: &Value) -> Read {
    let body = json!({"target": target, "data": {"k": "v"}});
    server.send(tenant, Method::POST, "/v1/messages").json(&body).read().await
}

/// Registers a device at FCM, for which the app has no credential.
pub(crate) async fn stranded(server: &Server, tenant: &Tenant) -> Value {
    let body = json!({"platform": "android", "token": "stranded"});
    json!({"device": server.post(tenant, "/v1/devices", body).await["id"]})
}

/// Sends until the refusal names the push service; returns the number of messages accepted until then.
pub(crate) async fn fill(server: &Server, tenant: &Tenant, target: &Value) -> (u64, Read) {
    let mut accepted = 0;
    let began = Instant::now();
    // By time: the server learns from the next reading of the depths that the lane rests, however many requests it refuses before.
    while began.elapsed() < NAMED_WITHIN {
        let answer = send(server, tenant, target).await;
        match answer.status {
            202 => accepted += 1,
            _ if answer.text("detail").contains("fcm") => return (accepted, answer),
            _ => assert_eq!(answer.refusal(), (503, "queue_full".to_owned(), None)),
        }
        assert!(accepted <= 10 * ROOM, "{accepted} kept with room for {ROOM}");
    }
    panic!("no refusal says why: {accepted} kept");
}

#[tokio::test]
async fn an_app_that_cannot_send_fills_its_own_share_and_nobody_elses() {
    let server = server_with(|config| config.pipeline.max_queued_chunks = ROOM).await;
    let (victim, attacker) = (server.sender().await, server.sender().await);
    let target = stranded(&server, &attacker).await;
    let (accepted, refused) = fill(&server, &attacker, &target).await;
    assert!(accepted >= ROOM / 2, "{accepted}");
    assert_eq!(refused.refusal(), (503, "queue_full".to_owned(), None));
    assert!(refused.text("detail").contains("no credential for this provider"), "{refused:?}");
    let device = json!({"device": server.device(&victim, "a").await});
    for number in 0..5 * ROOM {
        let answer = send(&server, &victim, &device).await;
        assert_eq!(answer.status, 202, "message {number} of somebody else: {answer:?}");
        server.ended(&victim, &answer.text("campaign")).await;
    }
    let own = json!({"device": server.device(&attacker, "b").await});
    let answer = send(&server, &attacker, &own).await;
    assert_eq!(answer.status, 202, "what the same app can send goes on: {answer:?}");
    assert_eq!(send(&server, &attacker, &target).await.status, 503);
}

#[tokio::test]
async fn of_many_messages_those_are_refused_for_which_there_is_no_room() {
    let server = server_with(|config| config.pipeline.max_queued_chunks = ROOM).await;
    let tenant = server.sender().await;
    let message = json!({"target": stranded(&server, &tenant).await, "data": {"k": "v"}});
    let body = json!({"messages": vec![message; 300]});
    let response = server.post(&tenant, "/v1/messages/bulk", body).await;
    let results = response["results"].as_array().expect("a list");
    let accepted = results.iter().filter(|one| one["accepted"].is_object()).count();
    let refused = results.iter().filter(|one| one["refused"]["code"] == "queue_full").count();
    assert!((1..=2 * ROOM as usize).contains(&accepted), "{accepted} kept with room for {ROOM}");
    assert_eq!(accepted + refused, 300);
    assert!(
        results.iter().all(|one| one["refused"]["retry_after_seconds"] == 5 || one["accepted"].is_object())
    );
}

async fn make_schedule(server: &Server, tenant: &Tenant) -> Read {
    let message = json!({"target": "everyone", "data": {"k": "v"}});
    let body = json!({"cron": "0 9 * * *", "time_zone": "UTC", "message": message});
    server.send(tenant, Method::POST, "/v1/schedules").json(&body).read().await
}

#[tokio::test]
async fn an_app_has_as_many_schedules_as_are_allowed_though_it_makes_them_all_at_once() {
    let server = server_with(|config| config.api.schedules_max_count = 5).await;
    let (greedy, modest) = (server.sender().await, server.sender().await);
    let answers = join_all((0..20).map(|_| make_schedule(&server, &greedy))).await;
    let (made, refused): (Vec<_>, Vec<_>) = answers.iter().partition(|answer| answer.status == 201);
    assert_eq!((made.len(), refused.len()), (5, 15));
    refused.iter().for_each(|answer| assert_eq!(answer.refusal(), (409, "limit_reached".to_owned(), None)));
    assert_eq!(make_schedule(&server, &modest).await.status, 201);
    let path = format!("/v1/schedules/{}/cancel", made[0].text("id"));
    assert_eq!(server.send(&greedy, Method::POST, &path).read().await.status, 200);
    assert_eq!(make_schedule(&server, &greedy).await.status, 201, "one was canceled");
}
