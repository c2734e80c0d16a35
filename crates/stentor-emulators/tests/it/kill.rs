//! An emulator's counts survive `kill -9`: it runs in a process of its own here, and is really killed.

use crate::rig::{self, Client, hex};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use stentor_emulators::{ApnsConfig, ApnsOptions, ObserverConfig, ObserverFile};

/// Makes the test that starts itself act as the emulator; holds the path of the observer's file.
const OBSERVER: &str = "STENTOR_EMULATORS_OBSERVER";
const READY: &str = "emulator at ";
const PATIENCE: Duration = Duration::from_secs(30);

/// An emulator in a process of its own. It ends with its input, and so also when the test dies first.
struct Process {
    child: Child,
    push: SocketAddr,
    control: SocketAddr,
}

impl Process {
    fn start(test: &str, observer: &Path) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", test, "--nocapture"]).env(OBSERVER, observer);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
        let ready =
            lines.filter_map(|line| line.split_once(READY).map(|(_, addresses)| addresses.to_owned()));
        let addresses = { ready }.next().expect("the emulator does not start");
        let (push, control) = addresses.split_once(' ').unwrap();
        Self { child, push: push.parse().unwrap(), control: control.parse().unwrap() }
    }

    fn kill(mut self) {
        self.child.kill().unwrap();
        let status = self.child.wait().unwrap();
        assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(9));
    }

    async fn set_policy(&self, policy: Value) {
        let url = format!("http://{}/policy", self.control);
        assert_eq!(reqwest::Client::new().put(url).json(&policy).send().await.unwrap().status(), 200);
    }

    /// Waits until the emulator itself reports that it has accepted a push.
    async fn has_taken_over(&self, token: &str) {
        let url = format!("http://{}/tokens/{token}", self.control);
        let taken_over = async {
            while reqwest::get(&url).await.unwrap().json::<Value>().await.unwrap()["accepted"] != 1 {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(PATIENCE, taken_over).await.expect("the push is not taken over");
    }
}

/// Runs the emulator if this process was started for that. Returns true if it did.
#[expect(clippy::print_stdout, reason = "the process that started this one reads its addresses there")]
async fn was_the_emulator() -> bool {
    let Some(path) = std::env::var_os(OBSERVER) else { return false };
    let apns = rig::apns_with(config(Path::new(&path))).await;
    println!("{READY}{} {}", apns.addr(), apns.control_addr().unwrap());
    tokio::task::spawn_blocking(|| std::io::stdin().read_to_end(&mut Vec::new())).await.unwrap().unwrap();
    true
}

fn config(observer: &Path) -> ApnsConfig {
    let observer = ObserverConfig { path: Some(observer.to_owned()), capacity_tokens: 100_000 };
    ApnsConfig {
        vendor: ApnsOptions { require_token: false, ..ApnsOptions::default() },
        observer,
        ..ApnsConfig::default()
    }
}

#[tokio::test]
async fn answered_slow_and_stalled_pushes_are_still_counted_after_a_kill() {
    if was_the_emulator().await {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("observer");
    let test = "kill::answered_slow_and_stalled_pushes_are_still_counted_after_a_kill";
    let emulator = Process::start(test, &path);
    let mut client = Client::connect(emulator.push).await;
    assert_eq!(client.push(&hex(1)).await.unwrap().status, 200);
    emulator.set_policy(json!({"latency": {"kind": "fixed", "ms": 60_000.0}})).await;
    let slow = client.start_push(&hex(2)).await.unwrap();
    emulator.has_taken_over(&hex(2)).await;
    emulator.set_policy(json!({"stall": {"all": true, "taken_over": true}})).await;
    let stalled = client.start_push(&hex(3)).await.unwrap();
    emulator.has_taken_over(&hex(3)).await;
    emulator.kill();
    assert!(slow.await.is_err() && stalled.await.is_err());

    let file = ObserverFile::open(&path).unwrap();
    let totals = file.totals();
    assert_eq!((totals.tokens, totals.attempts, totals.accepted, totals.overflow), (3, 3, 3, 0));
    assert_eq!([1, 2, 3].map(|number| file.lookup(&hex(number)).accepted), [1, 1, 1]);
    let next = rig::apns_with(config(&path)).await;
    let mut client = Client::connect(next.addr()).await;
    assert_eq!(client.push(&hex(2)).await.unwrap().status, 200);
    assert_eq!(next.counts(&hex(2)).accepted, 2, "the duplicate is seen across the kill");
    assert_eq!(next.sums().tokens.tokens_accepted_twice, 1);
}

#[tokio::test]
async fn every_push_answered_before_a_kill_in_the_middle_of_work_is_counted() {
    if was_the_emulator().await {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("observer");
    let test = "kill::every_push_answered_before_a_kill_in_the_middle_of_work_is_counted";
    let emulator = Process::start(test, &path);
    let mut pipes = tokio::task::JoinSet::new();
    let (answered, mut progress) = tokio::sync::mpsc::unbounded_channel();
    for pipe in 0..8 {
        let mut client = Client::connect(emulator.push).await;
        let answered = answered.clone();
        pipes.spawn(async move {
            for number in 0..1_000_000 {
                let token = hex(pipe * 1_000_000 + number);
                let Ok(reply) = client.push(&token).await else { return };
                assert_eq!(reply.status, 200);
                answered.send(token).unwrap();
            }
        });
    }
    drop(answered);
    let mut tokens = Vec::new();
    while tokens.len() < 500 {
        tokens.push(progress.recv().await.unwrap());
    }
    emulator.kill();
    while let Some(token) = progress.recv().await {
        tokens.push(token);
    }
    pipes.join_all().await;

    let file = ObserverFile::open(&path).unwrap();
    for token in &tokens {
        let counts = file.lookup(token);
        assert_eq!((counts.attempts, counts.accepted), (1, 1));
    }
    let unanswered = file.totals().accepted.checked_sub(tokens.len() as u64).unwrap();
    assert!(unanswered <= 8, "{unanswered} pushes counted that nobody has sent");
}
