//! Simulated studies before the judge of claims.

use std::collections::BTreeMap;

use crate::claims::BAND_SHARE;
use crate::claims::expression::ClaimExpression;
use crate::claims::figures::{Figure, FigureValue, Figures, Interval};
use crate::claims::judge::{Bench, Compared, Evidence};
use crate::statistics::{Replicate, Replicates, RoundPair, Samples};

/// The claim of every simulated study, as a check.
const CHECK: &str = "time[subject=first] < time[subject=second]";

/// The judge, with the claim of the simulated studies.
pub(super) struct SimulatedJudge(Vec<ClaimExpression>);

/// The times of a simulated study, and what the judge makes of them.
pub(super) struct SimulatedResult {
    /// The times of both sides by round.
    pub(super) rounds: Vec<RoundPair>,
    /// The claim's only comparison, as the judge makes it.
    pub(super) compared: Option<Compared>,
}

impl SimulatedResult {
    /// Returns the judge's evidence; `None` if the rounds are too few.
    pub(super) fn evidence(&self) -> Option<&Evidence> {
        self.compared.as_ref()?.evidence.as_ref()
    }
}

impl SimulatedJudge {
    pub(super) fn new() -> Self {
        Self(ClaimExpression::parse(CHECK).into_iter().collect())
    }

    /// Judges the claim by the times of a study, in the same way as the claims of a paper.
    pub(super) fn judge(&self, rounds: Vec<RoundPair>) -> SimulatedResult {
        let figures: Figures = [("first", 0), ("second", 1)]
            .into_iter()
            .map(|(subject, side)| figure(subject, &rounds, side))
            .collect();
        let bench = Bench { figures: &figures, complete: false, tie_share: 0.0, band_share: BAND_SHARE };
        let compared = bench.judge(&self.0).ok().and_then(|found| found.comparisons.into_iter().next());
        SimulatedResult { rounds, compared }
    }
}

fn figure(subject: &str, rounds: &[RoundPair], side: usize) -> Figure {
    let replicate = |place: usize| Replicate { run: 0, round: u32::try_from(place).unwrap_or(u32::MAX) };
    let replicates: Replicates =
        rounds.iter().enumerate().map(|(place, round)| (replicate(place), round[side])).collect();
    let mean = rounds.iter().map(|round| round[side]).collect::<Samples>().geometric_mean();
    Figure {
        source: "stentor".into(),
        experiment: String::new(),
        subject: subject.into(),
        factors: BTreeMap::new(),
        metric: "time".into(),
        stat: "geometric mean over forks".into(),
        value: mean.map_or(FigureValue::Absent, |mean| FigureValue::Number(Interval::point(mean))),
        unit: "ms".into(),
        kind: "measured".into(),
        note: String::new(),
        replicates,
        forks: None,
    }
}
