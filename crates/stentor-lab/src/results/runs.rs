//! The runs behind a report, which are of different days or machines: the outer level of its intervals.

use std::collections::BTreeSet;

use super::Results;
use super::cell::RUNS_MIN;
use crate::document::TextTable;
use crate::record::ForkRecord;

/// Letters of the date in a timestamp.
const DATE_LETTERS: usize = 10;

/// A run of the study.
struct StudyRun<'a> {
    records: Vec<&'a ForkRecord>,
}

/// Describes the replicates of the intervals.
pub(super) fn over(results: &Results) -> String {
    let runs = runs(results);
    match runs.len() {
        count if count >= RUNS_MIN => format!("Intervals are over {count} runs, each the mean of its forks."),
        1 => "Intervals are over the forks of one run: they do not cover how days and machines differ."
            .to_owned(),
        count => format!(
            "Intervals are over the forks of {count} runs: they do not cover how days and machines differ, for which {RUNS_MIN} runs are \
             needed."
        ),
    }
}

/// Returns a row for each run; empty for a single one.
pub(super) fn table(results: &Results) -> TextTable {
    let runs = runs(results);
    if runs.len() < 2 {
        return TextTable::default();
    }
    let row = |(place, run): (usize, &StudyRun<'_>)| {
        let same = runs[..place].iter().position(|before| before.shares_seeds(run));
        let seeds =
            same.map_or_else(|| "its own".to_owned(), |before| format!("those of run {}", before + 1));
        let valid = run.records.iter().filter(|record| record.valid).count();
        [(place + 1).to_string(), run.days(), run.machines(), valid.to_string(), seeds]
    };
    TextTable::new(["run", "days", "machine", "forks that count", "seeds"], runs.iter().enumerate().map(row))
}

fn runs(results: &Results) -> Vec<StudyRun<'_>> {
    let mut runs: Vec<(&str, StudyRun<'_>)> = Vec::new();
    for record in &results.records {
        match runs.iter_mut().find(|(id, _)| *id == record.run_id) {
            Some((_, run)) => run.records.push(record),
            None => runs.push((&record.run_id, StudyRun { records: vec![record] })),
        }
    }
    runs.into_iter().map(|(_, run)| run).collect()
}

impl StudyRun<'_> {
    fn days(&self) -> String {
        let days = self.records.iter().map(|record| record.ended.get(..DATE_LETTERS).unwrap_or_default());
        days.collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>().join(", ")
    }

    fn machines(&self) -> String {
        let machine = |record: &&ForkRecord| format!("{} × {}", record.env.cores, record.env.cpu);
        self.records.iter().map(machine).collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>().join(", ")
    }

    /// Returns true if a fork of both runs has the same seed, and with it the same chance on its links.
    fn shares_seeds(&self, other: &Self) -> bool {
        let seeds = |run: &Self| run.records.iter().map(|one| (one.key(), one.seed)).collect::<BTreeSet<_>>();
        !seeds(self).is_disjoint(&seeds(other))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{finding, study};
    use super::*;
    use crate::claims::ClaimVerdict;
    use crate::record::joined;

    /// Runs of the same study, of which each takes the times of all of its forks longer by a factor of its own.
    fn results(factors: &[f64]) -> Results {
        let run = |(place, factor): (usize, &f64)| {
            let mut records = study(4, 3 + place as u64);
            for record in &mut records {
                record.seed = record.seed * 1000 + place as u64;
                record.latency.values_mut().for_each(|times| times.p50 = (times.p50 as f64 * factor) as u64);
            }
            records
        };
        Results::of(joined(factors.iter().enumerate().map(run).collect())).expect("one study")
    }

    fn width(results: &Results) -> f64 {
        let found = results.cells[0].metric("rtt_p50").expect("measured");
        found.high.expect("an interval") / found.low.expect("an interval")
    }

    #[test]
    fn three_runs_are_the_replicates_and_their_differences_widen_the_intervals() {
        let (alike, unlike) = (results(&[1.0, 1.0, 1.0]), results(&[1.0, 1.5, 2.2]));
        assert!(alike.cells.iter().all(|cell| cell.samples(&super::super::METRICS[0]).values().len() == 3));
        assert!(width(&unlike) > 2.0 * width(&alike), "{} and {}", width(&unlike), width(&alike));
        assert_eq!(over(&unlike), "Intervals are over 3 runs, each the mean of its forks.");
        // What slows a whole run down is in both sides of its ratios.
        assert_eq!(finding(&unlike, "C004-1").period.verdict, ClaimVerdict::Undecided, "three runs are few");
        let grade = finding(&unlike, "C004-1").period.judgment.and_then(|one| one.grade()).expect("compared");
        assert_eq!((grade.so, grade.of, grade.pooled.len()), (15, 15, 1));
        assert!(grade.pooled[0].high < 1.0, "{grade}");
    }

    #[test]
    fn two_runs_are_too_few_for_intervals_over_runs_and_the_page_says_so() {
        let two = results(&[1.0, 1.5]);
        assert_eq!(two.cells[0].samples(&super::super::METRICS[0]).values().len(), 8);
        assert!(over(&two).contains("the forks of 2 runs: they do not cover"), "{}", over(&two));
        assert!(over(&results(&[1.0])).contains("the forks of one run"));
    }

    #[test]
    fn runs_are_listed_with_their_seeds() {
        let rows = table(&results(&[1.0, 1.0])).rows;
        assert_eq!(rows[1][..4], ["2", "2026-11-22", "2 × A processor", "180"]);
        assert_eq!((rows[0][4].as_str(), rows[1][4].as_str()), ("its own", "its own"));
        let same = Results::of(joined(vec![study(2, 1), study(2, 2)])).expect("one study");
        assert_eq!(table(&same).rows[1][4], "those of run 1");
        assert!(table(&results(&[1.0])).rows.is_empty());
    }
}
