//! Mean delays and bytes of albertengo-2020 beside REST's, each with the same kind of connection.

use std::collections::BTreeMap;

use super::basis::{MARK, streams};
use super::columns::{estimate_text, figure, number_text};
use super::metric::{median, phase_ms};
use super::overhead::{ByteCounting, PAYLOADS, STUDY, is_of, mean, sums};
use super::{CONFIDENCE, MeasuredCell, Results};
use crate::document::TextTable;
use crate::record::{ForkRecord, phase};
use crate::statistics::ratio;

/// The subject that all others are compared with.
const BASE: &str = "REST";

/// One way of sending: the cells of its four payloads.
struct Way<'a> {
    subject: &'a str,
    stack: &'a str,
    connection: &'a str,
    tls: &'a str,
    cells: Vec<&'a MeasuredCell>,
}

/// The table; empty for other studies.
pub(super) fn delays(results: &Results) -> TextTable {
    let ways = if results.study == STUDY { ways(results) } else { Vec::new() };
    let rows = ways.iter().map(|way| {
        let base = ways.iter().find(|other| way.is_compared_with(other));
        way.row(base)
    });
    TextTable::new(
        [
            "connection",
            "TLS",
            "subject",
            "one way, ms [95 %]",
            "times REST [95 %]",
            "round trip, ms [95 %]",
            "times REST [95 %]",
            "NDU, kB",
        ],
        rows,
    )
}

/// Lists the ways of the paper's variant that have all four payloads, without a delay of the provider.
fn ways(results: &Results) -> Vec<Way<'_>> {
    let mut by_way: BTreeMap<(&str, &str, &str, &str), Vec<&MeasuredCell>> = BTreeMap::new();
    for cell in results.cells.iter().filter(|cell| cell.variant == "paper" && has_own_delay(cell)) {
        // GCM and FCM keep their connections.
        let connection = level(cell, "connection").unwrap_or("kept");
        let tls = level(cell, "tls").or_else(|| level(cell, "push_tls")).unwrap_or("off");
        by_way.entry((connection, tls, &cell.stack, &cell.subject)).or_default().push(cell);
    }
    by_way.into_iter().filter_map(|(place, cells)| Way::of(place, &cells)).collect()
}

fn level<'a>(cell: &'a MeasuredCell, factor: &str) -> Option<&'a str> {
    cell.levels.get(factor).map(String::as_str)
}

fn has_own_delay(cell: &MeasuredCell) -> bool {
    level(cell, "provider_delay").is_none_or(|delay| delay == "0 ms")
}

/// Returns the one-way delay by packets, or by the server's clock in records without it.
fn one_way_ms(record: &ForkRecord) -> Option<f64> {
    phase_ms(record, phase::OWD_PACKETS).or_else(|| phase_ms(record, phase::OWD))
}

impl<'a> Way<'a> {
    /// Puts the cells in the order of their payloads; `None` if one is missing.
    fn of(place: (&'a str, &'a str, &'a str, &'a str), cells: &[&'a MeasuredCell]) -> Option<Self> {
        let of = |payload: &str| cells.iter().copied().find(|cell| is_of(cell, payload));
        let cells = PAYLOADS.into_iter().map(of).collect::<Option<Vec<_>>>()?;
        let (connection, tls, stack, subject) = place;
        Some(Self { subject, stack, connection, tls, cells })
    }

    fn is_compared_with(&self, base: &Self) -> bool {
        let place = |way: &Self| [way.stack, way.connection, way.tls].map(str::to_owned);
        base.subject == BASE && self.subject != BASE && place(self) == place(base)
    }

    fn row(&self, base: Option<&Self>) -> [String; 8] {
        let software = if self.stack == "period" { "period software" } else { "today's" };
        let ndu = sums(&self.cells, |record| ByteCounting::Data.ndu_kb(record));
        let [one_way, one_way_ratio] = self.delay(base, one_way_ms);
        let [round_trip, round_trip_ratio] = self.delay(base, median);
        // A server that streams notes the arrival of a message after its reading.
        let has_packets = |cell: &&&MeasuredCell| {
            cell.forks.iter().all(|fork| fork.latency.contains_key(phase::OWD_PACKETS))
        };
        let mut by_clock = self.cells.iter().filter(|cell| !has_packets(cell));
        let is_blurred = by_clock.any(|cell| streams(cell, phase::OWD));
        let mark = if is_blurred { format!(" {MARK}") } else { String::new() };
        [
            self.connection.to_owned(),
            self.tls.to_owned(),
            format!("{} ({software})", self.subject),
            one_way + &mark,
            one_way_ratio,
            round_trip,
            round_trip_ratio,
            number_text(ndu.samples().estimate(CONFIDENCE).map(|one| one.mean)),
        ]
    }

    /// Returns a mean delay over the payloads, and its ratio to that of the base.
    fn delay(&self, base: Option<&Self>, of: fn(&ForkRecord) -> Option<f64>) -> [String; 2] {
        let samples = mean(&self.cells, of).samples();
        let beside = base.and_then(|base| ratio(&samples, &mean(&base.cells, of).samples(), CONFIDENCE));
        let beside = beside.map(|one| figure(one.ratio, one.low.zip(one.high)));
        [estimate_text(samples.estimate(CONFIDENCE)), beside.unwrap_or_else(|| "–".to_owned())]
    }
}
