//! The evidence of rounds: how far apart two terms are, and how surely.
//!
//! A term may combine many figures. Its value without each replicate in turn tells how much it depends on that replicate (the jackknife); for a
//! single figure these dependences are the logarithms of its forks.

use super::terms::Scope;
use super::{Bench, JudgeError, JudgeStop};
use crate::claims::CONFIDENCE;
use crate::claims::expression::Term;
use crate::claims::figures::{Figure, Interval};
use crate::statistics::{Difference, Replicate, Replicates, Samples};
use std::collections::{BTreeMap, BTreeSet};

/// Replicates in common from which both sides are compared within each of them. With fewer, the degrees of freedom of the blocks are too few,
/// and the sides are compared as two groups by Welch's test. The number of rounds is planned before a study, so that its measurements have no
/// part in the choice.
const BLOCKS_FROM_COUNT: usize = 6;

/// The evidence of measurements on a comparison.
#[derive(Debug, Clone, PartialEq)]
pub struct Evidence {
    /// The left side compared with the right one.
    pub difference: Difference,
    /// The share within which both sides count as equal.
    pub band_share: f64,
    /// True if the difference is one of logarithms; false for amounts that have none.
    pub is_ratio: bool,
    /// The ratio of both sides by replicate; empty if one side is not measured, or not positive.
    pub ratios: Replicates,
}

/// A side of a comparison: its value, and its value without each replicate.
struct Side {
    whole: f64,
    without: BTreeMap<Replicate, f64>,
}

impl Evidence {
    /// Returns the probability that chance alone separates both sides this far; 0 where chance has no part.
    #[must_use]
    pub fn p(&self) -> f64 {
        if self.has_chance() { self.difference.p_beyond(self.band_share) } else { 0.0 }
    }

    /// Returns true if chance has a part in the comparison: its replicates differ.
    #[must_use]
    pub fn has_chance(&self) -> bool {
        self.difference.standard_error > 0.0
    }
}

impl Bench<'_> {
    /// Compares two terms by the replicates of their figures; `None` if they have fewer than two, or if only bounds tell how sure a figure is.
    pub(super) fn evidence(&self, terms: [&Term; 2], scope: &Scope) -> Result<Option<Evidence>, JudgeStop> {
        let [left, right] = [self.figures_of(terms[0], scope)?, self.figures_of(terms[1], scope)?];
        if left.iter().chain(&right).any(|figure| figure.has_bounds_alone()) {
            return Ok(None);
        }
        let common = in_all(left.iter().chain(&right).copied());
        let is_blocked = common.len() >= BLOCKS_FROM_COUNT;
        let within =
            |figures: &[&Figure]| match (is_blocked, figures.iter().all(|one| one.replicates.is_empty())) {
                (_, true) => BTreeSet::new(),
                (true, false) => common.clone(),
                (false, false) => in_any(figures.iter().copied()),
            };
        let left = self.side(terms[0], scope, within(&left))?;
        let right = self.side(terms[1], scope, within(&right))?;
        let are_measured = !left.without.is_empty() && !right.without.is_empty();
        let band_share = if are_measured { self.band_share } else { 0.0 };
        Ok(compare(&left, &right, is_blocked, band_share))
    }

    /// Estimates a term over the replicates that all of its figures have; `None` if a figure is missing.
    pub fn estimate(&self, term: &Term, bound: &[(String, String)]) -> Result<Option<Interval>, JudgeError> {
        match self.over_replicates(term, &Scope::of(bound)) {
            Ok(interval) => Ok(Some(interval)),
            Err(JudgeStop::Missing(_) | JudgeStop::Wrong(JudgeError::NoMatch(_))) => Ok(None),
            Err(JudgeStop::Wrong(error)) => Err(error),
        }
    }

    fn over_replicates(&self, term: &Term, scope: &Scope) -> Result<Interval, JudgeStop> {
        let common = in_all(self.figures_of(term, scope)?.into_iter());
        let values: Vec<f64> = common
            .into_iter()
            .map(|one| Ok(self.number(term, &scope.within(BTreeSet::from([one])))?.value))
            .collect::<Result<_, JudgeStop>>()?;
        let found = values.into_iter().collect::<Samples>().estimate(CONFIDENCE);
        let found = found.and_then(|one| Some(Interval { low: one.low?, value: one.mean, high: one.high? }));
        found.map_or_else(|| self.number(term, scope), Ok)
    }

    fn side(&self, term: &Term, scope: &Scope, within: BTreeSet<Replicate>) -> Result<Side, JudgeStop> {
        let mut without = BTreeMap::new();
        for replicate in &within {
            let others = within.iter().copied().filter(|other| other != replicate).collect();
            without.insert(*replicate, self.number(term, &scope.within(others))?.value);
        }
        Ok(Side { whole: self.number(term, &scope.within(within))?.value, without })
    }
}

/// Returns the replicates that all measured figures have.
fn in_all<'a>(figures: impl Iterator<Item = &'a Figure>) -> BTreeSet<Replicate> {
    let each = figures.filter(|figure| !figure.replicates.is_empty());
    let each = each.map(|figure| figure.replicates.keys().collect::<BTreeSet<_>>());
    each.reduce(|some, others| &some & &others).unwrap_or_default()
}

fn in_any<'a>(figures: impl Iterator<Item = &'a Figure>) -> BTreeSet<Replicate> {
    figures.flat_map(|figure| figure.replicates.keys()).collect()
}

fn compare(left: &Side, right: &Side, is_blocked: bool, band_share: f64) -> Option<Evidence> {
    if !(left.is_positive() && right.is_positive()) {
        return compare_amounts(left, right, is_blocked, band_share);
    }
    let [of_left, of_right] = [left.dependences(f64::ln), right.dependences(f64::ln)];
    let found = difference(&of_left, &of_right, is_blocked)?;
    let log_ratio = left.whole.ln() - right.whole.ln();
    let ratio =
        |(replicate, log): (&Replicate, &f64)| Some((*replicate, (log - of_right.get(replicate)?).exp()));
    let ratios = of_left.iter().filter_map(ratio).collect();
    Some(Evidence { difference: Difference { log_ratio, ..found }, band_share, is_ratio: true, ratios })
}

/// Compares sides that have no logarithm by their difference. Of its size, the band of the smaller amount does not count.
fn compare_amounts(left: &Side, right: &Side, is_blocked: bool, band_share: f64) -> Option<Evidence> {
    let [of_left, of_right] = [left, right].map(|side| side.dependences(|value| value));
    let found = difference(&of_left, &of_right, is_blocked)?;
    let gap = left.whole - right.whole;
    let band = band_share * left.whole.abs().min(right.whole.abs());
    let beyond = (gap.abs() - band).max(0.0).copysign(gap);
    let difference = Difference { log_ratio: beyond, ..found };
    Some(Evidence { difference, band_share: 0.0, is_ratio: false, ratios: Replicates::default() })
}

/// Compares both sides within their replicates, or as groups. A side that is a mere number has no doubt.
fn difference(
    left: &BTreeMap<Replicate, f64>,
    right: &BTreeMap<Replicate, f64>,
    is_blocked: bool,
) -> Option<Difference> {
    let values = |side: &BTreeMap<Replicate, f64>| side.values().copied().collect::<Vec<_>>();
    let number = |count: usize| vec![0.0; count];
    match (left.is_empty(), right.is_empty()) {
        (true, true) => None,
        (false, true) => Difference::of_log_differences(&values(left)),
        (true, false) => Difference::of_log_groups(&number(right.len()), &values(right)),
        (false, false) if is_blocked => {
            let pairs = left.iter().filter_map(|(replicate, value)| Some(value - right.get(replicate)?));
            Difference::of_log_differences(&pairs.collect::<Vec<_>>())
        }
        (false, false) => Difference::of_log_groups(&values(left), &values(right)),
    }
}

impl Side {
    fn is_positive(&self) -> bool {
        self.whole > 0.0 && self.without.values().all(|value| *value > 0.0)
    }

    /// Returns the dependence of the side on each of its replicates (Tukey's pseudo-values), on a scale.
    fn dependences(&self, scale: impl Fn(f64) -> f64) -> BTreeMap<Replicate, f64> {
        let count = self.without.len() as f64;
        let whole = scale(self.whole);
        let dependence = |value: f64| count * whole - (count - 1.0) * scale(value);
        self.without.iter().map(|(replicate, value)| (*replicate, dependence(*value))).collect()
    }
}
