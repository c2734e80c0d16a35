//! `stentor lab bench console`: the web console over a large registry.

use crate::bench::console::{self, ConsoleOptions};
use clap::Args;
use std::process::ExitCode;
use stentor_terminal::output::{Output, table};
use stentor_terminal::progress::on_the_terminal;

/// Make the requests of each page of the web console over a large registry, and measure their time and cost
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  stentor lab bench console
  stentor lab bench console --devices 100000 --readings 1000 --json

The registry is imported, and one campaign to all of it has ended. Each view is read 20 times, all its requests one after the
other; its time is that of all of them. Then the requests of the overview and of the page of a running campaign are made without
a pause: the server's processor time for one reading, over the interval at which the console reads, is what an open page costs.")]
pub(crate) struct ConsoleArgs {
    /// Devices in the registry
    #[arg(long, default_value_t = 10_000_000, value_name = "N", value_parser = clap::value_parser!(u64).range(1_000..=20_000_000))]
    devices: u64,
    /// Readings of each page
    #[arg(long, default_value_t = 2_000, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    readings: u32,
}

impl ConsoleArgs {
    /// Measures and prints the report.
    pub(crate) async fn run(self, output: Output) -> anyhow::Result<ExitCode> {
        let options = ConsoleOptions { devices: self.devices, readings: self.readings };
        let report = console::run(options, &on_the_terminal()).await?;
        output.result(&report.object(), || {
            let rows = report.views.iter().map(|view| {
                let at = |part| format!("{:.1}", view.ms.quantile(part).unwrap_or_default());
                [view.name.to_owned(), at(0.5), at(1.0)]
            });
            let mut text = table(["view", "median ms", "longest ms"], rows);
            for page in &report.pages {
                text.push_str(&format!("\n{}: {:.3} % of a processor", page.name, page.processor_percent()));
            }
            text
        })?;
        Ok(ExitCode::SUCCESS)
    }
}
