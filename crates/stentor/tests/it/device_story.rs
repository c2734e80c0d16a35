//! The life of a constrained device: it registers, sends its token to its app, receives notifications and data, responds, is killed and
//! restarted, and renews its token; each time against the real server, which is killed as well.

use std::process::{Child, Command};

use rustix::process::Signal;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::device_clients::{is_installed, java, java_classes, python};
use crate::device_run::{Scene, lines, until};
use crate::process::stentor;

#[tokio::test(flavor = "multi_thread")]
async fn a_limited_device_that_is_the_command_loses_nothing() {
    story(Tells::Nothing, |scene| {
        let folder = scene.folder().display().to_string();
        let answer = format!(
            "{{ cat; echo; }} >> {folder}/got.ndjson
            while [ -e {folder}/hold ]; do sleep 0.01; done
            {} device send --folder {folder} --id re-$STENTOR_MESSAGE_ID heard=$STENTOR_MESSAGE_ID > {folder}/told",
            env!("CARGO_BIN_EXE_stentor")
        );
        let base = ["device", "run", "--folder", &folder, "--topic", "news", "--no-desktop", "--exec", &answer];
        let place = ["--server", scene.server.process.url(), "--key", &scene.join_key];
        stentor(&[&base[..], &place[..]].concat())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_limited_device_in_python_loses_nothing() {
    if is_installed("python3") {
        let program = crate::clients::client("python-device").join("tests/story.py");
        story(Tells::Tokens, |scene| library(scene, python().arg(&program))).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_limited_device_in_java_loses_nothing() {
    let Some(classes): Option<TempDir> = java_classes() else { return };
    story(Tells::Tokens, |scene| library(scene, java(&classes).arg("Story"))).await;
}

/// Prepares a program that uses a library; the program sends its tokens by itself.
pub(crate) fn library(scene: &Scene, program: &mut Command) -> Command {
    program.arg(scene.folder());
    program.env("STENTOR_URL", scene.server.process.url()).env("STENTOR_KEY", &scene.join_key);
    std::mem::replace(program, Command::new("true"))
}

/// The data that a program sends to its app by itself.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Tells {
    Nothing,
    Tokens,
}

async fn story(tells: Tells, program: impl Fn(&Scene) -> Command) {
    let mut story = Story::begin(tells, program);
    // It registers, and its token reaches the app server.
    let mut device = story.device();
    let token = story.told_token("").await;
    // The app server sends; a notification and data arrive, and the response comes back.
    let first = story.send(&token, &["--title", "Hello"]);
    let second = story.send(&token, &["--data", "command=go"]);
    story.got(&[&first, &second]);
    story.heard(&second).await;
    // The server is killed while the device is connected; the device while it handles a message; the server while the device is away.
    story.server_dies();
    story.hold(true);
    let third = story.send(&token, &["--data", "command=more"]);
    story.got(&[&first, &second, &third]);
    device.kill();
    let fourth = story.send(&token, &["--data", "command=while-away"]);
    story.server_dies();
    story.hold(false);
    // The reply to a renewal of its token is lost; it comes back and renews it.
    story.lose_a_renewal().await;
    story.age_the_token();
    let _device = story.device();
    story.got(&[&first, &second, &third, &third, &fourth]);
    let renewed = story.told_token(&token).await;
    assert_eq!(story.status_of(&token).await, 401, "the former token opens nothing");
    // Both tokens lead to the device, which receives nothing twice.
    let fifth = story.send(&renewed, &["--data", "command=on"]);
    let sixth = story.send(&token, &["--data", "command=last"]);
    story.heard(&sixth).await;
    story.got(&[&first, &second, &third, &third, &fourth, &fifth, &sixth]);
    let sent = [first, second, third, fourth, fifth, sixth];
    until("the receipts", || sent.iter().all(|message| story.scene.totals(message) == (1, 1)));
    story.answers_came_once();
}

/// A device's program that is killed when the test ends.
pub(crate) struct Killed(pub(crate) Child);

impl Killed {
    fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The server, the app server, and their state.
struct Story<P> {
    scene: Scene,
    tells: Tells,
    program: P,
    client: reqwest::Client,
    /// The secret of the device's first token.
    secret: String,
    /// The messages received by the app server.
    upstream: Vec<Value>,
}

impl<P: Fn(&Scene) -> Command> Story<P> {
    fn begin(tells: Tells, program: P) -> Self {
        let scene = Scene::open();
        std::fs::create_dir(scene.folder()).unwrap();
        let (client, secret, upstream) = (reqwest::Client::new(), String::new(), Vec::new());
        Self { scene, tells, program, client, secret, upstream }
    }

    fn device(&self) -> Killed {
        Killed((self.program)(&self.scene).spawn().unwrap())
    }

    fn send(&self, token: &str, content: &[&str]) -> String {
        let to = ["message", "send", "--platform", "linux", "--token", token];
        let sent = self.scene.server.ok(&[&to[..], content].concat());
        sent["id"].as_str().unwrap().to_owned()
    }

    /// Waits until the handling of exactly these messages has begun, in this order.
    fn got(&self, wanted: &[&String]) {
        let file = self.scene.folder().join("got.ndjson");
        until("what is got", || lines(&file).len() >= wanted.len());
        let ids: Vec<Value> = lines(&file).iter().map(|one| one["id"].clone()).collect();
        assert_eq!(ids, wanted.iter().map(|id| json!(id)).collect::<Vec<_>>());
    }

    fn hold(&self, on: bool) {
        let file = self.scene.folder().join("hold");
        if on { std::fs::write(file, "").unwrap() } else { std::fs::remove_file(file).unwrap() }
    }

    fn server_dies(&mut self) {
        self.scene.restart(Signal::KILL);
    }

    /// Waits until the app server has received a token other than this one.
    async fn told_token(&mut self, former: &str) -> String {
        until("a token", || self.memory().is_some_and(|own| own["token"] != former));
        let token = self.memory().unwrap()["token"].as_str().unwrap().to_owned();
        if former.is_empty() {
            self.secret = self.memory().unwrap()["secret"].as_str().unwrap().to_owned();
        }
        if self.tells == Tells::Nothing {
            let folder = self.scene.folder().display().to_string();
            self.scene.server.ok(&["device", "send", "--folder", &folder, &format!("token={token}")]);
        }
        self.upstream_with("token", &token).await;
        token
    }

    async fn heard(&mut self, message: &str) {
        self.upstream_with("heard", message).await;
    }

    /// Takes over upstream messages until this one is among them.
    async fn upstream_with(&mut self, name: &str, value: &str) {
        while !self.upstream.iter().any(|one| one["data"][name] == value) {
            let listed = self.ask("/v1/upstream/messages", None).await;
            let new = listed["messages"].as_array().unwrap_or_else(|| panic!("{listed}")).clone();
            let ids: Vec<_> = new.iter().map(|one| one["id"].clone()).collect();
            if !ids.is_empty() {
                self.ask("/v1/upstream/acknowledge", Some(json!({"ids": ids}))).await;
            }
            self.upstream.extend(new);
        }
    }

    async fn ask(&self, path: &str, body: Option<Value>) -> Value {
        let url = format!("{}{path}", self.scene.server.process.url());
        let request = match body {
            Some(body) => self.client.post(url).json(&body),
            None => self.client.get(url),
        };
        let response = request.bearer_auth(&self.scene.app_key).send().await.unwrap();
        assert!(response.status().is_success(), "{response:?}");
        response.json().await.unwrap()
    }

    fn answers_came_once(&self) {
        let mut keys: Vec<_> = self.upstream.iter().map(|one| one["key"].to_string()).collect();
        let count = keys.len();
        keys.sort();
        keys.dedup();
        assert_eq!(keys.len(), count, "{keys:?}");
    }

    /// Requests a new token in the device's name, like a device that crashes before it has the reply.
    async fn lose_a_renewal(&self) {
        let own = self.memory().unwrap();
        let url = format!("{}/gateway/v1/device/token", self.scene.server.process.url());
        let (token, secret) = (own["token"].as_str().unwrap(), own["secret"].as_str());
        let response = self.client.post(url).basic_auth(token, secret).send().await.unwrap();
        assert_eq!(response.status(), 200);
    }

    fn age_the_token(&self) {
        let mut own = self.memory().unwrap();
        own["token_since"] = json!(0);
        std::fs::write(self.scene.folder().join("device.json"), own.to_string()).unwrap();
    }

    async fn status_of(&self, token: &str) -> u16 {
        let url = format!("{}/gateway/v1/device", self.scene.server.process.url());
        let response = self.client.get(url).basic_auth(token, Some(&self.secret)).send().await.unwrap();
        response.status().as_u16()
    }

    fn memory(&self) -> Option<Value> {
        let text = std::fs::read_to_string(self.scene.folder().join("device.json")).ok()?;
        Some(serde_json::from_str(&text).unwrap())
    }
}
