//! A machine as a device of the gateway: `stentor device run`, from its registration to messages in both directions.

use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::process::stentor;
use crate::server::Server;

const PATIENCE: Duration = Duration::from_secs(120);

/// A server with an app, and a folder for a device.
pub(crate) struct Scene {
    directory: TempDir,
    pub(crate) server: Server,
    app: String,
    /// The app's own key.
    pub(crate) app_key: String,
    /// The key of its devices.
    pub(crate) join_key: String,
}

impl Scene {
    pub(crate) fn open() -> Self {
        let directory = TempDir::new().unwrap();
        let server = Server::start(directory.path());
        let made = server.ok(&["app", "create", "kiosk"]);
        let app = made["id"].as_str().unwrap_or_default().to_owned();
        let app_key = made["key"]["secret"].as_str().unwrap().to_owned();
        let key = server.ok(&["app", "key", "create", "--name", "devices", "--scope", "join"]);
        let join_key = key["secret"].as_str().unwrap().to_owned();
        Self { directory, server, app, app_key, join_key }
    }

    pub(crate) fn folder(&self) -> PathBuf {
        self.directory.path().join("device")
    }

    pub(crate) fn out(&self) -> PathBuf {
        self.directory.path().join("got.ndjson")
    }

    /// Returns the data directory of the server.
    pub(crate) fn data(&self) -> PathBuf {
        self.directory.path().join("data")
    }

    /// Runs the device until it has received `count` messages.
    pub(crate) fn device(&self, count: &str, more: &[&str]) -> Child {
        let folder = self.folder();
        let base =
            ["device", "run", "--server", self.server.process.url(), "--folder", folder.to_str().unwrap()];
        let rest = ["--key", &self.join_key, "--count", count, "--no-desktop"];
        stentor(&[&base[..], &rest[..], more].concat()).spawn().unwrap()
    }

    pub(crate) fn send(&self, title: &str) -> String {
        let sent = self.server.ok(&["message", "send", "--everyone", "--title", title, "--data", "n=1"]);
        sent["id"].as_str().unwrap().to_owned()
    }

    pub(crate) fn totals(&self, message: &str) -> (u64, u64) {
        let campaign = self.server.ok(&["campaign", "progress", "--once", &message.replace("msg_", "cmp_")]);
        let count = |name: &str| campaign["totals"][name].as_u64().unwrap_or_default();
        (count("accepted"), count("delivered"))
    }

    /// Ends the server with a signal and starts it again at the same address.
    pub(crate) fn restart(&mut self, signal: Signal) {
        let address = self.server.process.url().trim_start_matches("http://").to_owned();
        self.server.process.signal(signal);
        self.server.process.wait();
        let (directory, data) = (self.directory.path(), self.directory.path().join("data"));
        let arguments = ["serve", "--listen", &address, "--data-dir", data.to_str().unwrap()];
        let process = crate::process::Process::start(&arguments, &directory.join("again.log"));
        self.server = Server::of(process, directory);
    }
}

pub(crate) fn ended(mut child: Child) {
    let begun = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            assert!(status.success(), "{status}");
            return;
        }
        assert!(begun.elapsed() < PATIENCE, "the device does not end");
        std::thread::yield_now();
    }
}

pub(crate) fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < PATIENCE, "{what} does not come to hold");
        std::thread::yield_now();
    }
}

pub(crate) fn lines(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_machine_registers_gets_its_messages_and_hands_them_to_a_command() {
    let scene = Scene::open();
    let out = scene.out();
    let command = format!("cat >> {0}; echo >> {0}", out.display());
    let device = scene.device("2", &["--exec", &command]);
    until("the registration", || scene.folder().join("device.json").exists());
    let one = scene.send("One");
    // Two messages to a connected device are processed concurrently: either may arrive first.
    until("the first", || lines(&out).len() == 1);
    let two = scene.send("Two");
    ended(device);
    let got: Vec<Value> = lines(&out);
    let of = |index: usize| (got[index]["id"].clone(), got[index]["notification"]["title"].clone());
    assert_eq!((of(0), of(1)), ((json!(one), json!("One")), (json!(two), json!("Two"))));
    assert_eq!((scene.totals(&one), scene.totals(&two)), ((1, 1), (1, 1)));
    assert!(scene.app.starts_with("app_"));
}

#[test]
fn what_comes_while_the_machine_is_away_waits_and_what_it_wants_to_send_too() {
    let scene = Scene::open();
    ended_after_one(&scene);
    let folder = scene.folder();
    let away = scene.send("While away");
    let sent = ["device", "send", "--folder", folder.to_str().unwrap(), "--id", "m-1", "temperature=21"];
    scene.server.ok(&sent);
    assert!(folder.join("outbox/m-1.json").exists(), "it waits for a connection");
    let device = scene.device("2", &["--exec", &format!("cat >> {0}; echo >> {0}", scene.out().display())]);
    until("the sending", || !folder.join("outbox/m-1.json").exists());
    let last = scene.send("Now");
    ended(device);
    let ids: Vec<_> = lines(&scene.out()).iter().map(|one| one["id"].clone()).collect();
    assert_eq!(ids, [json!(away), json!(last)], "each once");
}

/// Registers the device and waits until it has received one message.
fn ended_after_one(scene: &Scene) {
    let device = scene.device("1", &[]);
    until("the registration", || scene.folder().join("device.json").exists());
    scene.send("First");
    ended(device);
}

#[test]
fn a_killed_server_loses_nothing_and_repeats_nothing() {
    let mut scene = Scene::open();
    ended_after_one(&scene);
    let device = scene.device("3", &["--exec", &format!("cat >> {0}; echo >> {0}", scene.out().display())]);
    let mut sent = vec![scene.send("Before")];
    until("the first", || lines(&scene.out()).len() == 1);
    scene.restart(Signal::KILL);
    sent.push(scene.send("After"));
    sent.push(scene.send("Last"));
    ended(device);
    let ids: Vec<_> = lines(&scene.out()).iter().map(|one| one["id"].as_str().unwrap().to_owned()).collect();
    assert_eq!(ids, sent);
    scene.server.process.signal(Signal::TERM);
    assert!(scene.server.process.wait().success());
}

#[test]
fn a_machine_that_wants_it_gets_its_messages_sealed_and_hands_them_on_in_clear() {
    let scene = Scene::open();
    let command = format!("cat >> {0}; echo >> {0}", scene.out().display());
    let device = scene.device("1", &["--encrypt", "--exec", &command]);
    let remembered = || std::fs::read_to_string(scene.folder().join("device.json")).unwrap_or_default();
    until("the keys", || remembered().contains(r#""is_told":true"#));
    let one = scene.send("One");
    ended(device);
    // From now on the option is not needed: the device has stored its keys.
    let two = scene.send("Two");
    ended(scene.device("1", &["--exec", &command]));
    let got = lines(&scene.out());
    for (message, id, title) in [(&got[0], &one, "One"), (&got[1], &two, "Two")] {
        assert_eq!((&message["id"], &message["notification"]["title"]), (&json!(id), &json!(title)));
        assert!(message["sealed"].is_null(), "{message}");
    }
    assert_eq!((scene.totals(&one), scene.totals(&two)), ((1, 1), (1, 1)));
}
