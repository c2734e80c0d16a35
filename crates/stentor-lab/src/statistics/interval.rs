//! Confidence intervals by Student's distribution on logarithms.
//!
//! Rates are positive and their errors multiply, so their logarithms are nearly normal. The unit of replication is the run of a fresh
//! process, never the single push: pushes of one process share all of its errors.

use serde::Serialize;

use super::Samples;
use super::distribution::student_t;

/// A figure estimated from repeated runs, with its confidence interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Estimate {
    /// The median of the runs.
    pub median: f64,
    /// The geometric mean.
    pub mean: f64,
    /// Lower end of the interval of the mean; absent for a single run.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
    /// Number of runs.
    pub count: usize,
}

/// The ratio of two figures.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Ratio {
    /// The ratio of the geometric means.
    pub ratio: f64,
    /// Lower end of its interval; absent if a side has a single run.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
}

impl Samples {
    /// Estimates the figure behind these runs; `None` without samples or if one of them is not positive.
    #[must_use]
    pub fn estimate(&self, confidence: f64) -> Option<Estimate> {
        let degrees = self.values().len().saturating_sub(1);
        let errors = if degrees > 0 { student_t(confidence, degrees as f64) } else { 0.0 };
        self.estimate_within(errors)
    }

    /// Returns the geometric mean; `None` without samples or if one of them is not positive.
    #[must_use]
    pub fn geometric_mean(&self) -> Option<f64> {
        Logs::of(self).map(|logs| logs.mean.exp())
    }

    /// Estimates the figure with an interval of this many standard errors to each side, which many samples of one size can share.
    pub(crate) fn estimate_within(&self, standard_errors: f64) -> Option<Estimate> {
        let logs = Logs::of(self)?;
        let half = logs.variance.map(|variance| standard_errors * (variance / logs.count).sqrt());
        Some(Estimate {
            median: self.quantile(0.5)?,
            mean: logs.mean.exp(),
            low: half.map(|half| (logs.mean - half).exp()),
            high: half.map(|half| (logs.mean + half).exp()),
            count: self.values().len(),
        })
    }
}

/// Compares two figures by Welch's method on logarithms; `None` without samples or if one of them is not positive.
#[must_use]
pub fn ratio(above: &Samples, below: &Samples, confidence: f64) -> Option<Ratio> {
    let (above, below) = (Logs::of(above)?, Logs::of(below)?);
    let difference = above.mean - below.mean;
    let half = welch(&above, &below, confidence);
    Some(Ratio {
        ratio: difference.exp(),
        low: half.map(|half| (difference - half).exp()),
        high: half.map(|half| (difference + half).exp()),
    })
}

/// Returns the half-width of the interval of a difference; `None` if a side has a single sample.
fn welch(above: &Logs, below: &Logs, confidence: f64) -> Option<f64> {
    let (variance, degrees) = welch_parts(above, below)?;
    Some(if variance > 0.0 { student_t(confidence, degrees) * variance.sqrt() } else { 0.0 })
}

/// Returns the variance of a difference and its degrees of freedom.
pub(super) fn welch_parts(above: &Logs, below: &Logs) -> Option<(f64, f64)> {
    let parts = [above.variance? / above.count, below.variance? / below.count];
    let variance = parts[0] + parts[1];
    let spread = parts[0].powi(2) / (above.count - 1.0) + parts[1].powi(2) / (below.count - 1.0);
    Some((variance, if spread > 0.0 { variance * variance / spread } else { 1.0 }))
}

/// Mean and variance of logarithms.
pub(super) struct Logs {
    /// Mean.
    pub(super) mean: f64,
    /// Variance; absent for a single sample.
    pub(super) variance: Option<f64>,
    /// Number of samples.
    pub(super) count: f64,
}

impl Logs {
    /// Summarizes samples; `None` without any, or if one is not positive.
    pub(super) fn of(samples: &Samples) -> Option<Self> {
        let values = samples.values();
        if values.is_empty() || values.iter().any(|value| *value <= 0.0) {
            return None;
        }
        Self::of_logs(&values.iter().map(|value| value.ln()).collect::<Vec<_>>())
    }

    /// Summarizes logarithms; `None` without any.
    pub(super) fn of_logs(logs: &[f64]) -> Option<Self> {
        if logs.is_empty() {
            return None;
        }
        let count = logs.len() as f64;
        let mean = logs.iter().sum::<f64>() / count;
        let squares: f64 = logs.iter().map(|log| (log - mean).powi(2)).sum();
        let variance = (logs.len() > 1).then(|| squares / (count - 1.0));
        Some(Self { mean, variance, count })
    }
}

#[cfg(test)]
mod tests;
