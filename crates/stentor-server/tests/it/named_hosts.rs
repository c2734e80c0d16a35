//! Push services that devices name, through the API: keys, subscriptions as devices, and the requests that a dry run shows.

use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{Reading, Server, Tenant, server};

const P256DH: &str =
    "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4";
const AUTH: &str = "BTBZMqHH6r4Tts7J_aSIgg";

async fn put(server: &Server, tenant: &Tenant, provider: &str, credential: Value) {
    let path = format!("/v1/apps/{}/credentials/{provider}", tenant.id);
    let read = server.root(Method::PUT, &path).json(&credential).read().await;
    assert!(read.status < 300, "{read:?}");
}

async fn summary(server: &Server, tenant: &Tenant) -> Value {
    let read = server.root(Method::GET, &format!("/v1/apps/{}/credentials", tenant.id)).read().await;
    let text = read.body.to_string();
    assert!(!text.contains("private"), "{text}");
    read.body["credentials"][0]["summary"].clone()
}

#[tokio::test]
async fn a_key_of_web_push_is_made_shown_kept_and_rotated_and_its_private_part_never_shown() {
    let server = server().await;
    let tenant = server.tenant().await;
    let plain = json!({"subject": "mailto:ops@app.example"});
    put(&server, &tenant, "web_push", plain.clone()).await;
    let made = summary(&server, &tenant).await;
    assert_eq!(made["public_key"].as_str().map(str::len), Some(87), "{made}");
    put(&server, &tenant, "web_push", plain).await;
    assert_eq!(summary(&server, &tenant).await, made);
    put(&server, &tenant, "web_push", json!({"subject": "mailto:ops@app.example", "rotate": true})).await;
    let rotated = summary(&server, &tenant).await;
    assert_ne!(rotated["public_key"], made["public_key"]);
    assert_eq!(rotated["previous_public_key"], made["public_key"]);
}

#[tokio::test]
async fn a_subscription_in_any_spelling_is_one_device_and_shows_neither_endpoint_nor_keys() {
    let server = server().await;
    let tenant = server.tenant().await;
    let subscription = json!({
        "endpoint": "https://Push.example:443/wpush/abc", "expirationTime": null, "keys": {"p256dh": P256DH, "auth": AUTH},
    });
    let token = format!("https://push.example/wpush/abc#p256dh={P256DH}&auth={AUTH}");
    let json = json!({"platform": "web", "token": subscription.to_string()});
    let first = server.post(&tenant, "/v1/devices", json).await;
    let again = server.post(&tenant, "/v1/devices", json!({"platform": "web", "token": token})).await;
    assert_eq!((&again["id"], &again["created"]), (&first["id"], &json!(false)));
    let id = first["id"].as_str().expect("an id");
    let device = server.get(&tenant, &format!("/v1/devices/{id}")).await;
    assert_eq!(device["provider"], "web_push");
    let shown = device.to_string();
    assert!(!shown.contains("push.example") && !shown.contains(AUTH), "{shown}");
    let wrong = json!({"platform": "web", "token": "https://push.example/abc"});
    let read = server.send(&tenant, Method::POST, "/v1/devices").json(&wrong).read().await;
    assert_eq!(read.refusal(), (422, "invalid_field".to_owned(), Some("token".to_owned())));
}

#[tokio::test]
async fn a_dry_run_shows_the_request_of_each_push_service_of_the_audience_without_secrets() {
    let server = server().await;
    let tenant = server.tenant().await;
    put(
        &server,
        &tenant,
        "web_push",
        json!({"subject": "mailto:ops@app.example", "navigate": "https://app.example/"}),
    )
    .await;
    let wns = json!({"tenant_id": "tenant", "client_id": "app-1", "client_secret": "s~cret"});
    put(&server, &tenant, "wns", wns).await;
    let token = format!("https://push.example/wpush/abc#p256dh={P256DH}&auth={AUTH}");
    server.post(&tenant, "/v1/devices", json!({"platform": "web", "token": token})).await;
    let message =
        json!({"target": "everyone", "notification": {"title": "Hi"}, "ttl_seconds": 60, "dry_run": true});
    let read = server.send(&tenant, Method::POST, "/v1/messages").json(&message).read().await;
    let requests = read.body["requests"].as_array().expect("a list");
    assert_eq!(requests.len(), 1, "no device has WNS: {requests:?}");
    let shown = &requests[0];
    assert_eq!((&shown["provider"], &shown["url"]), (&json!("web_push"), &json!("{token}")));
    assert_eq!((&shown["headers"]["ttl"], &shown["headers"]["authorization"]), (&json!("60"), &json!("…")));
    let body: Value = serde_json::from_str(shown["body"].as_str().expect("a text")).expect("JSON");
    assert_eq!(
        body,
        json!({"web_push": 8030, "notification": {"title": "Hi", "navigate": "https://app.example/"}})
    );
    assert!(!read.body.to_string().contains(AUTH));
}
