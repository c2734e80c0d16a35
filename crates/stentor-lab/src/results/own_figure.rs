//! A figure of ours: a mean over the forks of a cell, with the interval around it.

use super::MeasuredCell;
use crate::claims::figures::{Figure, FigureValue, Interval};
use crate::statistics::Samples;

/// How many times more or less a figure may be whose spread nobody knows.
const ANYTHING: f64 = 1e9;

/// Makes a figure of what the forks of a cell have; none without samples.
pub(super) fn make(
    cell: &MeasuredCell,
    experiment: &str,
    metric: &str,
    unit: &str,
    samples: &Samples,
    confidence: f64,
) -> Option<Figure> {
    Some(Figure {
        source: "stentor".into(),
        experiment: experiment.to_owned(),
        subject: cell.subject.clone(),
        factors: cell.levels.clone(),
        metric: metric.to_owned(),
        stat: "geometric mean over forks".into(),
        value: FigureValue::Number(interval(samples, confidence)?),
        unit: unit.to_owned(),
        kind: "measured".into(),
        note: format!("{} forks", samples.values().len()),
    })
}

/// A single fork says nothing of how sure its figure is: anything may be.
fn interval(samples: &Samples, confidence: f64) -> Option<Interval> {
    let estimate = samples.estimate(confidence)?;
    Some(Interval {
        low: estimate.low.unwrap_or(estimate.mean / ANYTHING),
        value: estimate.mean,
        high: estimate.high.unwrap_or(estimate.mean * ANYTHING),
    })
}
