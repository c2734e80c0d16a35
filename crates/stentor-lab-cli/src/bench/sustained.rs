//! Single messages for a minute from callers that never pause, then at a part of that rate: from the request to the settled ledger.

use super::campaigns::{ended, millis};
use super::singles::{self, AcceptedMessage, LoadEnd, MessageLoad, Pace, SentMessages};
use super::sink_log::{self, DeliveryCheck, SinkLog};
use anyhow::Context;
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use stentor_lab::statistics::Samples;
use stentor_stage::client::{ApiClient, segment};
use stentor_stage::reporter::Reporter;
use stentor_stage::stage::Stage;

/// Duration of a load at a part of the rate.
const PACED_FOR: Duration = Duration::from_secs(10);
/// Parts of the sustained rate, with their names in the report.
const PARTS: [(&str, f64); 2] = [("at_half", 0.5), ("at_tenth", 0.1)];
/// Messages of a load whose times are read from the ledger.
const LOOKED_AT_MAX_COUNT: usize = 1_000;

/// Results of the loads.
pub(super) struct SustainedReport {
    sent: SentMessages,
    kept: DeliveryCheck,
    /// Time from the first request until the last message was settled.
    whole: Duration,
    /// Times from the acceptance to the commit of the answer, by the ledger.
    settled_ms: Samples,
    /// Processor time of all servers, and of the database if there is one, until the last message was settled.
    server_cpu_seconds: f64,
    database_cpu_seconds: Option<f64>,
    paced: Vec<PacedLoad>,
    next: u64,
}

/// A load at a part of the rate.
struct PacedLoad {
    name: &'static str,
    per_second: f64,
    /// Times from the request to the push service's answer.
    answered_ms: Samples,
    lost: usize,
}

/// Measures with messages to tokens from the `first` on.
pub(super) async fn measure(
    stage: &mut Stage,
    load: MessageLoad,
    reporter: &dyn Reporter,
) -> anyhow::Result<SustainedReport> {
    let MessageLoad { first, callers, .. } = load;
    let (cpu_before, engines_before) = (stage.usage().cpu_seconds, stage.engines.used());
    let clients = stage.clients()?;
    let began = Instant::now();
    let sent = singles::send(&clients, load).await?;
    let kept = sink_log::kept(stage.directory(), &[&sent]).await?;
    // The settler writes in the order of the answers. `settled` looks whether those before the last ones are settled too.
    for one in last(&sent, callers) {
        ended(&stage.client, &one.campaign).await?;
    }
    let whole = began.elapsed();
    let server_cpu_seconds = stage.usage().cpu_seconds - cpu_before;
    let database_cpu_seconds = stage.engines.used().since(engines_before).postgres;
    let settled_ms = settled(&stage.client, &sent).await?;
    let rate = sent.messages.len() as f64 / whole.as_secs_f64();
    reporter.line(&format!("{rate:.0} messages per second from the request to the settled ledger"));
    let (mut paced, mut first) = (Vec::new(), first + sent.messages.len() as u64 + callers);
    for (name, part) in PARTS {
        let per_second = rate * part;
        let pace = Pace::Even(Duration::from_secs_f64(1.0 / per_second));
        let load = MessageLoad { first, end: LoadEnd::After(PACED_FOR), pace, ..load };
        let some = singles::send(&clients, load).await?;
        let lost = sink_log::kept(stage.directory(), &[&some]).await?.lost;
        let answered_ms = SinkLog::read(stage.directory())?.times_from_requests(&some);
        first += some.messages.len() as u64 + callers;
        paced.push(PacedLoad { name, per_second, answered_ms, lost });
    }
    Ok(SustainedReport {
        sent,
        kept,
        whole,
        settled_ms,
        server_cpu_seconds,
        database_cpu_seconds,
        paced,
        next: first,
    })
}

impl SustainedReport {
    /// Returns true if the push service got every message.
    pub(super) fn holds(&self) -> bool {
        self.kept.lost == 0 && self.paced.iter().all(|load| load.lost == 0)
    }

    /// The first number of a token that no load has used.
    pub(super) const fn next(&self) -> u64 {
        self.next
    }

    /// Messages per second from the first request until the last one was settled.
    pub(super) fn per_second(&self) -> f64 {
        self.sent.messages.len() as f64 / self.whole.as_secs_f64()
    }

    /// Adds the results to the report.
    pub(super) fn add_to(&self, object: &mut Value) {
        let each = 1e6 / self.sent.messages.len() as f64;
        object["sustained_per_second"] = self.per_second().into();
        object["sustained_seconds"] = self.whole.as_secs_f64().into();
        object["sustained_messages"] = self.sent.messages.len().into();
        object["sustained_lost"] = self.kept.lost.into();
        object["sustained_accepted_ms"] = quantiles(&self.sent.latency_ms);
        object["settled_ms"] = quantiles(&self.settled_ms);
        object["settled_p99_ms"] = json!(self.settled_ms.quantile(0.99));
        object["server_cpu_us_in_all"] = (self.server_cpu_seconds * each).into();
        object["database_cpu_us_in_all"] = json!(self.database_cpu_seconds.map(|seconds| seconds * each));
        for load in &self.paced {
            object[load.name] = json!({
                "per_second": load.per_second,
                "answered_ms": quantiles(&load.answered_ms),
                "lost": load.lost,
            });
        }
    }
}

/// Returns the messages accepted last: one for each caller, and as many again.
fn last(sent: &SentMessages, callers: u64) -> impl Iterator<Item = &AcceptedMessage> {
    let mut latest: Vec<_> = sent.messages.iter().collect();
    latest.sort_unstable_by_key(|one| std::cmp::Reverse(one.at_us));
    latest.into_iter().take(2 * callers as usize)
}

/// Reads the times of evenly chosen messages from the ledger; fails if one of them is not settled.
async fn settled(client: &ApiClient, sent: &SentMessages) -> anyhow::Result<Samples> {
    let mut times = Samples::default();
    let step = sent.messages.len().div_ceil(LOOKED_AT_MAX_COUNT).max(1);
    for AcceptedMessage { campaign, .. } in sent.messages.iter().step_by(step) {
        let view = client.get(&format!("/v1/campaigns/{}", segment(campaign))).await?;
        let (from, to) = (millis(&view["created_at"]), millis(&view["ended_at"]));
        let (from, to) =
            from.zip(to).with_context(|| format!("{campaign} is not settled with the last ones"))?;
        times.push((to - from) as f64);
    }
    Ok(times)
}

fn quantiles(samples: &Samples) -> Value {
    let at = |part| samples.quantile(part);
    json!({"p50": at(0.5), "p90": at(0.9), "p99": at(0.99), "max": at(1.0)})
}
