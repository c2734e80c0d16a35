//! All figures as CSV: one line for each cell and figure, and one for each fork; then ratios of subjects and effects of factors, with their
//! base in the last column.

use std::fmt::Write as _;

use super::basis::streams;
use super::figures::{self, ForkFigure};
use super::payload::Payloads;
use super::{CONFIDENCE, Design, MeasuredCell, RatioRow, Results, designs, paper, ratios};
use crate::statistics::{Effect, QuantileEstimate, Samples};

const HEADER: &str = "study,experiment,variant,subject,stack,client,server,link,levels,metric,unit,fork,value,low,high,forks,kind,model,note,against";
/// Prefix of the ids of phases, and below the suffix of metrics of a phase.
const PHASE: &str = "phase_";
const MEDIAN: &str = "_p50";
/// The note of a phase that overlaps with another.
const BLURRED: &str = "overlaps: a half streams";
/// Quantiles over all exchanges of a cell.
const QUANTILES: [(&str, f64); 2] = [("rtt_p95_all", 0.95), ("rtt_p99_all", 0.99)];

/// Writes the figures of cells (lines without a fork) and of forks (lines without an interval).
#[must_use]
pub fn sheet(results: &Results) -> String {
    let mut text = format!("{HEADER}\n");
    let mut payloads = Payloads::of(results);
    for cell in &results.cells {
        let about = about(results, cell);
        let payload = payloads.bytes(cell);
        let forks: Vec<(u32, Vec<ForkFigure>)> =
            cell.forks.iter().map(|fork| (fork.fork, figures::of(fork, payload))).collect();
        for figure in kinds(&forks) {
            of_forks(&mut text, &about, figure, note(cell, &figure.id), &forks);
        }
        of_cell(&mut text, &about, results, cell);
    }
    for group in ratios(results) {
        group.rows.iter().for_each(|row| of_ratio(&mut text, &about(results, row.cell), row, &group.base));
    }
    designs(results).iter().for_each(|design| of_design(&mut text, &results.study, design));
    text
}

fn about(results: &Results, cell: &MeasuredCell) -> String {
    let identity = cell.identity();
    let about = std::iter::once(&results.study).chain(&identity);
    about.map(|field| quoted(field)).collect::<Vec<_>>().join(",")
}

/// Lists the distinct figures of all forks.
fn kinds(forks: &[(u32, Vec<ForkFigure>)]) -> Vec<&ForkFigure> {
    let mut kinds: Vec<&ForkFigure> = Vec::new();
    for figure in forks.iter().flat_map(|(_, figures)| figures) {
        if !kinds.iter().any(|kind| kind.is_same(figure)) {
            kinds.push(figure);
        }
    }
    kinds
}

/// Returns the note for a figure of an overlapping phase; empty for any other.
fn note(cell: &MeasuredCell, id: &str) -> &'static str {
    let phase = id.strip_prefix(PHASE).or_else(|| id.strip_suffix(MEDIAN));
    phase.filter(|phase| streams(cell, phase)).map_or("", |_| BLURRED)
}

fn of_forks(text: &mut String, about: &str, kind: &ForkFigure, note: &str, forks: &[(u32, Vec<ForkFigure>)]) {
    let found: Vec<(u32, f64)> = forks
        .iter()
        .filter_map(|(fork, all)| Some((*fork, all.iter().find(|one| one.is_same(kind))?.value)))
        .collect();
    let start = format!("{about},{},{}", quoted(&kind.id), kind.unit);
    let end = format!("{},{},{note},", kind.kind, quoted(&kind.model));
    let samples: Samples = found.iter().map(|(_, value)| *value).collect();
    let count = found.len();
    // Writing to a string cannot fail.
    let _ = match samples.estimate(CONFIDENCE) {
        Some(one) => {
            let (low, high) = (bound(one.low), bound(one.high));
            writeln!(text, "{start},,{},{low},{high},{count},{end}", one.mean)
        }
        // Geometric means require positive numbers; otherwise the median is written.
        None => writeln!(text, "{start},,{},,,{count},{end}", bound(samples.quantile(0.5))),
    };
    for (fork, value) in found {
        let _ = writeln!(text, "{start},{fork},{value},,,,{end}");
    }
}

/// Writes the figures of a whole cell: quantiles of all its exchanges, and the paper's time.
fn of_cell(text: &mut String, about: &str, results: &Results, cell: &MeasuredCell) {
    let count = cell.forks.len();
    for (id, part) in QUANTILES {
        if let Some(one) = cell.quantile_ms(part) {
            let QuantileEstimate { value, low, high } = one;
            let _ = writeln!(text, "{about},{id},ms,,{value},{low},{high},{count},measured,,,");
        }
    }
    if let Some(ms) = paper::published_ms(results, cell) {
        let _ = writeln!(text, "{about},published,ms,,{ms},,,,published,,,");
    }
}

/// Writes the ratio of a subject's time to that of its base, here and in the paper.
fn of_ratio(text: &mut String, about: &str, row: &RatioRow<'_>, base: &str) {
    let base = quoted(base);
    if let Some(ours) = row.ours {
        let (low, high, count) = (bound(ours.low), bound(ours.high), row.cell.forks.len());
        let _ = writeln!(text, "{about},ratio,,,{},{low},{high},{count},measured,,,{base}", ours.ratio);
    }
    if let Some(published) = row.published {
        let _ = writeln!(text, "{about},ratio,,,{published},,,,published,,,{base}");
    }
}

/// Writes the effects of a design: the levels column names the factors, the value is the ratio of high to low levels.
fn of_design(text: &mut String, study: &str, design: &Design) {
    let part =
        [study, &design.experiment, &design.variant, "", &design.stack, "", "", ""].map(quoted).join(",");
    let mut line = |factors: &str, metric: &str, unit: &str, figures: &str, against: &str| {
        let (factors, against, forks) = (quoted(factors), quoted(against), design.forks);
        let _ = writeln!(text, "{part},{factors},{metric},{unit},,{figures},{forks},measured,,,{against}");
    };
    let times = |effect: f64| (2.0 * effect).exp();
    for effect in &design.effects.effects {
        let against = levels(design, effect);
        let (low, high) = (bound(effect.low.map(times)), bound(effect.high.map(times)));
        line(&effect.name, "effect", "", &format!("{},{low},{high}", times(effect.effect)), &against);
        line(&effect.name, "effect_share", "%", &format!("{},,", 100.0 * effect.share), &against);
    }
    line(
        "runs of the same cell",
        "effect_share",
        "%",
        &format!("{},,", 100.0 * design.effects.error_share),
        "",
    );
}

/// Returns the levels of the factors in an effect.
fn levels(design: &Design, effect: &Effect) -> String {
    let of_effect = |name: &str| effect.name.split(" x ").any(|factor| factor == name);
    let levels_of_effect = design.factors.iter().filter(|(name, _)| of_effect(name));
    levels_of_effect.map(|(name, [low, high])| format!("{name}={low}..{high}")).collect::<Vec<_>>().join(";")
}

fn bound(end: Option<f64>) -> String {
    end.map_or_else(String::new, |end| end.to_string())
}

/// Quotes a CSV field if necessary.
pub(super) fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

#[cfg(test)]
mod tests;
