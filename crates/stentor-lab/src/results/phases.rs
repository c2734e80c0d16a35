//! The time of an exchange by phase of both halves; phases that are not separable are marked.

use super::basis::{FOOTNOTE, MARK, streams};
use super::columns::{ABOUT, about};
use super::metric::phase_ms;
use super::{CONFIDENCE, MeasuredCell, Results};
use crate::document::TextTable;
use crate::plot::short;
use crate::record::phase;
use crate::statistics::Estimate;

/// The phases in the order of an exchange, with display names.
pub(super) const PHASES: [(&str, &str); 8] = [
    (phase::CLIENT_SER, "client serializes"),
    (phase::REQUEST, "client waits"),
    (phase::SERVER_DESER, "server deserializes"),
    (phase::SERVER_WORK, "server works"),
    (phase::SERVER_SER, "server serializes"),
    (phase::TRANSFER, "transfer"),
    (phase::CLIENT_DESER, "client deserializes"),
    (phase::INSERT, "rows are kept"),
];

/// The table; empty without phases.
pub(super) fn phases(results: &Results) -> TextTable {
    let cells: Vec<&MeasuredCell> = results.cells.iter().filter(|cell| has_any(cell)).collect();
    let present: Vec<_> = PHASES
        .into_iter()
        .filter(|(phase, _)| cells.iter().any(|cell| estimate(cell, phase).is_some()))
        .collect();
    let mut header = ABOUT.map(str::to_owned).to_vec();
    header.extend(present.iter().map(|(_, name)| format!("{name}, ms")));
    let rows = cells.into_iter().map(|cell| {
        let texts = present.iter().map(|(phase, _)| phase_text(cell, phase));
        about(results, cell).into_iter().chain(texts).collect()
    });
    TextTable { header, rows: rows.collect() }
}

/// Returns the footnote of the table; empty if nothing is marked.
pub(super) fn footnote(table: &TextTable) -> &'static str {
    let is_marked = table.rows.iter().flatten().any(|text| text.ends_with(MARK));
    if is_marked { FOOTNOTE } else { "" }
}

/// Estimates the median of a phase over forks, in milliseconds.
pub(super) fn estimate(cell: &MeasuredCell, phase: &str) -> Option<Estimate> {
    cell.replicates(|fork| phase_ms(fork, phase)).samples().estimate(CONFIDENCE)
}

fn has_any(cell: &MeasuredCell) -> bool {
    PHASES.into_iter().any(|(phase, _)| estimate(cell, phase).is_some())
}

fn phase_text(cell: &MeasuredCell, phase: &str) -> String {
    let mark = if streams(cell, phase) { MARK } else { "" };
    estimate(cell, phase).map_or_else(|| "–".to_owned(), |one| format!("{}{mark}", short(one.mean)))
}
