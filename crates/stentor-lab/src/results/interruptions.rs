//! What interruptions did to synchronisations: what could be read in the meantime, what was asked twice, what it cost.

use super::{MeasuredCell, Metric, Results};
use crate::document::TextTable;
use crate::plot::short;
use crate::record::{ForkRecord, InterruptionOutcome};
use crate::statistics::{Estimate, Samples};

/// Nanoseconds of a millisecond.
const MS: f64 = 1e6;
/// The factor.
const FACTOR: &str = "interruption";

/// The table; empty where nothing was interrupted.
pub(super) fn interruptions(results: &Results) -> TextTable {
    let cells = results.cells.iter().filter(|cell| found(cell).next().is_some());
    TextTable::new(
        [
            "subject",
            "interruption",
            "forks",
            "whole, ms [95 %]",
            "silence, ms [95 %]",
            "pages in the meantime",
            "rows without the server",
            "to read them, ms",
            "asked twice",
        ],
        cells.map(row),
    )
}

fn found(cell: &MeasuredCell) -> impl Iterator<Item = &InterruptionOutcome> {
    cell.forks.iter().filter_map(|fork| fork.interruption.as_ref())
}

fn row(cell: &MeasuredCell) -> [String; 9] {
    let whole = Metric::find("rtt_p50").and_then(|metric| cell.estimate(metric));
    let is_none = found(cell).all(|one| one.rows_offline == 0);
    let unless_none = |text: String| if is_none { "–".to_owned() } else { text };
    let mean = |of: fn(&InterruptionOutcome) -> u64| {
        let (sum, count) = found(cell).fold((0, 0_u32), |(sum, count), one| (sum + of(one), count + 1));
        sum as f64 / f64::from(count.max(1))
    };
    let stale = if found(cell).all(|one| one.is_stale) { ", stale" } else { "" };
    [
        cell.name.clone(),
        cell.levels.get(FACTOR).cloned().unwrap_or_default(),
        cell.forks.len().to_string(),
        interval_text(whole),
        unless_none(interval_text(estimate(cell, |one| one.silence_ns))),
        unless_none(format!("{} of {}", short(mean(|one| one.pages_kept)), short(mean(|one| one.pages)))),
        unless_none(format!("{}{stale}", short(mean(|one| one.rows_offline)))),
        unless_none(interval_text(estimate(cell, |one| one.offline_ns).map(|one| Estimate {
            low: None,
            high: None,
            ..one
        }))),
        short(mean(|one| one.pages_again)),
    ]
}

fn estimate(cell: &MeasuredCell, of: fn(&InterruptionOutcome) -> u64) -> Option<Estimate> {
    let timed = |fork: &&ForkRecord| !fork.is_emulated();
    let of_fork = |fork: &ForkRecord| Some(of(fork.interruption.as_ref()?) as f64 / MS);
    cell.forks.iter().filter(timed).filter_map(of_fork).collect::<Samples>().estimate(super::CONFIDENCE)
}

/// Writes a mean with its interval.
pub(super) fn interval_text(estimate: Option<Estimate>) -> String {
    match estimate {
        Some(Estimate { mean, low: Some(low), high: Some(high), .. }) => {
            format!("{} [{}, {}]", short(mean), short(low), short(high))
        }
        Some(one) => short(one.mean),
        None => "–".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::record;
    use super::*;
    use crate::statistics::invented::Invented;

    fn synchronised(level: &str, found: InterruptionOutcome) -> ForkRecord {
        let mut record = record("HTTP JSON", "Int", "30", 1, 5.0, &mut Invented::new(1));
        record.study = "anacleto-2012".into();
        record.cell = [(FACTOR.to_owned(), level.to_owned())].into();
        record.interruption = Some(found);
        record
    }

    #[test]
    fn what_was_interrupted_is_told_beside_what_was_not() {
        let none = InterruptionOutcome { pages: 30, pages_kept: 30, ..InterruptionOutcome::default() };
        let killed = InterruptionOutcome {
            pages: 30,
            pages_kept: 16,
            pages_again: 1,
            rows_offline: 1024,
            is_stale: true,
            offline_ns: 3_000_000,
            silence_ns: 20_000_000,
        };
        let records = vec![synchronised("none", none), synchronised("killed", killed)];
        let rows = interruptions(&Results::of(records).expect("one study")).rows;
        let told = |place: usize| rows[place][4..].to_vec();
        assert_eq!(told(0), ["20", "16 of 30", "1024, stale", "3", "1"]);
        assert_eq!(told(1), ["–", "–", "–", "–", "0"]);
    }

    #[test]
    fn of_an_interruption_that_is_not_timed_only_pages_and_rows_are_told() {
        let mut found = InterruptionOutcome {
            pages: 30,
            pages_kept: 16,
            rows_offline: 1024,
            ..InterruptionOutcome::default()
        };
        (found.offline_ns, found.silence_ns) = (3_000_000, 20_000_000);
        let mut record = synchronised("killed", found);
        record.env.emulated = "built for aarch64".into();
        record.forget_times();
        let rows = interruptions(&Results::of(vec![record]).expect("one study")).rows;
        assert_eq!(rows[0][3..], ["–", "–", "16 of 30", "1024", "–", "0"]);
    }

    #[test]
    fn a_study_without_interruptions_has_no_such_table() {
        let record = record("HTTP JSON", "Int", "30", 1, 5.0, &mut Invented::new(1));
        assert!(interruptions(&Results::of(vec![record]).expect("one study")).rows.is_empty());
    }
}
