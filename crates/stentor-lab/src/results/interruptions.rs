//! The effect of interruptions on synchronisations: rows readable offline, pages requested twice, and the cost.

use super::columns::{estimate_text, mean_text, metric_text};
use super::{MeasuredCell, Results};
use crate::document::TextTable;
use crate::plot::short;
use crate::record::{ForkRecord, InterruptionOutcome};
use crate::statistics::Estimate;

/// Nanoseconds of a millisecond.
const MS: f64 = 1e6;
/// The factor.
const FACTOR: &str = "interruption";

/// The table; empty without interruptions.
pub(super) fn interruptions(results: &Results) -> TextTable {
    let unless_none = |cell: &MeasuredCell, text: String| {
        if found(cell).all(|one| one.rows_offline == 0) { "–".to_owned() } else { text }
    };
    let stale = |cell: &MeasuredCell| if found(cell).all(|one| one.is_stale) { ", stale" } else { "" };
    TextTable::of(
        results.cells.iter().filter(|cell| found(cell).next().is_some()),
        &[
            ("subject", &|cell| cell.name.clone()),
            ("interruption", &|cell| cell.levels.get(FACTOR).cloned().unwrap_or_default()),
            ("forks", &|cell| cell.forks.len().to_string()),
            ("whole, ms [95 %]", &|cell| metric_text(cell, "rtt_p50")),
            ("silence, ms [95 %]", &|cell| {
                unless_none(cell, estimate_text(estimate(cell, |one| one.silence_ns)))
            }),
            ("pages in the meantime", &|cell| {
                let (pages_kept, all) = (mean(cell, |one| one.pages_kept), mean(cell, |one| one.pages));
                unless_none(cell, format!("{pages_kept} of {all}"))
            }),
            ("rows without the server", &|cell| {
                unless_none(cell, format!("{}{}", mean(cell, |one| one.rows_offline), stale(cell)))
            }),
            ("to read them, ms", &|cell| unless_none(cell, mean_text(estimate(cell, |one| one.offline_ns)))),
            ("pages requested again", &|cell| mean(cell, |one| one.pages_again)),
        ],
    )
}

fn found(cell: &MeasuredCell) -> impl Iterator<Item = &InterruptionOutcome> {
    cell.forks.iter().filter_map(|fork| fork.interruption.as_ref())
}

/// Formats the mean of a count over the interrupted forks.
fn mean(cell: &MeasuredCell, of: fn(&InterruptionOutcome) -> u64) -> String {
    let (sum, count) = found(cell).fold((0, 0_u32), |(sum, count), one| (sum + of(one), count + 1));
    short(sum as f64 / f64::from(count.max(1)))
}

fn estimate(cell: &MeasuredCell, of: fn(&InterruptionOutcome) -> u64) -> Option<Estimate> {
    let of_fork = |fork: &ForkRecord| {
        let found = fork.interruption.as_ref().filter(|_| !fork.is_emulated())?;
        Some(of(found) as f64 / MS)
    };
    cell.replicates(of_fork).samples().estimate(super::CONFIDENCE)
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
        let cells_of = |place: usize| rows[place][4..].to_vec();
        assert_eq!(cells_of(0), ["20", "16 of 30", "1024, stale", "3", "1"]);
        assert_eq!(cells_of(1), ["–", "–", "–", "–", "0"]);
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
