//! Every figure as CSV: one line for each cell and figure, and one for each fork.

use std::fmt::Write as _;

use super::basis::streams;
use super::figures::{self, Figure};
use super::payload::Payloads;
use super::{CONFIDENCE, Cell, Results, paper};
use crate::statistics::Samples;

const HEADER: &str = "study,experiment,variant,subject,stack,client,server,link,levels,metric,unit,fork,value,low,high,forks,kind,model,note";
/// What names of phases begin with, and what a metric of one ends with.
const PHASE: &str = "phase_";
const MEDIAN: &str = "_p50";
/// The note of a phase that cannot be told from another.
const BLURRED: &str = "overlaps: a half streams";
/// Shares of all exchanges of a cell within whose time they were over.
const QUANTILES: [(&str, f64); 2] = [("rtt_p95_all", 0.95), ("rtt_p99_all", 0.99)];

/// Writes the figures of cells (without a fork) and of forks (without an interval).
#[must_use]
pub fn sheet(results: &Results) -> String {
    let mut text = format!("{HEADER}\n");
    let mut payloads = Payloads::of(results);
    for cell in &results.cells {
        let about = about(results, cell);
        let payload = payloads.bytes(cell);
        let forks: Vec<(u32, Vec<Figure>)> =
            cell.forks.iter().map(|fork| (fork.fork, figures::of(fork, payload))).collect();
        for figure in kinds(&forks) {
            of_forks(&mut text, &about, figure, note(cell, &figure.id), &forks);
        }
        of_cell(&mut text, &about, results, cell);
    }
    text
}

fn about(results: &Results, cell: &Cell) -> String {
    let about = [
        &results.study,
        &cell.experiment,
        &cell.variant,
        &cell.subject,
        &cell.stack,
        &cell.client,
        &cell.server,
        &cell.link,
        &cell.levels_text(),
    ];
    about.map(|field| quoted(field)).join(",")
}

/// Lists the figures that any fork has, each once.
fn kinds(forks: &[(u32, Vec<Figure>)]) -> Vec<&Figure> {
    let mut kinds: Vec<&Figure> = Vec::new();
    for figure in forks.iter().flat_map(|(_, figures)| figures) {
        if !kinds.iter().any(|kind| kind.is_same(figure)) {
            kinds.push(figure);
        }
    }
    kinds
}

/// Says of a phase when it cannot be told from another.
fn note(cell: &Cell, id: &str) -> &'static str {
    let phase = id.strip_prefix(PHASE).or_else(|| id.strip_suffix(MEDIAN));
    phase.filter(|phase| streams(cell, phase)).map_or("", |_| BLURRED)
}

fn of_forks(text: &mut String, about: &str, kind: &Figure, note: &str, forks: &[(u32, Vec<Figure>)]) {
    let found: Vec<(u32, f64)> = forks
        .iter()
        .filter_map(|(fork, all)| Some((*fork, all.iter().find(|one| one.is_same(kind))?.value)))
        .collect();
    let start = format!("{about},{},{}", quoted(&kind.id), kind.unit);
    let end = format!("{},{},{note}", kind.kind, quoted(&kind.model));
    let samples: Samples = found.iter().map(|(_, value)| *value).collect();
    let count = found.len();
    // Writing to a string cannot fail.
    let _ = match samples.estimate(CONFIDENCE) {
        Some(one) => {
            let (low, high) = (bound(one.low), bound(one.high));
            writeln!(text, "{start},,{},{low},{high},{count},{end}", one.mean)
        }
        // Geometric means are of positive numbers; of others the median is told.
        None => writeln!(text, "{start},,{},,,{count},{end}", bound(samples.quantile(0.5))),
    };
    for (fork, value) in found {
        let _ = writeln!(text, "{start},{fork},{value},,,,{end}");
    }
}

/// What only a whole cell has: quantiles of all its exchanges, and the time that the paper prints.
fn of_cell(text: &mut String, about: &str, results: &Results, cell: &Cell) {
    let count = cell.forks.len();
    for (id, part) in QUANTILES {
        if let Some(one) = cell.quantile_ms(part) {
            let (low, high) = (bound(one.low), bound(one.high));
            let _ = writeln!(text, "{about},{id},ms,,{},{low},{high},{count},measured,,", one.value);
        }
    }
    if let Some(ms) = paper::published_ms(results, cell) {
        let _ = writeln!(text, "{about},published,ms,,{ms},,,,published,,");
    }
}

fn bound(end: Option<f64>) -> String {
    end.map_or_else(String::new, |end| end.to_string())
}

fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}
