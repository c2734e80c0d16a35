//! Many Live Activities, each updated again and again at an even pace: the time from the request to the push service's answer.

use super::singles::{self, LoadEnd, MessageLoad, Pace, RequestForm};
use super::sink_log::{self, DeliveryCheck, SinkLog};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use stentor_lab::statistics::Samples;
use stentor_stage::devices::StagedService;
use stentor_stage::reporter::Reporter;
use stentor_stage::stage::{Stage, StageOptions};

/// Concurrent callers; late ones make up for the pace.
const CALLERS: u64 = 64;

/// Options of the bench.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LiveActivitiesOptions {
    /// Number of activities.
    pub(crate) activities: u64,
    /// Time between two updates of one activity.
    pub(crate) every: Duration,
    /// Duration of the load.
    pub(crate) lasts: Duration,
}

/// Results of the bench.
pub(crate) struct LiveActivitiesReport {
    options: LiveActivitiesOptions,
    updates: usize,
    answered_ms: Samples,
    kept: DeliveryCheck,
    server_cpu_seconds: f64,
}

/// Runs the bench and returns the report.
pub(crate) async fn run(
    options: LiveActivitiesOptions,
    reporter: &Arc<dyn Reporter>,
) -> anyhow::Result<LiveActivitiesReport> {
    let pace = options.every.div_f64(options.activities as f64);
    let updates = options.lasts.as_secs_f64() / pace.as_secs_f64();
    let mut stage = Stage::build(&StageOptions::with_sinks(4 * updates as u64), reporter).await?;
    let credentials = stage.emulators.credentials(&stage.keys)?;
    let app = stage.client.app().unwrap_or_default().to_owned();
    for (_, credential) in credentials.iter().filter(|(service, _)| *service == StagedService::Apns) {
        stage.client.put(&format!("/v1/apps/{app}/credentials/live_activity"), credential).await?;
    }
    let form = RequestForm::LiveActivity { activities: options.activities };
    let load = MessageLoad {
        first: 0,
        end: LoadEnd::Count(CALLERS),
        callers: CALLERS,
        pace: Pace::AtOnce,
        form,
        outlives_kills: false,
    };
    let clients = stage.clients()?;
    // Opens the connection to the push service.
    let warm = singles::send(&clients, load).await?;
    let before = stage.usage().cpu_seconds;
    let load =
        MessageLoad { first: CALLERS, end: LoadEnd::After(options.lasts), pace: Pace::Even(pace), ..load };
    let sent = singles::send(&clients, load).await?;
    let kept = sink_log::kept(stage.directory(), &[&warm, &sent]).await?;
    let server_cpu_seconds = stage.usage().cpu_seconds - before;
    let answered_ms = SinkLog::read(stage.directory())?.times_from_requests(&sent);
    Ok(LiveActivitiesReport { options, updates: sent.messages.len(), answered_ms, kept, server_cpu_seconds })
}

impl LiveActivitiesReport {
    /// Returns true if the push service got every update.
    pub(crate) const fn holds(&self) -> bool {
        self.kept.lost == 0
    }

    /// The quantile `part` of the times from the request to the push service's answer, in milliseconds.
    pub(crate) fn answered_ms(&self, part: f64) -> Option<f64> {
        self.answered_ms.quantile(part)
    }

    /// Returns the report as one object.
    pub(crate) fn object(&self) -> Value {
        let at = |part| self.answered_ms(part);
        json!({
            "activities": self.options.activities,
            "every_seconds": self.options.every.as_secs_f64(),
            "updates": self.updates,
            "ok": self.holds(),
            "lost": self.kept.lost,
            "duplicates": self.kept.duplicates,
            "answered_ms": {"p50": at(0.5), "p95": at(0.95), "p99": at(0.99), "max": at(1.0)},
            "server_cpu_us_per_update": self.server_cpu_seconds * 1e6 / self.updates as f64,
        })
    }
}
