//! Live Activities from the API to APNs' emulator: their own devices, their order, and nothing else for them.

use jiff::{SignedDuration, Timestamp};
use reqwest::Method;
use serde_json::{Value, json};
use stentor_emulators::policy::{Policy, Script, ScriptedAnswer, ServiceError};
use stentor_emulators::{ApnsConfig, ApnsEmulator, ApnsOptions, RunningApns};

use crate::harness::{Read, Reading, Server, Tenant, server};

/// A server, an app with a credential for each kind of Apple's devices, and an emulator.
struct Scene {
    server: Server,
    tenant: Tenant,
    apns: RunningApns,
}

impl Scene {
    async fn start(policy: Policy) -> Self {
        let server = server().await;
        let tenant = server.sender().await;
        let management = Some(([127, 0, 0, 1], 0).into());
        let vendor = ApnsOptions { management, ..ApnsOptions::default() };
        let config = ApnsConfig { policy, vendor, ..ApnsConfig::default() };
        let apns = ApnsEmulator::start(config).await.expect("an emulator");
        let key = rcgen::KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256).expect("a key");
        let mut credential = json!({"key_p8": key.serialize_pem(), "key_id": "KEY0123456", "team_id": "TEAM012345",
            "bundle_id": "com.example.app", "endpoint": format!("https://{}", apns.addr()),
            "ca_pem": apns.ca_pem().expect("TLS")});
        let scene = Self { server, tenant, apns };
        for provider in ["apns", "live_activity", "live_activity_start", "live_activity_channel"] {
            if provider == "live_activity_channel" {
                let management = scene.apns.management_addr().expect("a second port");
                credential["management_endpoint"] = json!(format!("https://{management}"));
            }
            let path = format!("/v1/apps/{}/credentials/{provider}", scene.tenant.id);
            let put = scene.server.send(&scene.tenant, Method::PUT, &path).json(&credential).read().await;
            assert_eq!(put.status, 204, "{put:?}");
        }
        scene
    }

    async fn register(&self, provider: &str, token: &str, more: Value) -> String {
        let mut body = json!({"platform": "apple", "provider": provider, "token": token});
        body.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        let read = self.server.send(&self.tenant, Method::POST, "/v1/devices").json(&body).read().await;
        read.text("id")
    }

    async fn try_send(&self, body: Value) -> Read {
        self.server.send(&self.tenant, Method::POST, "/v1/messages").json(&body).read().await
    }

    /// Sends a message, waits for its end, and returns its id with its ledger.
    async fn send(&self, body: Value) -> (String, Value) {
        let read = self.try_send(body).await;
        assert_eq!(read.status, 202, "{read:?}");
        let id = read.text("campaign");
        let ledger = self.server.ended(&self.tenant, &id).await;
        (id, ledger.clone())
    }

    async fn timestamp(&self, campaign: &str) -> i64 {
        // A campaign has the number of its message.
        let message = campaign.replace("cmp_", "msg_");
        let shown = self.server.get(&self.tenant, &format!("/v1/messages/{message}")).await;
        shown["live_activity"]["timestamp"].as_i64().unwrap_or_else(|| panic!("a timestamp: {shown}"))
    }

    fn accepted(&self, token: &str) -> u32 {
        self.apns.counts(token).accepted
    }
}

fn token(digit: &str) -> String {
    digit.repeat(64)
}

fn update(target: Value) -> Value {
    json!({"target": target, "live_activity": {"event": "update", "activity": "game-7", "content_state": {"home": 1}}})
}

fn start(target: Value) -> Value {
    json!({"target": target, "notification": {"title": "Kick-off"}, "live_activity": {"event": "start",
        "content_state": {"home": 0}, "attributes_type": "Game", "attributes": {"id": 7}}})
}

#[tokio::test]
async fn a_start_an_update_and_an_alert_reach_the_devices_that_are_meant() {
    let scene = Scene::start(Policy::default()).await;
    let of_ann = json!({"user": "ann", "topics": ["game-7"]});
    let (phone, starts, activity) = (token("a"), token("b"), token("c"));
    scene.register("apns", &phone, of_ann.clone()).await;
    scene.register("live_activity_start", &starts, of_ann.clone()).await;
    let running = scene.register("live_activity", &activity, of_ann).await;
    let counts = || [&phone, &starts, &activity].map(|token| scene.accepted(token));

    for target in [json!({"user": "ann"}), json!({"topic": "game-7"}), json!("everyone")] {
        let before = counts();
        let (_, ledger) = scene.send(start(target.clone())).await;
        assert_eq!(ledger["totals"]["accepted"], 1, "{target} {ledger}");
        let (_, ledger) = scene.send(update(target.clone())).await;
        assert_eq!(ledger["totals"]["accepted"], 1, "{target} {ledger}");
        let (_, ledger) = scene.send(json!({"target": target, "notification": {"title": "Hi"}})).await;
        assert_eq!(ledger["totals"]["accepted"], 1, "{target} {ledger}");
        assert_eq!(counts(), before.map(|count| count + 1), "{target}");
    }
    let (_, ledger) =
        scene.send(json!({"target": {"device": running}, "notification": {"title": "Hi"}})).await;
    assert_eq!(
        (&ledger["totals"]["accepted"], &ledger["audience"]),
        (&json!(0), &json!(0)),
        "no alert goes to an activity"
    );
    let dry = json!({"dry_run": true});
    let mut counted = update(json!("everyone"));
    counted.as_object_mut().expect("an object").extend(dry.as_object().expect("an object").clone());
    let report = scene.try_send(counted).await;
    assert_eq!(report.body["audience"]["total"], 1, "{report:?}");
}

#[tokio::test]
async fn updates_of_an_activity_have_later_and_later_timestamps() {
    let scene = Scene::start(Policy::default()).await;
    scene.register("live_activity", &token("c"), json!({"topics": ["game-7"]})).await;
    let mut last = 0;
    for _ in 0..5 {
        let (id, ledger) = scene.send(update(json!({"topic": "game-7"}))).await;
        let timestamp = scene.timestamp(&id).await;
        assert!(timestamp > last, "{timestamp} after {last}");
        assert_eq!(ledger["totals"]["accepted"], 1);
        last = timestamp;
    }
    let mut given = update(json!({"topic": "game-7"}));
    given["live_activity"]["timestamp"] = json!(last);
    let refused = scene.try_send(given.clone()).await.refusal();
    assert_eq!(refused.2.as_deref(), Some("live_activity.timestamp"));
    given["live_activity"]["timestamp"] = json!(last + 100);
    let (id, _) = scene.send(given).await;
    assert_eq!(scene.timestamp(&id).await, last + 100);
    let (id, _) = scene.send(update(json!({"topic": "game-7"}))).await;
    assert_eq!(scene.timestamp(&id).await, last + 101, "the next one is later still");
}

#[tokio::test]
async fn a_newer_update_replaces_an_older_one_that_waits_for_a_retry() {
    let answer = ScriptedAnswer::Error(ServiceError {
        retry_after_s: Some(1),
        ..ServiceError::new("ServiceUnavailable")
    });
    let first = stentor_emulators::policy::ScriptStep { answer, times: 1 };
    let scripts = vec![Script { token: Some(token("c")), answers: vec![first], ..Script::default() }];
    let scene = Scene::start(Policy { scripts, ..Policy::default() }).await;
    let device = scene.register("live_activity", &token("c"), json!({})).await;
    let older = scene.try_send(update(json!({"device": device}))).await.text("campaign");
    let (newer, ledger) = scene.send(update(json!({"device": device}))).await;
    assert_eq!(ledger["totals"]["accepted"], 1, "{ledger}");
    let ledger = scene.server.ended(&scene.tenant, &older).await;
    let (accepted, collapsed) = (&ledger["totals"]["accepted"], &ledger["totals"]["collapsed"]);
    let attempts = scene.apns.counts(&token("c")).attempts;
    // The first one to arrive failed: if that was the newer one, the older one arrived before it.
    assert_eq!(accepted.as_u64().expect("a count") + collapsed.as_u64().expect("a count"), 1, "{ledger}");
    assert!(scene.timestamp(&older).await < scene.timestamp(&newer).await && attempts >= 2);
}

#[tokio::test]
async fn an_expired_token_ends_the_activity_and_not_the_phone() {
    let error = ServiceError::new("ExpiredToken");
    let scripts =
        vec![Script { token: Some(token("c")), then: ScriptedAnswer::Error(error), ..Script::default() }];
    let scene = Scene::start(Policy { scripts, ..Policy::default() }).await;
    let phone = scene.register("apns", &token("a"), json!({"user": "ann"})).await;
    let activity = scene.register("live_activity", &token("c"), json!({"user": "ann"})).await;
    let (_, ledger) = scene.send(update(json!({"user": "ann"}))).await;
    assert_eq!(ledger["totals"]["rejected"], 1, "{ledger}");
    let state = |device: String| {
        let (server, tenant) = (&scene.server, &scene.tenant);
        async move { server.get(tenant, &format!("/v1/devices/{device}")).await["state"].clone() }
    };
    assert_eq!((state(phone).await, state(activity).await), (json!("active"), json!("retired")));
}

#[tokio::test]
async fn what_would_break_the_order_is_refused_by_its_field() {
    let scene = Scene::start(Policy::default()).await;
    let device = scene.register("live_activity", &token("c"), json!({})).await;
    let with = |name: &str, value: Value| {
        let mut body = update(json!({"device": device}));
        body[name] = value;
        body
    };
    let tomorrow = Timestamp::now() + SignedDuration::from_hours(24);
    let later = with("send_at", json!(tomorrow.to_string()));
    for (body, field) in [
        (with("collapse_key", json!("game")), "collapse_key"),
        (later, "live_activity.event"),
        (with("data", json!({"a": "b"})), "data"),
        (update(json!({"token": {"platform": "apple", "token": token("d")}})), "target.token.provider"),
    ] {
        let (status, code, at) = scene.try_send(body).await.refusal();
        assert_eq!((status, code.as_str(), at.as_deref()), (422, "invalid_field", Some(field)));
    }
    let message = update(json!({"device": device}));
    let schedule = json!({"message": message, "cron": "0 9 * * *", "time_zone": "Europe/Rome"});
    let refused =
        scene.server.send(&scene.tenant, Method::POST, "/v1/schedules").json(&schedule).read().await;
    assert_eq!(refused.refusal().2.as_deref(), Some("message.live_activity.event"));
}

const CHANNELS: &str = "/v1/live-activity-channels";

#[tokio::test]
async fn a_broadcast_is_one_delivery_until_its_channel_is_deleted() {
    let scene = Scene::start(Policy::default()).await;
    let made = scene.server.send(&scene.tenant, Method::POST, CHANNELS).json(&json!({"storage": "latest"}));
    let made = made.read().await;
    assert_eq!(made.status, 201, "{made:?}");
    let channel = made.text("channel");
    assert_eq!(scene.server.get(&scene.tenant, CHANNELS).await, json!({"channels": [{"channel": channel}]}));

    let token = json!({"platform": "apple", "provider": "live_activity_channel", "token": channel});
    let (_, ledger) = scene.send(update(json!({"token": token}))).await;
    assert_eq!((&ledger["audience"], &ledger["totals"]["accepted"]), (&json!(1), &json!(1)));
    assert_eq!(scene.apns.counts(&channel).attempts, 1, "one request");
    let refused = scene.try_send(start(json!({"token": token}))).await.refusal();
    assert_eq!(refused.2.as_deref(), Some("target.token.provider"), "a broadcast starts nothing");

    let path = format!("{CHANNELS}/{}", channel.replace('/', "%2F").replace('+', "%2B"));
    let remove = || scene.server.send(&scene.tenant, Method::DELETE, &path).read();
    assert_eq!(remove().await.status, 204);
    assert_eq!(remove().await.status, 404);
    let (_, ledger) = scene.send(update(json!({"token": token}))).await;
    assert_eq!(ledger["totals"]["rejected"], 1, "{ledger}");
}

#[tokio::test]
async fn channels_need_a_credential_of_their_own() {
    let server = server().await;
    let tenant = server.sender().await;
    let listed = server.send(&tenant, Method::GET, CHANNELS).read().await;
    assert_eq!(listed.refusal(), (409, "conflict".to_owned(), None));
    let wrong = server.send(&tenant, Method::POST, CHANNELS).json(&json!({"storage": "all"})).read().await;
    assert_eq!(wrong.refusal().2.as_deref(), Some("storage"));
}
