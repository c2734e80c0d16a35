//! Messages that an app encrypts with the keys of a device: only the device can read them, and the server's files contain nothing readable
//! of them.

use std::path::{Path, PathBuf};
use std::process::Command;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use reqwest::Method;
use rustix::process::Signal;
use serde_json::{Value, json};
use stentor_wire::web_push::{PushKeys, seal};

use crate::clients::{Python, built_package, client, ran};
use crate::device_clients::{java, java_classes, with_library};
use crate::device_run::{Scene, ended, lines, until};
use crate::device_story::{Killed, library};

const CONTENT: &str = "the code of the door is 4711, until Friday";

/// Encrypts and sends messages with a sender's program, and checks that the device decrypts them.
fn sealed_by(program: &mut Command) {
    let mut scene = Scene::open();
    let out = scene.out();
    let device =
        scene.device("4", &["--encrypt", "--exec", &format!("cat >> {0}; echo >> {0}", out.display())]);
    let known = with_keys(&scene);
    let id = known["device"].as_str().unwrap_or_else(|| panic!("{known}"));
    program.env("STENTOR_URL", scene.server.process.url()).env("STENTOR_KEY", &scene.app_key);
    let sent = ran(program.env("DEVICE", id).env("CONTENT", CONTENT));
    let sent: Vec<&str> = sent.lines().collect();
    ended(device);

    let got = lines(&out);
    let bodies = [
        json!({"body": CONTENT}),
        json!({"body_base64": "////"}),
        json!({"body": "x".repeat(4_079)}),
        json!({"body": "y".repeat(5_000)}),
    ];
    assert_eq!(got.len(), bodies.len(), "{got:?}");
    for (id, body) in sent.iter().zip(&bodies) {
        // A connected device gets messages as they are settled, in any order.
        let came: Vec<_> =
            got.iter().filter(|message| message["id"] == *id).map(|message| &message["data"]).collect();
        assert_eq!(came, [body]);
    }
    for message in &sent {
        assert_eq!(scene.totals(message), (1, 1));
    }
    scene.server.process.signal(Signal::TERM);
    assert!(scene.server.process.wait().success());
    for trace in [CONTENT.to_owned(), BASE64_STANDARD.encode(CONTENT), "y".repeat(100)] {
        assert_eq!(holding(&scene.data(), trace.as_bytes()), Vec::<PathBuf>::new());
    }
    // Proves that the search finds stored data.
    assert!(
        !holding(&scene.data(), id.as_bytes()).is_empty() || !holding(&scene.data(), b"kiosk").is_empty()
    );
}

/// Waits until the server encrypts for the device; returns the device's state.
fn with_keys(scene: &Scene) -> Value {
    let remembered = || std::fs::read_to_string(scene.folder().join("device.json")).unwrap_or_default();
    until("the keys", || remembered().contains(r#""is_told":true"#));
    serde_json::from_str(&remembered()).unwrap()
}

async fn asked(scene: &Scene, method: Method, path: &str, body: Value) -> Value {
    let request = reqwest::Client::new().request(method, format!("{}{path}", scene.server.process.url()));
    request.bearer_auth(&scene.app_key).json(&body).send().await.unwrap().json().await.unwrap()
}

/// Continues with a library in the folder of a device that the command has created with keys: it decrypts the messages of server and app.
async fn opened_by(program: impl Fn(&Scene) -> Command) {
    let scene = Scene::open();
    let device = scene.device("1", &["--encrypt"]);
    let known = with_keys(&scene);
    scene.send("One");
    ended(device);
    let by_server = scene.send("Two");
    let device = Killed(program(&scene).spawn().unwrap());
    let got = scene.folder().join("got.ndjson");
    // A notification with data goes to both kinds of handlers.
    until("what the server has sealed", || lines(&got).len() == 2);
    let id = known["device"].as_str().unwrap_or_else(|| panic!("{known}"));
    let shown = asked(&scene, Method::GET, &format!("/v1/devices/{id}"), Value::Null).await;
    let keys =
        ["p256dh", "auth"].map(|name| shown["keys"][name].as_str().unwrap_or_else(|| panic!("{shown}")));
    let body = seal(CONTENT.as_bytes(), &PushKeys::read(keys[0], keys[1]).unwrap()).unwrap();
    let message = json!({"target": {"device": id}, "gateway": {"raw": BASE64_STANDARD.encode(body), "encoding": "aes128gcm"}});
    let sent = asked(&scene, Method::POST, "/v1/messages", message).await;
    let by_app = sent["id"].as_str().unwrap_or_else(|| panic!("{sent}")).to_owned();
    until("what the app has sealed", || lines(&got).len() == 3);
    let got = lines(&got);
    for message in &got[..2] {
        assert_eq!((&message["id"], &message["notification"]["title"]), (&json!(by_server), &json!("Two")));
    }
    assert_eq!((&got[2]["id"], &got[2]["data"]), (&json!(by_app), &json!({"body": CONTENT})));
    until("the receipts", || [&by_server, &by_app].iter().all(|message| scene.totals(message) == (1, 1)));
    drop(device);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_with_keys_is_gone_on_with_in_python() {
    let Some(python) = Python::installed() else { return };
    let story = client("python-device").join("tests/story.py");
    opened_by(|scene| library(scene, with_library(&mut Command::new(python.program())).arg(&story))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_folder_with_keys_is_gone_on_with_in_java() {
    let Some(classes) = java_classes() else { return };
    opened_by(|scene| library(scene, java(&classes).arg("Story"))).await;
}

/// Lists the files below a folder that contain some bytes.
fn holding(folder: &Path, bytes: &[u8]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(holding(&path, bytes));
        } else if std::fs::read(&path).unwrap().windows(bytes.len()).any(|window| window == bytes) {
            found.push(path);
        }
    }
    found
}

#[test]
fn what_http_ece_seals_for_keys_that_were_looked_up_the_device_alone_reads() {
    let Some(python) = Python::installed() else { return };
    sealed_by(python.command().arg(client("python").join("tests/sealed.py")));
}

#[test]
fn what_the_typescript_client_seals_for_keys_that_were_looked_up_the_device_alone_reads() {
    let Some(package) = built_package() else { return };
    let file = package.path().join("sealed.mjs");
    std::fs::copy(client("typescript").join("tests/sealed.mjs"), &file).unwrap();
    sealed_by(Command::new("node").arg(file));
}
