//! The judges as processes.

use std::io::Write;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use secrecy::ExposeSecret;
use serde_json::Value;
use stentor_gateway::DeviceCredentials;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use super::listener::MqttListener;

/// How long a judge may take for one step.
const STEP_MAX: Duration = Duration::from_secs(60);

/// Returns whether a judge can be asked; reports a skip where something is missing, or fails when `STENTOR_TEST_REQUIRE` lists
/// `judges`.
pub(super) fn may_run(name: &str, missing: Option<&str>) -> bool {
    let Some(missing) = missing else { return true };
    let required = std::env::var("STENTOR_TEST_REQUIRE").unwrap_or_default();
    let is_required = required.split(',').any(|word| word.trim() == "judges");
    assert!(!is_required, "missing: {missing} (STENTOR_TEST_REQUIRE does not allow to skip the judges)");
    // Straight to the stream: what a passing test prints is otherwise swallowed.
    let _unheard = writeln!(std::io::stderr(), "skipped: {name}, missing: {missing}");
    false
}

/// Names what is missing for Paho.
pub(super) fn missing_paho() -> Option<&'static str> {
    let installed = std::fs::read(home().join("pins")).ok();
    let wanted = std::fs::read(clients().join("requirements.txt")).ok();
    let is_current = installed.is_some() && installed == wanted;
    (!is_current).then_some("the mqtt client: run tests/judges/install")
}

/// Names what is missing for mosquitto.
pub(super) fn missing_mosquitto() -> Option<&'static str> {
    let found = |program| std::process::Command::new(program).arg("--help").output().is_ok();
    let is_there = found("mosquitto_sub") && found("mosquitto_pub") && found("stdbuf");
    (!is_there).then_some("mosquitto_sub and mosquitto_pub (Debian: mosquitto-clients)")
}

fn home() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).with_file_name("judges").join("mqtt")
}

fn clients() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/judges/clients/mqtt")
}

/// A judge that is running.
pub(super) struct JudgeProcess {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    input: ChildStdin,
}

impl JudgeProcess {
    fn start(mut command: Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().expect("started");
        let lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        let input = child.stdin.take().expect("piped");
        Self { child, lines, input }
    }

    /// Starts Paho's scenario.
    pub(super) fn paho(listener: &MqttListener, credentials: &DeviceCredentials, version: &str) -> Self {
        let mut command = Command::new(home().join("bin/python"));
        command.arg(clients().join("device.py")).arg(listener.address().port().to_string());
        command.arg(credentials.token.expose()).arg(credentials.secret.expose_secret()).arg(version);
        Self::start(command)
    }

    /// Waits for a line that begins so.
    pub(super) async fn line(&mut self, start: &str) -> String {
        let reading = async {
            while let Some(line) = self.lines.next_line().await.expect("text") {
                if line.starts_with(start) {
                    return line;
                }
            }
            panic!("the judge ended before {start:?}");
        };
        tokio::time::timeout(STEP_MAX, reading).await.expect("the judge goes on")
    }

    /// Waits for the next step, which must be this one; returns what it found.
    pub(super) async fn step(&mut self, step: &str) -> Value {
        let line = self.line("{").await;
        let report: Value = serde_json::from_str(&line).expect("JSON");
        assert_eq!(report["step"], step, "{line}");
        report["value"].clone()
    }

    /// Lets it go on.
    pub(super) async fn go_on(&mut self) {
        self.input.write_all(b"\n").await.expect("told");
    }

    /// Waits for its end, which must be a good one.
    pub(super) async fn ends(mut self) {
        drop(self.input);
        let status = tokio::time::timeout(STEP_MAX, self.child.wait()).await.expect("it ends");
        assert!(status.expect("waited for").success());
    }
}

/// How mosquitto's programs are started.
pub(super) struct Mosquitto<'a> {
    pub(super) listener: SocketAddr,
    pub(super) credentials: &'a DeviceCredentials,
    pub(super) version: &'a str,
}

impl Mosquitto<'_> {
    fn arguments(&self, command: &mut Command, arguments: &[&str]) {
        command.args(["-h", "127.0.0.1", "-p", &self.listener.port().to_string(), "-V", self.version]);
        command.args(["-u", self.credentials.token.expose(), "-P", self.credentials.secret.expose_secret()]);
        command.args(arguments);
    }

    /// Starts a device; its lines come one by one.
    pub(super) fn subscribe(&self, arguments: &[&str]) -> JudgeProcess {
        let mut command = Command::new("stdbuf");
        command.args(["-oL", "mosquitto_sub"]);
        self.arguments(&mut command, arguments);
        JudgeProcess::start(command)
    }

    /// Publishes one message; returns what the program complained about.
    pub(super) async fn publish(&self, arguments: &[&str]) -> Result<(), String> {
        let mut command = Command::new("mosquitto_pub");
        self.arguments(&mut command, arguments);
        let output = tokio::time::timeout(STEP_MAX, command.kill_on_drop(true).output());
        let output = output.await.expect("it ends").expect("started");
        output
            .status
            .success()
            .then_some(())
            .ok_or_else(|| String::from_utf8_lossy(&output.stderr).into_owned())
    }
}
