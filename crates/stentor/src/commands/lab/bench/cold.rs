//! `stentor lab bench cold`: how long a server that was shut down cleanly takes from its start to its first push.

use crate::output::Output;
use crate::progress::on_the_terminal;
use clap::Args;
use std::process::ExitCode;
use stentor_stage::bench::cold::{self, ColdOptions};

/// Start a server over a large registry while a message is due, and measure the time until it is sent
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  stentor lab bench cold
  stentor lab bench cold --devices 100000 --rounds 5 --json

Each round the server is asked to end, a single message to FCM falls due while it is down, and it is started again. What
is measured begins before the process is made and ends with the commit of the push service's answer, in whole
milliseconds: it holds the access token's fetch, both TLS handshakes and the push.")]
pub(crate) struct ColdArgs {
    /// Devices in the registry
    #[arg(long, default_value_t = 1_000_000, value_name = "N", value_parser = clap::value_parser!(u64).range(2..=20_000_000))]
    devices: u64,
    /// How often it is started
    #[arg(long, default_value_t = 10, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: u32,
}

impl ColdArgs {
    /// Measures.
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
