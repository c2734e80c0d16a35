//! `stentor lab bench urgent`: the latency of single messages during a campaign, beside that on an idle server.

use crate::bench::urgent::{self, UrgentOptions, UrgentReport};
use clap::Args;
use std::process::ExitCode;
use stentor_terminal::output::Output;
use stentor_terminal::progress::on_the_terminal;

/// Send single messages while a campaign runs, and compare their times with those of an idle server
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  stentor lab bench urgent
  stentor lab bench urgent --devices 10000000 --json

Each message has two times. The first goes from its 202, as the caller saw it, to the push service's answer, as the sink saw
it. The second is the ledger's: from acceptance to the commit of the answer, in whole milliseconds. Only messages accepted
before the campaign's end count.")]
pub(crate) struct UrgentArgs {
    /// Devices of the campaign
    #[arg(long, default_value_t = 3_000_000, value_name = "N", value_parser = clap::value_parser!(u64).range(2..=20_000_000))]
    devices: u64,
    /// Single messages, while idle and again while the campaign runs
    #[arg(long, default_value_t = 1_000, value_name = "N", value_parser = clap::value_parser!(u64).range(10..=100_000))]
    messages: u64,
    /// Callers at the same time, each with one message every ten milliseconds
    #[arg(long, default_value_t = 8, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=256))]
    callers: u64,
}

impl UrgentArgs {
    /// Measures and prints the report.
    pub(crate) async fn run(self, output: Output) -> anyhow::Result<ExitCode> {
        let Self { devices, messages, callers } = self;
        let report = urgent::run(UrgentOptions { devices, messages, callers }, &on_the_terminal()).await?;
        output.result(&report.object(), || describe(&report))?;
        Ok(super::exit(report.holds()))
    }
}

fn describe(report: &UrgentReport) -> String {
    let ([idle, beside], settled) = (report.answered_p99_ms(), report.settled_p99_ms());
    format!(
        "from the 202 to the push service's answer: p99 {beside:.1} ms beside a campaign, {idle:.1} ms without; to the commit \
         of the answer: {:.0} and {:.0} ms",
        settled[1], settled[0]
    )
}
