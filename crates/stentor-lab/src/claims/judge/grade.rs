//! Graded verdicts: in how many cells a claim is so, and how large its ratio is over all of them.

use super::{Compared, Judgment};
use crate::claims::CONFIDENCE;
use crate::claims::figures::Interval;
use crate::statistics::{Replicate, Replicates, Samples};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// Maximum of pooled ratios: a claim that compares more pairs has no common size.
const POOLED_MAX: usize = 3;

/// The unit of a grade over several cells.
pub(crate) const CELLS: &str = "cells";

/// A verdict by degrees.
#[derive(Debug, Clone, PartialEq)]
pub struct Grade {
    /// Cells; of a claim on a single cell, its comparisons.
    pub of: usize,
    /// Those of them that point in the claim's direction.
    pub so: usize,
    /// `cells` or `comparisons`.
    pub unit: &'static str,
    /// The ratio of both sides over all cells, for each compared pair, with the rounds or runs as its replicates.
    pub pooled: Vec<Interval>,
}

impl Judgment {
    /// Grades the verdict; `None` without comparisons, and if the claim is not testable.
    #[must_use]
    pub fn grade(&self) -> Option<Grade> {
        if !self.verdict.is_tested() {
            return None;
        }
        let mut cells: BTreeMap<&str, bool> = BTreeMap::new();
        for one in &self.comparisons {
            *cells.entry(&one.cell).or_insert(true) &= one.points_so;
        }
        let (unit, each): (_, Vec<bool>) = if cells.len() > 1 {
            (CELLS, cells.into_values().collect())
        } else {
            ("comparisons", self.comparisons.iter().map(|one| one.points_so).collect())
        };
        let (of, so) = (each.len(), each.iter().filter(|is_so| **is_so).count());
        (of > 0).then(|| Grade { of, so, unit, pooled: self.pooled() })
    }

    fn pooled(&self) -> Vec<Interval> {
        let mut pairs: BTreeMap<usize, Vec<&Compared>> = BTreeMap::new();
        for one in &self.comparisons {
            pairs.entry(one.pair).or_default().push(one);
        }
        let found: Option<Vec<Interval>> = pairs.into_values().map(|cells| pooled(&cells)).collect();
        found.filter(|found| found.len() <= POOLED_MAX).unwrap_or_default()
    }
}

/// Returns the ratio over several cells: in each replicate the geometric mean over the cells, then its interval over the replicates. `None` for a
/// single cell, or if the cells have fewer than two replicates in common.
fn pooled(cells: &[&Compared]) -> Option<Interval> {
    let ratios: Vec<&Replicates> =
        cells.iter().map(|one| Some(&one.evidence.as_ref()?.ratios)).collect::<Option<_>>()?;
    let keys = ratios.iter().map(|ratios| ratios.keys().collect::<BTreeSet<Replicate>>());
    let common = keys.reduce(|some, others| &some & &others)?;
    let of_replicate = |replicate: Replicate| {
        ratios.iter().filter_map(|ratios| ratios.get(replicate)).collect::<Samples>().geometric_mean()
    };
    let found = common.into_iter().filter_map(of_replicate).collect::<Samples>().estimate(CONFIDENCE)?;
    let [low, high] = [found.low?, found.high?];
    (cells.len() > 1).then_some(Interval { low, value: found.mean, high })
}

impl fmt::Display for Grade {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} {}", self.so, self.of, self.unit)?;
        if self.pooled.is_empty() {
            return Ok(());
        }
        let ratios: Vec<String> = self.pooled.iter().map(ToString::to_string).collect();
        write!(f, "; pooled {}", ratios.join(", "))
    }
}
