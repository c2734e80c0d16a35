//! `stentor lab bench trouble`: the effect of bad answers to a share of the deliveries on the others.

use crate::bench::trouble::{self, BadAnswer, Persistence, TroubleCase, TroubleCell, TroubleOptions};
use clap::Args;
use std::process::ExitCode;
use std::time::Duration;
use stentor_terminal::output::{Output, table};
use stentor_terminal::progress::on_the_terminal;
use stentor_terminal::service_name::ServiceName;
use stentor_terminal::value_names::one_of;

/// Send campaigns in which some devices get bad answers, and compare the other devices with a clean campaign
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  stentor lab bench trouble
  stentor lab bench trouble --share 1,5 --kind 429-retry-after,500 --persistence once --json
  stentor lab bench trouble --share 2 --kind 503 --devices 100000
  stentor lab bench trouble --provider web-push --share 1,5 --kind 500,503 --persistence once

Each cell has a server and an emulator of its own on 127.0.0.1. Below 20 % a cell is ok when the good deliveries keep
0.8 of their part of the clean rate, every delivery that succeeds when repeated is accepted within its back-off, and single
messages to healthy devices have a p99 of at most 100 ms above idle. From 20 % on it is ok when every good delivery is accepted;
from 50 % on when the push service is spared: it gets one request for each device, the repeats that bring a delivery through,
and 4,096 that were on their way. All 108 cells take about half an hour, more where a server waits long before it repeats.")]
pub(crate) struct TroubleArgs {
    /// The push service
    #[arg(long, value_enum, default_value_t = ServiceName::Fcm)]
    provider: ServiceName,
    /// Percent of the devices that get bad answers, separated by commas
    #[arg(long, value_name = "PERCENT", value_delimiter = ',', value_parser = percent, default_values_t = [0.1, 1.0, 5.0, 20.0, 50.0, 100.0])]
    share: Vec<f64>,
    /// Kinds of bad answers, separated by commas; all by default
    #[arg(long, value_delimiter = ',', value_parser = one_of(&BadAnswer::ALL, BadAnswer::word, BadAnswer::meaning))]
    kind: Vec<BadAnswer>,
    /// Attempts of a delivery with bad answers, separated by commas; all three by default
    #[arg(long, value_delimiter = ',', value_parser = one_of(&Persistence::ALL, Persistence::word, Persistence::meaning))]
    persistence: Vec<Persistence>,
    /// Devices of each campaign
    #[arg(long, default_value_t = 20_000, value_name = "N", value_parser = clap::value_parser!(u64).range(100..=1_000_000))]
    devices: u64,
    /// Longest wait of a cell for the good deliveries, and for all of them if many get bad answers
    #[arg(long, default_value_t = 15, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=600))]
    cell_seconds: u64,
}

impl TroubleArgs {
    /// Measures and prints the report.
    pub(crate) async fn run(self, output: Output) -> anyhow::Result<ExitCode> {
        let options = TroubleOptions {
            cases: self.cases(),
            devices: self.devices,
            cell_limit: Duration::from_secs(self.cell_seconds),
        };
        let report = trouble::run(&options, cell_text, &on_the_terminal()).await?;
        output.result(&report.object(), || rows(&report.cells))?;
        Ok(super::exit(report.holds()))
    }

    fn cases(&self) -> Vec<TroubleCase> {
        let kinds = named_or(&self.kind, &BadAnswer::ALL);
        let persistences = named_or(&self.persistence, &Persistence::ALL);
        let mut cases = Vec::new();
        for share in &self.share {
            for kind in &kinds {
                for persistence in &persistences {
                    let service = self.provider.into();
                    cases.push(TroubleCase {
                        service,
                        share: *share,
                        kind: *kind,
                        persistence: *persistence,
                    });
                }
            }
        }
        cases
    }
}

/// Returns the named values, or all if none is named.
fn named_or<T: Copy>(named: &[T], all: &[T]) -> Vec<T> {
    if named.is_empty() { all.into() } else { named.into() }
}

fn percent(text: &str) -> Result<f64, String> {
    let share: f64 = text.parse().map_err(|_| format!("{text} is no number"))?;
    if (0.0..=100.0).contains(&share) { Ok(share) } else { Err("a share is 0 to 100 percent".to_owned()) }
}

fn cell_text(measured: &TroubleCell) -> String {
    let verdict = if measured.holds() { "ok" } else { "NOT ok" };
    let TroubleCell { rate, clean_rate, unsent, single_p99_ms, .. } = measured;
    let [share, kind, persistence] = measured.case.words();
    format!(
        "{share} % {kind} {persistence}: {rate:.0} of {clean_rate:.0} per second, {unsent} unsent, \
         single messages p99 {single_p99_ms:.0} ms: {verdict}"
    )
}

fn rows(cells: &[TroubleCell]) -> String {
    let header =
        ["share %", "kind", "persistence", "rate", "clean", "unsent", "single p99 ms", "requests", "ok"];
    table(header, cells.iter().map(row))
}

fn row(cell: &TroubleCell) -> [String; 9] {
    let [share, kind, persistence] = cell.case.words();
    let whole = |number: f64| format!("{number:.0}");
    [
        share,
        kind,
        persistence,
        whole(cell.rate),
        whole(cell.clean_rate),
        cell.unsent.to_string(),
        whole(cell.single_p99_ms),
        cell.requests.to_string(),
        if cell.holds() { "yes" } else { "no" }.to_owned(),
    ]
}
