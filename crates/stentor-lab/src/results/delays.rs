//! Mean delays and bytes of albertengo-2020 beside REST's, each with the same kind of connection.

use std::collections::BTreeMap;

use super::basis::{MARK, streams};
use super::columns::{estimate_text, figure, number_text};
use super::metric::{median, phase_ms};
use super::overhead::{ByteCounting, PAYLOADS, STUDY, is_of, mean, one_way_phase, sums};
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
    /// The way from the gateway to the app server; empty without a gateway.
    hop: &'a str,
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
    let mut by_way: BTreeMap<[&str; 5], Vec<&MeasuredCell>> = BTreeMap::new();
    for cell in results.cells.iter().filter(|cell| cell.variant == "paper" && has_own_delay(cell)) {
        // GCM and FCM keep their connections.
        let connection = level(cell, "connection").unwrap_or("kept");
        let tls = level(cell, "tls").or_else(|| level(cell, "push_tls")).unwrap_or("off");
        let hop = level(cell, "hop").unwrap_or("");
        by_way.entry([connection, tls, &cell.stack, &cell.subject, hop]).or_default().push(cell);
    }
    by_way.into_iter().filter_map(|(place, cells)| Way::of(place, &cells)).collect()
}

fn level<'a>(cell: &'a MeasuredCell, factor: &str) -> Option<&'a str> {
    cell.levels.get(factor).map(String::as_str)
}

fn has_own_delay(cell: &MeasuredCell) -> bool {
    level(cell, "provider_delay").is_none_or(|delay| delay == "0 ms")
}

impl<'a> Way<'a> {
    /// Puts the cells in the order of their payloads; `None` if one is missing.
    fn of(place: [&'a str; 5], cells: &[&'a MeasuredCell]) -> Option<Self> {
        let of = |payload: &str| cells.iter().copied().find(|cell| is_of(cell, payload));
        let cells = PAYLOADS.into_iter().map(of).collect::<Option<Vec<_>>>()?;
        let [connection, tls, stack, subject, hop] = place;
        Some(Self { subject, stack, connection, tls, hop, cells })
    }

    fn is_compared_with(&self, base: &Self) -> bool {
        let place = |way: &Self| [way.stack, way.connection, way.tls].map(str::to_owned);
        base.subject == BASE && self.subject != BASE && place(self) == place(base)
    }

    fn one_way_phase(&self) -> &'static str {
        one_way_phase(self.cells.iter().copied())
    }

    fn row(&self, base: Option<&Self>) -> [String; 8] {
        let software = if self.stack == "period" { "period software" } else { "today's" };
        let ndu = sums(&self.cells, |record| ByteCounting::Data.ndu_kb(record));
        let [one_way, one_way_ratio] = self.delay(base, |way, record| phase_ms(record, way.one_way_phase()));
        let [round_trip, round_trip_ratio] = self.delay(base, |_, record| median(record));
        // A server that streams notes the arrival of a message after its reading.
        let is_by_clock = self.one_way_phase() == phase::OWD;
        let is_blurred = is_by_clock && self.cells.iter().any(|cell| streams(cell, phase::OWD));
        let mark = if is_blurred { format!(" {MARK}") } else { String::new() };
        let hop = if self.hop.is_empty() { String::new() } else { format!(", hop {}", self.hop) };
        [
            self.connection.to_owned() + &hop,
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
    fn delay(&self, base: Option<&Self>, of: impl Fn(&Self, &ForkRecord) -> Option<f64>) -> [String; 2] {
        let samples = |way: &Self| mean(&way.cells, |record| of(way, record)).samples();
        let own = samples(self);
        let beside = base.and_then(|base| ratio(&own, &samples(base), CONFIDENCE));
        let beside = beside.map(|one| figure(one.ratio, one.low.zip(one.high)));
        [estimate_text(own.estimate(CONFIDENCE)), beside.unwrap_or_else(|| "–".to_owned())]
    }
}
