//! `stentor lab bench cold`: how long a server that was shut down cleanly takes from its start to its first push.

use super::urgent::{ended, millis};
use crate::output::{Output, cell};
use crate::progress::on_the_terminal;
use clap::Args;
use jiff::{Timestamp, ToSpan};
use serde_json::json;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use stentor_lab::statistics::Samples;
use stentor_stage::devices::Fleet;
use stentor_stage::stage::Stage;
use stentor_stage::stage::StageOptions;

const DAY_MS: i64 = 24 * 3_600 * 1_000;
/// How far ahead a message is asked for, so that the server is down when it falls due.
const AHEAD_SECONDS: i64 = 2;

/// Start a server over a large registry while a message is due, and measure the time until it is sent
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  stentor lab bench cold
  stentor lab bench cold --devices 100000 --rounds 5 --json

Each round the server is asked to end, a single message to FCM falls due while it is down, and it is started again. What
is measured begins before the process is made and ends with the commit of the push service's answer, in whole
milliseconds: it holds the access token's fetch, both TLS handshakes and the push.")]
pub(crate) struct Cold {
    /// Devices in the registry
    #[arg(long, default_value_t = 1_000_000, value_name = "N", value_parser = clap::value_parser!(u64).range(2..=20_000_000))]
    devices: u64,
    /// How often it is started
    #[arg(long, default_value_t = 10, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: u32,
}

impl Cold {
    /// Measures.
    pub(crate) async fn run(self, output: Output) -> anyhow::Result<ExitCode> {
        let mut stage =
            Stage::build(&StageOptions::with_sinks(self.devices + 10_000), &on_the_terminal()).await?;
        stentor_stage::import::run(&stage.client, Fleet::new(self.devices, 1), &*on_the_terminal()).await?;
        let (mut sent, mut ready) = (Samples::default(), Samples::default());
        for round in 0..self.rounds {
            let (to_sent, to_ready) = start(&mut stage, round).await?;
            sent.push(to_sent);
            ready.push(to_ready);
        }
        let object = json!({
            "devices": self.devices,
            "rounds": self.rounds,
            "first_push_ms": sent.quantile(0.5),
            "ready_ms": ready.quantile(0.5),
            "samples": {"first_push_ms": sent.summary(), "ready_ms": ready.summary()},
        });
        let (first, ready) =
            (sent.quantile(0.5).unwrap_or_default(), ready.quantile(0.5).unwrap_or_default());
        output.result(&object, || {
            format!("{first:.0} ms to the first push, {ready:.0} ms to /readyz (medians)")
        })?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Stops the server over a message for later and starts it when that is due; milliseconds to the push, and until ready.
async fn start(stage: &mut Stage, round: u32) -> anyhow::Result<(f64, f64)> {
    let due_at = Timestamp::now() + AHEAD_SECONDS.seconds();
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
