//! R17: the outbound policy, through the server's own API.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use stentor_emulators::Policy;
use stentor_server::config::Config;

use super::rig::{Scene, apns_token, fcm_token};
use crate::harness::{durable_server, server, server_with};

const PATIENCE: Duration = Duration::from_secs(60);
const FINE: &str = "https://oauth2.googleapis.com/token";

/// Forbidden hosts in various spellings.
const HOSTS: &[&str] = &[
    "127.0.0.1",
    "127.1",
    "0x7f.1",
    "2130706433",
    "0177.0.0.1",
    "127.0.0.1.",
    "localhost",
    "localhost.",
    "[::1]",
    "[::ffff:127.0.0.1]",
    "0.0.0.0",
    "[::]",
    "10.0.0.1",
    "192.168.1.1",
    "172.16.0.1",
    "100.64.0.1",
    "169.254.169.254",
    "0xa9fea9fe",
    "[::ffff:169.254.169.254]",
    "[fd00:ec2::254]",
    "[fe80::1]",
    "[64:ff9b::169.254.169.254]",
    "[2002:7f00:1::]",
    "224.0.0.1",
    "255.255.255.255",
];

fn forbid(config: &mut Config) {
    config.outbound.allowed_networks.clear();
}

async fn strict() -> Scene {
    let scene = Scene::fcm(server().await, Policy::default()).await;
    // The same emulators with a server in its default configuration.
    scene.at(server_with(forbid).await).await
}

/// Returns an app's FCM credential as shown by the API.
async fn shown(scene: &Scene) -> Value {
    let path = format!("/v1/apps/{}/credentials", scene.tenant.id);
    let list = scene.server.get(&scene.tenant, &path).await;
    let list = list["credentials"].as_array().expect("a list").iter();
    list.clone().find(|one| one["provider"] == "fcm").cloned().unwrap_or_default()
}

/// Waits until this number of requests were refused for their address.
async fn until_kept_back(scene: &Scene, times: u64) {
    let began = Instant::now();
    loop {
        let metrics = scene.server.open(reqwest::Method::GET, "/metrics").send().await.expect("an answer");
        let text = metrics.text().await.expect("a text");
        let lines = text.lines().filter(|line| line.contains("code=\"address_refused\""));
        let counts = lines.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok());
        if counts.sum::<f64>() >= times as f64 {
            return;
        }
        assert!(began.elapsed() < PATIENCE, "{text}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn r17_a_credential_that_leads_to_a_refused_address_is_not_kept_and_the_setting_is_named() {
    let scene = strict().await;
    for host in HOSTS {
        let url = format!("https://{host}:8443");
        let token = format!("{url}/token");
        let by_override = json!({"token_endpoint": token});
        let mut with_override = scene.fcm_credential("https://fcm.googleapis.com", FINE);
        with_override["token_endpoint"] = by_override["token_endpoint"].clone();
        for (body, field) in [
            (scene.fcm_credential(&url, FINE), "endpoint"),
            (scene.fcm_credential("https://fcm.googleapis.com", &token), "service_account.token_uri"),
            (with_override, "token_endpoint"),
        ] {
            let put = scene.try_put("fcm", &body).await;
            assert_eq!(put.refusal(), (400, "address_refused".to_owned(), Some(field.to_owned())), "{host}");
            assert!(put.text("hint").contains("outbound.allowed_networks"), "{put:?}");
        }
    }
    assert_eq!(shown(&scene).await, Value::Null, "nothing was kept");
}

#[tokio::test]
async fn r17_apns_is_held_to_the_same_rule() {
    let scene = strict().await;
    let key = rcgen::KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256).expect("a key").serialize_pem();
    let credential = |endpoint: &str| {
        json!({"key_p8": key, "key_id": "KEY0123456", "team_id": "TEAM012345",
            "bundle_id": "com.example.app", "endpoint": endpoint})
    };
    let put = scene.try_put("apns", &credential("http://169.254.169.254")).await;
    assert_eq!(put.refusal(), (400, "address_refused".to_owned(), Some("endpoint".to_owned())));
    assert_eq!(scene.try_put("apns", &credential("https://api.push.apple.com")).await.status, 204);
    assert_eq!(scene.try_put("apns", &credential("https://17.188.143.34:2197")).await.status, 204);
}

#[tokio::test]
async fn r17_a_url_with_a_password_is_refused_and_never_shown() {
    let scene = Scene::fcm(server().await, Policy::default()).await;
    let mut with_override = scene.fcm_credential("https://fcm.googleapis.com", FINE);
    with_override["token_endpoint"] = json!("https://me:hush@127.0.0.1/token");
    for (body, field) in [
        (scene.fcm_credential("https://me:hush@127.0.0.1", FINE), "endpoint"),
        (
            scene.fcm_credential("https://fcm.googleapis.com", "https://me:hush@127.0.0.1/"),
            "service_account.token_uri",
        ),
        (with_override, "token_endpoint"),
    ] {
        let put = scene.try_put("fcm", &body).await;
        assert_eq!(put.refusal(), (422, "invalid_field".to_owned(), Some(field.to_owned())));
        assert!(!put.body.to_string().contains("hush"), "{put:?}");
    }
}

#[tokio::test]
async fn r17_a_stored_credential_that_is_refused_now_holds_its_deliveries_and_fails_none() {
    let folder = tempfile::tempdir().expect("a folder");
    let scene = Scene::fcm(durable_server(folder).await, Policy::default()).await;
    scene.import_fcm(300).await;
    // Frequent probes: the server finds the refusal again each time that it connects.
    let scene = scene
        .restarted(|config| {
            forbid(config);
            config.pipeline.ready_max_credentials = 0;
            config.pipeline.credential_probe_ms = 20;
        })
        .await;
    let before = shown(&scene).await;
    assert_eq!((&before["state"], &before["reason"]), (&json!("parked"), &json!("address_refused")));
    assert!(before["detail"].as_str().expect("a text").contains("outbound.allowed_networks"), "{before}");
    let everyone = scene.send(json!("everyone")).await;
    let one = scene.send(json!({"token": {"platform": "android", "token": fcm_token(7)}})).await;
    until_kept_back(&scene, 305).await;
    for (campaign, count) in [(&everyone, 300), (&one, 1)] {
        let ledger = scene.server.get(&scene.tenant, &format!("/v1/campaigns/{campaign}")).await;
        let totals = &ledger["totals"];
        assert_eq!(
            totals["queued"].as_u64().unwrap_or(0) + totals["sending"].as_u64().unwrap_or(0),
            count,
            "{ledger}"
        );
    }
    assert_eq!(shown(&scene).await["reason"], "address_refused");
    assert_eq!(scene.attempts(), 0, "nothing reached it");
    // The setting is all that was missing.
    let scene = scene.restarted(|_| {}).await;
    for (campaign, count) in [(&everyone, 300), (&one, 1)] {
        let ledger = scene.ended(campaign).await;
        assert_eq!(ledger["totals"]["accepted"], count, "{ledger}");
    }
    assert_eq!(scene.fcm.sums().tokens.accepted, 301);
}

#[tokio::test]
async fn r17_a_server_that_starts_finds_refused_endpoints_before_it_sends() {
    let folder = tempfile::tempdir().expect("a folder");
    let scene = Scene::apns(durable_server(folder).await).await;
    scene.import_apns(1).await;
    let scene = scene.restarted(forbid).await;
    scene.until_parked().await;
    let send = scene.send(json!({"token": {"platform": "apple", "token": apns_token(0)}})).await;
    let ledger = scene.server.get(&scene.tenant, &format!("/v1/campaigns/{send}")).await;
    assert_eq!(ledger["totals"]["failed"], 0, "{ledger}");
    assert_eq!(scene.apns.sums().tokens.attempts, 0);
}
