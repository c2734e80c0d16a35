//! Intervals of quantiles by bootstrap: forks are resampled first, then the samples of each drawn fork.
//!
//! Samples of one process are correlated, so that resampling all of them alike would make intervals far too narrow. Resampled forks differ less
//! than forks of repeated studies; the ends of the interval are moved outwards by what Student's distribution asks for their number (T.
//! Hesterberg, *What Teachers Should Know About the Bootstrap*, The American Statistician 69(4), 2015). The seed is fixed: the same samples
//! always give the same interval.

use serde::Serialize;

use super::Samples;
use super::distribution::{normal_p, student_t};
use super::interval::Logs;
use crate::order::SplitMix64;

/// Number of resamples.
const ROUNDS: usize = 500;
/// The fixed seed, so that the same samples always give the same interval.
const SEED: u64 = 2012;
/// Least forks of a quantile with an interval.
const FORKS_MIN: usize = 10;
/// Least samples on the shorter side of a quantile.
const BEYOND_MIN: f64 = 10.0;
/// Most spread between forks, as a share of the spread within them. Forks that differ more decide a quantile of the tail among a few of them.
const SPREAD_SHARE_MAX: f64 = 0.5;

/// A quantile with its confidence interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct QuantileEstimate {
    /// The quantile of all samples pooled.
    pub value: f64,
    /// Lower end of its interval.
    pub low: f64,
    /// Upper end.
    pub high: f64,
}

/// Returns true if so many samples reach far enough beyond the quantile `part` to estimate it.
#[must_use]
pub fn reaches(samples: u64, part: f64) -> bool {
    // A product such as 200 * (1 - 0.95) is a little below 10.
    samples as f64 * part.min(1.0 - part) > BEYOND_MIN - 1e-6
}

/// Estimates the quantile `part` of the samples, with a confidence interval of level `confidence`. `None` where simulations do not show that at
/// least nine of ten such intervals of 95 % hold the truth: with few forks, few samples beyond the quantile, or forks that differ much.
#[must_use]
pub fn quantile(forks: &[Samples], part: f64, confidence: f64) -> Option<QuantileEstimate> {
    let forks: Vec<&[f64]> = forks.iter().map(Samples::values).filter(|values| !values.is_empty()).collect();
    let samples = forks.iter().map(|fork| fork.len() as u64).sum();
    let is_shown = forks.len() >= FORKS_MIN && reaches(samples, part) && are_alike(&forks);
    if is_shown { resampled(&forks, part, confidence) } else { None }
}

/// Returns true if forks differ little, compared with the samples within them.
fn are_alike(forks: &[&[f64]]) -> bool {
    let each: Option<Vec<Logs>> =
        forks.iter().map(|fork| Logs::of(&fork.iter().copied().collect())).collect();
    let Some(each) = each else { return false };
    let between = Logs::of_logs(&each.iter().map(|fork| fork.mean).collect::<Vec<_>>());
    let between = between.and_then(|between| between.variance).unwrap_or_default();
    let within = each.iter().filter_map(|fork| fork.variance).sum::<f64>() / each.len() as f64;
    between <= SPREAD_SHARE_MAX.powi(2) * within
}

fn resampled(forks: &[&[f64]], part: f64, confidence: f64) -> Option<QuantileEstimate> {
    let value = place(&mut forks.concat(), part)?;
    let mut chance = SplitMix64::new(SEED);
    let mut drawn = Vec::new();
    let rounds = (0..ROUNDS).filter_map(|_| {
        drawn.clear();
        for _ in 0..forks.len() {
            let fork = forks[chance.below(forks.len() as u64) as usize];
            drawn.extend((0..fork.len()).map(|_| fork[chance.below(fork.len() as u64) as usize]));
        }
        place(&mut drawn, part)
    });
    let rounds: Samples = rounds.collect();
    let rest = rest(forks.len(), confidence);
    Some(QuantileEstimate { value, low: rounds.quantile(rest)?, high: rounds.quantile(1.0 - rest)? })
}

/// Returns the share of resamples beyond each end of the interval.
fn rest(forks: usize, confidence: f64) -> f64 {
    let count = forks as f64;
    let errors = student_t(confidence, count - 1.0) * (count / (count - 1.0)).sqrt();
    normal_p(errors) / 2.0
}

/// Returns a quantile by the nearest rank; reorders the values.
fn place(values: &mut [f64], part: f64) -> Option<f64> {
    let last = values.len().checked_sub(1)?;
    let place = (part.clamp(0.0, 1.0) * last as f64).round() as usize;
    let (_, value, _) = values.select_nth_unstable_by(place, f64::total_cmp);
    Some(*value)
}

#[cfg(test)]
mod tests;
