//! `stentor lab bench import`: new devices through the API, as one stream of NDJSON.

use crate::output::Output;
use crate::progress::on_the_terminal;
use clap::Args;
use serde_json::json;
use std::process::ExitCode;
use stentor_lab::statistics::Samples;
use stentor_stage::devices::Fleet;
use stentor_stage::stage::{Stage, StageOptions};

/// Register many new devices through the API and measure how fast that is
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  stentor lab bench import
  stentor lab bench import --devices 3000000 --rounds 3 --json")]
pub(crate) struct Import {
    /// How many devices, all of them new
    #[arg(long, default_value_t = 1_000_000, value_name = "N", value_parser = clap::value_parser!(u64).range(2..=20_000_000))]
    devices: u64,
    /// How often it is repeated, each time from nothing
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=50))]
    rounds: u32,
}

impl Import {
    /// Measures.
    pub(crate) async fn run(self, output: Output) -> anyhow::Result<ExitCode> {
        let (mut rates, mut cpu, mut wall) = (Samples::default(), Samples::default(), Samples::default());
        let mut peak_rss_bytes = 0;
        for _ in 0..self.rounds {
            let mut stage = Stage::build(&StageOptions::with_sinks(2), &on_the_terminal()).await?;
            let took =
                stentor_stage::import::run(&stage.client, Fleet::new(self.devices, 1), &*on_the_terminal())
                    .await?;
            let usage = stage.server.stop();
            wall.push(took.as_secs_f64());
            rates.push(self.devices as f64 / took.as_secs_f64());
            cpu.push(usage.cpu_seconds * 1e6 / self.devices as f64);
            peak_rss_bytes = peak_rss_bytes.max(usage.peak_rss_bytes);
        }
        let object = json!({
            "devices": self.devices,
            "wall_seconds": wall.quantile(0.5),
            "server_cpu_seconds": cpu.quantile(0.5).map(|each| each * self.devices as f64 / 1e6),
            "devices_per_second": rates.quantile(0.5),
            "server_cpu_microseconds_per_device": cpu.quantile(0.5),
            "server_peak_rss_bytes": peak_rss_bytes,
            "rounds": {"devices_per_second": rates, "server_cpu_microseconds_per_device": cpu},
        });
        let rate = rates.quantile(0.5).unwrap_or_default();
        output.result(&object, || format!("{rate:.0} new devices per second"))?;
        Ok(ExitCode::SUCCESS)
    }
}
