//! The power of verdicts: how often a method decides, and how often wrongly, in simulated studies whose truth is known.
//!
//! All methods judge the same studies. The seed decides the studies, so that the same call gives the same shares on every machine.

mod bounds;
mod judged;
mod looked;
mod method;
mod study;
#[cfg(test)]
mod tests;

use serde::Serialize;

use crate::claims::BAND_SHARE;
use crate::results::first_level;
use bounds::objections;
use judged::{SimulatedJudge, SimulatedResult};
use method::PreparedMethod;

pub use looked::LookedCell;
pub use method::VerdictMethod;
pub use study::{FORK_SD, SimulatedStudy};

/// The method that the simulation chose.
pub const CHOSEN: VerdictMethod = VerdictMethod::Combined;
/// Forks of each side, and with that rounds.
const FORKS: [usize; 5] = [3, 4, 6, 10, 30];
/// How many times as long the second side takes in truth.
const TRUE_RATIOS: [f64; 4] = [1.0, 1.0 + BAND_SHARE, 1.1, 1.3];
/// Standard deviations of what both sides of a round have in common.
const ROUND_SDS: [f64; 2] = [0.0, 0.05];
/// Claims of a study, for which Holm's method corrects: the first of so many needs a p of 5 % divided by them.
const CLAIMS: [usize; 2] = [1, 13];

/// The decisions of one method in studies of one kind.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PowerCell {
    /// The method.
    pub method: VerdictMethod,
    /// Claims of the study.
    pub claims: usize,
    /// Standard deviation of what both sides of a round have in common.
    pub round_sd: f64,
    /// Forks of each side.
    pub forks: usize,
    /// The true ratio of both sides.
    pub true_ratio: f64,
    /// Number of simulated studies.
    pub studies: usize,
    /// Share of the studies that the method decides.
    pub decided: f64,
    /// Share of the studies that it decides wrongly: one side counts as surely more than 5 % above the other, and is not.
    pub wrong: f64,
}

/// The shares of all methods, and their judgment.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PowerFindings {
    /// The chosen method.
    pub chosen: VerdictMethod,
    /// Seed of the studies.
    pub seed: u64,
    /// Number of simulated studies of each kind.
    pub studies: usize,
    /// The shares, a method and a kind of study each.
    pub cells: Vec<PowerCell>,
    /// The shares of runs that add rounds until their comparison is settled, by the chosen method.
    pub looked: Vec<LookedCell>,
    /// What the chosen method misses: its level, or a bound of its power.
    pub objections: Vec<String>,
    /// True without objections.
    pub ok: bool,
}

/// The decisions of one method at one level in the studies of one kind.
struct DecisionCount {
    prepared: PreparedMethod,
    claims: usize,
    decided: usize,
    wrong: usize,
}

/// Simulates `studies` studies of each kind, and reports `progress` with the number of finished kinds.
pub fn simulate(studies: usize, seed: u64, mut progress: impl FnMut(usize)) -> PowerFindings {
    let kinds = kinds();
    let mut cells = Vec::new();
    for (place, kind) in kinds.iter().enumerate() {
        cells.extend(cells_of(*kind, studies, seed.wrapping_add(place as u64)));
        progress(place + 1);
    }
    let looked = looked::simulate(studies, seed);
    let mut objections = objections(&cells, CHOSEN);
    objections.extend(bounds::objections_to_looks(&looked));
    let ok = objections.is_empty();
    PowerFindings { chosen: CHOSEN, seed, studies, cells, looked, objections, ok }
}

/// Lists the kinds of studies.
#[must_use]
pub fn kinds() -> Vec<SimulatedStudy> {
    let with_sd = |round_sd| {
        FORKS.into_iter().flat_map(move |forks| {
            TRUE_RATIOS.into_iter().map(move |true_ratio| SimulatedStudy { forks, true_ratio, round_sd })
        })
    };
    ROUND_SDS.into_iter().flat_map(with_sd).collect()
}

/// Returns the level at which the first of so many claims must be decided.
fn level(claims: usize) -> f64 {
    first_level(claims, 1)
}

fn cells_of(kind: SimulatedStudy, studies: usize, seed: u64) -> Vec<PowerCell> {
    let with_claims = |claims| {
        VerdictMethod::ALL.into_iter().map(move |method| DecisionCount {
            prepared: PreparedMethod::new(method, level(claims), kind.forks),
            claims,
            decided: 0,
            wrong: 0,
        })
    };
    let mut counts: Vec<DecisionCount> = CLAIMS.into_iter().flat_map(with_claims).collect();
    let (judge, mut chance) = (SimulatedJudge::new(), study::chance(seed));
    for _ in 0..studies {
        let result = judge.judge(kind.draw(&mut chance));
        counts.iter_mut().for_each(|count| count.add(&result, kind));
    }
    counts.iter().map(|count| count.cell(kind, studies)).collect()
}

impl DecisionCount {
    fn add(&mut self, result: &SimulatedResult, kind: SimulatedStudy) {
        let Some(first_is_below) = self.prepared.decide(result) else { return };
        self.decided += 1;
        self.wrong += usize::from(!(first_is_below && kind.is_beyond_the_band()));
    }

    fn cell(&self, kind: SimulatedStudy, studies: usize) -> PowerCell {
        let share = |count: usize| count as f64 / studies.max(1) as f64;
        PowerCell {
            method: self.prepared.method(),
            claims: self.claims,
            round_sd: kind.round_sd,
            forks: kind.forks,
            true_ratio: kind.true_ratio,
            studies,
            decided: share(self.decided),
            wrong: share(self.wrong),
        }
    }
}
