//! Statistics of repeated measurements: always a median with its spread, never a single number.

mod bootstrap;
mod difference;
mod distribution;
mod factorial;
mod histogram;
mod interval;
pub(crate) mod invented;
mod ranks;
mod replicates;
mod warmup;

use serde::Serialize;

pub use bootstrap::{QuantileEstimate, quantile, reaches};
pub use difference::{DETECTED_SHARE, Difference, RoundPair, welch_p};
pub use distribution::{normal_p, student_p, student_t};
pub use factorial::{Effect, Factorial, factorial};
pub use histogram::{merged, shares};
pub use interval::{Estimate, Ratio, ratio};
pub use ranks::{RankTest, cliffs_delta, holm, ks_distance, mann_whitney};
pub use replicates::{Replicate, Replicates};
pub use warmup::{WarmUp, warm_up};

/// Repeated measurements of one quantity, in one unit.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Samples {
    /// All values, in the order of measurement.
    values: Vec<f64>,
}

/// The median of some samples and their extremes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct MedianSummary {
    /// The median.
    pub median: f64,
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
    /// Number of samples.
    pub count: usize,
}

impl Samples {
    /// Adds a measurement. NaN and infinite values are ignored.
    pub fn push(&mut self, value: f64) {
        if value.is_finite() {
            self.values.push(value);
        }
    }

    /// Returns the measurements in the order of measurement.
    #[must_use]
    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// Returns the quantile `part` (0..=1) of the samples, by linear interpolation; `None` without samples.
    #[must_use]
    pub fn quantile(&self, part: f64) -> Option<f64> {
        let mut sorted = self.values.clone();
        sorted.sort_by(f64::total_cmp);
        let place = part.clamp(0.0, 1.0) * sorted.len().checked_sub(1)? as f64;
        let (low, high) = (sorted[place.floor() as usize], sorted[place.ceil() as usize]);
        Some(low + (high - low) * place.fract())
    }

    /// Returns a summary of the samples; `None` without samples.
    #[must_use]
    pub fn summary(&self) -> Option<MedianSummary> {
        let (median, min, max) = (self.quantile(0.5)?, self.quantile(0.0)?, self.quantile(1.0)?);
        Some(MedianSummary { median, min, max, count: self.values.len() })
    }
}

impl FromIterator<f64> for Samples {
    fn from_iter<I: IntoIterator<Item = f64>>(values: I) -> Self {
        let mut samples = Self::default();
        values.into_iter().for_each(|value| samples.push(value));
        samples
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_median_of_an_even_number_lies_in_the_middle() {
        let samples: Samples = [4.0, 1.0, 3.0, 2.0].into_iter().collect();
        assert_eq!(samples.summary(), Some(MedianSummary { median: 2.5, min: 1.0, max: 4.0, count: 4 }));
    }

    #[test]
    fn nothing_is_said_of_nothing() {
        assert_eq!(Samples::default().summary(), None);
        assert_eq!([f64::NAN].into_iter().collect::<Samples>().quantile(0.5), None);
    }

    proptest! {
        #[test]
        fn quantiles_never_fall(values in prop::collection::vec(-1e9..1e9_f64, 1..50), a in 0.0..=1.0_f64, b in 0.0..=1.0_f64) {
            let samples: Samples = values.into_iter().collect();
            let (low, high) = (samples.quantile(a.min(b)), samples.quantile(a.max(b)));
            prop_assert!(low <= high);
        }
    }
}
