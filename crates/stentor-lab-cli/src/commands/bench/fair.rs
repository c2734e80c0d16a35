//! `stentor lab bench fair`: the delay that nine hostile apps cause to a tenth one.

use crate::bench::fair::{self, FairOptions, FairReport, HostileBehaviour, is_within};
use clap::Args;
use std::process::ExitCode;
use std::time::Duration;
use stentor_terminal::output::{Output, table};
use stentor_terminal::progress::on_the_terminal;
use stentor_terminal::value_names::one_of;

/// Run nine hostile apps, and compare a tenth app's times with those on an idle server
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  stentor lab bench fair
  stentor lab bench fair --kind dry-run,slow-upload --seconds 15 --json

The tenth app sends single messages and campaigns to a topic of 100 devices, first alone and then beside the hostile apps.
Two times are measured: from a request to its 202 (p99), and from the request of a campaign to its first push at the push
service (median). The bench is ok when the tenth app is never refused and both times are at most three times those of the idle
server, or 50 ms above them if that is more. The hostile apps act for over a minute, so that their schedules fire. Their callers run
in this program with a low priority: they are limited by the server, not by the machine.")]
pub(crate) struct FairArgs {
    /// Behaviours of the hostile apps, separated by commas; all by default
    #[arg(long, value_delimiter = ',', value_parser = one_of(&HostileBehaviour::ALL, HostileBehaviour::word, HostileBehaviour::meaning))]
    kind: Vec<HostileBehaviour>,
    /// Duration of the hostile behaviour
    #[arg(long, default_value_t = 75, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(2..=600))]
    seconds: u64,
    /// Duration of the measurement of the tenth app alone
    #[arg(long, default_value_t = 15, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=600))]
    idle_seconds: u64,
    /// Devices in the large audiences of the hostile apps
    #[arg(long, default_value_t = 100_000, value_name = "N", value_parser = clap::value_parser!(u64).range(100..=1_000_000))]
    devices: u64,
}

impl FairArgs {
    /// Measures and prints the report.
    pub(crate) async fn run(self, output: Output) -> anyhow::Result<ExitCode> {
        let options = FairOptions {
            behaviours: if self.kind.is_empty() { HostileBehaviour::ALL.into() } else { self.kind },
            span: Duration::from_secs(self.seconds),
            idle_span: Duration::from_secs(self.idle_seconds),
            devices: self.devices,
        };
        let report = fair::run(&options, &on_the_terminal()).await?;
        output.result(&report.object(), || describe(&report))?;
        Ok(super::exit(report.holds()))
    }
}

fn describe(report: &FairReport) -> String {
    let row = |name: &str, [idle, hostile]: [f64; 2]| {
        let verdict = if is_within(idle, hostile) { "yes" } else { "no" };
        [name.to_owned(), format!("{idle:.1}"), format!("{hostile:.1}"), verdict.to_owned()]
    };
    let times = table(
        ["the tenth app", "alone, ms", "beside, ms", "ok"],
        [row("202, p99", report.accept_ms()), row("first push, median", report.first_push_ms())],
    );
    let rows = report.counts.iter().map(|count| {
        let [requested, done, refused, broken] = count.numbers.map(|number| number.to_string());
        [count.behaviour.word().to_owned(), requested, done, refused, broken]
    });
    let counts = table(["hostile app", "asked", "done", "refused", "broken"], rows);
    format!("{times}\n{counts}\nrefused to the tenth app: {}", report.hostile.refused)
}
