//! What a figure of ours rests on, and what that forbids: phases that run into one another, and memory of several runtimes.

use std::collections::BTreeSet;

use super::MeasuredCell;
use crate::claims::figures::{ALIKE, Figure, OVERLAPPING};
use crate::record::{ForkRecord, phase};
use crate::subject::COLLECTOR;

/// What marks a phase, or a cell with one, that cannot be told from another.
pub(super) const MARK: &str = "†";
/// What the mark means.
pub(super) const FOOTNOTE: &str = "† A half streams: it sends while it writes, or reads while it receives, so that this phase \
    holds parts of others or of the way and cannot be told apart; only what holds all of them can be compared.";
/// Runtimes by the name under which their version is told.
const RUNTIMES: [(&str, &str); 3] = [("java", "the JVM"), ("python", "Python"), ("php", "PHP")];

/// What a figure rests on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Basis {
    /// Something whole: nothing can run into it.
    Whole,
    /// These phases, each by itself.
    Phases(&'static [&'static str]),
    /// All phases of the server together: with one that streams, what is received and sent meanwhile is in it.
    Server,
    /// Memory of the client, which runtimes reserve as they please.
    Memory,
}

/// Notes in a figure's kind and note what it may be compared with.
pub(super) fn marked(figure: Figure, cell: &MeasuredCell, basis: Basis) -> Figure {
    let alike = |what: String| Figure { kind: format!("{ALIKE}{what}"), ..figure.clone() };
    match basis {
        Basis::Whole => figure,
        Basis::Phases(phases) => match objection(cell, phases) {
            Some(note) => Figure { kind: OVERLAPPING.to_owned(), note, ..figure },
            None => figure,
        },
        Basis::Server if streams(cell, phase::SERVICE) => {
            alike("time of a server with what it receives and sends meanwhile".to_owned())
        }
        Basis::Server => alike("time of a server alone".to_owned()),
        Basis::Memory => alike(format!("memory as {} reserves it", runtime(cell))),
    }
}

/// Returns which of these phases of a cell cannot be told from others.
fn objection(cell: &MeasuredCell, phases: &[&str]) -> Option<String> {
    let blurred: Vec<&str> = phases.iter().copied().filter(|phase| streams(cell, phase)).collect();
    let who =
        if blurred.iter().any(|phase| OF_SERVERS.contains(phase)) { &cell.server } else { &cell.client };
    (!blurred.is_empty()).then(|| {
        format!(
            "the phases cannot be told apart because the subject streams: {} of {who}",
            blurred.join(" and ")
        )
    })
}

/// Phases that only a server blurs.
const OF_SERVERS: [&str; 4] = [phase::SERVER_DESER, phase::SERVER_SER, phase::SERVICE, phase::OWD];

/// Returns whether a phase of a cell cannot be told from another, in any of its forks.
pub(super) fn streams(cell: &MeasuredCell, phase: &str) -> bool {
    cell.forks.iter().any(|fork| fork.overlaps(phase))
}

/// Names what a cell's client runs on, with its collector where it has one.
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
