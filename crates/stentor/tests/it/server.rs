//! The server as a process: start, signals, crashes, its key, and secrets that it never logs.

use crate::process::{PROGRAM, Process, run_json};
use rustix::process::Signal;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tempfile::TempDir;

const LOG_LIMIT: Duration = Duration::from_secs(30);

/// A server on a directory of its own.
pub(crate) struct Server {
    pub(crate) process: Process,
    directory: PathBuf,
}

impl Server {
    /// Starts a server on a directory, which may contain earlier data.
    pub(crate) fn start(directory: &Path) -> Self {
        Self::start_with(directory, "")
    }

    /// Starts a server on a directory with settings of its own, which may connect to emulators on this machine.
    pub(crate) fn start_with(directory: &Path, settings: &str) -> Self {
        Self::start_in(&[("STENTOR__OUTBOUND__ALLOWED_NETWORKS", "loopback")], directory, settings)
    }

    /// Starts a server on a directory with some variables in its environment.
    pub(crate) fn start_in(environment: &[(&str, &str)], directory: &Path, settings: &str) -> Self {
        Self::start_program(Path::new(PROGRAM), environment, directory, settings)
    }

    /// Starts a server of this or another version.
    pub(crate) fn start_program(
        program: &Path,
        environment: &[(&str, &str)],
        directory: &Path,
        settings: &str,
    ) -> Self {
        let (data, config) = (directory.join("data"), directory.join("stentor.toml"));
        std::fs::write(&config, settings).unwrap();
        let (data, config) = (data.to_str().unwrap(), config.to_str().unwrap());
        let arguments = ["serve", "--listen", "127.0.0.1:0", "--data-dir", data, "--config", config];
        let process = Process::start_program(program, environment, &arguments, &directory.join("server.log"));
        Self::of(process, directory)
    }

    /// Wraps a process that serves a directory.
    pub(crate) fn of(process: Process, directory: &Path) -> Self {
        Self { process, directory: directory.to_owned() }
    }

    /// Runs a client command with the root key.
    pub(crate) fn run(&self, arguments: &[&str]) -> (i32, Value) {
        let data = self.directory.join("data");
        let url = self.process.url();
        run_json(&[arguments, &["--server", url, "--data-dir", data.to_str().unwrap()]].concat())
    }

    /// Runs a client command that must succeed.
    pub(crate) fn ok(&self, arguments: &[&str]) -> Value {
        let (code, object) = self.run(arguments);
        assert_eq!(code, 0, "{arguments:?}: {object}");
        object
    }

    /// Returns the operator's key.
    pub(crate) fn root_key(&self) -> String {
        std::fs::read_to_string(self.directory.join("data/root.key")).unwrap().trim().to_owned()
    }
}

#[test]
fn a_terminated_server_drains_and_ends_well() {
    let directory = TempDir::new().unwrap();
    let mut server = Server::start(directory.path());
    server.process.signal(Signal::TERM);
    assert!(server.process.wait().success(), "{}", server.process.log());
    assert!(server.process.log().contains("draining"));
}

#[test]
fn a_start_beyond_loopback_without_tls_says_so_once() {
    let directory = TempDir::new().unwrap();
    let count = |server: &Server| server.process.log().matches("without TLS").count();
    let listen = ["--listen", "0.0.0.0:0", "--data-dir"];
    let data = directory.path().join("open");
    let arguments = [&["serve"], &listen[..], &[data.to_str().unwrap()]].concat();
    let open = Process::start(&arguments, &directory.path().join("open.log"));
    assert_eq!(open.log().matches("without TLS").count(), 1, "{}", open.log());
    assert_eq!(count(&Server::start(directory.path())), 0);
}

#[test]
fn a_hangup_reads_the_credentials_again_and_ends_nothing() {
    let directory = TempDir::new().unwrap();
    let server = Server::start(directory.path());
    server.process.signal(Signal::HUP);
    let started_at = Instant::now();
    while !server.process.log().contains("credentials were read again") {
        assert!(started_at.elapsed() < LOG_LIMIT, "{}", server.process.log());
        std::thread::yield_now();
    }
    assert_eq!(server.ok(&["app", "list"])["apps"], serde_json::json!([]));
}

#[test]
fn every_202_survives_a_kill() {
    let directory = TempDir::new().unwrap();
    let mut server = Server::start(directory.path());
    server.ok(&["app", "create", "shop"]);
    server.ok(&["app", "credential", "set", "--provider", "null"]);
    let send = ["message", "send", "--everyone", "--body", "kept"];
    let ids: Vec<Value> = (0..5).map(|_| server.ok(&send)["id"].clone()).collect();
    server.process.kill();
    let server = Server::start(directory.path());
    for id in ids {
        let message = server.ok(&["message", "show", id.as_str().unwrap()]);
        assert_eq!((&message["id"], &message["notification"]["body"]), (&id, &Value::from("kept")));
    }
}

#[test]
fn a_second_server_on_the_same_data_is_refused() {
    let directory = TempDir::new().unwrap();
    let _first = Server::start(directory.path());
    let data = directory.path().join("data");
    let (code, report) =
        run_json(&["serve", "--listen", "127.0.0.1:0", "--data-dir", data.to_str().unwrap()]);
    assert_eq!(code, 1);
    assert!(report["error"].as_str().unwrap().contains("in use by another server"), "{report}");
}

#[test]
fn a_key_is_rotated_on_a_stopped_server_and_a_lost_one_is_told() {
    let directory = TempDir::new().unwrap();
    let data = directory.path().join("data");
    let at = ["--data-dir", data.to_str().unwrap()];
    let mut server = Server::start(directory.path());
    server.ok(&["app", "create", "shop"]);
    server.ok(&["app", "credential", "set", "--provider", "null"]);
    let found = server.ok(&["doctor"]);
    let checks = found["checks"].as_array().unwrap();
    let sealing = checks.iter().find(|check| check["what"] == "sealing key").unwrap();
    assert!(
        sealing["health"] == "ok" && sealing["found"].as_str().unwrap().contains("1 credentials"),
        "{sealing}"
    );
    assert_eq!(run_json(&[&["secret", "rotate"], &at[..]].concat()).0, 1, "not under a running server");
    server.process.signal(Signal::TERM);
    server.process.wait();
    let (code, rotated) = run_json(&[&["secret", "rotate"], &at[..]].concat());
    assert_eq!((code, &rotated["credentials"]), (0, &Value::from(1)), "{rotated}");
    let (code, shown) = run_json(&[&["secret", "show"], &at[..]].concat());
    assert_eq!((code, &shown["keys"][0]), (0, &rotated["to"]), "{shown}");
    let key = std::fs::read_to_string(data.join("seal.key")).unwrap();
    assert!(!rotated.to_string().contains(key.trim()) && !shown.to_string().contains(key.trim()));
    std::fs::remove_file(data.join("seal.key")).unwrap();
    let (code, report) = run_json(&[&["serve", "--listen", "127.0.0.1:0"], &at[..]].concat());
    let error = report["error"].as_str().unwrap();
    assert!(
        code == 1 && error.contains(rotated["to"].as_str().unwrap()) && error.contains("seal.key"),
        "{report}"
    );
    std::fs::write(data.join("seal.key"), key).unwrap();
    let server = Server::start(directory.path());
    let entries = server.ok(&["audit", "list"]);
    assert_eq!(entries["entries"][0]["action"], "credential.put", "{entries}");
}

#[test]
fn ready_asks_a_server_without_a_key_and_says_why_it_is_not() {
    let directory = TempDir::new().unwrap();
    let mut server = Server::start(directory.path());
    let at = ["--server", server.process.url()];
    assert_eq!(run_json(&[&["ready"], &at[..]].concat()).0, 0);
    server.process.signal(Signal::TERM);
    let url = server.process.url().to_owned();
    server.process.wait();
    let began = Instant::now();
    let (code, report) = run_json(&["ready", "--wait", "1", "--server", &url]);
    assert_eq!(code, 3, "{report}");
    assert!(began.elapsed() >= Duration::from_secs(1), "{:?}", began.elapsed());
    assert!(report["error"].as_str().unwrap().contains("stentor serve"), "{report}");
}
