//! Figures of albertengo-2020 for its four payloads, counted as in the paper and over the whole exchange.
//!
//! The paper's figures cover packets that carry a message: NDU is 2p + x + y, POH (x + y) / 2. Neither includes opening, acknowledgements
//! and closing, so that the figures of the whole exchange have their own names here.

use std::collections::BTreeMap;

use super::basis::{Basis, marked};
use super::columns::{mean_text, of_cells};
use super::metric::{captured, median, phase_ms};
use super::own_figure::make;
use super::{CONFIDENCE, MeasuredCell, Results};
use crate::claims::figures::{CUT_BY_CLOCK, Figure, MODELLED};
use crate::document::TextTable;
use crate::record::{DirectionBytes, ForkRecord, phase};
use crate::statistics::Replicates;

/// The study.
pub(super) const STUDY: &str = "albertengo-2020";
/// Its payloads, in bytes.
pub(super) const PAYLOADS: [&str; 4] = ["64", "256", "1024", "4055"];
/// Bytes of the paper's kB.
const KB: f64 = 1000.0;
/// The payload level of figures over all payloads.
const ALL: &str = "all(64..4055 B)";
/// The note on hours of older records.
const HOURS_CUT_BY_CLOCK: &str = "the hours of these records (BD) are of traces cut by the clock and not by exchange, and depend on how \
    late the first exchange began";
/// The note on all other hours.
const HOURS_MODELLED: &str = "the hours (BD) are those of a model, and models decide no claim";
const SUM: &str = "sum of 64+256+1024+4055 B";

/// The method of counting bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ByteCounting {
    /// Packets that carry application data for the first time, as in the paper.
    Data,
    /// Every packet, including handshake, bare acknowledgements, closing and retransmissions.
    Full,
}

/// Bytes of an exchange in both directions.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Size {
    all: f64,
    payload: f64,
}

impl ByteCounting {
    const BOTH: [Self; 2] = [Self::Data, Self::Full];

    fn of(self, way: &DirectionBytes) -> Option<u64> {
        match self {
            Self::Data => way.data_ip,
            Self::Full => Some(way.ip),
        }
    }

    /// Returns the name of a metric of the paper, or of its counterpart for the full exchange.
    fn name(self, metric: &str) -> String {
        match self {
            Self::Data => metric.to_owned(),
            Self::Full => format!("{metric} (full exchange)"),
        }
    }

    fn size(self, record: &ForkRecord) -> Option<Size> {
        let (bytes, exchanges) = captured(record)?;
        let all = self.of(&bytes.up)? + self.of(&bytes.down)?;
        let payload = bytes.up.payload + bytes.down.payload;
        Some(Size { all: all as f64 / exchanges, payload: payload as f64 / exchanges })
    }

    pub(super) fn ndu_kb(self, record: &ForkRecord) -> Option<f64> {
        Some(self.size(record)?.all / KB)
    }

    /// Returns the mean overhead of both directions.
    fn overhead_bytes(self, record: &ForkRecord) -> Option<f64> {
        self.size(record).map(|size| (size.all - size.payload) / 2.0)
    }

    fn overhead_percent(self, record: &ForkRecord) -> Option<f64> {
        let size = self.size(record).filter(|size| size.all > 0.0)?;
        Some(100.0 * (size.all - size.payload) / size.all)
    }
}

/// The two tests of the paper. In the test of one-way delay the response may be a mere number, so it provides no other figures.
const ROUND_TRIP: &str = "RTT";
const ONE_WAY: &str = "OWD";

/// Returns the figures of each payload, and the figures over all payloads for subjects that have all four.
pub(super) fn figures(cells: &[&MeasuredCell], confidence: f64) -> Vec<Figure> {
    let mut subjects: Vec<&str> = cells.iter().map(|cell| cell.subject.as_str()).collect();
    subjects.sort_unstable();
    subjects.dedup();
    subjects.into_iter().flat_map(|subject| of_subject(cells, subject, confidence)).collect()
}

fn of_subject(cells: &[&MeasuredCell], subject: &str, confidence: f64) -> Vec<Figure> {
    let of = |test: &str, payload: &str| {
        let fits =
            |cell: &&MeasuredCell| cell.subject == subject && cell.experiment == test && is_of(cell, payload);
        cells.iter().copied().find(fits)
    };
    let there_and_back = PAYLOADS.map(|payload| of(ROUND_TRIP, payload));
    let there = PAYLOADS.map(|payload| of(ONE_WAY, payload).or_else(|| of(ROUND_TRIP, payload)));
    let four = |cells: [Option<_>; 4]| cells.into_iter().collect::<Option<Vec<&MeasuredCell>>>();
    let phase = one_way_phase(there.iter().copied().flatten());
    let mut figures = each(there_and_back, there, phase, confidence);
    if let Some(four) = four(there_and_back) {
        figures.extend(round_trip(&four, confidence).map(|figure| at(figure, ALL)));
        figures.extend(ByteCounting::BOTH.into_iter().flat_map(|count| sizes(&four, count, confidence)));
    }
    let battery = four(there_and_back).and_then(|four| battery(&four, confidence));
    figures.extend(battery.map(|figure| at(figure, ALL)));
    let one_way = four(there).and_then(|four| one_way(&four, phase, confidence));
    figures.extend(one_way.map(|figure| at(figure, ALL)));
    figures
}

/// Returns the times of each payload, independently of the others.
fn each(
    there_and_back: [Option<&MeasuredCell>; 4],
    there: [Option<&MeasuredCell>; 4],
    phase: &'static str,
    confidence: f64,
) -> Vec<Figure> {
    let places = PAYLOADS.into_iter().zip(there_and_back).zip(there);
    let figures = places.flat_map(|((payload, there_and_back), there)| {
        let figures = [
            there_and_back.and_then(|cell| round_trip(&[cell], confidence)),
            there.and_then(|cell| one_way(&[cell], phase, confidence)),
        ];
        let named = move |figure: Figure| {
            let metric = format!("{} each payload", figure.metric);
            Figure { metric, ..at(figure, &format!("{payload} B")) }
        };
        figures.into_iter().flatten().map(named)
    });
    figures.collect()
}

pub(super) fn is_of(cell: &MeasuredCell, payload: &str) -> bool {
    cell.levels.get("payload").is_some_and(|level| level.trim_end_matches(" B") == payload)
}

/// Sums the values of all cells in each replicate; forks of a round were made within a few minutes of each other.
pub(super) fn sums(cells: &[&MeasuredCell], of: impl Fn(&ForkRecord) -> Option<f64>) -> Replicates {
    let each: Vec<Replicates> = cells.iter().map(|cell| cell.replicates(&of)).collect();
    let sum = |replicate| Some((replicate, each.iter().map(|one| one.get(replicate)).sum::<Option<f64>>()?));
    each.iter().take(1).flat_map(Replicates::keys).filter_map(sum).collect()
}

/// Returns the mean over cells for each replicate.
pub(super) fn mean(cells: &[&MeasuredCell], of: impl Fn(&ForkRecord) -> Option<f64>) -> Replicates {
    sums(cells, |fork| Some(of(fork)? / cells.len() as f64))
}

fn round_trip(cells: &[&MeasuredCell], confidence: f64) -> Option<Figure> {
    make(cells.first()?, ROUND_TRIP, "RTT", "ms", &mean(cells, median), confidence)
}

/// Returns the phase of the one-way delays of these cells: by packets if each fork has them, otherwise by the server's clock. Packets of
/// exchanges that overlap cannot be told apart, so that some forks with long round trips have none.
pub(super) fn one_way_phase<'a>(cells: impl Iterator<Item = &'a MeasuredCell>) -> &'static str {
    let has_packets = |fork: &ForkRecord| fork.latency.contains_key(phase::OWD_PACKETS);
    if cells.flat_map(|cell| &cell.forks).all(has_packets) { phase::OWD_PACKETS } else { phase::OWD }
}

fn one_way(cells: &[&MeasuredCell], phase: &'static str, confidence: f64) -> Option<Figure> {
    let samples = mean(cells, |record| phase_ms(record, phase));
    let figure = make(cells.first()?, ONE_WAY, "OWD", "ms", &samples, confidence)?;
    if phase == phase::OWD_PACKETS {
        return Some(figure);
    }
    let blurred = |figure, cell: &&MeasuredCell| marked(figure, cell, Basis::Phases(&[phase::OWD]));
    Some(cells.iter().fold(figure, blurred))
}

/// Returns the hours of the paper's battery, which are modelled. Hours of traces that an older version cut by the clock are marked, because
/// they depend on how late the first exchange began.
fn battery(cells: &[&MeasuredCell], confidence: f64) -> Option<Figure> {
    let hours = mean(cells, |record| record.battery_hours);
    let figure = make(cells.first()?, "BD", "BD", "h", &hours, confidence)?;
    let is_cut_by_clock = cells.iter().flat_map(|cell| &cell.forks).any(ForkRecord::is_battery_cut_by_clock);
    let (kind, note) =
        if is_cut_by_clock { (CUT_BY_CLOCK, HOURS_CUT_BY_CLOCK) } else { (MODELLED, HOURS_MODELLED) };
    Some(Figure { kind: kind.to_owned(), note: note.to_owned(), ..figure })
}

fn sizes(four: &[&MeasuredCell], count: ByteCounting, confidence: f64) -> Vec<Figure> {
    let ndu = sums(four, |record| count.ndu_kb(record));
    let ndu = make(four[0], "NDU", &count.name("NDU"), "kB", &ndu, confidence);
    let mut figures: Vec<Figure> = ndu.into_iter().map(|figure| at(figure, SUM)).collect();
    for (cell, level, stat) in [(four[0], "smallest (64 B)", "max"), (four[3], "largest (4055 B)", "min")] {
        let shares = cell.replicates(|fork| count.overhead_percent(fork));
        let found = make(cell, "POH", &count.name("POH"), "%", &shares, confidence);
        figures.extend(found.map(|figure| Figure { stat: stat.to_owned(), ..at(figure, level) }));
    }
    for (cell, payload) in four.iter().zip(PAYLOADS) {
        let bytes = cell.replicates(|fork| count.overhead_bytes(fork));
        let overhead = make(cell, "POH", &count.name("POH in bytes"), "B", &bytes, confidence);
        let ndu = cell.replicates(|fork| count.ndu_kb(fork));
        let ndu = make(cell, "NDU", &count.name("NDU each payload"), "kB", &ndu, confidence);
        figures.extend([overhead, ndu].into_iter().flatten().map(|one| at(one, &format!("{payload} B"))));
    }
    figures
}

fn at(figure: Figure, payload: &str) -> Figure {
    Figure { factors: BTreeMap::from([("payload".to_owned(), payload.to_owned())]), ..figure }
}

/// The table of both counts; empty for other studies, and without captured frames.
pub(super) fn overhead(results: &Results) -> TextTable {
    let cells =
        results.cells.iter().filter(|cell| results.study == STUDY && cell.levels.contains_key("payload"));
    let cells = cells.filter(|cell| cell.forks.iter().any(|fork| captured(fork).is_some()));
    let figure = |cell: &MeasuredCell, of: fn(ByteCounting, &ForkRecord) -> Option<f64>, count| {
        mean_text(cell.replicates(|fork| of(count, fork)).samples().estimate(CONFIDENCE))
    };
    let bytes = |count: ByteCounting, record: &ForkRecord| count.size(record).map(|size| size.all);
    let (overhead, share) = (ByteCounting::overhead_bytes, ByteCounting::overhead_percent);
    of_cells(
        results,
        cells,
        &[
            ("NDU as the paper counts, B", &|cell| figure(cell, bytes, ByteCounting::Data)),
            ("full exchange, B", &|cell| figure(cell, bytes, ByteCounting::Full)),
            ("POH as the paper counts, B", &|cell| figure(cell, overhead, ByteCounting::Data)),
            ("full exchange, B", &|cell| figure(cell, overhead, ByteCounting::Full)),
            ("POH as the paper counts, %", &|cell| figure(cell, share, ByteCounting::Data)),
            ("full exchange, %", &|cell| figure(cell, share, ByteCounting::Full)),
        ],
    )
}

#[cfg(test)]
mod tests;
