//! The audit trail: the authors of changes, readable by the operator only.

use std::collections::BTreeSet;

use reqwest::Method;
use serde_json::{Value, json};
use stentor_core::device::ProviderKind;
use stentor_server::config::Engine;

use crate::harness::{Reading, Server, Tenant, durable_server, server, server_on, server_with};

/// Changes without an audit entry: devices, users, groups and topics, and messages to them.
const NOT_AUDITED: &[&str] = &[
    "/v1/devices",
    "/v1/live-activity-channels",
    "/v1/users",
    "/v1/groups",
    "/v1/topics",
    "/v1/services",
    "/v1/subscriptions",
    "/v1/messages",
    "/v1/upstream",
];

/// A `POST` request that changes nothing.
const CHANGES_NOTHING: &str = "POST /v1/apps/{app}/credentials/{provider}/check";

async fn trail(server: &Server, query: &str) -> Vec<Value> {
    let read = server.root(Method::GET, &format!("/v1/audit{query}")).read().await;
    assert_eq!(read.status, 200, "{read:?}");
    read.body["entries"].as_array().expect("a list").clone()
}

fn actions(entries: &[Value]) -> Vec<&str> {
    entries.iter().map(|entry| entry["action"].as_str().expect("a word")).collect()
}

/// Makes a service account and returns its id.
async fn service_account(server: &Server, tenant: &Tenant) -> String {
    let path = format!("/v1/apps/{}/service-accounts", tenant.id);
    let body = json!({"name": "backend", "url": "https://push.example"});
    server.send(tenant, Method::POST, &path).json(&body).read().await.text("id")
}

/// Puts a webhook and deletes it; returns both routes.
async fn webhook(server: &Server, tenant: &Tenant) -> [String; 2] {
    let path = format!("/v1/apps/{}/upstream-webhook", tenant.id);
    let webhook = json!({"url": "https://app.example.org/hook?token=of-the-address"});
    let put = server.send(tenant, Method::PUT, &path).json(&webhook).read().await;
    let gone = server.send(tenant, Method::DELETE, &path).read().await;
    assert_eq!((put.status, gone.status), (200, 204), "{put:?} {gone:?}");
    ["PUT", "DELETE"].map(|method| format!("{method} /v1/apps/{{app}}/upstream-webhook"))
}

/// Puts a credential of each push service; returns the requested routes.
async fn credentials(server: &Server, tenant: &Tenant) -> BTreeSet<String> {
    let mut requested = BTreeSet::new();
    let rsa = rcgen::KeyPair::generate_for(&rcgen::PKCS_RSA_SHA256).expect("a key").serialize_pem();
    let ec = rcgen::KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256).expect("a key").serialize_pem();
    let account = json!({"type": "service_account", "project_id": "project-1", "private_key_id": "k1", "private_key": rsa,
        "client_email": "a@project-1.iam.gserviceaccount.com", "client_id": "1", "token_uri": "http://127.0.0.1:1/t"});
    let bodies = [
        ("fcm", json!({"service_account": account, "endpoint": "http://127.0.0.1:1", "quota": 1200})),
        (
            "apns",
            json!({"key_p8": ec, "key_id": "KEYID12345", "team_id": "TEAMID1234", "bundle_id": "org.example"}),
        ),
        ("null", json!({})),
    ];
    for (kind, body) in bodies {
        let path = format!("/v1/apps/{}/credentials/{kind}", tenant.id);
        let put = server.send(tenant, Method::PUT, &path).json(&body).read().await;
        assert_eq!(put.status, 204, "{put:?}");
        requested.insert(format!("PUT /v1/apps/{{app}}/credentials/{kind}"));
    }
    requested
}

/// Performs every audited change once; returns the requested routes.
async fn change_everything(server: &Server, tenant: &Tenant) -> BTreeSet<String> {
    let device = server.device(tenant, "a-token-that-is-secret").await;
    let tomorrow = jiff::Timestamp::now() + jiff::SignedDuration::from_hours(24);
    let mut requested = BTreeSet::new();
    let app = format!("/v1/apps/{}", tenant.id);
    let key = server.send(tenant, Method::POST, &format!("{app}/keys"));
    let key = key.json(&json!({"name": "second", "scopes": ["send"]})).read().await;
    let signer = service_account(server, tenant).await;
    requested.extend(credentials(server, tenant).await);
    requested.extend(webhook(server, tenant).await);
    let message = json!({"target": {"device": device}, "data": {"k": "v"}, "send_at": tomorrow.to_string()});
    let campaign =
        server.post(tenant, "/v1/messages", message).await["campaign"].as_str().expect("an id").to_owned();
    let schedule = json!({"cron": "0 9 * * *", "time_zone": "UTC", "message": {"target": "everyone", "data": {"k": "v"}}});
    let mut schedules = Vec::new();
    for _ in 0..2 {
        let made = server.post(tenant, "/v1/schedules", schedule.clone()).await;
        schedules.push(made["id"].as_str().expect("an id").to_owned());
    }
    let proposal = json!({"message": {"target": {"device": device}, "data": {"k": "v"}}});
    let proposal =
        server.post(tenant, "/v1/proposals", proposal).await["id"].as_str().expect("an id").to_owned();
    let approve = format!("/v1/proposals/{proposal}/approve?app={}", tenant.id);
    assert_eq!(server.root(Method::POST, &approve).read().await.status, 200);
    let steps = [
        (Method::DELETE, "/v1/proposals/{proposal}"),
        (Method::POST, "/v1/campaigns/{campaign}/pause"),
        (Method::POST, "/v1/campaigns/{campaign}/resume"),
        (Method::POST, "/v1/campaigns/{campaign}/cancel"),
        (Method::POST, "/v1/schedules/{schedule}/pause"),
        (Method::POST, "/v1/schedules/{schedule}/resume"),
        (Method::POST, "/v1/schedules/{schedule}/cancel"),
        (Method::DELETE, "/v1/schedules/{schedule}"),
        (Method::DELETE, "/v1/apps/{app}/credentials/fcm"),
        (Method::DELETE, "/v1/apps/{app}/credentials/apns"),
        (Method::DELETE, "/v1/apps/{app}/credentials/null"),
        (Method::DELETE, "/v1/apps/{app}/service-accounts/{account}"),
        (Method::DELETE, "/v1/apps/{app}/keys/{key}"),
    ];
    for (method, route) in steps {
        let schedule = &schedules[usize::from(method == Method::DELETE)];
        let path = route.replace("{campaign}", &campaign).replace("{schedule}", schedule);
        let path = path.replace("{app}", &tenant.id).replace("{key}", &key.text("id"));
        let path = path.replace("{account}", &signer).replace("{proposal}", &proposal);
        let done = server.send(tenant, method.clone(), &path).read().await;
        assert!(done.status < 300, "{method} {path}: {done:?}");
        requested.insert(format!("{method} {route}"));
    }
    let gone = server.root(Method::DELETE, &app).read().await;
    assert_eq!(gone.status, 204, "{gone:?}");
    let made = [
        "POST /v1/apps",
        "POST /v1/apps/{app}/keys",
        "POST /v1/apps/{app}/service-accounts",
        "POST /v1/schedules",
        "POST /v1/proposals",
        "POST /v1/proposals/{proposal}/approve",
        "DELETE /v1/apps/{app}",
    ];
    requested.extend(made.map(str::to_owned));
    requested
}

async fn every_change_is_told(engine: Engine) {
    let server = server_on(engine, |_| {}).await;
    let tenant = server.tenant().await;
    let mut requested = change_everything(&server, &tenant).await;
    let entries = trail(&server, &format!("?app={}&limit=1000", tenant.id)).await;
    let recorded: Vec<_> = actions(&entries).into_iter().rev().collect();
    assert_eq!(
        recorded,
        [
            "app.create",
            "key.create",
            "key.create",
            "service_account.create",
            "credential.put",
            "credential.put",
            "credential.put",
            "upstream_webhook.put",
            "upstream_webhook.delete",
            "schedule.create",
            "schedule.create",
            "proposal.create",
            "proposal.approve",
            "proposal.delete",
            "campaign.pause",
            "campaign.resume",
            "campaign.cancel",
            "schedule.pause",
            "schedule.resume",
            "schedule.cancel",
            "schedule.cancel",
            "credential.delete",
            "credential.delete",
            "credential.delete",
            "service_account.delete",
            "key.delete",
            "app.delete",
        ]
    );
    let by: Vec<_> = entries.iter().map(|entry| entry["by"].as_str().expect("a word")).collect();
    assert_eq!((by[0], by[1], by[26], by[25]), ("root", "key", "root", "root"));
    let quota = entries.iter().find(|entry| entry["thing"] == "fcm" && entry["action"] == "credential.put");
    let quota = quota.expect("an entry");
    assert!(quota["detail"].as_str().expect("a text").contains("quota 1200 project-1"), "{quota}");
    for entry in &entries {
        assert_eq!((&entry["address"], &entry["outcome"]), (&json!("127.0.0.1"), &json!("done")), "{entry}");
        assert!(entry["request_id"].as_str().expect("an id").starts_with("req_"), "{entry}");
        assert!(entry["by"] == "root" || entry["key_name"] == "a key", "{entry}");
    }
    let text = Value::from(entries).to_string();
    for secret in ["PRIVATE KEY", "sk_", "a-token-that-is-secret", "127.0.0.1:1", "of-the-address", "whsec_"]
    {
        assert!(!text.contains(secret), "{secret}: {text}");
    }
    // One operation serves the credentials of all push services, so that the others stand for this one.
    requested.extend(ProviderKind::ALL.iter().flat_map(|kind| {
        ["PUT", "DELETE"].map(|method| format!("{method} /v1/apps/{{app}}/credentials/{kind}"))
    }));
    let contract = include_str!("../contract/routes.txt").lines().map(str::to_owned);
    let changing = contract.filter(|route| !route.is_empty() && !route.starts_with("GET "));
    let unknown = changing.filter(|route| {
        let (_, path) = route.split_once(' ').expect("a method");
        let is_audited = !NOT_AUDITED.iter().any(|start| path.starts_with(start)) && route != CHANGES_NOTHING;
        is_audited && !requested.contains(route)
    });
    assert_eq!(
        unknown.collect::<Vec<_>>(),
        Vec::<String>::new(),
        "a new change leaves an entry, or is named above"
    );
}

#[tokio::test]
async fn every_change_by_any_route_is_in_the_trail_without_secrets() {
    every_change_is_told(Engine::Memory).await;
    every_change_is_told(Engine::Sqlite).await;
}

#[tokio::test]
async fn what_was_refused_by_the_state_of_things_or_the_request_leaves_no_entry() {
    let server = server().await;
    let tenant = server.tenant().await;
    let before = trail(&server, "").await.len();
    let app = format!("/v1/apps/{}", tenant.id);
    for (method, path, body) in [
        (Method::DELETE, format!("{app}/credentials/fcm"), json!({})),
        (Method::PUT, format!("{app}/credentials/fcm"), json!({"service_account": {}})),
        (Method::POST, format!("{app}/keys"), json!({"name": "none", "scopes": []})),
        (Method::POST, "/v1/campaigns/cmp_0000000000001/cancel".to_owned(), json!({})),
        (Method::POST, "/v1/schedules".to_owned(), json!({"cron": "x", "time_zone": "UTC", "message": {}})),
    ] {
        let read = server.send(&tenant, method, &path).json(&body).read().await;
        assert!((400..500).contains(&read.status), "{path}: {read:?}");
    }
    assert_eq!(trail(&server, "").await.len(), before);
}

#[tokio::test]
async fn a_repeated_schedule_is_in_the_trail_once() {
    let server = server().await;
    let tenant = server.sender().await;
    let body = json!({"cron": "0 9 * * *", "time_zone": "UTC", "message": {"target": "everyone", "data": {"k": "v"}}});
    for _ in 0..3 {
        let request = server.send(&tenant, Method::POST, "/v1/schedules").header("Idempotency-Key", "once");
        assert_eq!(request.json(&body).read().await.status, 201);
    }
    assert_eq!(trail(&server, "?action=schedule.create").await.len(), 1);
}

#[tokio::test]
async fn an_attempt_without_the_right_is_told_once_a_second_under_the_app_of_its_key() {
    let server = server().await;
    let (owner, stranger) = (server.tenant().await, server.tenant().await);
    let weak = server.key(&owner.id, &["register"]).await;
    for _ in 0..20 {
        let refused = server.with_key(&weak, Method::DELETE, &format!("/v1/apps/{}", owner.id)).read().await;
        assert_eq!(refused.status, 403);
    }
    let path = format!("/v1/apps/{}/credentials/null", owner.id);
    let foreign = server.send(&stranger, Method::PUT, &path).json(&json!({})).read().await;
    assert_eq!(foreign.status, 404);
    let entries = trail(&server, "").await;
    let refused: Vec<_> = entries.iter().filter(|entry| entry["outcome"] == "refused").collect();
    let of = |app: &str| refused.iter().filter(|entry| entry["app"] == app).count();
    assert!((1..=19).contains(&of(&owner.id)), "a flood of refusals is not a flood of entries: {refused:?}");
    assert_eq!(of(&stranger.id), 1);
    let audit_entry = refused.iter().find(|entry| entry["app"] == stranger.id.as_str()).expect("an entry");
    assert_eq!((&audit_entry["action"], &audit_entry["thing"]), (&json!("credential.put"), &json!("null")));
}

#[tokio::test]
async fn only_the_root_key_reads_the_trail_and_what_makes_no_sense_is_refused() {
    let server = server().await;
    let tenant = server.tenant().await;
    let refused = server.send(&tenant, Method::GET, "/v1/audit").read().await.refusal();
    assert_eq!((refused.0, refused.1.as_str()), (403, "forbidden"));
    assert_eq!(server.open(Method::GET, "/v1/audit").read().await.status, 401);
    for (query, field) in [
        ("action=app.eat", "action"),
        ("since=yesterday", "since"),
        ("before=x", "before"),
        ("limit=0", "limit"),
    ] {
        let refused = server.root(Method::GET, &format!("/v1/audit?{query}")).read().await.refusal();
        assert_eq!((refused.0, refused.2.as_deref()), (422, Some(field)), "{query}");
    }
    assert_eq!(server.root(Method::GET, "/v1/audit?app=nobody").read().await.refusal().0, 404);
    assert_eq!(trail(&server, "?action=app.create").await.len(), 1);
    assert_eq!(trail(&server, "?since=2999-01-01T00:00:00Z").await, Vec::<Value>::new());
}

#[tokio::test]
async fn the_trail_is_given_by_the_page_and_survives_a_restart() {
    let server = durable_server(tempfile::tempdir().expect("a folder")).await;
    for _ in 0..5 {
        server.tenant().await;
    }
    let whole = trail(&server, "").await;
    assert_eq!(whole.len(), 10);
    let server = durable_server(server.stop().await).await;
    let (mut pieces, mut query) = (Vec::new(), "?limit=4".to_owned());
    loop {
        let read = server.root(Method::GET, &format!("/v1/audit{query}")).read().await;
        pieces.extend(read.body["entries"].as_array().expect("a list").clone());
        match read.body["next"].as_str() {
            Some(next) => query = format!("?limit=4&before={next}"),
            None => break,
        }
    }
    assert_eq!(pieces, whole);
}

#[tokio::test]
async fn one_apps_changes_are_bounded_and_leave_those_of_others_alone() {
    let server = server_with(|config| config.api.audit_max_count = 5).await;
    let (quiet, busy) = (server.tenant().await, server.tenant().await);
    for _ in 0..20 {
        let path = format!("/v1/apps/{}/credentials/null", busy.id);
        assert_eq!(server.send(&busy, Method::PUT, &path).json(&json!({})).read().await.status, 204);
    }
    assert_eq!(trail(&server, &format!("?app={}&action=credential.put", busy.id)).await.len(), 5);
    assert_eq!(
        trail(&server, &format!("?app={}", busy.id)).await.len(),
        7,
        "and what the operator did to it"
    );
    assert_eq!(trail(&server, &format!("?app={}", quiet.id)).await.len(), 2);
}

#[tokio::test]
async fn the_caller_behind_a_proxy_is_told_only_when_the_proxy_is_believed() {
    for (trusted, expected) in [(vec![], "127.0.0.1"), (vec!["127.0.0.0/8".to_owned()], "203.0.113.9")] {
        let server = server_with(|config| config.api.trusted_proxies = trusted).await;
        let request =
            server.root(Method::POST, "/v1/apps").header("X-Forwarded-For", "198.51.100.1, 203.0.113.9");
        assert_eq!(request.json(&json!({"name": "an app"})).read().await.status, 201);
        assert_eq!(trail(&server, "").await[0]["address"], expected);
    }
}
