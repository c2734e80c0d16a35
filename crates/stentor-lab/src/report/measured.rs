//! What came of a cell: its runs, summed up over those that count.

use serde::Serialize;

use super::Row;
use crate::rates::Limit;
use crate::statistics::{Estimate, Samples};

/// Confidence of the intervals that are told.
const CONFIDENCE: f64 = 0.95;

/// A cell and its runs.
#[derive(Debug, Clone, Serialize)]
pub struct Measured {
    /// Medians over the runs that count; sums of what is amiss and the worst proof over all that were made.
    #[serde(flatten)]
    pub row: Row,
    /// The question beyond the paper that it belongs to; empty for the study's own tests.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// Levels that are not as in the study's tests.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub levels: String,
    /// Requests that may be in flight over all providers, if fixed.
    pub places: Option<u32>,
    /// What holds the rate; only told with kept connections and fixed places.
    pub limited_by: Option<Limit>,
    /// Pushes per second, with an interval from two runs on.
    pub rate: Option<Estimate>,
    /// The paper's rate over ours in the interval's other end, so that both directions can be read.
    pub ratio_interval: Option<[f64; 2]>,
    /// Runs that count.
    pub runs: usize,
    /// Runs that were made and do not count.
    pub runs_invalid: usize,
    /// Pushes per second of the runs that count, in the order of their repetitions.
    pub rates: Samples,
}

impl Measured {
    /// Sums up the runs of a cell; `None` without any.
    #[must_use]
    pub fn of(runs: &[Row], places: Option<u32>) -> Option<Self> {
        let valid: Vec<&Row> = runs.iter().filter(|row| row.is_valid()).collect();
        let made: Vec<&Row> = runs.iter().filter(|row| row.was_made()).collect();
        // Something is told of a cell of which no run counts: what was seen, and that it does not count.
        let told = if valid.is_empty() { made.clone() } else { valid.clone() };
        let first = told.first().copied().or(runs.first())?;
        let row = sum_up(first, &told, &made);
        let rates: Samples = valid.iter().map(|row| row.pushes_per_second).collect();
        let rate = rates.estimate(CONFIDENCE);
        let limited_by =
            places.filter(|_| row.pooled).and_then(|places| Limit::of(row.inflight_mean?, places.into()));
        let published = row.published_pushes_per_second;
        let over = |end: Option<f64>| Some(end? / published?);
        let ratio_interval = rate.and_then(|rate| Some([over(rate.low)?, over(rate.high)?]));
        Some(Self {
            row,
            group: String::new(),
            levels: String::new(),
            places,
            limited_by,
            rate,
            ratio_interval,
            runs: valid.len(),
            runs_invalid: made.len() - valid.len(),
            rates,
        })
    }
}

fn sum_up(first: &Row, told: &[&Row], made: &[&Row]) -> Row {
    let median = |of: fn(&Row) -> Option<f64>| {
        told.iter().filter_map(|row| of(row)).collect::<Samples>().quantile(0.5)
    };
    let sure = |of: fn(&Row) -> Option<f64>| median(of).unwrap_or_default();
    let most = |of: fn(&Row) -> u64| told.iter().map(|row| of(row)).max().unwrap_or_default();
    let sum = |of: fn(&Row) -> u64| made.iter().map(|row| of(row)).sum::<u64>();
    let worst = made
        .iter()
        .map(|row| row.known_devices_reached)
        .min_by_key(|[reached, count]| i64::from(*reached) - i64::from(*count));
    Row {
        repetition: 0,
        env: None,
        wall_seconds: sure(|row| Some(row.wall_seconds)),
        pushes_per_second: sure(|row| Some(row.pushes_per_second)),
        middle_pushes_per_second: median(|row| row.middle_pushes_per_second),
        ratio: median(|row| row.ratio),
        share_of_bound: median(|row| row.share_of_bound),
        held_ms: median(|row| row.held_ms),
        lost: sum(|row| row.lost),
        stuck: sum(|row| row.stuck),
        duplicates: sum(|row| row.duplicates),
        ledger_balanced: made.iter().all(|row| row.ledger_balanced),
        known_devices_reached: worst.unwrap_or_default(),
        saves_p50_ms: median(|row| row.saves_p50_ms),
        saves_p99_ms: median(|row| row.saves_p99_ms),
        p50_seconds: median(|row| row.p50_seconds),
        p95_seconds: median(|row| row.p95_seconds),
        p99_seconds: median(|row| row.p99_seconds),
        inflight_max: most(|row| row.inflight_max),
        inflight_mean: median(|row| row.inflight_mean),
        connections_max: most(|row| row.connections_max),
        connections_opened: most(|row| row.connections_opened),
        server_cpu_seconds: sure(|row| Some(row.server_cpu_seconds)),
        server_peak_rss_bytes: most(|row| row.server_peak_rss_bytes),
        emulators_cpu_seconds: sure(|row| Some(row.emulators_cpu_seconds)),
        fairness: median(|row| row.fairness),
        fairness_midway: median(|row| row.fairness_midway),
        lateness_p95_ms: median(|row| row.lateness_p95_ms),
        ..first.clone()
    }
}
