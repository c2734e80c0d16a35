//! The judges as processes.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, ensure};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use crate::client::Client;
use crate::gateway_server::GatewayDevice;

/// The time limit of a judge for one step.
const STEP_MAX: Duration = Duration::from_secs(60);

/// Names the missing requirement of mosquitto, if any.
pub(super) fn missing_mosquitto() -> Option<String> {
    let found = |program| std::process::Command::new(program).arg("--help").output().is_ok();
    let is_there = found("mosquitto_sub") && found("mosquitto_pub") && found("stdbuf");
    (!is_there).then(|| "mosquitto_sub and mosquitto_pub (Debian: mosquitto-clients)".to_owned())
}

/// A judge that is running.
pub(super) struct JudgeProcess {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
    input: ChildStdin,
}

impl JudgeProcess {
    fn start(mut command: Command) -> anyhow::Result<Self> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().context("the judge cannot be started")?;
        let lines = BufReader::new(child.stdout.take().context("piped")?).lines();
        let input = child.stdin.take().context("piped")?;
        Ok(Self { child, lines, input })
    }

    /// Starts a scenario of Paho.
    pub(super) fn paho(
        script: &str,
        port: u16,
        device: &GatewayDevice,
        version: &str,
    ) -> anyhow::Result<Self> {
        let mut command = Client::Mqtt.command(script, Path::new(""));
        command.arg(port.to_string()).args([&device.token, &device.secret]).arg(version);
        Self::start(command)
    }

    /// Waits for a line that begins so.
    pub(super) async fn line(&mut self, start: &str) -> anyhow::Result<String> {
        loop {
            let line = tokio::time::timeout(STEP_MAX, self.lines.next_line()).await;
            let line = line.with_context(|| format!("no {start:?} comes"))?;
            let line = line?.with_context(|| format!("the judge has ended before {start:?}"))?;
            if line.starts_with(start) {
                return Ok(line);
            }
        }
    }

    /// Waits for the next step, which must be this one, and returns its value.
    pub(super) async fn step(&mut self, step: &str) -> anyhow::Result<Value> {
        let line = self.line("{").await?;
        let mut report: Value = serde_json::from_str(&line)?;
        ensure!(report["step"] == step, "{line} instead of {step}");
        Ok(report["value"].take())
    }

    /// Waits for the next step, which must be this one with this value.
    pub(super) async fn is(&mut self, step: &str, expected: Value) -> anyhow::Result<()> {
        let found = self.step(step).await?;
        ensure!(found == expected, "{step}: {found} instead of {expected}");
        Ok(())
    }

    /// Signals the process to continue.
    pub(super) async fn go_on(&mut self) -> anyhow::Result<()> {
        Ok(self.input.write_all(b"\n").await?)
    }

    /// Waits for its end, which must be a good one.
    pub(super) async fn ends(mut self) -> anyhow::Result<()> {
        drop(self.input);
        let status = tokio::time::timeout(STEP_MAX, self.child.wait()).await.context("it does not end")??;
        ensure!(status.success(), "the judge ended with {status}");
        Ok(())
    }
}

/// The connection settings of mosquitto's programs.
pub(super) struct Mosquitto<'a> {
    pub(super) port: u16,
    pub(super) token: &'a str,
    pub(super) secret: &'a str,
    pub(super) version: &'a str,
}

impl Mosquitto<'_> {
    fn arguments(&self, command: &mut Command, arguments: &[&str]) {
        command.args(["-h", "127.0.0.1", "-p", &self.port.to_string(), "-V", self.version]);
        command.args(["-u", self.token, "-P", self.secret]).args(arguments);
    }

    /// Starts a device; its lines come one by one.
    pub(super) fn subscribe(&self, arguments: &[&str]) -> anyhow::Result<JudgeProcess> {
        let mut command = Command::new("stdbuf");
        command.args(["-oL", "mosquitto_sub"]);
        self.arguments(&mut command, arguments);
        JudgeProcess::start(command)
    }

    /// Publishes one message. Returns true if the program succeeded.
    pub(super) async fn publish(&self, arguments: &[&str]) -> anyhow::Result<bool> {
        let mut command = Command::new("mosquitto_pub");
        self.arguments(&mut command, arguments);
        let output = tokio::time::timeout(STEP_MAX, command.kill_on_drop(true).output());
        Ok(output.await.context("it does not end")??.status.success())
    }
}
