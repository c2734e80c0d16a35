//! A figure of ours: the mean over the forks of a cell, with its interval.

use super::MeasuredCell;
use crate::claims::figures::{Figure, FigureValue, Interval};
use crate::statistics::{Replicates, Samples};

/// Factor of the bounds around a figure of unknown spread.
const ANYTHING: f64 = 1e9;

/// Makes a figure from the values of a cell's forks or runs; `None` without any.
pub(super) fn make(
    cell: &MeasuredCell,
    experiment: &str,
    metric: &str,
    unit: &str,
    replicates: &Replicates,
    confidence: f64,
) -> Option<Figure> {
    let samples = replicates.samples();
    Some(Figure {
        source: "stentor".into(),
        experiment: experiment.to_owned(),
        subject: cell.subject.clone(),
        factors: cell.levels.clone(),
        metric: metric.to_owned(),
        stat: format!("geometric mean over {}", cell.replicates_word()),
        value: FigureValue::Number(interval(&samples, confidence)?),
        unit: unit.to_owned(),
        kind: "measured".into(),
        note: format!("{} {}", samples.values().len(), cell.replicates_word()),
        replicates: replicates.clone(),
        forks: None,
    })
}

/// Returns the interval of a figure. The spread of a single fork is unknown, so its interval is unbounded for practical purposes.
fn interval(samples: &Samples, confidence: f64) -> Option<Interval> {
    let estimate = samples.estimate(confidence)?;
    Some(Interval {
        low: estimate.low.unwrap_or(estimate.mean / ANYTHING),
        value: estimate.mean,
        high: estimate.high.unwrap_or(estimate.mean * ANYTHING),
    })
}
