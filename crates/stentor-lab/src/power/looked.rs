//! Simulated runs that add rounds until their comparison is settled.

use serde::Serialize;

use super::judged::{SimulatedJudge, SimulatedResult};
use super::study::{self, SimulatedStudy};
use super::{CLAIMS, ROUND_SDS, TRUE_RATIOS};
use crate::looks::Looks;
use crate::results::first_level;

/// The most rounds of a simulated run: the default of `lab run`.
const ROUNDS_MAX: u32 = 30;
/// The share whose exclusion settles a comparison: the default of `lab run`.
const EFFECT_SHARE: f64 = 0.1;
/// Distance of the seeds of these studies from those with fixed rounds.
const SEED_OFFSET: u64 = 1 << 32;

/// The decisions of runs of one kind.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LookedCell {
    /// Claims of the study.
    pub claims: usize,
    /// Standard deviation of what both sides of a round have in common.
    pub round_sd: f64,
    /// The true ratio of both sides.
    pub true_ratio: f64,
    /// Number of simulated runs.
    pub studies: usize,
    /// Share of the runs that are decided.
    pub decided: f64,
    /// Share of the runs that are decided wrongly.
    pub wrong: f64,
    /// Share of the runs that exclude a difference of 10 %, without a decision.
    pub excluded: f64,
    /// Share of the runs that exclude it although it is there.
    pub excluded_wrongly: f64,
    /// Mean number of rounds.
    pub rounds_mean: f64,
}

/// The counts behind a cell.
#[derive(Default)]
struct RunCounts {
    decided: usize,
    wrong: usize,
    excluded: usize,
    rounds: usize,
}

/// The looks at one simulated run: its results after each planned round.
struct SimulatedRun(Vec<SimulatedResult>);

/// Simulates runs of each kind.
pub(super) fn simulate(studies: usize, seed: u64) -> Vec<LookedCell> {
    let kinds = ROUND_SDS.into_iter().flat_map(|round_sd| {
        let forks = ROUNDS_MAX as usize;
        TRUE_RATIOS.into_iter().map(move |true_ratio| SimulatedStudy { forks, true_ratio, round_sd })
    });
    let seeds = seed.wrapping_add(SEED_OFFSET)..;
    kinds.zip(seeds).flat_map(|(kind, seed)| cells_of(kind, studies, seed)).collect()
}

fn cells_of(kind: SimulatedStudy, studies: usize, seed: u64) -> Vec<LookedCell> {
    let looks = Looks::until(ROUNDS_MAX, EFFECT_SHARE);
    let (judge, mut chance) = (SimulatedJudge::new(), study::chance(seed));
    let mut counts = CLAIMS.map(|claims| (claims, RunCounts::default()));
    for _ in 0..studies {
        let rounds = kind.draw(&mut chance);
        let at = |look: &u32| judge.judge(rounds[..*look as usize].to_vec());
        let run = SimulatedRun(looks.rounds().iter().map(at).collect());
        counts
            .iter_mut()
            .for_each(|(claims, counts)| counts.add(&run, first_level(*claims, looks.count()), kind));
    }
    counts.iter().map(|(claims, counts)| counts.cell(*claims, kind, studies)).collect()
}

impl RunCounts {
    /// Ends a run at the first look that finds its comparison settled, or at the last one, and counts its verdict.
    fn add(&mut self, run: &SimulatedRun, level: f64, kind: SimulatedStudy) {
        let is_settled = |result: &&SimulatedResult| {
            result.compared.as_ref().is_some_and(|compared| compared.is_settled(level, EFFECT_SHARE))
        };
        let Some(end) = run.0.iter().find(is_settled).or_else(|| run.0.last()) else { return };
        self.rounds += end.rounds.len();
        let Some(evidence) = end.evidence() else { return };
        if evidence.p() <= level {
            let first_is_below = evidence.difference.log_ratio < 0.0;
            self.decided += 1;
            self.wrong += usize::from(!(first_is_below && kind.is_beyond_the_band()));
        } else if evidence.difference.p_within(EFFECT_SHARE) <= level {
            self.excluded += 1;
        }
    }

    fn cell(&self, claims: usize, kind: SimulatedStudy, studies: usize) -> LookedCell {
        let share = |count: usize| count as f64 / studies.max(1) as f64;
        let is_there = kind.true_ratio >= 1.0 + EFFECT_SHARE;
        LookedCell {
            claims,
            round_sd: kind.round_sd,
            true_ratio: kind.true_ratio,
            studies,
            decided: share(self.decided),
            wrong: share(self.wrong),
            excluded: share(self.excluded),
            excluded_wrongly: if is_there { share(self.excluded) } else { 0.0 },
            rounds_mean: share(self.rounds),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Decides wrongly how often, at the edge of the band, if every look has the whole error rate to itself.
    fn wrong_without_sharing(studies: usize) -> f64 {
        let kind = SimulatedStudy { forks: ROUNDS_MAX as usize, true_ratio: 1.05, round_sd: 0.0 };
        let looks = Looks::until(ROUNDS_MAX, EFFECT_SHARE);
        let (judge, mut chance) = (SimulatedJudge::new(), study::chance(1));
        let mut counts = RunCounts::default();
        for _ in 0..studies {
            let rounds = kind.draw(&mut chance);
            let at = |look: &u32| judge.judge(rounds[..*look as usize].to_vec());
            let run = SimulatedRun(looks.rounds().iter().map(at).collect());
            counts.add(&run, first_level(1, 1), kind);
        }
        counts.wrong as f64 / studies as f64
    }

    #[test]
    fn looks_that_do_not_share_the_error_rate_are_wrong_more_often_than_it_allows() {
        let wrong = wrong_without_sharing(1500);
        assert!(wrong > 0.04, "the size of one side is 0.025: {wrong}");
    }

    #[test]
    fn a_large_difference_ends_a_run_at_its_first_look_and_a_small_one_goes_on() {
        let at = |true_ratio| {
            let kind = SimulatedStudy { forks: ROUNDS_MAX as usize, true_ratio, round_sd: 0.05 };
            cells_of(kind, 100, 7).remove(0)
        };
        let (large, small) = (at(1.5), at(1.08));
        assert!(large.rounds_mean < 7.0 && large.decided > 0.99, "{large:?}");
        assert!(small.rounds_mean > 15.0, "{small:?}");
    }
}
