//! `stentor lab bench urgent`: how long single messages take while a campaign runs, beside when nothing runs.

use super::singles::{self, Sent};
use crate::client::{Client, segment};
use crate::demo::Demo;
use crate::demo::fleet::Fleet;
use crate::failure::Failure;
use crate::ledger::Ledger;
use crate::output::{Output, cell};
use clap::Args;
use serde_json::{Value, json};
use std::process::ExitCode;
use std::time::{Duration, Instant};
use stentor_lab::statistics::Samples;

const SETTLE_LIMIT: Duration = Duration::from_secs(60);
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Send single messages while a campaign runs, and compare their way to the push service with an idle server's
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  stentor lab bench urgent
  stentor lab bench urgent --devices 10000000 --json

Each message's time is the ledger's own: from its acceptance to the commit of the push service's answer, in whole
milliseconds. Only messages accepted before the campaign's end are counted.")]
pub(crate) struct Urgent {
    /// Devices of the campaign
    #[arg(long, default_value_t = 2_000_000, value_name = "N", value_parser = clap::value_parser!(u64).range(2..=20_000_000))]
    devices: u64,
    /// Single messages, while idle and again while the campaign runs
    #[arg(long, default_value_t = 1_000, value_name = "N", value_parser = clap::value_parser!(u64).range(10..=100_000))]
    messages: u64,
    /// Callers side by side, each with one message every ten milliseconds
    #[arg(long, default_value_t = 8, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=256))]
    callers: u64,
}

impl Urgent {
    /// Measures.
    pub(crate) async fn run(self, output: Output) -> anyhow::Result<ExitCode> {
        let stage = Demo::through_sinks(self.devices + 200_000, None, None).build().await?;
        crate::demo::import::run(&stage.client, Fleet::new(self.devices, 1)).await?;
        let idle = times(&stage.client, &self.send(&stage.client).await?, None).await?;
        let everyone = json!({"target": "everyone", "notification": {"title": "to everyone"}});
        let campaign = cell(&stage.client.post("/v1/messages", &everyone).await?["campaign"]);
        let sent = self.send(&stage.client).await?;
        let ended_at = ended(&stage.client, &campaign).await?;
        let beside = times(&stage.client, &sent, Some(&ended_at)).await?;
        let (before, during) = (at(&idle, 0.99), at(&beside, 0.99));
        let object = json!({
            "devices": self.devices,
            "messages": beside.values().len(),
            "messages_after_the_campaign": self.messages - beside.values().len() as u64,
            "idle_ms": quantiles(&idle),
            "beside_campaign_ms": quantiles(&beside),
            "p99_above_idle_ms": during - before,
        });
        output.result(&object, || format!("p99 {during:.0} ms beside a campaign, {before:.0} ms without"))?;
        Ok(ExitCode::SUCCESS)
    }

    async fn send(&self, client: &Client) -> anyhow::Result<Sent> {
        singles::send(client, self.messages, self.callers, Some(Duration::from_millis(10))).await
    }
}

fn at(samples: &Samples, part: f64) -> f64 {
    samples.quantile(part).unwrap_or(f64::NAN)
}

fn quantiles(samples: &Samples) -> Value {
    json!({"p50": at(samples, 0.5), "p90": at(samples, 0.9), "p99": at(samples, 0.99), "max": at(samples, 1.0)})
}

/// Reads how long each message took, of those accepted before `until`.
async fn times(client: &Client, sent: &Sent, until: Option<&Value>) -> anyhow::Result<Samples> {
    let mut samples = Samples::default();
    for campaign in &sent.campaigns {
        let ended_at = ended(client, campaign).await?;
        let path = format!("/v1/campaigns/{}", segment(campaign));
        let created_at = client.get(&path).await?["created_at"].clone();
        let counts = until.is_none_or(|until| created_at.as_str() < until.as_str());
        if counts && let (Some(from), Some(to)) = (millis(&created_at), millis(&ended_at)) {
            samples.push((to - from) as f64);
        }
    }
    Ok(samples)
}

/// Waits for a campaign's end and gives its instant.
pub(super) async fn ended(client: &Client, campaign: &str) -> anyhow::Result<Value> {
    let started = Instant::now();
    loop {
        let (value, ledger) = Ledger::fetch(client, campaign).await?;
        if ledger.is_ended() {
            return Ok(value["ended_at"].clone());
        }
        if started.elapsed() > SETTLE_LIMIT {
            return Err(Failure::not_done(format!("{campaign} does not end")).into());
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// Reads the clock time of an instant such as 2026-11-21T20:11:15.123Z, in milliseconds since midnight.
pub(super) fn millis(instant: &Value) -> Option<i64> {
    let time = instant.as_str()?.split('T').nth(1)?.trim_end_matches('Z');
    let mut parts = time.split(':');
    let (hours, minutes, seconds) = (parts.next()?, parts.next()?, parts.next()?);
    let seconds: f64 = seconds.parse().ok()?;
    let whole = hours.parse::<i64>().ok()? * 60 + minutes.parse::<i64>().ok()?;
    Some(whole * 60_000 + (seconds * 1e3).round() as i64)
}
