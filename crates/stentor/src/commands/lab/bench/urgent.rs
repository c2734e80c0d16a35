//! `stentor lab bench urgent`: how long single messages take while a campaign runs, beside when nothing runs.

use super::answers::{self, Answers};
use super::singles::{self, Promised, Sent};
use crate::client::{Client, segment};
use crate::failure::Failure;
use crate::ledger::Ledger;
use crate::output::{Output, cell};
use crate::progress::on_the_terminal;
use clap::Args;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use stentor_lab::statistics::Samples;
use stentor_stage::devices::Fleet;
use stentor_stage::stage::{Stage, StageOptions};

const SETTLE_LIMIT: Duration = Duration::from_secs(60);
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Send single messages while a campaign runs, and compare their way to the push service with an idle server's
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  stentor lab bench urgent
  stentor lab bench urgent --devices 10000000 --json

Two times of each message are told: from its 202 to the push service's answer, as caller and sink saw them; and the ledger's
own, from its acceptance to the commit of the answer, in whole milliseconds. Only messages accepted before the campaign's
end are counted.")]
pub(crate) struct Urgent {
    /// Devices of the campaign
    #[arg(long, default_value_t = 3_000_000, value_name = "N", value_parser = clap::value_parser!(u64).range(2..=20_000_000))]
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
        let stage =
            Stage::build(&StageOptions::with_sinks(self.devices + 200_000), &on_the_terminal()).await?;
        stentor_stage::import::run(&stage.client, Fleet::new(self.devices, 1), &*on_the_terminal()).await?;
        let idle = self.send(&stage.client, 0).await?;
        let idle_settled = times(&stage.client, &idle, None).await?;
        let everyone = json!({"target": "everyone", "notification": {"title": "to everyone"}});
        let campaign = cell(&stage.client.post("/v1/messages", &everyone).await?["campaign"]);
        let sent = self.send(&stage.client, self.messages).await?;
        let ended_at = ended(&stage.client, &campaign).await?;
        let settled = times(&stage.client, &sent, Some(&ended_at)).await?;
        let kept = answers::kept(stage.directory(), &[&idle, &sent]).await?;
        let answers = Answers::read(stage.directory())?;
        let compared = Compared {
            answered: [answers.times(&idle, &idle_settled), answers.times(&sent, &settled)],
            settled: [idle_settled, settled].map(|times| times.into_values().collect()),
        };
        let beside = compared.settled[1].values().len() as u64;
        let mut object = compared.object();
        object["devices"] = json!(self.devices);
        object["ok"] = json!(kept.lost == 0);
        object["lost"] = json!(kept.lost);
        object["duplicates"] = json!(kept.duplicates);
        object["limits"] = stage.server.limits()?;
        object["messages"] = json!(beside);
        object["messages_after_the_campaign"] = json!(self.messages - beside);
        output.result(&object, || compared.told())?;
        Ok(if kept.lost == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }

    async fn send(&self, client: &Client, first: u64) -> anyhow::Result<Sent> {
        let pace = Some(Duration::from_millis(10));
        singles::send(client, (first, self.messages), self.callers, pace).await
    }
}

/// Times without a campaign and beside one.
struct Compared {
    /// From the 202 to the push service's answer, as the sink saw it.
    answered: [Samples; 2],
    /// From the acceptance to the commit of the answer, as the ledger has it.
    settled: [Samples; 2],
}

impl Compared {
    fn object(&self) -> Value {
        let part = |[idle, beside]: &[Samples; 2]| {
            json!({
                "idle_ms": quantiles(idle),
                "beside_campaign_ms": quantiles(beside),
                "p99_above_idle_ms": at(beside, 0.99) - at(idle, 0.99),
            })
        };
        json!({
            "p99_above_idle_ms": at(&self.answered[1], 0.99) - at(&self.answered[0], 0.99),
            "answered": part(&self.answered),
            "settled": part(&self.settled),
        })
    }

    fn told(&self) -> String {
        let [idle, beside] = [&self.answered[0], &self.answered[1]].map(|times| at(times, 0.99));
        let settled = [&self.settled[0], &self.settled[1]].map(|times| at(times, 0.99));
        format!(
            "from the 202 to the push service's answer: p99 {beside:.1} ms beside a campaign, {idle:.1} ms without; to the commit \
             of the answer: {:.0} and {:.0} ms",
            settled[1], settled[0]
        )
    }
}

fn at(samples: &Samples, part: f64) -> f64 {
    samples.quantile(part).unwrap_or(f64::NAN)
}

fn quantiles(samples: &Samples) -> Value {
    json!({"p50": at(samples, 0.5), "p90": at(samples, 0.9), "p99": at(samples, 0.99), "max": at(samples, 1.0)})
}

/// Reads how long each campaign took, of those accepted before `until`.
async fn times(client: &Client, sent: &Sent, until: Option<&Value>) -> anyhow::Result<HashMap<String, f64>> {
    let mut times = HashMap::new();
    for Promised { campaign, .. } in &sent.messages {
        let ended_at = ended(client, campaign).await?;
        let path = format!("/v1/campaigns/{}", segment(campaign));
        let created_at = client.get(&path).await?["created_at"].clone();
        let counts = until.is_none_or(|until| created_at.as_str() < until.as_str());
        if counts && let (Some(from), Some(to)) = (millis(&created_at), millis(&ended_at)) {
            times.insert(campaign.clone(), (to - from) as f64);
        }
    }
    Ok(times)
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
