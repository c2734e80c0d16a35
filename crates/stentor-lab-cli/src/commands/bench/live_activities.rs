//! `stentor lab bench live-activities`: many Live Activities that are updated at an even pace.

use crate::bench::live_activities::{self, LiveActivitiesOptions};
use clap::Args;
use std::process::ExitCode;
use std::time::Duration;
use stentor_terminal::output::Output;
use stentor_terminal::progress::on_the_terminal;

/// Update many Live Activities again and again, and measure the time to the push service's answer
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  stentor lab bench live-activities
  stentor lab bench live-activities --activities 30000 --every-seconds 30 --seconds 90 --json

Each update has a token of its own, as if tokens rotated each time; the updates of an activity have an order. The time goes from the
moment at which an update was to be sent to the push service's answer, as the sink saw it.")]
pub(crate) struct LiveActivitiesArgs {
    /// Number of activities
    #[arg(long, default_value_t = 30_000, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    activities: u64,
    /// Seconds between two updates of one activity
    #[arg(long, default_value_t = 30, value_name = "S", value_parser = clap::value_parser!(u64).range(1..=3_600))]
    every_seconds: u64,
    /// Seconds of the load
    #[arg(long, default_value_t = 90, value_name = "S", value_parser = clap::value_parser!(u64).range(1..=600))]
    seconds: u64,
}

impl LiveActivitiesArgs {
    /// Measures and prints the report.
    pub(crate) async fn run(self, output: Output) -> anyhow::Result<ExitCode> {
        let (every, lasts) = (Duration::from_secs(self.every_seconds), Duration::from_secs(self.seconds));
        let options = LiveActivitiesOptions { activities: self.activities, every, lasts };
        let report = live_activities::run(options, &on_the_terminal()).await?;
        output.result(&report.object(), || {
            let [p50, p95] = [0.5, 0.95].map(|part| report.answered_ms(part).unwrap_or_default());
            format!("from the request to the push service's answer: p50 {p50:.1} ms, p95 {p95:.1} ms")
        })?;
        Ok(super::exit(report.holds()))
    }
}
