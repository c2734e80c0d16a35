//! `stentor lab compare`: two runs beside each other, with an exit code for pipelines.

use super::report::read_exchanges as read;
use clap::Args;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::ExitCode;
use stentor_lab::results::{CellChange, CellComparison, METRICS, Metric, compare};
use stentor_terminal::failure::CommandFailure;
use stentor_terminal::output::{Output, table};

/// Compare two runs cell by cell: ratio with its interval, ranks, verdict
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  stentor lab compare before after
  stentor lab compare before after --threshold 10
  stentor lab compare before after --metric server_cpu --json

The ratio is B over A, of geometric means over forks, with a 95 % interval by Welch's method on logarithms. p comes
from the Mann-Whitney test on the forks, corrected by Holm's method for the number of cells; it does not change the verdict.
A cell is slower, faster or the same when its whole interval is above, below or within the threshold around 1. Otherwise it is
undecided, and more forks are needed.

Exit codes:
  0  no cell is slower (some may be undecided)
  1  a cell is slower
  2  the runs cannot be compared: no records, other studies, no cell in common, or a single fork")]
pub(crate) struct CompareArgs {
    /// Directory or records of the first run
    a: PathBuf,
    /// Directory or records of the second run
    b: PathBuf,
    /// Metric to compare
    #[arg(long, value_name = "METRIC", default_value = METRICS[0].id, value_parser = clap::builder::PossibleValuesParser::new(METRICS.iter().map(|metric| metric.id)))]
    metric: String,
    /// Largest difference between cells that count as equal, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 5.0)]
    threshold: f64,
}

impl CompareArgs {
    /// Compares the runs and prints the result.
    pub(crate) fn run(self, output: Output) -> anyhow::Result<ExitCode> {
        if !(0.0..1000.0).contains(&self.threshold) {
            return Err(CommandFailure::usage("--threshold is a percentage from 0 on, such as 5").into());
        }
        let (first, second) = (read(&self.a)?, read(&self.b)?);
        if first.study != second.study {
            let sentence = format!("{} and {} are of different studies", first.study, second.study);
            return Err(CommandFailure::usage(sentence).into());
        }
        let metric = Metric::find(&self.metric).unwrap_or(&METRICS[0]);
        let found = compare(&first, &second, metric, self.threshold / 100.0);
        if !found.iter().any(|one| one.ratio.low.is_some()) {
            let why = first.not_timed().or_else(|| second.not_timed());
            let why = why.unwrap_or_else(|| {
                "they need a cell in common, with two forks that count in each".to_owned()
            });
            return Err(CommandFailure::usage(format!("the runs cannot be compared: {why}")).into());
        }
        let alone = first.cells.len() + second.cells.len() - 2 * found.len();
        let is_worse = found.iter().any(|one| one.change == CellChange::Slower);
        let object = json!({
            "study": first.study,
            "metric": metric.id,
            "unit": metric.unit,
            "threshold_percent": self.threshold,
            "verdict": if is_worse { "worse" } else { "not_worse" },
            "cells": found,
            "cells_in_one_run_only": alone,
        });
        output.result(&object, || describe(&found, metric, alone, &object))?;
        Ok(if is_worse { ExitCode::FAILURE } else { ExitCode::SUCCESS })
    }
}

fn describe(found: &[CellComparison], metric: &Metric, alone: usize, object: &Value) -> String {
    let rows = found.iter().map(|one| {
        let interval = match (one.ratio.low, one.ratio.high) {
            (Some(low), Some(high)) => format!("{low:.3} to {high:.3}"),
            _ => "a single fork".to_owned(),
        };
        let p = if one.p_min > 0.05 {
            format!("{:.3} (no less than {:.2} with so few forks)", one.p, one.p_min)
        } else {
            format!("{:.3}", one.p)
        };
        [
            one.change.word().to_owned(),
            format!("{}: {}", one.cell, one.subject),
            format!("{:.3}", one.ratio.ratio),
            interval,
            p,
            format!("{}, {}", one.forks[0], one.forks[1]),
        ]
    });
    let count = |change: CellChange| found.iter().filter(|one| one.change == change).count();
    let sums: Vec<String> = [CellChange::Slower, CellChange::Faster, CellChange::Same, CellChange::Undecided]
        .into_iter()
        .map(|change| format!("{} {}", count(change), change.word()))
        .collect();
    let alone = if alone > 0 { format!("; {alone} cells are in one run only") } else { String::new() };
    format!(
        "{}, {}; B over A\n\n{}\n\n{}: {}{alone}",
        metric.name,
        metric.unit,
        table(["verdict", "cell", "ratio", "95 % interval", "p (ranks)", "forks"], rows),
        object["verdict"].as_str().unwrap_or_default().replace('_', " "),
        sums.join(", ")
    )
}
