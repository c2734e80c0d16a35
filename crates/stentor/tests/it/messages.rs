//! From an empty directory to a device that receives a message, with the command line alone.

use crate::process::Process;
use crate::server::Server;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;
use tempfile::TempDir;

#[test]
fn every_kind_of_target_reaches_a_listening_device_and_no_secret_is_logged() {
    let directory = TempDir::new().unwrap();
    let emulator = emulator(directory.path());
    let server = Server::start(directory.path());
    let created = server.ok(&["app", "create", "shop"]);
    let secret = created["key"]["secret"].as_str().unwrap();
    let private_key = set_credential(&server, &emulator, directory.path());
    let control = emulator.ready["control"].as_str().unwrap().to_owned();
    let token =
        rest("POST", &format!("{control}/device/register"), None, None)["token"].as_str().unwrap().to_owned();
    let register =
        ["device", "register", "--platform", "android", "--topic", "news", "--user", "u1", "--token", &token];
    let device = server.ok(&register)["id"].as_str().unwrap().to_owned();
    join_group(&server, secret);

    let targets: [(&str, &[&str]); 7] = [
        ("device", &["--device", &device]),
        ("token", &["--platform", "android", "--token", &token]),
        ("topic", &["--topic", "news"]),
        ("condition", &["--condition", "'news' in topics && !('old' in topics)"]),
        ("user", &["--user", "u1"]),
        ("group", &["--group", "friends"]),
        ("everyone", &["--everyone"]),
    ];
    for (name, target) in targets {
        let ledger = server.ok(&[&["message", "send", "--watch", "--body", name], target].concat());
        assert_eq!(
            (&ledger["totals"]["accepted"], &ledger["audience"]),
            (&json!(1), &json!(1)),
            "{name}: {ledger}"
        );
    }
    let expected: BTreeSet<String> = targets.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(received(&control, &token, targets.len()), expected);

    let history = server.ok(&["device", "deliveries", &device]);
    assert_eq!(history["deliveries"].as_array().unwrap().len(), targets.len(), "{history}");
    let campaigns = server.ok(&["campaign", "list"]);
    let newest = campaigns["campaigns"][0]["id"].as_str().unwrap();
    assert_eq!(server.ok(&["campaign", "progress", "--once", newest])["balanced"], json!(true));
    let log = server.process.log();
    for hidden in [secret, &token, &private_key, &server.root_key()] {
        assert!(!log.contains(hidden), "a secret is in the log");
    }
}

pub(crate) fn emulator(directory: &Path) -> Process {
    let ca = directory.join("ca");
    let listen = "127.0.0.1:0";
    let arguments =
        ["emulate", "fcm", "--listen", listen, "--control", listen, "--ca-dir", ca.to_str().unwrap()];
    Process::start(&arguments, &directory.join("fcm.log"))
}

/// Stores a service account created for this test; returns a line of its private key.
pub(crate) fn set_credential(server: &Server, emulator: &Process, directory: &Path) -> String {
    let key = rcgen::KeyPair::generate_rsa_for(&rcgen::PKCS_RSA_SHA256, rcgen::RsaKeySize::_2048).unwrap();
    let private_key = key.serialize_pem();
    let account = json!({
        "type": "service_account",
        "project_id": "shop",
        "private_key_id": "1",
        "private_key": private_key,
        "client_email": "sender@shop.iam.gserviceaccount.com",
        "token_uri": format!("{}/token", emulator.url()),
    });
    let path = directory.join("service-account.json");
    std::fs::write(&path, account.to_string()).unwrap();
    let (file, ca) = (path.to_str().unwrap(), emulator.ready["ca_file"].as_str().unwrap());
    let set =
        ["app", "credential", "set", "--provider", "fcm", "--endpoint", emulator.url(), "--ca", ca, file];
    server.ok(&set);
    private_key.lines().nth(3).unwrap().to_owned()
}

fn join_group(server: &Server, secret: &str) {
    let group = format!("{}/v1/groups/friends", server.process.url());
    rest("PUT", &group, Some(secret), Some(json!({})));
    let change = rest("POST", &format!("{group}/members"), Some(secret), Some(json!({"users": ["u1"]})));
    assert!(change.get("code").is_none(), "{change}");
}

/// Listens as the device and returns the bodies of the first messages.
pub(crate) fn received(control: &str, token: &str, count: usize) -> BTreeSet<String> {
    runtime().block_on(async {
        let mut response = reqwest::get(format!("{control}/device/{token}/messages")).await.unwrap();
        let mut text = Vec::new();
        while text.iter().filter(|byte| **byte == b'\n').count() < count {
            text.extend_from_slice(&response.chunk().await.unwrap().unwrap());
        }
        let lines = text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        lines.map(|line| body_of(&serde_json::from_slice(line).unwrap())).collect()
    })
}

fn body_of(message: &Value) -> String {
    let payload = &message["payload"];
    let body =
        payload["notification"]["body"].as_str().or(payload["message"]["notification"]["body"].as_str());
    body.unwrap_or_else(|| panic!("no body in {message}")).to_owned()
}

pub(crate) fn rest(method: &str, url: &str, key: Option<&str>, body: Option<Value>) -> Value {
    runtime().block_on(async {
        let mut request = reqwest::Client::new().request(method.parse().unwrap(), url);
        if let Some(key) = key {
            request = request.bearer_auth(key);
        }
        if let Some(body) = body {
            request = request.json(&body);
        }
        let bytes = request.send().await.unwrap().bytes().await.unwrap();
        serde_json::from_slice(&bytes).unwrap_or(Value::Null)
    })
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}
