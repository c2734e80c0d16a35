//! `stentor lab bench import`: new devices through the API, as one stream of NDJSON.

use crate::bench::import::{self, ImportBenchOptions};
use clap::Args;
use std::process::ExitCode;
use stentor_terminal::output::Output;
use stentor_terminal::progress::on_the_terminal;
use stentor_terminal::store_name::StoreName;

/// Register many new devices through the API, and measure the rate
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  stentor lab bench import
  stentor lab bench import --devices 3000000 --rounds 3 --json
  stentor lab bench import --store postgres --json")]
pub(crate) struct ImportBenchArgs {
    /// Number of devices, all of them new
    #[arg(long, default_value_t = 1_000_000, value_name = "N", value_parser = clap::value_parser!(u64).range(2..=20_000_000))]
    devices: u64,
    /// Number of rounds, each with a new server and an empty store
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=50))]
    rounds: u32,
    /// Store of the server; with postgres, sqlite is measured too, and the result has the ratios
    #[arg(long, value_enum, default_value_t = StoreName::Sqlite)]
    store: StoreName,
}

impl ImportBenchArgs {
    /// Measures and prints the report.
    pub(crate) async fn run(self, output: Output) -> anyhow::Result<ExitCode> {
        let Self { devices, rounds, store } = self;
        let options = ImportBenchOptions { devices, rounds, store: store.into() };
        let report = import::run(options, &on_the_terminal()).await?;
        let rate = report.devices_per_second().unwrap_or_default();
        output.result(&report.object(), || format!("{rate:.0} new devices per second"))?;
        Ok(ExitCode::SUCCESS)
    }
}
