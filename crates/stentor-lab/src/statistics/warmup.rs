//! Where the warm-up of a process ends.
//!
//! The rule is MSER-5 (K. P. White, *An effective truncation heuristic for bias reduction in simulation output*, Simulation
//! 69(6), 1997) on logarithms: of all places in the first half, that one behind which the mean is known best. Cold calls are
//! never thrown away; they are told apart.

/// Samples that are looked at together.
const BATCH: usize = 5;
/// With fewer samples the rule sees nothing; the first call alone counts as cold then.
const SAMPLES_MIN: usize = 4 * BATCH;

/// Counts the samples, in the order in which they were taken, that belong to the warm-up: a multiple of five, at most about
/// half; the first alone when there are fewer than twenty, and none when there are fewer than two.
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
        // Of places that are equally good the earliest is taken: it keeps the most.
        if cut <= half && error <= best.0 {
            best = (error, cut);
        }
    }
    best.1 * BATCH
}

#[cfg(test)]
mod tests;
