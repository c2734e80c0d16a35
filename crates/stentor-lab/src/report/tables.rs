//! The tables of a report, once for every format.

use serde_json::Value;

use super::{Judged, Measured, Report, Row};
use crate::document::Table;
use crate::study::interval;

/// Writes a number, or a dash without one.
fn number(value: Option<f64>, digits: usize) -> String {
    value.map_or_else(|| "–".to_owned(), |value| format!("{value:.digits$}"))
}

fn consumers(row: &Row) -> String {
    row.consumers.map_or_else(|| "adaptive".to_owned(), |count| count.to_string())
}

/// Writes a cell's rate with its interval.
fn rate(one: &Measured) -> String {
    if !one.row.was_made() {
        return "not run".to_owned();
    }
    if !one.row.ended.is_empty() && one.runs == 0 {
        return "the server ended".to_owned();
    }
    let told = one.rate.map(|rate| interval(rate.median, rate.low, rate.high, 1));
    told.unwrap_or_else(|| format!("{:.1}, does not count", one.row.pushes_per_second))
}

fn runs(one: &Measured) -> String {
    let invalid = one.runs_invalid;
    if invalid == 0 { one.runs.to_string() } else { format!("{} of {}", one.runs, one.runs + invalid) }
}

/// Names what holds a rate.
fn limit(one: &Measured) -> String {
    one.limited_by.map_or_else(|| "–".to_owned(), |limit| limit.word().to_owned())
}

/// The verdicts, most important first: what the paper says, what its own table says, what ours says.
pub(super) fn claims(judged: &[Judged]) -> Table {
    let rows = judged.iter().filter(|one| one.claim.group.is_empty()).map(|one| {
        let note = if one.claim.note.is_empty() { String::new() } else { format!(" ({})", one.claim.note) };
        [
            format!("{}{note}", one.claim.text),
            one.claim.source.clone(),
            one.published.word().to_owned(),
            one.published_figures.clone(),
            one.ours.word().to_owned(),
            one.our_figures.clone(),
        ]
    });
    Table::new(["the paper says", "where", "its own figures", "", "ours", ""], rows)
}

/// The verdicts on what we conclude for a question.
pub(super) fn answers(judged: &[Judged], group: &str) -> Table {
    let ours = judged.iter().filter(|one| one.claim.group == group);
    let rows = ours.map(|one| [one.claim.text.clone(), one.ours.word().to_owned(), one.our_figures.clone()]);
    Table::new(["what was to be seen", "verdict", "ratios of rates, 95 % interval"], rows)
}

/// Rates beside the published ones.
pub(super) fn rates(cells: &[&Measured]) -> Table {
    let header = [
        "test",
        "mix",
        "in flight each",
        "pools",
        "runs",
        "pushes",
        "seconds",
        "pushes/s",
        "middle half",
        "published",
        "ratio",
    ];
    let rows = cells.iter().map(|one| {
        let row = &one.row;
        [
            row.id.clone(),
            row.mix.clone(),
            consumers(row),
            if row.pooled { "yes" } else { "no" }.to_owned(),
            runs(one),
            row.pushes.to_string(),
            format!("{:.2}", row.wall_seconds),
            rate(one),
            number(row.middle_pushes_per_second, 1),
            number(row.published_pushes_per_second, 0),
            number(row.ratio, 2),
        ]
    });
    Table::new(header, rows)
}

/// What Little's law says of each test.
pub(super) fn little(cells: &[&Measured]) -> Table {
    let header = [
        "test",
        "places",
        "taken on average",
        "bound, pushes/s",
        "measured",
        "share of bound",
        "held, ms",
        "held in the paper, ms",
        "what holds the rate",
    ];
    let rows = cells.iter().map(|one| {
        let row = &one.row;
        [
            row.id.clone(),
            one.places.map_or_else(|| "–".to_owned(), |places| places.to_string()),
            number(row.inflight_mean, 1),
            number(row.bound_pushes_per_second, 0),
            format!("{:.1}", row.pushes_per_second),
            number(row.share_of_bound, 2),
            number(row.held_ms, 1),
            number(row.published_held_ms, 1),
            limit(one),
        ]
    });
    Table::new(header, rows)
}

/// What was proven.
pub(super) fn proof(cells: &[&Measured]) -> Table {
    let header = [
        "test",
        "lost",
        "stuck",
        "duplicates",
        "attempts",
        "accepted",
        "refused",
        "books balance",
        "known devices",
        "saves",
        "saves p50, p99 ms",
    ];
    let rows = cells.iter().map(|one| {
        let row = &one.row;
        let [reached, listened] = row.known_devices_reached;
        [
            row.id.clone(),
            row.lost.to_string(),
            row.stuck.to_string(),
            row.duplicates.to_string(),
            row.attempts.to_string(),
            row.accepted.to_string(),
            row.rejected.to_string(),
            if row.ledger_balanced { "yes" } else { "NO" }.to_owned(),
            format!("{reached} of {listened}"),
            format!("{}, {} refused", row.saves, row.saves_failed),
            format!("{}, {}", number(row.saves_p50_ms, 1), number(row.saves_p99_ms, 1)),
        ]
    });
    Table::new(header, rows)
}

/// What it took.
pub(super) fn costs(cells: &[&Measured]) -> Table {
    let header = [
        "test",
        "p50 s",
        "p95 s",
        "p99 s",
        "most in flight",
        "connections",
        "opened",
        "server CPU s",
        "CPU µs per push",
        "server MiB",
        "emulators CPU s",
        "late p95 ms",
    ];
    let rows = cells.iter().map(|one| {
        let row = &one.row;
        let each = (row.pushes > 0).then(|| 1e6 * row.server_cpu_seconds / row.pushes as f64);
        [
            row.id.clone(),
            number(row.p50_seconds, 2),
            number(row.p95_seconds, 2),
            number(row.p99_seconds, 2),
            row.inflight_max.to_string(),
            row.connections_max.to_string(),
            row.connections_opened.to_string(),
            format!("{:.2}", row.server_cpu_seconds),
            number(each, 0),
            (row.server_peak_rss_bytes >> 20).to_string(),
            format!("{:.2}", row.emulators_cpu_seconds),
            number(row.lateness_p95_ms, 1),
        ]
    });
    Table::new(header, rows)
}

/// One question beyond the paper.
pub(super) fn group(cells: &[&Measured]) -> Table {
    // Where places are fixed it is they that are asked about, and apps are what stands for queues.
    let fairness = cells.iter().any(|one| one.row.fairness.is_some() && one.places.is_none());
    let last = if fairness { "fairness: to the end, midway" } else { "what holds the rate" };
    let header = [
        "run",
        "mix",
        "in flight each",
        "levels",
        "runs",
        "pushes/s",
        "bound",
        "taken of places",
        "held, ms",
        last,
    ];
    let rows = cells.iter().map(|one| {
        let row = &one.row;
        let taken = one.places.map_or_else(
            || number(row.inflight_mean, 0),
            |places| format!("{} of {places}", number(row.inflight_mean, 0)),
        );
        let shares = format!("{}, {}", number(row.fairness, 3), number(row.fairness_midway, 3));
        [
            row.id.clone(),
            row.mix.clone(),
            consumers(row),
            one.levels.clone(),
            runs(one),
            rate(one),
            number(row.bound_pushes_per_second, 0),
            taken,
            number(row.held_ms, 1),
            if fairness { shares } else { limit(one) },
        ]
    });
    Table::new(header, rows)
}

/// Runs that do not count, and why.
pub(super) fn uncounted(report: &Report) -> Table {
    let rows = report.uncounted().map(|row| {
        let why = [&row.skipped, &row.ended, &row.invalid].into_iter().find(|why| !why.is_empty());
        let rate = if row.was_made() { format!("{:.1}", row.pushes_per_second) } else { "–".to_owned() };
        [row.id.clone(), row.repetition.to_string(), rate, why.cloned().unwrap_or_default()]
    });
    Table::new(["test", "repetition", "pushes/s", "why it does not count"], rows)
}

/// Where and how.
pub(super) fn provenance(facts: &Value) -> Table {
    let facts = facts.as_object().into_iter().flatten();
    let rows = facts.map(|(name, value)| {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        [name.replace('_', " "), value]
    });
    Table::new(["what", "value"], rows)
}
