//! The time of a server from a start after a clean shutdown to its first push.

use super::campaigns::{ended, millis};
use jiff::{Timestamp, ToSpan};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::{Duration, Instant};
use stentor_lab::statistics::Samples;
use stentor_stage::devices::DevicePopulation;
use stentor_stage::import;
use stentor_stage::reporter::Reporter;
use stentor_stage::stage::{Stage, StageOptions};
use stentor_stage::text::cell;

const DAY_MS: i64 = 24 * 3_600 * 1_000;
/// Time from the request to the due time of a message, in which the server is stopped.
const DUE_IN_SECONDS: i64 = 2;

/// Options of the bench.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ColdOptions {
    /// Devices in the registry.
    pub(crate) devices: u64,
    /// Number of starts of the server.
    pub(crate) rounds: u32,
}

/// Results of the bench.
pub(crate) struct ColdReport {
    options: ColdOptions,
    /// Milliseconds from each start to the first push.
    pub(crate) first_push_ms: Samples,
    /// Milliseconds from each start until the server reported that it is ready.
    pub(crate) ready_ms: Samples,
}

/// Runs the bench and returns the report.
pub(crate) async fn run(options: ColdOptions, reporter: &Arc<dyn Reporter>) -> anyhow::Result<ColdReport> {
    let mut stage = Stage::build(&StageOptions::with_sinks(options.devices + 10_000), reporter).await?;
    import::run(&stage.client, DevicePopulation::new(options.devices, 1), &**reporter).await?;
    let mut report = ColdReport { options, first_push_ms: Samples::default(), ready_ms: Samples::default() };
    for round in 0..options.rounds {
        let (first_push_ms, ready_ms) = start(&mut stage, round).await?;
        report.first_push_ms.push(first_push_ms);
        report.ready_ms.push(ready_ms);
    }
    Ok(report)
}

impl ColdReport {
    /// Returns the report as one object.
    pub(crate) fn object(&self) -> Value {
        json!({
            "devices": self.options.devices,
            "rounds": self.options.rounds,
            "first_push_ms": self.first_push_ms.quantile(0.5),
            "ready_ms": self.ready_ms.quantile(0.5),
            "samples": {"first_push_ms": self.first_push_ms.summary(), "ready_ms": self.ready_ms.summary()},
        })
    }
}

/// Stops the server while a message is scheduled, and starts it when the message is due. Returns the milliseconds from the start to the
/// push, and until the server is ready.
async fn start(stage: &mut Stage, round: u32) -> anyhow::Result<(f64, f64)> {
    let due_at = Timestamp::now() + DUE_IN_SECONDS.seconds();
    let message = json!({
        "target": {"token": {"platform": "android", "token": format!("cold-start-{round:0150}")}},
        "notification": {"title": "after a start"},
        "send_at": due_at.to_string(),
        "exact": true,
    });
    let campaign = cell(&stage.client.post("/v1/messages", &message).await?["campaign"]);
    stage.server.stop();
    let wait = due_at.duration_since(Timestamp::now()).try_into().unwrap_or(Duration::ZERO);
    tokio::time::sleep(wait + Duration::from_millis(10)).await;
    let (began_at, began) = (Timestamp::now().as_millisecond(), Instant::now());
    stage.server.start_again().await?;
    let ready = began.elapsed();
    let ended_at = millis(&ended(&stage.client, &campaign).await?).unwrap_or_default();
    let sent = (ended_at - began_at).rem_euclid(DAY_MS);
    Ok((sent as f64, ready.as_secs_f64() * 1e3))
}
