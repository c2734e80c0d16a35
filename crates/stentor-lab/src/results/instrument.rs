//! The instrument beside the measurements: how late exchanges began, and what the laboratory itself cost.

use std::collections::BTreeMap;

use super::columns::{estimate_text, number_text, of_cells};
use super::metric::{phase_ms, wholes};
use super::{CONFIDENCE, MeasuredCell, Results};
use crate::document::TextTable;
use crate::record::{ForkRecord, phase};
use crate::statistics::Samples;

const NANOS_PER_MS: f64 = 1e6;
const MICROS_PER_MS: f64 = 1e3;
const PERCENT: f64 = 100.0;

/// Latency from the actual start beside that from the intended start; empty without intended starts.
pub(super) fn starts(results: &Results) -> TextTable {
    let has_starts =
        |cell: &&MeasuredCell| cell.forks.iter().any(|fork| fork.latency.contains_key(phase::RTT_INTENDED));
    let median = |cell: &MeasuredCell, name: &str| {
        estimate_text(cell.replicates(|fork| phase_ms(fork, name)).samples().estimate(CONFIDENCE))
    };
    let latest = |cell: &MeasuredCell| {
        let late = cell.forks.iter().filter_map(|fork| fork.latency.get(phase::LATE));
        number_text(late.map(|late| late.max as f64 / NANOS_PER_MS).reduce(f64::max))
    };
    of_cells(
        results,
        results.cells.iter().filter(has_starts),
        &[
            ("from the actual start, median ms [95 %]", &|cell| median(cell, phase::RTT)),
            ("from the intended start, median ms [95 %]", &|cell| median(cell, phase::RTT_INTENDED)),
            ("latest start, ms", &latest),
        ],
    )
}

/// The cost of the instrument in each part of the study; empty if it was not recorded.
pub(super) fn costs(results: &Results) -> TextTable {
    let mut parts: BTreeMap<String, Vec<&ForkRecord>> = BTreeMap::new();
    for cell in &results.cells {
        let part = results.part(&cell.experiment, &cell.variant);
        let recorded = cell.forks.iter().filter(|fork| fork.instrument.cpu_ns > 0);
        parts.entry(part).or_default().extend(recorded);
    }
    let rows = parts.into_iter().filter(|(_, forks)| !forks.is_empty()).map(|(part, forks)| {
        let median = |of: &dyn Fn(&ForkRecord) -> Option<f64>| {
            let values: Samples = forks.iter().filter_map(|fork| of(fork)).collect();
            number_text(values.quantile(0.5))
        };
        let most = |of: &dyn Fn(&ForkRecord) -> Option<f64>| {
            number_text(forks.iter().filter_map(|fork| of(fork)).reduce(f64::max))
        };
        let halves = |fork: &ForkRecord| Some(fork.cpu.client? + fork.cpu.server?);
        [
            part,
            forks.len().to_string(),
            median(&|fork| each(fork, fork.instrument.cpu_ns)),
            median(&|fork| each(fork, halves(fork)?)),
            median(&share_percent),
            most(&|fork| Some(fork.instrument.lateness_us.p99 / MICROS_PER_MS)),
            most(&|fork| Some(fork.link.lateness_us?.p99 / MICROS_PER_MS)),
        ]
    });
    TextTable::new(
        [
            "part",
            "forks",
            "laboratory, CPU ms each exchange",
            "client and server, CPU ms each exchange",
            "laboratory, % of the machine",
            "wake-ups late, p99 ms",
            "link late, p99 ms",
        ],
        rows,
    )
}

/// Divides processor time by the number of measured exchanges.
fn each(fork: &ForkRecord, cpu_ns: u64) -> Option<f64> {
    Some(cpu_ns as f64 / NANOS_PER_MS / wholes(fork)?)
}

/// Returns the laboratory's share of the processors' time during a fork; `None` in records of older versions.
fn share_percent(fork: &ForkRecord) -> Option<f64> {
    let all = fork.instrument.wall_ns as f64 * f64::from(fork.env.cores);
    (all > 0.0).then(|| PERCENT * fork.instrument.cpu_ns as f64 / all)
}
