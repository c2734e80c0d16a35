//! The basis of our figures, and its limits on comparisons: overlapping phases, and memory of different runtimes.

use std::collections::BTreeSet;

use super::MeasuredCell;
use crate::claims::figures::{ALIKE, Figure, OVERLAPPING};
use crate::record::{ForkRecord, phase};
use crate::subject::COLLECTOR;

/// The mark of a phase that is not separable from another, and of cells with such a phase.
pub(super) const MARK: &str = "†";
/// The explanation of the mark.
pub(super) const FOOTNOTE: &str = "† A half streams: it sends while it writes, or reads while it receives. This phase \
    therefore contains parts of other phases or of the transfer, and only their sum can be compared.";
/// Runtimes by the name of their version entry.
const RUNTIMES: [(&str, &str); 3] = [("java", "the JVM"), ("python", "Python"), ("php", "PHP")];

/// The basis of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Basis {
    /// The whole exchange, which overlapping phases do not affect.
    Whole,
    /// These phases, each separately.
    Phases(&'static [&'static str]),
    /// All phases of the server together; if one streams, they include concurrent receiving and sending.
    Server,
    /// Memory of the client, as reserved by its runtime.
    Memory,
}

/// Sets a figure's kind and note according to its comparability.
pub(super) fn marked(figure: Figure, cell: &MeasuredCell, basis: Basis) -> Figure {
    let alike = |what: String| Figure { kind: format!("{ALIKE}{what}"), ..figure.clone() };
    match basis {
        Basis::Whole => figure,
        Basis::Phases(phases) => match objection(cell, phases) {
            Some(note) => Figure { kind: OVERLAPPING.to_owned(), note, ..figure },
            None => figure,
        },
        Basis::Server if streams(cell, phase::SERVICE) => {
            alike("time of a server with concurrent receiving and sending".to_owned())
        }
        Basis::Server => alike("time of a server alone".to_owned()),
        Basis::Memory => alike(format!("memory as {} reserves it", runtime(cell))),
    }
}

/// Returns the phases of a cell that are not separable, as a sentence; `None` if all are.
fn objection(cell: &MeasuredCell, phases: &[&str]) -> Option<String> {
    let blurred: Vec<&str> = phases.iter().copied().filter(|phase| streams(cell, phase)).collect();
    let who =
        if blurred.iter().any(|phase| OF_SERVERS.contains(phase)) { &cell.server } else { &cell.client };
    (!blurred.is_empty()).then(|| {
        format!(
            "the phases cannot be separated because the subject streams: {} of {who}",
            blurred.join(" and ")
        )
    })
}

/// Phases blurred by a server only.
const OF_SERVERS: [&str; 4] = [phase::SERVER_DESER, phase::SERVER_SER, phase::SERVICE, phase::OWD];

/// Returns true if a phase of a cell overlaps with another in any of its forks.
pub(super) fn streams(cell: &MeasuredCell, phase: &str) -> bool {
    cell.forks.iter().any(|fork| fork.overlaps(phase))
}

/// Returns the runtime of a cell's client, with its garbage collector if it has one.
fn runtime(cell: &MeasuredCell) -> String {
    let named: BTreeSet<String> = cell.forks.iter().map(runtime_of).collect();
    named.into_iter().collect::<Vec<_>>().join(" and ")
}

fn runtime_of(record: &ForkRecord) -> String {
    let version = |name: &str| record.subject.versions.get(&format!("client.{name}"));
    let known = RUNTIMES.into_iter().find(|(name, _)| version(name).is_some());
    let name = known.map_or("native code", |(_, name)| name);
    match version(COLLECTOR) {
        Some(collector) => format!("{name} ({collector} collector)"),
        None => name.to_owned(),
    }
}

#[cfg(test)]
mod tests;
