//! Simulated studies: rounds of two sides, with a known truth.

use crate::claims::BAND_SHARE;
use crate::statistics::RoundPair;
use crate::statistics::invented::Invented;

/// Standard deviation between the forks of a side, of the logarithms of their times.
pub const FORK_SD: f64 = 0.04;
/// Time of the first side, in ms; no method depends on it.
const TIME_MS: f64 = 10.0;

/// A kind of study.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SimulatedStudy {
    /// Forks of each side, one of each in a round.
    pub forks: usize,
    /// How many times as long the second side takes; at least 1.
    pub true_ratio: f64,
    /// Standard deviation of what both sides of a round have in common, of logarithms.
    pub round_sd: f64,
}

/// Starts the chance of studies from a seed.
pub(super) const fn chance(seed: u64) -> Invented {
    Invented::new(seed)
}

impl SimulatedStudy {
    /// Draws the times of all forks. Deviations are normal on logarithms.
    pub(super) fn draw(&self, chance: &mut Invented) -> Vec<RoundPair> {
        let round = |_| {
            let common = self.round_sd * chance.normal();
            [1.0, self.true_ratio].map(|ratio| TIME_MS * ratio * (common + FORK_SD * chance.normal()).exp())
        };
        (0..self.forks).map(round).collect()
    }

    /// Returns true if the second side is in truth more than the band above the first.
    pub(super) fn is_beyond_the_band(&self) -> bool {
        self.true_ratio > 1.0 + BAND_SHARE
    }
}
