//! What one app leaves waiting is its own affair.

use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{Read, Reading, Server, Tenant, server_with};

const ROOM: u64 = 20;

async fn send(server: &Server, tenant: &Tenant, target: &Value) -> Read {
    let body = json!({"target": target, "data": {"k": "v"}});
    server.send(tenant, Method::POST, "/v1/messages").json(&body).read().await
}

/// Registers a device at FCM, for which the app has no credential.
async fn stranded(server: &Server, tenant: &Tenant) -> Value {
    let body = json!({"platform": "android", "token": "stranded"});
    json!({"device": server.post(tenant, "/v1/devices", body).await["id"]})
}

/// Sends until the refusal names the push service; counts what was kept until then.
async fn fill(server: &Server, tenant: &Tenant, target: &Value) -> (u64, Read) {
    let mut kept = 0;
    loop {
        let answer = send(server, tenant, target).await;
        match answer.status {
            202 => kept += 1,
            _ if answer.text("detail").contains("fcm") => return (kept, answer),
            _ => assert_eq!(answer.refusal(), (503, "queue_full".to_owned(), None)),
        }
        assert!(kept <= 10 * ROOM, "{kept} kept with room for {ROOM}");
    }
}

#[tokio::test]
async fn an_app_that_cannot_send_fills_its_own_share_and_nobody_elses() {
    let server = server_with(|config| config.pipeline.max_queued_chunks = ROOM).await;
    let (victim, attacker) = (server.sender().await, server.sender().await);
    let target = stranded(&server, &attacker).await;
    let (kept, refused) = fill(&server, &attacker, &target).await;
    assert!(kept >= ROOM / 2, "{kept}");
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
