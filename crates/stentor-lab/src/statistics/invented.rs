//! Reproducible artificial measurements, for tests and simulations that need many studies with known parameters.

use crate::order::SplitMix64;

/// Normally distributed numbers from a seed.
pub(crate) struct Invented(SplitMix64);

impl Invented {
    /// Starts from a seed.
    pub(crate) const fn new(seed: u64) -> Self {
        Self(SplitMix64::new(seed))
    }

    fn uniform(&mut self) -> f64 {
        self.0.below(1 << 53) as f64 / (1_u64 << 53) as f64
    }

    /// Returns a standard normal number, by Box and Muller's method.
    pub(crate) fn normal(&mut self) -> f64 {
        (-2.0 * (1.0 - self.uniform()).ln()).sqrt() * (std::f64::consts::TAU * self.uniform()).cos()
    }
}
