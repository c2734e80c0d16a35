//! One campaign by Web Push through a sink, beside the floor that the encryption sets and a library that app servers use.

use super::campaigns;
use anyhow::{Context, ensure};
use bytes::Bytes;
use futures_util::stream;
use reqwest::Body;
use serde_json::{Value, json};
use std::convert::Infallible;
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Instant;
use stentor_lab::statistics::Samples;
use stentor_lab::subject::catalogue::{RIVALS, folder_named};
use stentor_stage::devices::StagedService;
use stentor_stage::reporter::Reporter;
use stentor_stage::stage::{Stage, StageOptions};
use stentor_wire::web_push::PushKeyPair;

/// Different key pairs of devices. The cost of a message does not depend on their number.
const KEY_PAIRS: usize = 64;
const LINES_PER_PART: u64 = 256;
/// Concurrent requests of the rival, over as many connections.
const RIVAL_REQUESTS: &str = "64";
/// The rival sends fewer messages, since it needs much more time for each.
const RIVAL_PART: u64 = 10;

/// Options of the bench.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WebPushOptions {
    /// Number of subscriptions.
    pub(crate) messages: u64,
    /// Number of rounds, each with an empty store.
    pub(crate) rounds: u32,
}

/// Results of the bench.
pub(crate) struct WebPushReport {
    options: WebPushOptions,
    per_second: Samples,
    cpu_us: Samples,
    floor: Result<Floor, String>,
    rival: Result<RivalRun, String>,
}

/// The cost of the encryption of one message by OpenSSL.
struct Floor {
    agreement_us: f64,
    key_pair_us: f64,
    cipher_us: f64,
}

struct RivalRun {
    per_second: f64,
    cpu_us: f64,
}

/// Runs the bench and returns the report.
pub(crate) async fn run(
    options: WebPushOptions,
    reporter: &Arc<dyn Reporter>,
) -> anyhow::Result<WebPushReport> {
    let floor = Floor::measure().map_err(|error| format!("{error:#}"));
    let rival = Err("not measured".to_owned());
    let (per_second, cpu_us) = (Samples::default(), Samples::default());
    let mut report = WebPushReport { options, per_second, cpu_us, floor, rival };
    for round in 1..=options.rounds {
        report.add_round(reporter).await?;
        reporter.line(&format!("round {round} of {}", options.rounds));
    }
    Ok(report)
}

impl WebPushReport {
    async fn add_round(&mut self, reporter: &Arc<dyn Reporter>) -> anyhow::Result<()> {
        let messages = self.options.messages;
        // The sink for APNs has room for half of the devices.
        let mut stage = Stage::build(&StageOptions::with_sinks(2 * messages), reporter).await?;
        let authority = stage.directory().join("ca").join("ca.pem");
        let url = stage.emulators.of(StagedService::Apns)?.url.clone();
        furnish(&stage, &authority).await?;
        import(&stage, &url, messages).await?;
        stage.restart().await?;
        let before = stage.server.usage();
        let began = Instant::now();
        let content =
            json!({"notification": {"title": "Hello", "body": "from a server"}, "data": {"order": "7"}});
        let mut message = json!({"target": "everyone"});
        message
            .as_object_mut()
            .context("an object")?
            .extend(content.as_object().cloned().unwrap_or_default());
        let reply = stage.client.post("/v1/messages", &message).await?;
        let campaign = reply["campaign"].as_str().context("an id")?;
        campaigns::ended(&stage.client, campaign).await?;
        let wall = began.elapsed().as_secs_f64();
        let used = stage.server.usage().cpu_seconds - before.cpu_seconds;
        let books = stage.client.get(&format!("/v1/campaigns/{campaign}")).await?;
        ensure!(books["totals"]["accepted"] == messages, "not everything was accepted: {}", books["totals"]);
        self.per_second.push(messages as f64 / wall);
        self.cpu_us.push(used * 1e6 / messages as f64);
        self.rival =
            RivalRun::measure(&url, &authority, messages / RIVAL_PART).map_err(|error| format!("{error:#}"));
        Ok(())
    }

    /// Returns the report as one object.
    pub(crate) fn object(&self) -> Value {
        let cpu_us = self.cpu_us.quantile(0.5);
        let floor_us = self.floor.as_ref().ok().map(|floor| floor.agreement_us + floor.cipher_us);
        let rival = match &self.rival {
            Ok(run) => {
                json!({"name": "web-push-3.6.7/npm", "messages_per_second": run.per_second, "cpu_us_per_message": run.cpu_us})
            }
            Err(missing) => json!({"name": "web-push-3.6.7/npm", "rival_missing": missing}),
        };
        json!({
            "messages": self.options.messages,
            "messages_per_second": self.per_second.quantile(0.5),
            "cpu_us_per_message": cpu_us,
            "floor_cpu_us": floor_us,
            "floor_missing": self.floor.as_ref().err(),
            "floor_parts_us": self.floor.as_ref().ok().map(|floor| json!({
                "agreement": floor.agreement_us,
                "cipher": floor.cipher_us,
                "key_pair_beside": floor.key_pair_us,
            })),
            "of_the_floor": floor_us.zip(cpu_us).map(|(floor, own)| floor / own),
            "rounds": {"messages_per_second": self.per_second, "cpu_us_per_message": self.cpu_us},
            "rivals": [rival],
        })
    }

    /// Returns the medians of the rounds: messages a second, and processor time of the server for each.
    pub(crate) fn medians(&self) -> (f64, f64) {
        let median = |samples: &Samples| samples.quantile(0.5).unwrap_or_default();
        (median(&self.per_second), median(&self.cpu_us))
    }
}

/// Gives the app a key for Web Push that trusts the sink.
async fn furnish(stage: &Stage, authority: &Path) -> anyhow::Result<()> {
    let app = stage.client.app().context("an app")?;
    let path = format!("/v1/apps/{app}/credentials/web_push");
    let ca_pem = std::fs::read_to_string(authority)?;
    let credential = json!({"subject": "mailto:ops@app.example", "ca_pem": ca_pem});
    stage.client.put(&path, &credential).await.map(drop)
}

/// Imports one subscription for each message; the sink counts their paths as tokens of APNs.
async fn import(stage: &Stage, url: &str, messages: u64) -> anyhow::Result<()> {
    let pair = || {
        let keys = PushKeyPair::generate().ok()?.public()?.texts();
        Some(format!("#p256dh={}&auth={}", keys.0, keys.1))
    };
    let pairs: Vec<String> = (0..KEY_PAIRS).map_while(|_| pair()).collect();
    ensure!(pairs.len() == KEY_PAIRS, "the system has no randomness");
    let url = url.to_owned();
    let parts = (0..messages).step_by(LINES_PER_PART as usize).map(move |start| {
        let mut lines = String::new();
        for number in start..messages.min(start + LINES_PER_PART) {
            let keys = &pairs[number as usize % KEY_PAIRS];
            // Writing to a string cannot fail.
            let _ = writeln!(lines, r#"{{"platform":"web","token":"{url}/3/device/{number:064x}{keys}"}}"#);
        }
        Ok::<_, Infallible>(Bytes::from(lines))
    });
    let body = Body::wrap_stream(stream::iter(parts));
    let query = [("format", "ndjson".to_owned())];
    let reply = stage.client.stream("/v1/devices/import", &query, "application/x-ndjson", body).await?;
    ensure!(reply["created"] == messages, "the import failed: {reply}");
    Ok(())
}

impl Floor {
    /// Reads the rates of `openssl speed`.
    fn measure() -> anyhow::Result<Self> {
        let per_second = |algorithm: &str, row: &str| {
            let text = speed(&[algorithm])?;
            let line = text.lines().find(|line| line.contains(row)).with_context(|| text.clone())?;
            let last = line.split_whitespace().last().unwrap_or_default();
            last.parse::<f64>().with_context(|| line.to_owned())
        };
        let cipher = speed(&["-evp", "aes-128-gcm", "-bytes", "256"])?;
        let row = cipher.lines().last().unwrap_or_default();
        let rate = row.split_whitespace().last().unwrap_or_default().trim_end_matches('k');
        let kilobytes: f64 = rate.parse().with_context(|| row.to_owned())?;
        Ok(Self {
            agreement_us: 1e6 / per_second("ecdhp256", "nistp256")?,
            // A signature is as a key pair: one product of the curve's base point.
            key_pair_us: 1e6 / first_rate(&speed(&["ecdsap256"])?)?,
            cipher_us: 256.0 * 1e6 / (kilobytes * 1e3),
        })
    }
}

/// Returns the first of the two rates in the row about P-256: signatures a second.
fn first_rate(text: &str) -> anyhow::Result<f64> {
    let line = text.lines().find(|line| line.contains("nistp256")).with_context(|| text.to_owned())?;
    let rates: Vec<f64> = line.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    rates.iter().rev().nth(1).copied().with_context(|| line.to_owned())
}

fn speed(arguments: &[&str]) -> anyhow::Result<String> {
    let output = Command::new("openssl").args(["speed", "-seconds", "1"]).args(arguments).output();
    let output = output.context("openssl cannot be started")?;
    ensure!(output.status.success(), "openssl speed fails");
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

impl RivalRun {
    fn measure(url: &str, authority: &Path, messages: u64) -> anyhow::Result<Self> {
        let (here, program) = (std::env::current_dir().ok(), std::env::current_exe().ok());
        let folders = here.iter().chain(&program).map(std::path::PathBuf::as_path);
        let folder = folder_named(RIVALS, folders).context("no folder lab/rivals")?.join("web-push");
        ensure!(folder.join("node_modules").is_dir(), "not installed: npm ci --prefix lab/rivals/web-push");
        let mut command = Command::new("node");
        command
            .arg(folder.join("send.js"))
            .arg(url)
            .arg(authority)
            .arg(messages.to_string())
            .arg(RIVAL_REQUESTS);
        let output = command.output().context("node cannot be started")?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let facts: Value = serde_json::from_slice(&output.stdout)?;
        let seconds = |name: &str| facts[name].as_f64().with_context(|| facts.to_string());
        let count = messages as f64;
        Ok(Self { per_second: count / seconds("seconds")?, cpu_us: seconds("cpu_seconds")? * 1e6 / count })
    }
}
