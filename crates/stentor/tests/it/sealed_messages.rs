//! Messages that an app seals for a device whose keys it looks up: only the device reads them, and the server's files hold nothing of
//! them that can be read.

use std::path::{Path, PathBuf};
use std::process::Command;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::clients::{Python, built_package, client, ran};
use crate::device_run::{Scene, ended, lines, until};

const CONTENT: &str = "the code of the door is 4711, until Friday";

/// Has a program of a sender seal and send what a device opens.
fn sealed_by(program: &mut Command) {
    let mut scene = Scene::open();
    let out = scene.out();
    let device =
        scene.device("4", &["--encrypt", "--exec", &format!("cat >> {0}; echo >> {0}", out.display())]);
    let remembered = || std::fs::read_to_string(scene.folder().join("device.json")).unwrap_or_default();
    until("the keys", || remembered().contains(r#""is_told":true"#));
    let known: Value = serde_json::from_str(&remembered()).unwrap();
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
    for ((message, id), body) in got.iter().zip(&sent).zip(&bodies) {
        assert_eq!((&message["id"], &message["data"]), (&json!(id), body));
    }
    for message in &sent {
        assert_eq!(scene.totals(message), (1, 1));
    }
    scene.server.process.signal(Signal::TERM);
    assert!(scene.server.process.wait().success());
    for trace in [CONTENT.to_owned(), BASE64_STANDARD.encode(CONTENT), "y".repeat(100)] {
        assert_eq!(holding(&scene.data(), trace.as_bytes()), Vec::<PathBuf>::new());
    }
    // The search finds what is there.
    assert!(
        !holding(&scene.data(), id.as_bytes()).is_empty() || !holding(&scene.data(), b"kiosk").is_empty()
    );
}

/// Lists the files below a folder that hold some bytes.
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
