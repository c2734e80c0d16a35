//! Intervals of quantiles by bootstrap: forks are resampled first, then the samples of each drawn fork.
//!
//! Samples of one process are correlated, so that resampling all of them alike would make intervals far too narrow. The seed is fixed: the
//! same samples always give the same interval.

use serde::Serialize;

use super::Samples;
use crate::order::SplitMix64;

/// Number of resamples.
const ROUNDS: usize = 500;
/// The fixed seed, so that the same samples always give the same interval.
const SEED: u64 = 2012;

/// A quantile with its confidence interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct QuantileEstimate {
    /// The quantile of all samples pooled.
    pub value: f64,
    /// Lower end of its interval; absent for a single fork.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
}

/// Estimates the quantile `part` of the samples, with a confidence interval of level `confidence`; `None` without samples.
#[must_use]
pub fn quantile(forks: &[Samples], part: f64, confidence: f64) -> Option<QuantileEstimate> {
    let forks: Vec<&[f64]> = forks.iter().map(Samples::values).filter(|values| !values.is_empty()).collect();
    let value = place(&mut forks.concat(), part)?;
    if forks.len() < 2 {
        return Some(QuantileEstimate { value, low: None, high: None });
    }
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
    let rest = (1.0 - confidence) / 2.0;
    Some(QuantileEstimate { value, low: rounds.quantile(rest), high: rounds.quantile(1.0 - rest) })
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
