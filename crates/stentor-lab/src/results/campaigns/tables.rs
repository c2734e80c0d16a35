//! The tables of a campaign study.

use super::{CellSummary, JudgedClaim};
use crate::document::{TextColumn, TextTable};

/// A column of cells.
type SummaryColumn = TextColumn<'static, CellSummary>;

/// Formats a number, or a dash without one.
fn number(value: Option<f64>, digits: usize) -> String {
    value.map_or_else(|| "–".to_owned(), |value| format!("{value:.digits$}"))
}

/// Formats a figure with its interval, if it has one.
fn interval(figure: f64, low: Option<f64>, high: Option<f64>) -> String {
    let interval = low.zip(high).map(|(low, high)| format!(" [{low:.1}, {high:.1}]"));
    format!("{figure:.1}{}", interval.unwrap_or_default())
}

fn yes(so: bool) -> String {
    if so { "yes" } else { "no" }.to_owned()
}

fn table(cells: &[&CellSummary], columns: &[SummaryColumn]) -> TextTable {
    TextTable::of(cells.iter().copied(), columns)
}

const ID: SummaryColumn = ("test", &|one| one.id.clone());
const MIX: SummaryColumn = ("mix", &|one| one.mix.clone());
const CONSUMERS: SummaryColumn = ("in flight each", &consumers);
const RUNS: SummaryColumn = ("runs", &runs);
const RATE: SummaryColumn = ("pushes/s", &rate);
const HELD: SummaryColumn = ("held, ms", &|one| number(one.held_ms, 1));
const LIMIT: SummaryColumn =
    ("limited by", &|one| one.limited_by.map_or_else(|| "–".to_owned(), |limit| limit.word().to_owned()));

pub(super) fn consumers(one: &CellSummary) -> String {
    one.consumers.map_or_else(|| "adaptive".to_owned(), |count| count.to_string())
}

fn runs(one: &CellSummary) -> String {
    let (valid, invalid) = (one.runs, one.runs_invalid);
    if invalid == 0 { valid.to_string() } else { format!("{valid} of {}", valid + invalid) }
}

/// Formats a cell's rate with its interval.
fn rate(one: &CellSummary) -> String {
    if !one.was_made() {
        return "not run".to_owned();
    }
    if !one.ended.is_empty() && one.runs == 0 {
        return "the server ended".to_owned();
    }
    let median = one.rate.map(|rate| interval(rate.median, rate.low, rate.high));
    median.unwrap_or_else(|| format!("{:.1}, does not count", one.campaign.pushes_per_second))
}

/// A compact table of the cells' rates for a terminal: headings and rows.
#[must_use]
pub fn overview(cells: &[CellSummary]) -> ([&'static str; 10], Vec<[String; 10]>) {
    let columns: [SummaryColumn; 10] = [
        ID,
        MIX,
        ("in flight", &consumers),
        ("pools", &|one| yes(one.pooled)),
        ("runs", &|one| one.runs.to_string()),
        ("pushes/s", &|one| {
            let median = one.rate.map(|rate| interval(rate.median, rate.low, rate.high));
            median.unwrap_or_else(|| "does not count".to_owned())
        }),
        ("published", &|one| number(one.published_pushes_per_second, 0)),
        ("ratio", &|one| number(one.ratio, 2)),
        ("bound", &|one| number(one.bound_pushes_per_second, 0)),
        ("lost", &|one| one.campaign.lost.to_string()),
    ];
    let row = |one: &CellSummary| columns.map(|(_, write)| write(one));
    (columns.map(|(name, _)| name), cells.iter().map(row).collect())
}

/// Rates beside the published ones.
pub(super) fn rates(cells: &[&CellSummary]) -> TextTable {
    table(
        cells,
        &[
            ID,
            MIX,
            CONSUMERS,
            ("pools", &|one| yes(one.pooled)),
            RUNS,
            ("pushes", &|one| one.campaign.pushes.to_string()),
            ("seconds", &|one| format!("{:.2}", one.campaign.wall_seconds)),
            RATE,
            ("middle half", &|one| number(one.campaign.middle_pushes_per_second, 1)),
            ("published", &|one| number(one.published_pushes_per_second, 0)),
            ("ratio", &|one| number(one.ratio, 2)),
        ],
    )
}

/// The analysis of each test by Little's law.
pub(super) fn little(cells: &[&CellSummary]) -> TextTable {
    table(
        cells,
        &[
            ID,
            ("places", &|one| one.places.map_or_else(|| "–".to_owned(), |places| places.to_string())),
            ("taken on average", &|one| number(one.campaign.inflight_mean, 1)),
            ("bound, pushes/s", &|one| number(one.bound_pushes_per_second, 0)),
            ("measured", &|one| format!("{:.1}", one.campaign.pushes_per_second)),
            ("share of bound", &|one| number(one.share_of_bound, 2)),
            HELD,
            ("held in the paper, ms", &|one| number(one.published_held_ms, 1)),
            LIMIT,
        ],
    )
}

/// The proof of delivery.
pub(super) fn proof(cells: &[&CellSummary]) -> TextTable {
    table(
        cells,
        &[
            ID,
            ("lost", &|one| one.campaign.lost.to_string()),
            ("stuck", &|one| one.campaign.stuck.to_string()),
            ("duplicates", &|one| one.campaign.duplicates.to_string()),
            ("attempts", &|one| one.campaign.attempts.to_string()),
            ("accepted", &|one| one.campaign.accepted.to_string()),
            ("refused", &|one| one.campaign.rejected.to_string()),
            ("books balance", &|one| if one.campaign.ledger_balanced { "yes" } else { "NO" }.to_owned()),
            ("known devices", &|one| {
                let [reached, listened] = one.campaign.known_devices_reached;
                format!("{reached} of {listened}")
            }),
            ("saves", &|one| format!("{}, {} refused", one.campaign.saves, one.campaign.saves_failed)),
            ("saves p50, p99 ms", &|one| {
                format!("{}, {}", number(one.campaign.saves_p50_ms, 1), number(one.campaign.saves_p99_ms, 1))
            }),
        ],
    )
}

/// Times and resource use.
pub(super) fn costs(cells: &[&CellSummary]) -> TextTable {
    table(
        cells,
        &[
            ID,
            ("p50 s", &|one| number(one.campaign.p50_seconds, 2)),
            ("p95 s", &|one| number(one.campaign.p95_seconds, 2)),
            ("p99 s", &|one| number(one.campaign.p99_seconds, 2)),
            ("most in flight", &|one| one.campaign.inflight_max.to_string()),
            ("connections", &|one| one.campaign.connections_max.to_string()),
            ("opened", &|one| one.campaign.connections_opened.to_string()),
            ("server CPU s", &|one| format!("{:.2}", one.campaign.server_cpu_seconds)),
            ("CPU µs per push", &|one| {
                let pushes = Some(one.campaign.pushes).filter(|pushes| *pushes > 0);
                number(pushes.map(|pushes| 1e6 * one.campaign.server_cpu_seconds / pushes as f64), 0)
            }),
            ("server MiB", &|one| (one.campaign.server_peak_rss_bytes >> 20).to_string()),
            ("emulators CPU s", &|one| format!("{:.2}", one.campaign.emulators_cpu_seconds)),
            ("late p95 ms", &|one| number(one.campaign.lateness_p95_ms, 1)),
        ],
    )
}

/// One question beyond the paper.
pub(super) fn group(cells: &[&CellSummary]) -> TextTable {
    let taken: SummaryColumn = ("taken of places", &|one| {
        let of = one.places.map_or_else(String::new, |places| format!(" of {places}"));
        number(one.campaign.inflight_mean, 0) + &of
    });
    let fairness: SummaryColumn = ("fairness: to the end, midway", &|one| {
        format!("{}, {}", number(one.campaign.fairness, 3), number(one.campaign.fairness_midway, 3))
    });
    // If slots are fixed, the question concerns them, and apps represent queues.
    let is_shared = cells.iter().any(|one| one.campaign.fairness.is_some() && one.places.is_none());
    let levels: SummaryColumn = ("levels", &|one| one.levels.clone());
    let bound: SummaryColumn = ("bound", &|one| number(one.bound_pushes_per_second, 0));
    let last = if is_shared { fairness } else { LIMIT };
    table(cells, &[("run", ID.1), MIX, CONSUMERS, levels, RUNS, RATE, bound, taken, HELD, last])
}

/// The verdicts on our conclusions for a question.
pub(super) fn answers(answers: &[JudgedClaim], question: &str) -> TextTable {
    let ours = answers.iter().filter(|one| one.group == question);
    let rows = ours.map(|one| [one.text.clone(), one.ours.word().to_owned(), one.our_figures.clone()]);
    TextTable::new(["expectation", "verdict", "rates, 95 % interval"], rows)
}
