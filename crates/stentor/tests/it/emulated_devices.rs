//! Devices behind the emulator of FCM: a message from an app server to the emulator arrives at a device that speaks MCS.

use crate::process::Process;
use serde_json::{Value, json};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
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

/// A registered and connected program.
struct Device {
    token: String,
    connection: McsClient<TcpStream>,
}

impl Scene {
    fn open(policy: &Value) -> Self {
        Self::listening(policy, &["--plaintext"])
    }

    fn listening(policy: &Value, how: &[&str]) -> Self {
        let directory = TempDir::new().unwrap();
        let config = directory.path().join("fcm.json");
        std::fs::write(&config, json!({"auth": {"required": false}, "policy": policy}).to_string()).unwrap();
        let base = ["emulate", "fcm", "--devices", "127.0.0.1:0", "--config", config.to_str().unwrap()];
        let arguments = [&base[..], how].concat();
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

/// Set if the host names built into clients resolve to this machine; contains the file that is written at the end.
const INSIDE: &str = "STENTOR_EMULATED_DEVICES_INSIDE";
const PROJECT: &str = "judged-project";

/// Returns the unmodified firebase-admin for app servers, as installed by `tests/judges/install`.
fn firebase_admin() -> Option<PathBuf> {
    let home = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("judges").join("python");
    let pins = std::fs::read(home.join("pins")).ok();
    let current = pins.is_some() && pins == std::fs::read(judges().join("requirements.txt")).ok();
    current.then(|| home.join("bin/python"))
}

fn judges() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/judges/clients/python")
}

fn service_account() -> String {
    let key = rcgen::KeyPair::generate_for(&rcgen::PKCS_RSA_SHA256).unwrap();
    json!({"type": "service_account", "project_id": PROJECT, "private_key_id": "k1", "client_id": "1",
        "private_key": key.serialize_pem(), "client_email": format!("a@{PROJECT}.iam.gserviceaccount.com"),
        "token_uri": "https://oauth2.googleapis.com/token"})
    .to_string()
}

fn done(command: &mut Command) -> bool {
    command.status().is_ok_and(|status| status.success())
}

/// Runs a test again where firebase-admin reaches this machine under Google's names; returns true if it ran.
fn judged_elsewhere(name: &str) -> bool {
    let is_root = rustix::process::getuid().is_root();
    if !is_root
        || firebase_admin().is_none()
        || !done(Command::new("unshare").args(["--net", "--mount", "true"]))
    {
        let required = std::env::var("STENTOR_TEST_REQUIRE").unwrap_or_default();
        assert!(!required.split(',').any(|word| word.trim() == "judges"), "firebase-admin cannot judge here");
        let _ = writeln!(std::io::stderr(), "skipped: {name}: root, namespaces, and tests/judges/install");
        return false;
    }
    let folder = TempDir::new().unwrap();
    let marker = folder.path().join("told");
    let mut command = Command::new("unshare");
    command.args(["--net", "--mount"]).arg(std::env::current_exe().unwrap());
    assert!(done(command.args(["--exact", name, "--nocapture"]).env(INSIDE, &marker)));
    marker.exists()
}

#[test]
fn what_firebase_admin_sends_arrives_at_a_device_over_mcs() {
    let name = "emulated_devices::what_firebase_admin_sends_arrives_at_a_device_over_mcs";
    let Some(marker) = std::env::var_os(INSIDE) else {
        let is_skipped = firebase_admin().is_none() || !rustix::process::getuid().is_root();
        assert!(judged_elsewhere(name) || is_skipped, "no test has this name, so nothing was judged");
        return;
    };
    let folder = TempDir::new().unwrap();
    let hosts = folder.path().join("hosts");
    std::fs::write(&hosts, "127.0.0.1 localhost fcm.googleapis.com oauth2.googleapis.com\n").unwrap();
    assert!(done(Command::new("ip").args(["link", "set", "lo", "up"])));
    assert!(done(Command::new("mount").arg("--bind").arg(&hosts).arg("/etc/hosts")));
    tokio::runtime::Runtime::new().unwrap().block_on(story(folder.path()));
    std::fs::write(marker, "told").unwrap();
}

async fn story(folder: &Path) {
    let scene =
        Scene::listening(&json!({}), &["--listen", "127.0.0.1:443", "--ca-dir", folder.to_str().unwrap()]);
    let mut device = scene.device().await;
    let account = folder.join("service-account.json");
    std::fs::write(&account, service_account()).unwrap();
    let mut sender = tokio::process::Command::new(firebase_admin().unwrap());
    sender.arg(judges().join("firebase_device.py")).arg(&account).arg(&device.token);
    for variable in ["REQUESTS_CA_BUNDLE", "SSL_CERT_FILE"] {
        sender.env(variable, folder.join("ca.pem"));
    }
    for proxy in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"] {
        sender.env_remove(proxy);
    }
    let sent = timeout(PATIENCE, sender.output()).await.unwrap().unwrap();
    let (printed, errors) = (String::from_utf8_lossy(&sent.stdout), String::from_utf8_lossy(&sent.stderr));
    assert!(printed.starts_with(&format!("projects/{PROJECT}/messages/")), "{printed}{errors}");
    let data = device.next().await;
    let shown = ["gcm.notification.title", "gcm.notification.body"].map(|key| value(&data, key));
    assert_eq!((value(&data, "n"), shown), ("1", ["Hello", "from firebase-admin"]));
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
