//! A sender: one of the libraries by which app servers send Web Push, as a process that executes commands.

use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, ensure};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout};

use crate::authority::RoomAuthority;
use crate::client::Client;

/// The time limit of a sender for one message.
const STEP_MAX: Duration = Duration::from_secs(60);

/// One message, as requested from its sender.
#[derive(Clone, Copy)]
pub(crate) struct Push<'a> {
    pub(crate) body: &'a [u8],
    pub(crate) ttl: u64,
    pub(crate) topic: &'a str,
    pub(crate) urgency: &'a str,
    pub(crate) encoding: &'a str,
    /// The one of its two keys that it signs with: `own` or `other`.
    pub(crate) key: &'a str,
}

impl<'a> Push<'a> {
    pub(crate) const fn of(body: &'a [u8]) -> Self {
        Self { body, ttl: 600, topic: "", urgency: "", encoding: "aes128gcm", key: "own" }
    }
}

/// The response that a sender received.
#[derive(Debug)]
pub(crate) struct Answered(Value);

impl Answered {
    /// Checks that the message was accepted with this time to live. Returns the location where it can be canceled.
    pub(crate) fn taken(&self, ttl: u64) -> anyhow::Result<&str> {
        ensure!(self.0["status"] == 201 && self.0["ttl"] == *ttl.to_string(), "{}", self.0);
        self.0["location"].as_str().context("no location")
    }

    /// Demands that an emulator refused the message with a status and a reason.
    pub(crate) fn is(&self, status: u16, reason: &str) -> anyhow::Result<()> {
        let body: Value = serde_json::from_str(self.0["body"].as_str().unwrap_or_default())?;
        ensure!(self.0["status"] == status && body["reason"] == reason, "{}", self.0);
        Ok(())
    }

    /// Demands that the message was refused with a status and a number of autopush's.
    pub(crate) fn refused(&self, status: u16, number: u64) -> anyhow::Result<()> {
        let body: Value = serde_json::from_str(self.0["body"].as_str().unwrap_or_default())?;
        ensure!(self.0["status"] == status && body["errno"] == number, "{}", self.0);
        Ok(())
    }
}

/// A library that sends.
pub(crate) struct Sender {
    lines: Lines<BufReader<ChildStdout>>,
    input: ChildStdin,
    keys: Value,
    /// The subscription that it sends to.
    pub(crate) subscription: Value,
    _process: Child,
}

impl Sender {
    pub(crate) async fn start(client: Client, files: &RoomAuthority) -> anyhow::Result<Self> {
        let script = if client == Client::WebPush { "judge.js" } else { "judge.py" };
        let mut command = client.command(script, &files.authority);
        command.arg(client.home()).stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut process = command.spawn().context("the sender cannot be started")?;
        let lines = BufReader::new(process.stdout.take().context("piped")?).lines();
        let input = process.stdin.take().context("piped")?;
        let subscription = Value::Null;
        let mut sender = Self { lines, input, keys: Value::Null, subscription, _process: process };
        sender.keys = sender.line().await?;
        Ok(sender)
    }

    /// Returns the public key that it signs with.
    pub(crate) fn key(&self) -> &str {
        self.keys["own"].as_str().unwrap_or_default()
    }

    /// Lets it send one message.
    pub(crate) async fn send(&mut self, push: Push<'_>) -> anyhow::Result<Answered> {
        let request = json!({"subscription": self.subscription, "body": STANDARD.encode(push.body), "ttl": push.ttl,
            "topic": push.topic, "urgency": push.urgency, "encoding": push.encoding, "key": push.key});
        self.input.write_all(format!("{request}\n").as_bytes()).await?;
        self.line().await.map(Answered)
    }

    async fn line(&mut self) -> anyhow::Result<Value> {
        let line = tokio::time::timeout(STEP_MAX, self.lines.next_line()).await;
        let line = line.context("the sender takes too long")??.context("the sender has ended")?;
        serde_json::from_str(&line).with_context(|| line.clone())
    }
}
