//! A real nats-server that loses its data while a campaign runs: every message still arrives once.

use crate::process::stentor;
use crate::server::Server;
use serde_json::Value;
use std::io::{BufRead, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

const START: Duration = Duration::from_secs(60);
const PATIENCE: Duration = Duration::from_secs(120);
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// Shorter than the interval after which waiting tickets are published again in any case.
const SOON: Duration = Duration::from_secs(20);
/// Published tickets before the stream is emptied, and before it is deleted.
const EMPTIED_AT: u64 = 12;
const DELETED_AT: u64 = 24;

/// A server with JetStream; it ends with the value.
struct NatsServer {
    address: SocketAddr,
    child: Child,
    _folder: TempDir,
}

/// Returns its program; `None` if `lab/brokers/install` was not run.
fn program() -> Option<PathBuf> {
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("brokers").join("nats-server");
    if !program.exists() {
        let required = std::env::var("STENTOR_TEST_REQUIRE").unwrap_or_default();
        assert!(!required.split(',').any(|word| word == "nats"), "no nats-server: run lab/brokers/install");
        let _ = writeln!(std::io::stderr(), "skipped: no nats-server (lab/brokers/install)");
        return None;
    }
    Some(program)
}

/// Returns an unused address of this machine.
fn free_address() -> SocketAddr {
    TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap()
}

/// Starts a server at an address.
fn start(program: &Path, address: SocketAddr) -> NatsServer {
    let folder = TempDir::new().unwrap();
    let mut command = Command::new(program);
    command.args([
        "--addr",
        "127.0.0.1",
        "--port",
        &address.port().to_string(),
        "--jetstream",
        "--store_dir",
    ]);
    let child = command.arg(folder.path()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let begun = Instant::now();
    while TcpStream::connect(address).is_err() {
        assert!(begun.elapsed() < START, "nats-server does not answer");
        std::thread::sleep(LOOK_EVERY);
    }
    NatsServer { address, child, _folder: folder }
}

impl NatsServer {
    /// Sends a request about the stream `stentor` to JetStream.
    fn ask(&self, what: &str) -> Value {
        let mut connection = TcpStream::connect(self.address).unwrap();
        let subject = format!("$JS.API.STREAM.{what}.stentor");
        let commands =
            format!("CONNECT {{\"verbose\":false}}\r\nSUB reply 1\r\nPUB {subject} reply 0\r\n\r\nPING\r\n");
        connection.write_all(commands.as_bytes()).unwrap();
        let mut lines = BufReader::new(connection);
        loop {
            let mut line = String::new();
            lines.read_line(&mut line).unwrap();
            if let Some(size) = line.strip_prefix("MSG reply 1 ") {
                let mut reply = vec![0; size.trim().parse().unwrap()];
                lines.read_exact(&mut reply).unwrap();
                return serde_json::from_slice(&reply).unwrap();
            }
        }
    }

    /// Waits until this number of tickets has been published since the stream was created, and some of them are present.
    fn wait_for(&self, tickets: u64) {
        let started_at = Instant::now();
        loop {
            let state = self.ask("INFO")["state"].clone();
            if state["last_seq"].as_u64() >= Some(tickets) && state["messages"].as_u64() > Some(1) {
                return;
            }
            assert!(started_at.elapsed() < PATIENCE, "{state}");
            std::thread::sleep(LOOK_EVERY);
        }
    }
}

impl Drop for NatsServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_stream_that_is_emptied_and_deleted_in_mid_campaign_loses_and_repeats_nothing() {
    let Some(program) = program() else { return };
    let nats = start(&program, free_address());
    let url = format!("nats://{}", nats.address);
    let mut command =
        stentor(&["demo", "--devices", "60000", "--sinks", "--latency-ms", "300", "--queue", &url, "--json"]);
    let demo = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    nats.wait_for(EMPTIED_AT);
    let emptied = nats.ask("PURGE");
    assert!(emptied["purged"].as_u64() > Some(0), "nothing was lost: {emptied}");
    nats.wait_for(DELETED_AT);
    let deleted = nats.ask("DELETE");
    assert_eq!(deleted["success"], true, "{deleted}");
    let output = demo.wait_with_output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    let report: Value = serde_json::from_str(&text).unwrap();
    let counts = ["accepted", "lost", "stuck", "duplicates"].map(|field| report[field].as_u64());
    assert_eq!(counts, [Some(60_000), Some(0), Some(0), Some(0)], "{report}");
    assert_eq!(report["ledger_balanced"], true);
}

#[test]
fn what_is_accepted_while_nats_is_away_is_sent_soon_after_it_is_there() {
    let Some(program) = program() else { return };
    let (directory, address) = (TempDir::new().unwrap(), free_address());
    let settings = format!("[queue]\nengine = \"nats\"\nurl = \"nats://{address}\"\n");
    let server = Server::start_with(directory.path(), &settings);
    server.ok(&["app", "create", "shop"]);
    server.ok(&["app", "credential", "set", "--provider", "null"]);
    server.ok(&["device", "register", "--platform", "android", "--provider", "null", "--token", "one"]);
    let sent = server.ok(&["message", "send", "--everyone", "--body", "kept"]);
    let campaign = sent["campaign"].as_str().unwrap();
    let look = || server.ok(&["campaign", "progress", "--once", campaign]);
    let started_at = Instant::now();
    while look()["totals"]["queued"] != 1 {
        assert!(started_at.elapsed() < PATIENCE, "{}", look());
    }
    let _nats = start(&program, address);
    let there = Instant::now();
    while look()["totals"]["accepted"] != 1 {
        assert!(there.elapsed() < SOON, "{}: {}", look(), server.process.log());
    }
    assert_eq!((&look()["attempts"], &look()["balanced"]), (&Value::from(1), &Value::from(true)));
}
