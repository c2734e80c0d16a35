//! Values by replicate, so that figures of one round can be compared with each other.

use std::collections::{BTreeMap, BTreeSet};

use super::Samples;

/// The place of a value in a study: the fork of one round, or a whole run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Replicate {
    /// The run, from 0; runs are of different days or machines.
    pub run: u32,
    /// The round of the run, from 1; 0 for all of them together.
    pub round: u32,
}

/// The values of one figure, one for each replicate.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Replicates(BTreeMap<Replicate, f64>);

impl Replicates {
    /// Lists the replicates.
    pub fn keys(&self) -> impl Iterator<Item = Replicate> {
        self.0.keys().copied()
    }

    /// Returns the value of a replicate.
    #[must_use]
    pub fn get(&self, replicate: Replicate) -> Option<f64> {
        self.0.get(&replicate).copied()
    }

    /// Returns the values in the order of runs and rounds.
    #[must_use]
    pub fn samples(&self) -> Samples {
        self.0.values().copied().collect()
    }

    /// Returns true if there are no values.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns one value for each run: the geometric mean of its rounds, or the median if one of them is not positive.
    #[must_use]
    pub fn by_run(&self) -> Self {
        let runs: BTreeSet<u32> = self.0.keys().map(|replicate| replicate.run).collect();
        let of_run = |run: u32| {
            let within = self.0.iter().filter(|(replicate, _)| replicate.run == run);
            let samples: Samples = within.map(|(_, value)| *value).collect();
            let value = samples.geometric_mean().or_else(|| samples.quantile(0.5))?;
            Some((Replicate { run, round: 0 }, value))
        };
        Self(runs.into_iter().filter_map(of_run).collect())
    }

    /// Returns the geometric mean of the values of some replicates; `None` without any, or if one of them is not positive.
    #[must_use]
    pub fn geometric_mean_within(&self, within: &BTreeSet<Replicate>) -> Option<f64> {
        let inside = self.0.iter().filter(|(replicate, _)| within.contains(replicate));
        inside.map(|(_, value)| *value).collect::<Samples>().geometric_mean()
    }
}

impl FromIterator<(Replicate, f64)> for Replicates {
    fn from_iter<I: IntoIterator<Item = (Replicate, f64)>>(values: I) -> Self {
        Self(values.into_iter().filter(|(_, value)| value.is_finite()).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replicates(values: &[(u32, u32, f64)]) -> Replicates {
        values.iter().map(|(run, round, value)| (Replicate { run: *run, round: *round }, *value)).collect()
    }

    #[test]
    fn a_run_is_the_geometric_mean_of_its_rounds() {
        let found = replicates(&[(0, 1, 2.0), (0, 2, 8.0), (1, 1, 5.0), (2, 1, 0.0), (2, 2, 3.0)]).by_run();
        let close = |run, expected: f64| {
            (found.get(Replicate { run, round: 0 }).expect("a run") - expected).abs() < 1e-9
        };
        assert!(close(0, 4.0) && close(1, 5.0), "{found:?}");
        assert!(close(2, 1.5), "the median, because one value is not positive: {found:?}");
    }

    #[test]
    fn the_mean_of_some_rounds_leaves_the_others_out() {
        let all = replicates(&[(0, 1, 2.0), (0, 2, 8.0), (0, 3, 100.0)]);
        let within = |rounds: &[u32]| {
            let within = rounds.iter().map(|round| Replicate { run: 0, round: *round }).collect();
            all.geometric_mean_within(&within)
        };
        assert!((within(&[1, 2]).expect("two rounds") - 4.0).abs() < 1e-9);
        assert_eq!(within(&[4]), None);
    }
}
