//! Apps cannot see each other's data, and secrets are never shown.

use reqwest::Method;
use serde_json::{Value, json};

use crate::harness::{Reading, Server, Tenant, server};

/// Puts an FCM credential with an endpoint without a listener.
pub(crate) async fn put_fcm(server: &Server, tenant: &Tenant) {
    let key = rcgen::KeyPair::generate_for(&rcgen::PKCS_RSA_SHA256).expect("a key");
    let body = json!({"service_account": {"type": "service_account", "project_id": "project-1", "private_key_id": "k1",
        "private_key": key.serialize_pem(), "client_email": "a@project-1.iam.gserviceaccount.com", "client_id": "1",
        "token_uri": "http://127.0.0.1:1/token"}, "endpoint": "http://127.0.0.1:1",
        "token_endpoint": "http://127.0.0.1:1/token", "quota": "none", "max_connections": 2});
    let path = format!("/v1/apps/{}/credentials/fcm", tenant.id);
    let put = server.send(tenant, Method::PUT, &path).json(&body).read().await;
    assert_eq!(put.status, 204, "{put:?}");
}

/// Every route that takes an id or a name, filled with the owner's.
fn routes([app, key, device, message, campaign, schedule, proposal]: &[String; 7]) -> Vec<(Method, String)> {
    vec![
        (Method::GET, format!("/v1/devices/{device}")),
        (Method::DELETE, format!("/v1/devices/{device}")),
        (Method::GET, format!("/v1/devices/{device}/deliveries")),
        (Method::GET, format!("/v1/devices/{device}/topics")),
        (Method::PUT, format!("/v1/devices/{device}/topics/news")),
        (Method::DELETE, format!("/v1/devices/{device}/topics/news")),
        (Method::GET, "/v1/users/anna".to_owned()),
        (Method::GET, "/v1/groups/team".to_owned()),
        (Method::GET, "/v1/groups/team/members".to_owned()),
        (Method::GET, "/v1/topics/news".to_owned()),
        (Method::GET, "/v1/services/printer".to_owned()),
        (Method::DELETE, "/v1/services/printer".to_owned()),
        (Method::GET, format!("/v1/messages/{message}")),
        (Method::GET, format!("/v1/messages/{message}/ledger")),
        (Method::GET, format!("/v1/messages/{message}/deliveries/{device}")),
        (Method::GET, format!("/v1/campaigns/{campaign}")),
        (Method::GET, format!("/v1/campaigns/{message}")),
        (Method::POST, format!("/v1/campaigns/{campaign}/cancel")),
        (Method::POST, format!("/v1/campaigns/{campaign}/pause")),
        (Method::POST, format!("/v1/campaigns/{campaign}/resume")),
        (Method::GET, format!("/v1/schedules/{schedule}")),
        (Method::POST, format!("/v1/schedules/{schedule}/cancel")),
        (Method::POST, format!("/v1/schedules/{schedule}/pause")),
        (Method::POST, format!("/v1/schedules/{schedule}/resume")),
        (Method::DELETE, format!("/v1/schedules/{schedule}")),
        (Method::GET, format!("/v1/proposals/{proposal}")),
        (Method::POST, format!("/v1/proposals/{proposal}/approve")),
        (Method::DELETE, format!("/v1/proposals/{proposal}")),
        (Method::GET, format!("/v1/apps/{app}")),
        (Method::GET, format!("/v1/apps/{app}/keys")),
        (Method::DELETE, format!("/v1/apps/{app}/keys/{key}")),
        (Method::GET, format!("/v1/apps/{app}/service-accounts")),
        (Method::DELETE, format!("/v1/apps/{app}/service-accounts/{key}")),
        (Method::GET, format!("/v1/apps/{app}/credentials")),
        (Method::DELETE, format!("/v1/apps/{app}/credentials/null")),
        (Method::GET, format!("/v1/devices?app={app}")),
    ]
}

#[tokio::test]
async fn another_apps_ids_are_never_visible_on_any_route() {
    let server = server().await;
    let (owner, stranger) = (server.sender().await, server.sender().await);
    let device = server.device(&owner, "token-of-the-owner").await;
    server.send(&owner, Method::PUT, "/v1/users/anna").read().await;
    server.send(&owner, Method::PUT, "/v1/groups/team").read().await;
    let printer = json!({"kind": "ipp", "address": "ipp://owner.example/print"});
    let put = server.send(&owner, Method::PUT, "/v1/services/printer").json(&printer).read().await;
    assert_eq!(put.status, 200, "{put:?}");
    server.post(&owner, "/v1/topics/news/subscriptions", json!({"devices": [device]})).await;
    let sent =
        server.post(&owner, "/v1/messages", json!({"target": {"device": device}, "data": {"k": "v"}})).await;
    let body = json!({"cron": "0 9 * * *", "time_zone": "UTC", "message": {"target": "everyone", "data": {"k": "v"}}});
    let schedule = server.post(&owner, "/v1/schedules", body).await;
    let id = |value: &Value, name: &str| value[name].as_str().expect("an id").to_owned();
    let (message, campaign, schedule) = (id(&sent, "id"), id(&sent, "campaign"), id(&schedule, "id"));
    let body = json!({"message": {"target": "everyone", "data": {"k": "v"}}});
    let proposal = id(&server.post(&owner, "/v1/proposals", body).await, "id");
    let own_keys = server.get(&owner, &format!("/v1/apps/{}/keys", owner.id)).await;
    let key = own_keys["keys"][0]["id"].as_str().expect("an id").to_owned();
    let app = owner.id.clone();
    let ids = [app, key, device.clone(), message, campaign, schedule, proposal];
    let elsewhere = format!("/v1/apps/{}/keys/{}", stranger.id, ids[1]);
    let routes = routes(&ids).into_iter().chain([(Method::DELETE, elsewhere)]);
    for (method, path) in routes {
        let read = server.send(&stranger, method.clone(), &path).read().await;
        assert_eq!(read.refusal().0, 404, "{method} {path}: {read:?}");
        assert!(!read.body.to_string().contains("owner"), "{read:?}");
    }
    for path in [
        "/v1/devices",
        "/v1/users",
        "/v1/groups",
        "/v1/topics",
        "/v1/services",
        "/v1/messages",
        "/v1/campaigns",
        "/v1/schedules",
        "/v1/proposals",
    ] {
        let list = server.get(&stranger, path).await;
        let all = list.as_object().expect("an object").values().next().expect("a list");
        assert_eq!(all, &json!([]), "{path}");
    }
    let body = json!({"target": {"device": device}, "data": {"k": "v"}});
    assert_eq!(
        server.send(&stranger, Method::POST, "/v1/messages").json(&body).read().await.refusal().0,
        404
    );
    let change = server.post(&stranger, "/v1/topics/mine/subscriptions", json!({"devices": [device]})).await;
    assert_eq!(change["unknown"], 1);
    server.send(&stranger, Method::PUT, "/v1/groups/mine").read().await;
    let change = server.post(&stranger, "/v1/groups/mine/members", json!({"devices": [device]})).await;
    assert_eq!(change["unknown"], 1);
    assert_eq!(server.get(&owner, &format!("/v1/devices/{device}")).await["state"], "active");
}

#[tokio::test]
async fn another_apps_device_can_neither_be_changed_nor_replaced() {
    let server = server().await;
    let (owner, stranger) = (server.tenant().await, server.tenant().await);
    let device = server.device(&owner, "t").await;
    let path = format!("/v1/devices/{device}");
    let patch = server.send(&stranger, Method::PATCH, &path).json(&json!({"tags": ["mine"]})).read().await;
    assert_eq!(patch.refusal().0, 404);
    let full = json!({"platform": "android", "provider": "null", "token": "t"});
    let put = server.send(&stranger, Method::PUT, &path).json(&full).read().await;
    assert_eq!(put.refusal().0, 404);
    assert_eq!(server.get(&owner, &path).await["tags"], json!([]));
}

#[tokio::test]
async fn the_same_token_in_two_apps_is_two_devices() {
    let server = server().await;
    let (one, two) = (server.tenant().await, server.tenant().await);
    assert_ne!(server.device(&one, "t").await, server.device(&two, "t").await);
}

#[tokio::test]
async fn a_credential_shows_what_is_not_secret() {
    let server = server().await;
    let tenant = server.tenant().await;
    put_fcm(&server, &tenant).await;
    let listed = server.get(&tenant, &format!("/v1/apps/{}/credentials", tenant.id)).await;
    assert_eq!(listed["credentials"][0]["summary"]["project_id"], "project-1");
    assert!(!listed.to_string().contains("PRIVATE KEY"), "{listed}");
}
