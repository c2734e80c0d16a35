//! The paper's tables of features, with what probes say beside each cell.

use super::Results;
use crate::document::TextTable;
use crate::probes::{PaperCell, ProbeKind, ProbeResult, rows};

/// The tables; empty where nothing was probed.
pub(super) fn features(results: &Results) -> TextTable {
    let figures = results.dossier.as_ref().map(crate::claims::Dossier::figures);
    let both = figures.zip(results.probed.as_ref());
    let rows = both.map(|(figures, probed)| rows(figures, &probed.probes)).unwrap_or_default();
    TextTable::new(
        ["feature", "protocol", "the paper", "probes of our own faces"],
        rows.into_iter().map(told),
    )
}

fn told(row: PaperCell) -> [String; 4] {
    let probes = row.probes.iter().map(probe).collect::<Vec<_>>().join("; ");
    [format!("{} ({})", row.feature, row.table), row.subject, row.paper, probes]
}

fn probe(told: &ProbeResult) -> String {
    let mark =
        if told.kind == ProbeKind::Measured { String::new() } else { format!(", {}", told.kind.word()) };
    format!("{}: **{}**{mark} ({})", told.id, told.answer_text(), told.evidence)
}
