//! `stentor lab bench pipeline`: one campaign through sinks, from the 202 to the settled ledger.

use crate::commands::demo::describe::describe;
use crate::output::{Output, note};
use crate::progress::on_the_terminal;
use clap::Args;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::ExitCode;
use stentor_lab::statistics::Samples;
use stentor_stage::demo::{self, DemoOptions};

/// Send one campaign through sinks, which answer everything with success, and measure the server
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  stentor lab bench pipeline
  stentor lab bench pipeline --devices 10000000 --rounds 1
  stentor lab bench pipeline --latency-ms 50 --json

The server is started anew after the import, so that campaign_peak_rss_bytes is the campaign's alone (the
questions asked afterwards raise server_peak_rss_bytes); the campaign begins when it has its access token and connections.
Server, FCM sink and APNs sink are processes of their own on 127.0.0.1, with real TLS and HTTP/2; no quota, every other
setting is the default. The fields of the last round are those of `stentor demo --json`, with all rounds' samples.")]
pub(crate) struct Pipeline {
    /// How many devices: half through FCM, half through APNs
    #[arg(long, default_value_t = 1_000_000, value_name = "N", value_parser = clap::value_parser!(u64).range(2..=20_000_000))]
    devices: u64,
    /// How long the sinks take to answer
    #[arg(long, value_name = "MS")]
    latency_ms: Option<f64>,
    /// How often it is repeated, each time from nothing
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=50))]
    rounds: u32,
    /// Keep everything of the only round in this directory, which must not exist or be empty
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
}

/// What is told of every round.
const SAMPLED: [&str; 8] = [
    "pushes_per_second",
    "wall_seconds",
    "server_cpu_seconds",
    "server_peak_rss_bytes",
    "campaign_peak_rss_bytes",
    "import_seconds",
    "import_cpu_seconds",
    "import_peak_rss_bytes",
];

impl Pipeline {
    /// Measures.
    pub(crate) async fn run(self, output: Output) -> anyhow::Result<ExitCode> {
        let (mut rounds, mut holds, mut told) = (Vec::new(), true, String::new());
        for round in 1..=self.rounds {
            let options = DemoOptions::through_sinks(self.devices, self.latency_ms, self.keep.clone());
            let report = demo::run(&options, &on_the_terminal()).await?;
            holds &= report.holds();
            told = describe(&report);
            rounds.push(report.object());
            note(&format!("round {round} of {}", self.rounds));
        }
        let mut object = rounds.last().cloned().unwrap_or_else(|| json!({}));
        for field in SAMPLED {
            let samples: Samples = rounds.iter().filter_map(|round| round[field].as_f64()).collect();
            object["rounds"][field] = json!({"summary": samples.summary(), "samples": samples.values()});
            object[field] = samples.quantile(0.5).map_or(Value::Null, Value::from);
        }
        object["latency_ms"] = json!(self.latency_ms);
        object["ok"] = holds.into();
        output.result(&object, || told)?;
        Ok(if holds { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }
}
