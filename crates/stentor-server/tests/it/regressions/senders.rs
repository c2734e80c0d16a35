//! The ledger's promises at each push service beside FCM and APNs: a refused payload, a refused credential, and no answer at all.

use std::time::{Duration, Instant};

use reqwest::Method;
use serde_json::{Value, json};
use stentor_emulators::control::Running;
use stentor_emulators::policy::{Script, ScriptedAnswer, ServiceError};
use stentor_emulators::web_push::SyntheticSubscriptions;
use stentor_emulators::{
    GcmConfig, GcmEmulator, HmsConfig, HmsEmulator, Policy, WebPushConfig, WebPushEmulator, WnsConfig,
    WnsEmulator,
};

use super::{always, count_of};
use crate::harness::{Read, Reading, Server, Tenant, server_with};

const DEVICES: usize = 3_000;
/// A few seconds on an idle machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// A push service with what its sender needs.
struct Vendor {
    provider: &'static str,
    platform: &'static str,
    emulator: Running,
    credential: Value,
    token: Box<dyn Fn(usize) -> String + Send>,
    /// Its word for a message that it refuses.
    payload_refused: &'static str,
    /// Its word for a sender that it refuses.
    sender_refused: &'static str,
}

async fn hms() -> Vendor {
    let emulator = HmsEmulator::start(HmsConfig::default()).await.expect("an emulator");
    let endpoint = format!("https://{}", emulator.addr());
    Vendor {
        provider: "hms",
        platform: "android",
        credential: json!({
            "client_secret": "secret", "client_id": "100", "project_id": "736",
            "endpoint": endpoint, "token_endpoint": format!("{endpoint}/oauth2/v3/token"),
            "ca_pem": emulator.ca_pem(),
        }),
        token: Box::new(|number| format!("IQAAAACy{number:060}")),
        emulator,
        payload_refused: "80100016",
        sender_refused: "80200001",
    }
}

async fn gcm() -> Vendor {
    let emulator = GcmEmulator::start(GcmConfig::default()).await.expect("an emulator");
    let endpoint = format!("https://{}", emulator.addr());
    Vendor {
        provider: "gcm",
        platform: "android",
        credential: json!({"api_key": "secret", "endpoint": endpoint, "ca_pem": emulator.ca_pem()}),
        token: Box::new(|number| format!("APA91b{number:0130}")),
        emulator,
        payload_refused: "MessageTooBig",
        sender_refused: "MismatchSenderId",
    }
}

async fn web_push() -> Vendor {
    let emulator = WebPushEmulator::start(WebPushConfig::default()).await.expect("an emulator").running;
    let origin = format!("https://{}", emulator.addr());
    let subscriptions =
        SyntheticSubscriptions::new(&origin, WebPushConfig::default().seed).expect("subscriptions");
    Vendor {
        provider: "web_push",
        platform: "web",
        credential: json!({"subject": "mailto:ops@app.example", "ca_pem": emulator.ca_pem()}),
        token: Box::new(move |number| subscriptions.token(number as u64)),
        emulator,
        payload_refused: "BadContent",
        sender_refused: "Unauthorized",
    }
}

async fn wns() -> Vendor {
    let emulator = WnsEmulator::start(WnsConfig::default()).await.expect("an emulator").running;
    let origin = format!("https://{}", emulator.addr());
    Vendor {
        provider: "wns",
        platform: "windows",
        credential: json!({
            "tenant_id": "tenant", "client_id": "100", "client_secret": "secret",
            "token_endpoint": format!("{origin}/tenant/oauth2/v2.0/token"), "ca_pem": emulator.ca_pem(),
        }),
        token: Box::new(move |number| format!("{origin}/?token=AwYAAAB{number:060}")),
        emulator,
        payload_refused: "BadRequest",
        sender_refused: "Unauthorized",
    }
}

async fn vendors() -> Vec<Vendor> {
    vec![hms().await, gcm().await, web_push().await, wns().await]
}

/// A server with an app and its devices at one push service.
struct Scene {
    server: Server,
    tenant: Tenant,
    vendor: Vendor,
}

impl Scene {
    async fn at(vendor: Vendor) -> Self {
        let server = server_with(|config| {
            config.pipeline.chunk_max_devices = 1_000;
            config.pipeline.credential_probe_ms = 300;
        })
        .await;
        let scene = Self { tenant: server.sender().await, server, vendor };
        scene.put_credential().await;
        let line = |number| {
            let (platform, provider) = (scene.vendor.platform, scene.vendor.provider);
            json!({"platform": platform, "provider": provider, "token": (scene.vendor.token)(number)})
        };
        let lines: String = (0..DEVICES).map(|number| format!("{}\n", line(number))).collect();
        let import = scene.server.send(&scene.tenant, Method::POST, "/v1/devices/import");
        let read = import.header("content-type", "application/x-ndjson").body(lines).read().await;
        assert_eq!(read.body["created"], DEVICES, "{read:?}");
        scene
    }

    async fn put_credential(&self) {
        let path = format!("/v1/apps/{}/credentials/{}", self.tenant.id, self.vendor.provider);
        let put = self.server.send(&self.tenant, Method::PUT, &path).json(&self.vendor.credential);
        let read: Read = put.read().await;
        assert!(read.status < 300, "{read:?}");
    }

    fn answer(&self, policy: Policy) {
        self.vendor.emulator.set_policy(policy).expect("a policy");
    }

    async fn send(&self) -> String {
        let message = json!({"target": "everyone", "notification": {"title": "Hi", "body": "there"}});
        self.server.post(&self.tenant, "/v1/messages", message).await["campaign"]
            .as_str()
            .expect("an id")
            .to_owned()
    }

    async fn ended(&self, campaign: &str) -> Value {
        self.server.ended(&self.tenant, campaign).await
    }

    /// Sends to all devices, which the push service accepts; proves that each was kept.
    async fn reaches_every_device(&self) {
        self.answer(Policy::default());
        let ledger = self.ended(&self.send().await).await;
        assert_eq!(ledger["totals"]["accepted"], DEVICES, "{}: {ledger}", self.vendor.provider);
    }

    /// Waits until the credential shows that its push service rests for a reason.
    async fn until_resting(&self, reason: &str) {
        let began = Instant::now();
        let path = format!("/v1/apps/{}/credentials", self.tenant.id);
        loop {
            let list = self.server.get(&self.tenant, &path).await;
            let own = list["credentials"].as_array().expect("a list").iter();
            let mut own = own.filter(|one| one["provider"] == self.vendor.provider);
            if own.any(|one| one["push_services"][0]["reason"] == reason) {
                return;
            }
            assert!(began.elapsed() < PATIENCE, "{list}");
        }
    }

    /// Waits until a number of requests has reached the push service.
    async fn until_asked(&self, count: u64) {
        let began = Instant::now();
        while self.vendor.emulator.sums().tokens.attempts < count {
            assert!(began.elapsed() < PATIENCE, "{}", self.vendor.provider);
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

#[tokio::test]
async fn a_payload_that_each_push_service_refuses_ends_its_campaign_and_keeps_every_device() {
    for vendor in vendors().await {
        let scene = Scene::at(vendor).await;
        scene.answer(always(ServiceError::new(scene.vendor.payload_refused)));
        let ledger = scene.ended(&scene.send().await).await;
        // The stop may come before the whole audience is found.
        let found = ledger["audience"].as_u64().expect("a number");
        assert!((1..=DEVICES as u64).contains(&found), "{}: {ledger}", scene.vendor.provider);
        assert_eq!(ledger["totals"]["accepted"], 0, "{}: {ledger}", scene.vendor.provider);
        let stop = ledger["providers"][0]["stop"].to_string();
        assert!(stop.contains("payload_refused"), "{}: {ledger}", scene.vendor.provider);
        assert_eq!(count_of(&ledger, scene.vendor.provider, "unregistered"), 0, "{ledger}");
        scene.reaches_every_device().await;
    }
}

#[tokio::test]
async fn a_credential_that_is_refused_ends_no_delivery_and_a_good_one_sends_them_all() {
    for vendor in [hms().await, gcm().await] {
        let scene = Scene::at(vendor).await;
        scene.answer(always(ServiceError::new(scene.vendor.sender_refused)));
        let campaign = scene.send().await;
        scene.until_asked(1).await;
        scene.answer(Policy::default());
        scene.put_credential().await;
        let ledger = scene.ended(&campaign).await;
        assert_eq!(ledger["totals"]["accepted"], DEVICES, "{}: {ledger}", scene.vendor.provider);
    }
}

#[tokio::test]
async fn a_credential_that_a_named_push_service_refuses_lets_that_push_service_rest_and_ends_no_delivery() {
    for vendor in [web_push().await, wns().await] {
        let scene = Scene::at(vendor).await;
        scene.answer(always(ServiceError::new(scene.vendor.sender_refused)));
        let campaign = scene.send().await;
        scene.until_resting("credential_refused").await;
        let totals = &scene.server.get(&scene.tenant, &format!("/v1/campaigns/{campaign}")).await["totals"];
        assert_eq!(
            (&totals["rejected"], &totals["failed"]),
            (&json!(0), &json!(0)),
            "{}: {totals}",
            scene.vendor.provider
        );
        // A renewed credential begins without a rest.
        scene.put_credential().await;
        scene.reaches_every_device().await;
    }
}

#[tokio::test]
async fn each_push_service_that_answers_nothing_delays_no_other_app() {
    for vendor in vendors().await {
        let scene = Scene::at(vendor).await;
        let stalled =
            Script { prefix: Some(String::new()), then: ScriptedAnswer::Stall, ..Script::default() };
        scene.answer(Policy { scripts: vec![stalled], ..Policy::default() });
        scene.send().await;
        scene.until_asked(1).await;
        let other = scene.server.sender().await;
        let device = scene.server.device(&other, "of-another-app").await;
        let began = Instant::now();
        let message = json!({"target": {"device": device}, "notification": {"title": "Hi"}});
        let sent = scene.server.post(&other, "/v1/messages", message).await;
        let ledger = scene.server.ended(&other, sent["campaign"].as_str().expect("an id")).await;
        assert_eq!(ledger["totals"]["accepted"], 1, "{ledger}");
        assert!(
            began.elapsed() < Duration::from_secs(10),
            "{}: {:?}",
            scene.vendor.provider,
            began.elapsed()
        );
    }
}
