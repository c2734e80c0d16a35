//! Detection of a process's warm-up.
//!
//! The rule is MSER-5 (K. P. White, *An effective truncation heuristic for bias reduction in simulation output*, Simulation 69(6), 1997) on
//! logarithms: it selects the truncation point in the first half that minimizes the standard error of the remaining mean. Cold calls are
//! never discarded; they are reported separately.

/// Samples per batch.
const BATCH: usize = 5;
/// Minimum of samples for the rule; with fewer, only the first call counts as warm-up.
const SAMPLES_MIN: usize = 4 * BATCH;

/// Returns the number of warm-up samples, in the order of measurement: a multiple of five, at most about half. Returns one if there are
/// fewer than twenty samples, and zero if there are fewer than two.
#[must_use]
pub fn warm_up(samples: &[f64]) -> usize {
    if samples.len() < SAMPLES_MIN {
        return usize::from(samples.len() > 1);
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
    best.1 * BATCH
}

#[cfg(test)]
mod tests;
