//! The latency of single messages during a campaign, beside that on an idle server.

use super::campaigns::{ended, millis};
use super::singles::{self, AcceptedMessage, LoadEnd, MessageLoad, Pace, RequestForm, SentMessages};
use super::sink_log::{self, DeliveryCheck, SinkLog};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use stentor_lab::statistics::Samples;
use stentor_stage::client::{ApiClient, segment};
use stentor_stage::devices::DevicePopulation;
use stentor_stage::import;
use stentor_stage::reporter::Reporter;
use stentor_stage::stage::{Stage, StageOptions};
use stentor_stage::text::cell;

/// Options of the bench.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UrgentOptions {
    /// Devices of the campaign.
    pub(crate) devices: u64,
    /// Single messages, while idle and again while the campaign runs.
    pub(crate) messages: u64,
    /// Number of concurrent callers, each with one message every ten milliseconds.
    pub(crate) callers: u64,
}

/// Results of the bench: times without a campaign and beside one.
pub(crate) struct UrgentReport {
    options: UrgentOptions,
    /// Times from the 202 to the push service's answer, by the sink's log.
    answered: [Samples; 2],
    /// Times from the acceptance to the commit of the answer, by the ledger.
    settled: [Samples; 2],
    kept: DeliveryCheck,
    limits: Value,
}

/// Runs the bench and returns the report.
pub(crate) async fn run(
    options: UrgentOptions,
    reporter: &Arc<dyn Reporter>,
) -> anyhow::Result<UrgentReport> {
    let stage = Stage::build(&StageOptions::with_sinks(options.devices + 200_000), reporter).await?;
    import::run(&stage.client, DevicePopulation::new(options.devices, 1), &**reporter).await?;
    let idle = options.send(&stage.client, 0).await?;
    let idle_settled = times(&stage.client, &idle, None).await?;
    let everyone = json!({"target": "everyone", "notification": {"title": "to everyone"}});
    let campaign = cell(&stage.client.post("/v1/messages", &everyone).await?["campaign"]);
    let sent = options.send(&stage.client, options.messages).await?;
    let ended_at = ended(&stage.client, &campaign).await?;
    let settled = times(&stage.client, &sent, Some(&ended_at)).await?;
    let check = sink_log::kept(stage.directory(), &[&idle, &sent]).await?;
    let answers = SinkLog::read(stage.directory())?;
    Ok(UrgentReport {
        options,
        answered: [answers.times(&idle, &idle_settled), answers.times(&sent, &settled)],
        settled: [idle_settled, settled].map(|times| times.into_values().collect()),
        kept: check,
        limits: stage.server.limits()?,
    })
}

impl UrgentOptions {
    async fn send(&self, client: &ApiClient, first: u64) -> anyhow::Result<SentMessages> {
        let pace = Pace::Pause(Duration::from_millis(10));
        let end = LoadEnd::Count(self.messages);
        singles::send(
            std::slice::from_ref(client),
            MessageLoad {
                first,
                end,
                callers: self.callers,
                pace,
                form: RequestForm::Stentor,
                outlives_kills: false,
            },
        )
        .await
    }
}

impl UrgentReport {
    /// Returns true if the push service got every message.
    pub(crate) const fn holds(&self) -> bool {
        self.kept.lost == 0
    }

    /// The 99th percentiles from the 202 to the push service's answer, in milliseconds: idle, and beside a campaign.
    pub(crate) fn answered_p99_ms(&self) -> [f64; 2] {
        [&self.answered[0], &self.answered[1]].map(|times| at(times, 0.99))
    }

    /// The 99th percentiles to the commit of the answer, in milliseconds: idle, and beside a campaign.
    pub(crate) fn settled_p99_ms(&self) -> [f64; 2] {
        [&self.settled[0], &self.settled[1]].map(|times| at(times, 0.99))
    }

    /// Returns the report as one object.
    pub(crate) fn object(&self) -> Value {
        let part = |[idle, beside]: &[Samples; 2]| {
            json!({
                "idle_ms": quantiles(idle),
                "beside_campaign_ms": quantiles(beside),
                "p99_above_idle_ms": at(beside, 0.99) - at(idle, 0.99),
            })
        };
        let beside = self.settled[1].values().len() as u64;
        json!({
            "p99_above_idle_ms": at(&self.answered[1], 0.99) - at(&self.answered[0], 0.99),
            "answered": part(&self.answered),
            "settled": part(&self.settled),
            "devices": self.options.devices,
            "ok": self.holds(),
            "lost": self.kept.lost,
            "duplicates": self.kept.duplicates,
            "limits": self.limits,
            "messages": beside,
            "messages_after_the_campaign": self.options.messages - beside,
        })
    }
}

fn at(samples: &Samples, part: f64) -> f64 {
    samples.quantile(part).unwrap_or(f64::NAN)
}

fn quantiles(samples: &Samples) -> Value {
    json!({"p50": at(samples, 0.5), "p90": at(samples, 0.9), "p99": at(samples, 0.99), "max": at(samples, 1.0)})
}

/// Reads the duration of each campaign that was accepted before `until`.
async fn times(
    client: &ApiClient,
    sent: &SentMessages,
    until: Option<&Value>,
) -> anyhow::Result<HashMap<String, f64>> {
    let mut times = HashMap::new();
    for AcceptedMessage { campaign, .. } in &sent.messages {
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
