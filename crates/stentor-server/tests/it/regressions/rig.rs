//! A server, an app, and an emulator over TLS as the endpoint of its credential.

use std::net::SocketAddr;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use reqwest::Method;
use serde_json::{Value, json};
use stentor_emulators::apns::ApnsKey;
use stentor_emulators::{
    ApnsConfig, ApnsEmulator, ApnsOptions, FcmConfig, FcmEmulator, Policy, RunningApns, RunningFcm,
};

use stentor_server::config::Config;

use crate::harness::{Read, Reading, Server, Tenant, durable_server_with};

const PATIENCE: Duration = Duration::from_secs(60);

/// The stage of one test.
pub(super) struct Scene {
    pub(super) server: Server,
    pub(super) tenant: Tenant,
    pub(super) fcm: RunningFcm,
    pub(super) apns: RunningApns,
    account_key: String,
}

/// The push token of a device at FCM.
pub(super) fn fcm_token(number: usize) -> String {
    format!("fcm-token:{number}")
}

/// The push token of a device at APNs.
pub(super) fn apns_token(number: usize) -> String {
    format!("{number:064x}")
}

pub(super) fn now_ms() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
    u64::try_from(now.as_millis()).expect("fits")
}

impl Scene {
    /// Sets the stage for FCM, without a quota.
    pub(super) async fn fcm(server: Server, policy: Policy) -> Self {
        let scene = Self::set(server, policy).await;
        scene.put_fcm(json!("none")).await;
        scene
    }

    /// Sets the stage for APNs.
    pub(super) async fn apns(server: Server) -> Self {
        let scene = Self::set(server, Policy::default()).await;
        scene.put_apns().await;
        scene
    }

    /// Stops the server and starts it again on the same data with other settings.
    pub(super) async fn restarted(self, change: impl FnOnce(&mut Config)) -> Self {
        let folder = self.server.stop().await;
        Self { server: durable_server_with(folder, change).await, ..self }
    }

    /// Sets up the same stage with another server, and with an app of its own.
    pub(super) async fn at(self, server: Server) -> Self {
        let tenant = server.sender().await;
        Self { server, tenant, ..self }
    }

    /// Returns an FCM credential for the emulator with these endpoints.
    pub(super) fn fcm_credential(&self, endpoint: &str, token_uri: &str) -> Value {
        json!({"service_account": {"type": "service_account", "project_id": "a-project",
            "private_key_id": "k1", "private_key": self.account_key, "client_id": "1",
            "client_email": "a@a-project.iam.gserviceaccount.com", "token_uri": token_uri},
            "endpoint": endpoint, "ca_pem": self.fcm.ca_pem().expect("TLS")})
    }

    /// Puts a credential of any form; returns the response.
    pub(super) async fn try_put(&self, provider: &str, body: &Value) -> Read {
        let path = format!("/v1/apps/{}/credentials/{provider}", self.tenant.id);
        self.server.send(&self.tenant, Method::PUT, &path).json(body).read().await
    }

    /// Puts the APNs credential, with a new key each time.
    pub(super) async fn put_apns(&self) {
        self.put_apns_with(Value::Null).await;
    }

    /// The same with a quota; null omits it.
    pub(super) async fn put_apns_with(&self, quota: Value) {
        let key = rcgen::KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256).expect("a key");
        let mut body = json!({"key_p8": key.serialize_pem(), "key_id": "KEY0123456", "team_id": "TEAM012345",
            "bundle_id": "com.example.app", "endpoint": format!("https://{}", self.apns.addr()),
            "ca_pem": self.apns.ca_pem().expect("TLS")});
        if !quota.is_null() {
            body["quota"] = quota;
        }
        self.put("apns", body).await;
    }

    async fn set(server: Server, policy: Policy) -> Self {
        let tenant = server.sender().await;
        let fcm =
            FcmEmulator::start(FcmConfig { policy, ..FcmConfig::default() }).await.expect("an emulator");
        let known =
            ApnsKey { team_id: "TEAM012345".into(), key_id: "KEY0123456".into(), public_key_pem: None };
        let config = ApnsConfig {
            vendor: ApnsOptions { keys: vec![known], ..ApnsOptions::default() },
            ..ApnsConfig::default()
        };
        let apns = ApnsEmulator::start(config).await.expect("an emulator");
        let key = rcgen::KeyPair::generate_for(&rcgen::PKCS_RSA_SHA256).expect("a key");
        Self { server, tenant, fcm, apns, account_key: key.serialize_pem() }
    }

    /// Puts the FCM credential with a quota; null omits it.
    pub(super) async fn put_fcm(&self, quota: Value) {
        self.put_fcm_at(self.fcm.addr(), quota).await;
    }

    /// The same, for FCM behind another address.
    pub(super) async fn put_fcm_at(&self, address: SocketAddr, quota: Value) {
        self.put_fcm_key(address, &self.account_key, quota).await;
    }

    /// The same, with a new key each time.
    pub(super) async fn renew_fcm(&self, quota: Value) {
        let key = rcgen::KeyPair::generate_for(&rcgen::PKCS_RSA_SHA256).expect("a key");
        self.put_fcm_key(self.fcm.addr(), &key.serialize_pem(), quota).await;
    }

    async fn put_fcm_key(&self, address: SocketAddr, key: &str, quota: Value) {
        let endpoint = format!("https://{address}");
        let mut body = self.fcm_credential(&endpoint, &format!("{endpoint}/token"));
        body["service_account"]["private_key"] = json!(key);
        if !quota.is_null() {
            body["quota"] = quota;
        }
        self.put("fcm", body).await;
    }

    async fn put(&self, provider: &str, body: Value) {
        let put = self.try_put(provider, &body).await;
        assert_eq!(put.status, 204, "{put:?}");
    }

    pub(super) async fn import_fcm(&self, count: usize) {
        let line = |number| json!({"platform": "android", "token": fcm_token(number)});
        self.import((0..count).map(line)).await;
    }

    pub(super) async fn import_apns(&self, count: usize) {
        let line = |number| json!({"platform": "apple", "token": apns_token(number)});
        self.import((0..count).map(line)).await;
    }

    pub(super) async fn import(&self, lines: impl Iterator<Item = Value>) {
        let body: String = lines.map(|line| format!("{line}\n")).collect();
        let request = self.server.send(&self.tenant, Method::POST, "/v1/devices/import");
        let read = request.header("content-type", "application/x-ndjson").body(body).read().await;
        assert_eq!((read.status, &read.body["failed"]), (200, &json!(0)), "{read:?}");
    }

    /// Sends a notification; returns the campaign.
    pub(super) async fn send(&self, target: Value) -> String {
        let answer = self.try_send(target).await;
        assert_eq!(answer.status, 202, "{answer:?}");
        answer.text("campaign")
    }

    /// Sends a notification; returns the answer.
    pub(super) async fn try_send(&self, target: Value) -> Read {
        let body = json!({"target": target, "notification": {"title": "Hi"}});
        self.server.send(&self.tenant, Method::POST, "/v1/messages").json(&body).read().await
    }

    pub(super) async fn ended(&self, campaign: &str) -> Value {
        self.server.ended(&self.tenant, campaign).await
    }

    /// Waits until a credential of the app is parked.
    pub(super) async fn until_parked(&self) {
        let began = Instant::now();
        while !self.is_parked().await {
            assert!(began.elapsed() < PATIENCE, "nothing is parked");
        }
    }

    /// Returns true if a credential of the app is parked.
    pub(super) async fn is_parked(&self) -> bool {
        let path = format!("/v1/apps/{}/credentials", self.tenant.id);
        let list = self.server.get(&self.tenant, &path).await;
        list["credentials"].as_array().expect("a list").iter().any(|one| one["state"] == "parked")
    }

    /// Waits until no delivery of a campaign is in flight; returns its books.
    pub(super) async fn rested(&self, campaign: &str) -> Value {
        let (began, path) = (Instant::now(), format!("/v1/campaigns/{campaign}"));
        loop {
            let ledger = self.server.get(&self.tenant, &path).await;
            if ledger["totals"]["sending"] == 0 {
                return ledger;
            }
            assert!(began.elapsed() < PATIENCE, "it is still on its way: {ledger}");
        }
    }

    /// Counts the requests that reached FCM.
    pub(super) fn attempts(&self) -> u64 {
        self.fcm.sums().tokens.attempts
    }

    /// Waits until this number of requests has reached FCM.
    pub(super) async fn until_attempts(&self, count: u64) {
        self.until(|| self.attempts() >= count).await;
    }

    /// Waits until a condition holds.
    pub(super) async fn until(&self, is_so: impl Fn() -> bool) {
        let began = Instant::now();
        while !is_so() {
            assert!(began.elapsed() < PATIENCE, "it never came: {:?}", self.fcm.sums());
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}
