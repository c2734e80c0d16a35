//! Devices behind the emulator of FCM: what an app server sends to the emulator arrives at a device that speaks MCS.

use crate::process::Process;
use serde_json::{Value, json};
use std::time::Duration;
use stentor_gateway::client::{McsClient, McsClientEvent, McsClientLogin};
use stentor_wire::mcs::{McsCheckinReply, McsData};
use tempfile::TempDir;
use tokio::net::TcpStream;
use tokio::time::timeout;

const PATIENCE: Duration = Duration::from_secs(60);

/// The emulator with its gateway, and an HTTP client.
struct Scene {
    emulator: Process,
    http: reqwest::Client,
    _directory: TempDir,
}

/// A program that is registered and connected.
struct Device {
    token: String,
    connection: McsClient<TcpStream>,
}

impl Scene {
    fn open(policy: &Value) -> Self {
        let directory = TempDir::new().unwrap();
        let config = directory.path().join("fcm.json");
        std::fs::write(&config, json!({"auth": {"required": false}, "policy": policy}).to_string()).unwrap();
        let base = ["emulate", "fcm", "--plaintext", "--devices", "127.0.0.1:0"];
        let arguments = [&base[..], &["--config", config.to_str().unwrap()]].concat();
        let emulator = Process::start(&arguments, &directory.path().join("emulator.log"));
        Self { emulator, http: reqwest::Client::new(), _directory: directory }
    }

    fn told(&self, field: &str) -> &str {
        self.emulator.ready["devices"][field].as_str().unwrap()
    }

    /// Checks a device in, registers it for the app and connects it.
    async fn device(&self) -> Device {
        let url = self.told("url");
        let checked_in = self.http.post(format!("{url}/checkin")).send().await.unwrap();
        let reply = McsCheckinReply::read(&checked_in.bytes().await.unwrap()).unwrap();
        let (android_id, security_token) = reply.android_id.zip(reply.security_token).unwrap();
        let form = format!("app=com.example&sender={}&device={android_id}", self.told("app"));
        let register = self.http.post(format!("{url}/c2dm/register3")).body(form);
        let register = register.header("authorization", format!("AidLogin {android_id}:{security_token}"));
        let register = register.header("content-type", "application/x-www-form-urlencoded");
        let registered = register.send().await.unwrap().text().await.unwrap();
        let token = registered.strip_prefix("token=").unwrap().to_owned();
        let (received, security_token) = (Vec::new(), security_token.to_string().into());
        let login = McsClientLogin { android_id, security_token, received, heartbeat: None };
        let connection = McsClient::connect(self.told("mcs"), login).await.unwrap();
        Device { token, connection }
    }

    async fn ask(&self, path: &str, body: &Value) -> (u16, Value) {
        let request = self.http.post(format!("{}{path}", self.emulator.url())).json(body);
        let reply = request.send().await.unwrap();
        (reply.status().as_u16(), reply.json().await.unwrap())
    }

    async fn send(&self, message: &Value) -> u16 {
        self.ask("/v1/projects/any/messages:send", &json!({"message": message})).await.0
    }
}

impl Device {
    async fn next(&mut self) -> McsData {
        let event = timeout(PATIENCE, self.connection.next()).await.unwrap().unwrap();
        let McsClientEvent::Message(data) = event else { panic!("{event:?}") };
        self.connection.acknowledge(&[data.persistent_id.clone().unwrap()]).await.unwrap();
        *data
    }
}

fn value<'a>(data: &'a McsData, key: &str) -> &'a str {
    let found = data.app_data.iter().find(|entry| entry.key == key);
    found.map(|entry| entry.value.as_str()).unwrap_or_default()
}

#[tokio::test]
async fn what_is_sent_to_the_emulator_of_fcm_arrives_at_a_device_over_mcs() {
    let scene = Scene::open(&json!({}));
    let mut device = scene.device().await;
    let message = json!({"token": device.token, "data": {"n": "1"}, "notification": {"title": "Hello"}});
    assert_eq!(scene.send(&message).await, 200);
    let data = device.next().await;
    assert_eq!((value(&data, "n"), value(&data, "gcm.notification.title")), ("1", "Hello"));
    assert_eq!(data.category, "com.example");
}

#[tokio::test]
async fn a_topic_of_the_emulator_reaches_the_devices_that_were_put_into_it() {
    let scene = Scene::open(&json!({}));
    let (mut device, mut other) = (scene.device().await, scene.device().await);
    let batch = json!({"to": "/topics/news", "registration_tokens": [device.token]});
    let added = scene.http.post(format!("{}/iid/v1:batchAdd", scene.emulator.url()));
    let added = added.header("authorization", "key=any").json(&batch).send().await.unwrap();
    assert_eq!(added.status(), 200);
    assert_eq!(scene.send(&json!({"topic": "news", "data": {"n": "topic"}})).await, 200);
    assert_eq!(scene.send(&json!({"token": other.token, "data": {"n": "own"}})).await, 200);
    assert_eq!(value(&device.next().await, "n"), "topic");
    assert_eq!(value(&other.next().await, "n"), "own", "it is in no topic");
}

#[tokio::test]
async fn what_the_policy_refuses_reaches_no_device() {
    let answers = json!([{"answer": {"error": {"code": "UNAVAILABLE"}}, "times": 1}]);
    let scene = Scene::open(&json!({"scripts": [{"prefix": "app_", "answers": answers, "then": "accept"}]}));
    let mut device = scene.device().await;
    let send = |n: &str| json!({"token": device.token, "data": {"n": n}});
    let (first, second) = (send("refused"), send("accepted"));
    assert_eq!((scene.send(&first).await, scene.send(&second).await), (503, 200));
    assert_eq!(value(&device.next().await, "n"), "accepted");
}
