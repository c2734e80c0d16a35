//! One-way delay by the shared clock of both halves, and by clocks that each half set by queries, as in albertengo-2020.

use super::columns::of_cells;
use super::metric::phase_ms;
use super::{CONFIDENCE, MeasuredCell, Results};
use crate::document::TextTable;
use crate::record::{ForkRecord, QueriedClocks, phase};

const MILLISECOND_NS: f64 = 1e6;

/// Returns a row for each cell with time queries; empty without any.
pub(super) fn clocks(results: &Results) -> TextTable {
    let has_query = |cell: &&MeasuredCell| cell.forks.iter().any(|fork| queried(fork).is_some());
    let mean = |cell: &MeasuredCell, of: &dyn Fn(&ForkRecord) -> Option<f64>| {
        let samples = cell.replicates(of).samples();
        samples.estimate(CONFIDENCE).map_or_else(|| "–".to_owned(), |one| format!("{:.2}", one.mean))
    };
    let by = |cell: &MeasuredCell, of: fn(QueriedClocks) -> f64| {
        mean(cell, &|fork| Some(phase_ms(fork, phase::OWD)? + of(queried(fork)?) / MILLISECOND_NS))
    };
    let bound = |fork: &ForkRecord| Some(queried(fork)?.shortest_bound_ns / MILLISECOND_NS);
    of_cells(
        results,
        results.cells.iter().filter(has_query),
        &[
            ("OWD by one clock, ms", &|cell| mean(cell, &|fork| phase_ms(fork, phase::OWD))),
            ("by the paper's mean of 100 queries, ms", &|cell| by(cell, |clocks| clocks.papers_mean_ns)),
            ("by the shortest queries, ms", &|cell| by(cell, |clocks| clocks.shortest_ns)),
            ("their bound, ms", &|cell| mean(cell, &bound)),
        ],
    )
}

fn queried(record: &ForkRecord) -> Option<QueriedClocks> {
    record.clock.as_ref()?.by_queries
}

#[cfg(test)]
mod tests {
    use super::super::tests::record;
    use super::*;
    use crate::record::ClockComparison;
    use crate::statistics::invented::Invented;

    #[test]
    fn only_cells_whose_halves_asked_for_the_time_are_told_by_other_clocks() {
        let mut invented = Invented::new(5);
        let mut one = record("GCM", "", "", 1, 20.0, &mut invented);
        let other = record("REST", "", "", 1, 20.0, &mut invented);
        let (papers_mean_ns, shortest_ns, shortest_bound_ns) = (3e6, -1e6, 2e6);
        let by_queries = Some(QueriedClocks { papers_mean_ns, shortest_ns, shortest_bound_ns });
        one.clock = Some(ClockComparison { by_queries, ..ClockComparison::shared() });
        let owd = one.latency["rtt"].clone();
        one.latency.insert(phase::OWD.to_owned(), owd);
        let ms = phase_ms(&one, phase::OWD).expect("there");
        let results = Results::of(vec![one, other]).expect("one study");
        let text = clocks(&results).markdown();
        let delays = [ms, ms + 3.0, ms - 1.0, 2.0].map(|ms| format!("{ms:.2}")).join(" | ");
        assert!(text.contains(&delays) && text.contains("GCM") && !text.contains("REST"), "{text}");
    }
}
