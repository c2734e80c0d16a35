//! `stentor lab bench cold`: the time of a server from a start after a clean shutdown to its first push.

use crate::bench::cold::{self, ColdOptions};
use clap::Args;
use std::process::ExitCode;
use stentor_terminal::output::Output;
use stentor_terminal::progress::on_the_terminal;

/// Start a server over a large registry while a message is due, and measure the time until it is sent
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  stentor lab bench cold
  stentor lab bench cold --devices 100000 --rounds 5 --json

In each round the server is stopped, a single message to FCM falls due, and the server is started again. The time begins
before the process starts and ends when the push service's answer is committed. It includes the fetch of the access token,
both TLS handshakes and the push.")]
pub(crate) struct ColdArgs {
    /// Devices in the registry
    #[arg(long, default_value_t = 1_000_000, value_name = "N", value_parser = clap::value_parser!(u64).range(2..=20_000_000))]
    devices: u64,
    /// Number of starts
    #[arg(long, default_value_t = 10, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: u32,
}

impl ColdArgs {
    /// Measures and prints the report.
    pub(crate) async fn run(self, output: Output) -> anyhow::Result<ExitCode> {
        let options = ColdOptions { devices: self.devices, rounds: self.rounds };
        let report = cold::run(options, &on_the_terminal()).await?;
        output.result(&report.object(), || {
            let [first, ready] = [&report.first_push_ms, &report.ready_ms]
                .map(|samples| samples.quantile(0.5).unwrap_or_default());
            format!("{first:.0} ms to the first push, {ready:.0} ms to /readyz (medians)")
        })?;
        Ok(ExitCode::SUCCESS)
    }
}
