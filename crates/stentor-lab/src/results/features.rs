//! The paper's tables of features, with the results of probes beside each cell, and a row for the server itself if it was probed.

use super::Results;
use crate::document::TextTable;
use crate::probes::{PaperCell, ProbeAnswer, ProbeKind, ProbeResult, ProbeWord, rows};

/// The tables; empty without probes.
pub(super) fn features(results: &Results) -> TextTable {
    let figures = results.dossier.as_ref().map(crate::claims::Dossier::figures);
    let both = figures.zip(results.probed.as_ref());
    let cells = both.map(|(figures, probed)| {
        let server = rows(figures, &probed.server).into_iter().map(of_server);
        rows(figures, &probed.probes).into_iter().map(cells_of).zip(server)
    });
    let rows = cells.into_iter().flatten().flat_map(|(ours, server)| [Some(ours), server]).flatten();
    TextTable::new(["feature", "protocol", "the paper", "probes and observations"], rows)
}

fn cells_of(row: PaperCell) -> [String; 4] {
    let probes = row.probes.iter().map(probe).collect::<Vec<_>>().join("; ");
    [format!("{} ({})", row.feature, row.table), row.subject, row.paper, probes]
}

/// Returns a row with the results of the server's trials; `None` if this feature was not tried.
fn of_server(row: PaperCell) -> Option<[String; 4]> {
    let is_tried = |one: &&ProbeResult| one.answer != ProbeAnswer::Word(ProbeWord::NotProbed);
    let tried: Vec<String> = row.probes.iter().filter(is_tried).map(probe).collect();
    let others: Vec<&str> =
        row.probes.iter().filter(|one| !is_tried(one)).map(|one| one.id.as_str()).collect();
    let others = (!others.is_empty()).then(|| format!("not probed: {}", others.join(", ")));
    let seen = tried.iter().cloned().chain(others).collect::<Vec<_>>().join("; ");
    let feature = format!("{} ({})", row.feature, row.table);
    (!tried.is_empty()).then(|| [feature, format!("{}, the server itself", row.subject), row.paper, seen])
}

fn probe(result: &ProbeResult) -> String {
    let mark =
        if result.kind == ProbeKind::Measured { String::new() } else { format!(", {}", result.kind.word()) };
    format!("{}: **{}**{mark} ({})", result.id, result.answer_text(), result.evidence)
}
