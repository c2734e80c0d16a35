//! The methods that can decide which of two sides takes less time, all with the same band in which sides count as equal.
//!
//! The chosen one is not here: its decisions are those of the judge of claims, over the figures of a simulated study.

use std::fmt;

use serde::Serialize;

use crate::claims::BAND_SHARE;
use crate::claims::figures::Interval;
use crate::claims::judge::below;
use crate::statistics::{Difference, RoundPair, Samples, student_t};

use super::judged::SimulatedResult;

/// The levels of [`VerdictMethod::Intervals`], in descending order.
const LEVELS: [f64; 13] = [0.05, 0.03, 0.02, 0.01, 0.006, 0.004, 0.003, 0.002, 0.001, 5e-4, 2e-4, 1e-4, 1e-5];

/// A method of verdicts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum VerdictMethod {
    /// An interval for each side, the interval of their difference recovered from both (MOVER), and a ladder of levels: the method for files
    /// of figures, which have no rounds.
    Intervals,
    /// Welch's test of two groups.
    Welch,
    /// A mixed model, with the round as random effect.
    Mixed,
    /// Rounds as fixed blocks: Student's test of the differences within rounds.
    Rounds,
    /// Welch's test of few rounds, rounds as fixed blocks of more: the method of verdicts on claims.
    Combined,
}

/// A method with its level, ready for studies of one size.
pub(super) struct PreparedMethod {
    method: VerdictMethod,
    level: f64,
    /// Standard errors from an estimate to each end of its interval.
    standard_errors: f64,
}

impl VerdictMethod {
    /// All methods, in the order of tables.
    pub const ALL: [Self; 5] = [Self::Intervals, Self::Welch, Self::Mixed, Self::Rounds, Self::Combined];

    /// Returns the word for display.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Intervals => "intervals",
            Self::Welch => "welch",
            Self::Mixed => "mixed",
            Self::Rounds => "rounds",
            Self::Combined => "combined",
        }
    }
}

impl fmt::Display for VerdictMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

impl PreparedMethod {
    /// Prepares a method for studies with so many forks of each side, of which a share of at most `level` may be decided wrongly.
    pub(super) fn new(method: VerdictMethod, level: f64, forks: usize) -> Self {
        let degrees = forks.saturating_sub(1) as f64;
        Self { method, level, standard_errors: student_t(1.0 - rung(level), degrees) }
    }

    pub(super) const fn method(&self) -> VerdictMethod {
        self.method
    }

    /// Returns true if the first side is surely more than the band below the second, false if the second is below the first, and `None` if
    /// the study leaves it open.
    pub(super) fn decide(&self, study: &SimulatedResult) -> Option<bool> {
        let rounds = &study.rounds;
        let (p, log_ratio) = match self.method {
            VerdictMethod::Intervals => return self.by_intervals(rounds),
            VerdictMethod::Combined => study.evidence().map(|one| (one.p(), one.difference.log_ratio))?,
            VerdictMethod::Welch => beyond(Difference::of_groups(&side(rounds, 0), &side(rounds, 1))?),
            VerdictMethod::Mixed => beyond(Difference::of_mixed_model(rounds)?),
            VerdictMethod::Rounds => beyond(Difference::of_rounds(rounds)?),
        };
        (p <= self.level).then_some(log_ratio < 0.0)
    }

    fn by_intervals(&self, rounds: &[RoundPair]) -> Option<bool> {
        let interval = |place| {
            let estimate = side(rounds, place).estimate_within(self.standard_errors)?;
            Some(Interval { low: estimate.low?, value: estimate.mean, high: estimate.high? })
        };
        below(interval(0)?, interval(1)?, BAND_SHARE)
    }
}

fn beyond(difference: Difference) -> (f64, f64) {
    (difference.p_beyond(BAND_SHARE), difference.log_ratio)
}

fn side(rounds: &[RoundPair], place: usize) -> Samples {
    rounds.iter().map(|round| round[place]).collect()
}

/// Returns the first level of the ladder that is no higher than `level`.
fn rung(level: f64) -> f64 {
    LEVELS.into_iter().find(|rung| *rung <= level).unwrap_or(level)
}
