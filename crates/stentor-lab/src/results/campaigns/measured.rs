//! The results of a campaign cell: its runs, summarized over the valid ones.

use crate::claims::figures::{Figure, FigureValue, Figures};
use crate::plan::CampaignCell;
use crate::rates::{RateBound, bound_per_second, mean_seconds};
use crate::record::{CampaignRecord, Environment, FINISHED, ForkRecord, NOT_MADE};
use crate::results::CONFIDENCE;
use crate::statistics::{Estimate, Samples};
use serde::Serialize;

/// A cell with its runs, or a single run.
#[derive(Debug, Clone, Serialize)]
pub struct CellSummary {
    /// The cell's name.
    pub id: String,
    /// Number of the repetition, from 1; 0 for a summary of several.
    pub repetition: u32,
    /// Requests in flight at each provider; absent if the server decides.
    pub consumers: Option<u32>,
    /// The platforms.
    pub mix: String,
    /// True if connections were kept open.
    pub pooled: bool,
    /// Medians over the valid runs; sums of errors and the worst proof over all runs made.
    #[serde(flatten)]
    pub campaign: CampaignRecord,
    /// The paper's rate.
    pub published_pushes_per_second: Option<f64>,
    /// Our rate over the paper's.
    pub ratio: Option<f64>,
    /// The bound by Little's law for the modelled latency.
    pub bound_pushes_per_second: Option<f64>,
    /// The measured rate over the bound.
    pub share_of_bound: Option<f64>,
    /// Time that a push occupied its slot, by Little's law from the measured rate.
    pub held_ms: Option<f64>,
    /// The same for the paper's rate.
    pub published_held_ms: Option<f64>,
    /// The reason for being invalid; empty if the run is valid, or for a summary.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub invalid: String,
    /// The reason for which it was not made, such as missing rights; empty if it was made.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub skipped: String,
    /// The premature end of the server; empty if there was none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub ended: String,
    /// Machine, load and program of a single run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub env: Option<Environment>,
    /// The question beyond the paper that it belongs to; empty for the study's own tests.
    #[serde(rename = "group", skip_serializing_if = "String::is_empty")]
    pub question: String,
    /// Levels that differ from the study's tests.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub levels: String,
    /// Slots for requests in flight over all providers, if fixed.
    pub places: Option<u32>,
    /// The bound of the rate; only known with kept connections and fixed slots.
    pub limited_by: Option<RateBound>,
    /// Pushes per second, with an interval from two runs.
    pub rate: Option<Estimate>,
    /// The interval of the ratio to the paper's rate.
    pub ratio_interval: Option<[f64; 2]>,
    /// Number of valid runs.
    pub runs: usize,
    /// Number of invalid runs.
    pub runs_invalid: usize,
    /// Pushes per second of the valid runs, in the order of their repetitions.
    pub rates: Samples,
}

impl CellSummary {
    /// Summarizes the records of a cell; `None` without any.
    pub(super) fn of(
        cell: &CampaignCell,
        figures: Option<&Figures>,
        records: &[&ForkRecord],
    ) -> Option<Self> {
        let made: Vec<&ForkRecord> = records.iter().copied().filter(|one| one.outcome != NOT_MADE).collect();
        let valid: Vec<&ForkRecord> =
            made.iter().copied().filter(|one| one.pushes_per_second().is_some()).collect();
        // A cell without valid runs is reported too, from its invalid ones.
        let counted = if valid.is_empty() { &made } else { &valid };
        let first = *counted.first().or(records.first())?;
        let [invalid, skipped, ended] = what_is_amiss(first);
        let rates: Samples = valid.iter().filter_map(|one| one.pushes_per_second()).collect();
        let one = Self {
            id: cell.id.clone(),
            repetition: 0,
            consumers: cell.consumers,
            mix: cell.mix.word().to_owned(),
            pooled: cell.pooled,
            campaign: sum_up(first, counted, &made),
            published_pushes_per_second: figures.and_then(|figures| published(figures, &cell.id)),
            ratio: None,
            bound_pushes_per_second: None,
            share_of_bound: None,
            held_ms: None,
            published_held_ms: None,
            invalid,
            skipped,
            ended,
            env: None,
            question: cell.question.clone(),
            levels: cell.levels_text(),
            places: cell.inflight_requests(),
            limited_by: None,
            rate: rates.estimate(CONFIDENCE),
            ratio_interval: None,
            runs: valid.len(),
            runs_invalid: made.len() - valid.len(),
            rates,
        };
        Some(one.derived())
    }

    /// Returns the summary of a single run.
    pub(super) fn of_run(
        cell: &CampaignCell,
        figures: Option<&Figures>,
        record: &ForkRecord,
    ) -> Option<Self> {
        let one = Self::of(cell, figures, &[record])?;
        Some(Self { repetition: record.fork, env: Some(record.env.clone()), ..one })
    }

    /// Returns true if a run was made.
    #[must_use]
    pub const fn was_made(&self) -> bool {
        self.skipped.is_empty()
    }

    /// Computes the values derived from the rate, the slots and the latency.
    fn derived(mut self) -> Self {
        let ratio = |a: f64, b: f64| (b > 0.0).then(|| a / b);
        let rate = self.campaign.pushes_per_second;
        let published = self.published_pushes_per_second;
        self.ratio = published.and_then(|published| ratio(rate, published));
        let end = |end: Option<f64>| ratio(end?, published?);
        self.ratio_interval = self.rate.and_then(|rate| Some([end(rate.low)?, end(rate.high)?]));
        let Some(places) = self.places.map(f64::from) else { return self };
        let held = |rate: f64| (rate > 0.0).then(|| 1000.0 * mean_seconds(places, rate));
        (self.held_ms, self.published_held_ms) = (held(rate), published.and_then(held));
        if self.campaign.latency_mean_ms > 0.0 {
            let bound = bound_per_second(places, self.campaign.latency_mean_ms / 1000.0);
            (self.bound_pushes_per_second, self.share_of_bound) = (Some(bound), ratio(rate, bound));
        }
        if self.pooled {
            self.limited_by = self.campaign.inflight_mean.and_then(|taken| RateBound::of(taken, places));
        }
        self
    }
}

/// Returns the reason for an invalid run, the reason for a run not made, and the premature end of the server; each is empty if it does not
/// apply.
fn what_is_amiss(record: &ForkRecord) -> [String; 3] {
    let none = String::new;
    match record.outcome.as_str() {
        FINISHED => [record.invalid_reason.clone(), none(), none()],
        NOT_MADE => [none(), record.invalid_reason.clone(), none()],
        ended => [none(), none(), ended.to_owned()],
    }
}

/// Returns the rate of a test in the paper's table.
fn published(figures: &Figures, id: &str) -> Option<f64> {
    let is_it = |figure: &&Figure| {
        figure.experiment == id
            && figure.metric == "throughput"
            && figure.kind == "published"
            && figure.source.starts_with("Table")
    };
    match figures.iter().find(is_it)?.value {
        FigureValue::Number(rate) => Some(rate.value),
        FigureValue::Word(_) | FigureValue::Absent => None,
    }
}

fn sum_up(first: &ForkRecord, counted: &[&ForkRecord], made: &[&ForkRecord]) -> CampaignRecord {
    let all = |records: &[&ForkRecord]| -> Vec<CampaignRecord> {
        records.iter().filter_map(|one| one.campaign.clone()).collect()
    };
    let (counted, made) = (all(counted), all(made));
    let median = |of: fn(&CampaignRecord) -> Option<f64>| {
        counted.iter().filter_map(of).collect::<Samples>().quantile(0.5)
    };
    let sure = |of: fn(&CampaignRecord) -> Option<f64>| median(of).unwrap_or_default();
    let most = |of: fn(&CampaignRecord) -> u64| counted.iter().map(of).max().unwrap_or_default();
    let sum = |of: fn(&CampaignRecord) -> u64| made.iter().map(of).sum::<u64>();
    let reached = made.iter().map(|one| one.known_devices_reached);
    let worst = reached.min_by_key(|[reached, count]| i64::from(*reached) - i64::from(*count));
    CampaignRecord {
        wall_seconds: sure(|one| Some(one.wall_seconds)),
        pushes_per_second: sure(|one| Some(one.pushes_per_second)),
        middle_pushes_per_second: median(|one| one.middle_pushes_per_second),
        lost: sum(|one| one.lost),
        stuck: sum(|one| one.stuck),
        duplicates: sum(|one| one.duplicates),
        ledger_balanced: made.iter().all(|one| one.ledger_balanced),
        known_devices_reached: worst.unwrap_or_default(),
        saves_p50_ms: median(|one| one.saves_p50_ms),
        saves_p99_ms: median(|one| one.saves_p99_ms),
        p50_seconds: median(|one| one.p50_seconds),
        p95_seconds: median(|one| one.p95_seconds),
        p99_seconds: median(|one| one.p99_seconds),
        inflight_max: most(|one| one.inflight_max),
        inflight_mean: median(|one| one.inflight_mean),
        connections_max: most(|one| one.connections_max),
        connections_opened: most(|one| one.connections_opened),
        server_cpu_seconds: sure(|one| Some(one.server_cpu_seconds)),
        server_peak_rss_bytes: most(|one| one.server_peak_rss_bytes),
        emulators_cpu_seconds: sure(|one| Some(one.emulators_cpu_seconds)),
        fairness: median(|one| one.fairness),
        fairness_midway: median(|one| one.fairness_midway),
        lateness_p95_ms: median(|one| one.lateness_p95_ms),
        ..first.campaign.clone().unwrap_or_default()
    }
}
