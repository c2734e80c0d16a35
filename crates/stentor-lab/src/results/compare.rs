//! Comparison of two runs, cell by cell: faster, slower, the same, or undecided.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{CONFIDENCE, MeasuredCell, Metric, Results};
use crate::statistics::{Ratio, Samples, cliffs_delta, holm, ks_distance, mann_whitney, ratio};
use crate::word::words;

words! {
    /// The result for a cell.
    #[derive(PartialOrd, Ord)]
    pub enum CellChange {
        /// The whole interval lies above the band.
        Slower = "slower",
        /// The interval exceeds the band on one or both sides.
        Undecided = "undecided",
        /// The whole interval lies within the band.
        Same = "same",
        /// The whole interval lies below the band.
        Faster = "faster",
    }
}

impl CellChange {
    /// Classifies an interval by a band of `threshold` (a share) around 1.
    fn of(found: Ratio, threshold: f64) -> Self {
        let band = (1.0 / (1.0 + threshold), 1.0 + threshold);
        match (found.low, found.high) {
            (Some(low), _) if low > band.1 => Self::Slower,
            (_, Some(high)) if high < band.0 => Self::Faster,
            (Some(low), Some(high)) if low >= band.0 && high <= band.1 => Self::Same,
            _ => Self::Undecided,
        }
    }
}

/// One cell in both runs.
#[derive(Debug, Clone, Serialize)]
pub struct CellComparison {
    /// Experiment, variant and levels.
    pub cell: String,
    /// The subject.
    pub subject: String,
    /// The metric's id.
    pub metric: &'static str,
    /// Its unit.
    pub unit: &'static str,
    /// Geometric mean in the first run.
    pub a: f64,
    /// Geometric mean in the second.
    pub b: f64,
    /// Forks in each.
    pub forks: [usize; 2],
    /// The second run over the first, of geometric means over forks.
    #[serde(flatten)]
    pub ratio: Ratio,
    /// The second run over the first, of medians over forks.
    pub ratio_of_medians: f64,
    /// The p-value of the Mann-Whitney test over forks, with Holm's correction over all cells.
    pub p: f64,
    /// The same without the correction.
    pub p_alone: f64,
    /// The smallest possible p-value with this number of forks.
    pub p_min: f64,
    /// Share of pairs in which the second is larger minus the share in which it is smaller.
    pub cliffs_delta: f64,
    /// Difference of the forks' spread around their own median, 0 to 1: the Kolmogorov-Smirnov distance.
    pub spread_distance: f64,
    /// The classification.
    pub change: CellChange,
}

/// Compares the cells that both runs have; figures within `threshold` (a share) count as the same.
#[must_use]
pub fn compare(first: &Results, second: &Results, metric: &Metric, threshold: f64) -> Vec<CellComparison> {
    let others: BTreeMap<String, &MeasuredCell> = second.cells.iter().map(|cell| (key(cell), cell)).collect();
    let pairs = first.cells.iter().filter_map(|cell| Some((cell, *others.get(&key(cell))?)));
    let mut found: Vec<CellComparison> =
        pairs.filter_map(|(one, other)| CellComparison::of(one, other, metric, threshold)).collect();
    let corrected = holm(&found.iter().map(|one| one.p_alone).collect::<Vec<_>>());
    found.iter_mut().zip(corrected).for_each(|(one, p)| one.p = p);
    found.sort_by_key(|one| one.change);
    found
}

impl CellComparison {
    fn of(first: &MeasuredCell, second: &MeasuredCell, metric: &Metric, threshold: f64) -> Option<Self> {
        let (a, b): (Samples, Samples) = (first.samples(metric), second.samples(metric));
        let found = ratio(&b, &a, CONFIDENCE)?;
        let ranks = mann_whitney(b.values(), a.values())?;
        Some(Self {
            cell: first.place(),
            subject: first.name.clone(),
            metric: metric.id,
            unit: metric.unit,
            a: a.estimate(CONFIDENCE)?.mean,
            b: b.estimate(CONFIDENCE)?.mean,
            forks: [a.values().len(), b.values().len()],
            ratio: found,
            ratio_of_medians: b.quantile(0.5)? / a.quantile(0.5)?,
            p: ranks.p,
            p_alone: ranks.p,
            p_min: ranks.p_min,
            cliffs_delta: cliffs_delta(b.values(), a.values())?,
            spread_distance: ks_distance(&around_median(&b)?, &around_median(&a)?)?,
            change: CellChange::of(found, threshold),
        })
    }
}

/// Returns each value divided by the median.
fn around_median(samples: &Samples) -> Option<Vec<f64>> {
    let median = samples.quantile(0.5)?;
    Some(samples.values().iter().map(|value| value / median).collect())
}

/// Returns the key by which cells of both runs are matched; versions may differ, because they are the object of the comparison.
fn key(cell: &MeasuredCell) -> String {
    cell.identity().join("|")
}
