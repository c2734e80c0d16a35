//! Tests of the difference of two figures on logarithms.
//!
//! Welch's method takes both sides as groups that have nothing in common. The other two know that a round measures both sides one after the
//! other: whatever slows a round down as a whole is in both, and leaves their difference alone.

use super::Samples;
use super::distribution::{student_p, student_t};
use super::interval::{Logs, welch_parts};

/// The largest standard error, on logarithms, that equal numbers have by rounding alone.
const ROUNDING: f64 = 1e-12;
/// Share of repeated studies that would decide a difference which counts as detectable.
pub const DETECTED_SHARE: f64 = 0.8;

/// The difference of the logarithms of two figures, and how well it is known.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Difference {
    /// The logarithm of the ratio of the geometric means; of amounts that have no logarithm, their difference.
    pub log_ratio: f64,
    /// Its standard error.
    pub standard_error: f64,
    /// The degrees of freedom of that error.
    pub degrees: f64,
}

/// The measurements of two figures in one round, each from a fork of its own.
pub type RoundPair = [f64; 2];

impl Difference {
    /// Compares two groups of forks by Welch's method; `None` if a side has a single sample, or a sample that is not positive.
    #[must_use]
    pub fn of_groups(above: &Samples, below: &Samples) -> Option<Self> {
        Self::between(&Logs::of(above)?, &Logs::of(below)?)
    }

    /// Compares the first figure of each round with the second, with the rounds as fixed blocks: Student's test of the differences. `None`
    /// for a single round, or with a measurement that is not positive.
    #[must_use]
    pub fn of_rounds(rounds: &[RoundPair]) -> Option<Self> {
        let ratios: Samples = rounds.iter().map(|[above, below]| above / below).collect();
        Self::from_zero(&Logs::of(&ratios).filter(|_| are_positive(rounds))?)
    }

    /// Compares two groups of logarithms by Welch's method; `None` if a side has a single one.
    #[must_use]
    pub fn of_log_groups(above: &[f64], below: &[f64]) -> Option<Self> {
        Self::between(&Logs::of_logs(above)?, &Logs::of_logs(below)?)
    }

    /// Compares the differences of logarithms within rounds with zero by Student's test; `None` for a single one.
    #[must_use]
    pub fn of_log_differences(differences: &[f64]) -> Option<Self> {
        Self::from_zero(&Logs::of_logs(differences)?)
    }

    fn between(above: &Logs, below: &Logs) -> Option<Self> {
        let (variance, degrees) = welch_parts(above, below)?;
        Some(Self {
            log_ratio: above.mean - below.mean,
            standard_error: without_rounding(variance.sqrt()),
            degrees,
        })
    }

    fn from_zero(logs: &Logs) -> Option<Self> {
        Some(Self {
            log_ratio: logs.mean,
            standard_error: without_rounding((logs.variance? / logs.count).sqrt()),
            degrees: logs.count - 1.0,
        })
    }

    /// Compares both figures by a mixed model, with the side as fixed and the round as random effect, fitted by restricted maximum likelihood.
    /// For complete rounds the fit has a closed form: if rounds differ less than chance makes them differ, their variance is zero, and both
    /// sides are two groups of a common variance. `None` as for [`Self::of_rounds`].
    #[must_use]
    pub fn of_mixed_model(rounds: &[RoundPair]) -> Option<Self> {
        let by_rounds = Self::of_rounds(rounds)?;
        let products: Samples = rounds.iter().map(|[above, below]| above * below).collect();
        let products = Logs::of(&products)?;
        // The variance of a single fork, from the sums and from the differences of two.
        let [between, within] =
            [products.variance? / 2.0, by_rounds.standard_error.powi(2) * products.count / 2.0];
        if between > within {
            return Some(by_rounds);
        }
        let variance = f64::midpoint(between, within);
        Some(Self {
            standard_error: (2.0 * variance / products.count).sqrt(),
            degrees: 2.0 * by_rounds.degrees,
            ..by_rounds
        })
    }

    /// Returns the probability, two-sided, that chance alone separates two figures at least this far, if the larger one is in truth larger by
    /// the share `band_share`.
    #[must_use]
    pub fn p_beyond(&self, band_share: f64) -> f64 {
        self.p_at(self.log_ratio.abs() - band_share.ln_1p())
    }

    /// Returns the probability, two-sided, that chance alone brings two figures at least this close together, if one is in truth larger by the
    /// share `effect_share`.
    #[must_use]
    pub fn p_within(&self, effect_share: f64) -> f64 {
        self.p_at(effect_share.ln_1p() - self.log_ratio.abs())
    }

    fn p_at(&self, distance: f64) -> f64 {
        if distance <= 0.0 {
            1.0
        } else if self.standard_error > 0.0 {
            student_p(distance / self.standard_error, self.degrees)
        } else {
            0.0
        }
    }

    /// Returns the share by which one figure must be larger in truth, so that [`DETECTED_SHARE`] of repeated studies decide that it is more
    /// than the band larger, at a significance level of `level`.
    #[must_use]
    pub fn detectable_share(&self, level: f64, band_share: f64) -> f64 {
        // A one-sided quantile is the two-sided one of twice the rest.
        let [to_be_sure, to_be_detected] = [1.0 - level, 2.0 * DETECTED_SHARE - 1.0]
            .map(|confidence| student_t(confidence, self.degrees) * self.standard_error);
        (band_share.ln_1p() + to_be_sure + to_be_detected).exp_m1()
    }

    /// Returns the largest share by which one figure may be larger in truth: more is excluded, at a significance level of `level`.
    #[must_use]
    pub fn possible_share(&self, level: f64) -> f64 {
        (self.log_ratio.abs() + student_t(1.0 - level, self.degrees) * self.standard_error).exp_m1()
    }
}

/// Returns a standard error, or zero if it is no more than the rounding of equal numbers.
const fn without_rounding(standard_error: f64) -> f64 {
    if standard_error < ROUNDING { 0.0 } else { standard_error }
}

/// Returns the probability that chance alone separates two figures at least this far, by Welch's test on logarithms; `None` if a side has a
/// single sample, or a sample that is not positive.
#[must_use]
pub fn welch_p(above: &Samples, below: &Samples) -> Option<f64> {
    Difference::of_groups(above, below).map(|difference| difference.p_beyond(0.0))
}

fn are_positive(rounds: &[RoundPair]) -> bool {
    rounds.iter().flatten().all(|value| value.is_finite() && *value > 0.0)
}

#[cfg(test)]
mod tests;
