//! Repeatable invented measurements, for tests that need many studies whose truth is known.

use crate::order::SplitMix64;

/// Normal numbers that follow from a seed.
pub(crate) struct Invented(SplitMix64);

impl Invented {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(SplitMix64::new(seed))
    }

    fn uniform(&mut self) -> f64 {
        self.0.below(1 << 53) as f64 / (1_u64 << 53) as f64
    }

    /// Returns a number of the standard normal distribution, by Box and Muller.
    pub(crate) fn normal(&mut self) -> f64 {
        (-2.0 * (1.0 - self.uniform()).ln()).sqrt() * (std::f64::consts::TAU * self.uniform()).cos()
    }
}
