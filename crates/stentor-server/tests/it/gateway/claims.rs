//! Claims of a device about itself, and their proof by its backend.

use reqwest::Method;
use serde_json::{Value, json};

use super::Device;
use crate::fronts::fcm_v1::{account, signed};
use crate::harness::{Read, Reading, Server, Tenant, server};

const PRIVATE: &str = "private-board";

async fn join(server: &Server, key: &str, details: &Value) -> Read {
    server.with_key(key, Method::POST, "/gateway/v1/devices").json(details).read().await
}

/// Signs a backend's proof for a device of alice, with some claims changed.
fn proof(file: &Value, changed: Value) -> String {
    let mut claims = json!({"aud": "stentor:device", "uid": "alice",
        "claims": {"tags": ["staff"], "topics": [PRIVATE]}});
    for (name, change) in changed.as_object().expect("an object") {
        claims[name] = change.clone();
    }
    signed(file, &claims, &json!({}))
}

async fn backend(server: &Server, tenant: &Tenant, scopes: &[&str]) -> Value {
    account(server, tenant, &json!({"name": "backend", "url": server.url, "scopes": scopes})).await.1
}

#[tokio::test]
async fn a_registration_key_says_neither_whose_a_device_is_nor_how_it_is_marked() {
    let server = server().await;
    let tenant = server.tenant().await;
    let key = server.key(&tenant.id, &["join"]).await;
    for (field, details) in [
        ("user", json!({"user": "alice"})),
        ("tags", json!({"tags": ["staff"]})),
        ("topics", json!({"topics": ["news", PRIVATE]})),
    ] {
        let read = join(&server, &key, &details).await;
        assert_eq!((read.status, read.refusal().1), (403, "forbidden".to_owned()), "{details}: {read:?}");
        assert_eq!(read.body["field"], field, "{read:?}");
        let writer = server.key(&tenant.id, &["register"]).await;
        assert_eq!(
            join(&server, &writer, &details).await.status,
            201,
            "a key that may write devices: {details}"
        );
    }
    assert_eq!(join(&server, &key, &json!({"topics": ["news"], "locale": "de"})).await.status, 201);
}

#[tokio::test]
async fn a_proof_of_the_apps_backend_says_whose_a_device_is() {
    let server = server().await;
    let tenant = server.tenant().await;
    let key = server.key(&tenant.id, &["join"]).await;
    let file = backend(&server, &tenant, &[]).await;
    let firebase =
        "https://identitytoolkit.googleapis.com/google.identity.identitytoolkit.v1.IdentityToolkit";
    for (details, proof) in [
        (json!({}), proof(&file, json!({}))),
        (
            json!({"user": "alice", "tags": ["staff"], "topics": [PRIVATE]}),
            proof(&file, json!({"aud": firebase})),
        ),
    ] {
        let mut details = details;
        details["proof"] = json!(proof);
        let read = join(&server, &key, &details).await;
        assert_eq!(read.status, 201, "{read:?}");
        let device = Device::of(&read.body);
        let shown = server.get(&tenant, &format!("/v1/devices/{}", device.id)).await;
        assert_eq!((&shown["user"], &shown["tags"]), (&json!("alice"), &json!(["staff"])));
        let own = device.ask(&server, Method::GET, "/gateway/v1/device").read().await;
        assert_eq!(own.body["topics"], json!([PRIVATE]));
    }
}

#[tokio::test]
async fn a_proof_for_another_person_or_app_or_time_or_without_the_right_proves_nothing() {
    let server = server().await;
    let (tenant, other) = (server.tenant().await, server.tenant().await);
    let key = server.key(&tenant.id, &["join"]).await;
    let (file, foreign) = (backend(&server, &tenant, &[]).await, backend(&server, &other, &[]).await);
    let sender = backend(&server, &tenant, &["send"]).await;
    let good = proof(&file, json!({}));
    let forged = format!(
        "{}.{}",
        good.rsplit_once('.').expect("signed").0,
        proof(&foreign, json!({})).rsplit_once('.').expect("signed").1
    );
    for (what, proof) in [
        ("another person's", proof(&file, json!({"uid": "bob"}))),
        ("nobody's", proof(&file, json!({"uid": null}))),
        ("another app's account", proof(&foreign, json!({}))),
        ("an account that may not write devices", proof(&sender, json!({}))),
        ("over", proof(&file, json!({"iat": 1_000_000_000, "exp": 1_000_003_600}))),
        ("for days", proof(&file, json!({"exp": 4_000_000_000_u64}))),
        ("an assertion for an access token", signed(&file, &json!({"uid": "alice"}), &json!({}))),
        ("forged", forged),
        ("none", String::new()),
    ] {
        let read = join(&server, &key, &json!({"user": "alice", "proof": proof})).await;
        assert_eq!((read.status, read.refusal().1), (403, "forbidden".to_owned()), "{what}: {read:?}");
    }
    // The holder of a proof must not be able to act as the account that has signed it.
    for aud in [json!("stentor:device"), file["token_uri"].clone()] {
        let form = format!(
            "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&assertion={}",
            proof(&file, json!({"aud": aud}))
        );
        let request = server.open(Method::POST, "/token").body(form);
        let read = request.header("content-type", "application/x-www-form-urlencoded").read().await;
        assert_eq!(read.status, 400, "{aud}: {read:?}");
    }
}

#[tokio::test]
async fn a_device_subscribes_itself_to_open_topics_and_its_backend_to_private_ones() {
    let server = server().await;
    let tenant = server.tenant().await;
    let device = Device::join(&server, &tenant, json!({})).await;
    let path = format!("/gateway/v1/device/topics/{PRIVATE}");
    let refused = device.ask(&server, Method::PUT, &path).read().await;
    assert_eq!((refused.status, &refused.body["field"]), (403, &json!("topic")), "{refused:?}");
    let subscribe = format!("/v1/topics/{PRIVATE}/subscriptions");
    server.post(&tenant, &subscribe, json!({"devices": [device.id]})).await;
    // It subscribes again with each connection, as a session of MQTT does.
    assert_eq!(device.ask(&server, Method::PUT, &path).read().await.status, 204);
}
