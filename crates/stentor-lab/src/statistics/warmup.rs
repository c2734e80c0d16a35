//! Detection of a process's warm-up.
//!
//! The rule is MSER-5 (K. P. White, *An effective truncation heuristic for bias reduction in simulation output*, Simulation 69(6), 1997) on
//! logarithms: it selects the truncation point in the first half that minimizes the standard error of the remaining mean. Cold calls are
//! never discarded; they are reported separately.

/// Samples per batch.
const BATCH: usize = 5;
/// Minimum of samples for the rule. Of fewer, chance alone makes it stop at its limit too often: with 20 to 30 in a quarter of all cases.
const SAMPLES_MIN: usize = 100;

/// The warm-up of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WarmUp {
    /// Samples at the beginning that belong to it.
    pub samples: usize,
    /// False if it does not end within the first half; `None` if there are too few samples to tell.
    pub has_settled: Option<bool>,
}

/// Returns the warm-up of samples in the order of measurement: a multiple of five, at most about half. Of fewer than 100 samples the
/// first counts as warm-up if there are several.
#[must_use]
pub fn warm_up(samples: &[f64]) -> WarmUp {
    if samples.len() < SAMPLES_MIN {
        return WarmUp { samples: usize::from(samples.len() > 1), has_settled: None };
    }
    let batch = |values: &[f64]| {
        values.iter().map(|value| value.max(f64::MIN_POSITIVE).ln()).sum::<f64>() / values.len() as f64
    };
    let batches: Vec<f64> = samples.chunks_exact(BATCH).map(batch).collect();
    let half = batches.len() / 2;
    let (mut sum, mut squares, mut best) = (0.0, 0.0, (f64::INFINITY, 0));
    for (cut, value) in batches.iter().enumerate().rev() {
        sum += value;
        squares += value * value;
        let left = (batches.len() - cut) as f64;
        let error = (squares - sum * sum / left).max(0.0) / (left * left);
        // Among equally good points the earliest is selected, because it keeps the most samples.
        if cut <= half && error <= best.0 {
            best = (error, cut);
        }
    }
    WarmUp { samples: best.1 * BATCH, has_settled: Some(best.1 < half) }
}

#[cfg(test)]
mod tests;
