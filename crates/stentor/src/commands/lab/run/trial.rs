//! One trial: the server and the emulators as it wants them, campaigns, and what came of them.

use super::background::Saves;
use super::known::Known;
use super::proof::Proof;
use super::records::Records;
use super::site::{self, Site, halves, topic};
use super::watch::{Watch, Watched};
use crate::demo::DemoPolicy;
use crate::demo::fleet::Half;
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use stentor_lab::rates::fairness;
use stentor_lab::report::Row;
use stentor_lab::study::{Mix, ProviderModel, Scenario};

/// Devices in a chunk where consumers are fixed: enough chunks for all of them also at a small scale.
const CHUNK_DEVICES: usize = 50;

/// What is to be run.
#[derive(Debug, Clone)]
pub(super) struct Trial {
    pub(super) id: String,
    pub(super) mix: Mix,
    /// Requests in flight at each provider; the server decides when absent.
    pub(super) consumers: Option<u32>,
    pub(super) pooled: bool,
    pub(super) latency: ProviderModel,
    pub(super) answers: Answers,
    /// The apps that send at once.
    pub(super) apps: Vec<usize>,
}

/// What the emulators answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answers {
    Accepted,
    /// A few dead tokens, a few passing errors.
    Realistic,
}

impl Trial {
    /// One of the study's scenarios.
    pub(super) fn of(scenario: &Scenario, latency: ProviderModel) -> Self {
        let app = if scenario.mix == Mix::Both { site::BOTH } else { site::ONE };
        Self {
            id: scenario.id.clone(),
            mix: scenario.mix,
            consumers: Some(scenario.consumers),
            pooled: scenario.pooled,
            latency,
            answers: Answers::Accepted,
            apps: vec![app],
        }
    }

    /// A trial of both platforms that no paper has.
    pub(super) fn beyond(id: &str, consumers: Option<u32>, latency: ProviderModel, apps: Vec<usize>) -> Self {
        let (id, mix, answers) = (id.to_owned(), Mix::Both, Answers::Accepted);
        Self { id, mix, consumers, pooled: true, latency, answers, apps }
    }

    /// Counts the requests that may be in flight, if that is fixed: each app has connections of its own.
    pub(super) fn inflight_requests(&self) -> Option<u32> {
        self.consumers.map(|consumers| consumers * self.mix.providers() * self.apps.len() as u32)
    }

    /// The server's configuration: everything else is the default.
    fn server_settings(&self) -> String {
        let Some(consumers) = self.consumers else { return String::new() };
        let requests_line = if self.pooled { "" } else { "connection_max_requests = 1\n" };
        // One consumer more than there are: it is kept free for single messages, and idle here.
        format!(
            "[pipeline]\nchunk_max_devices = {CHUNK_DEVICES}\nconsumers_max = {}\nconsumer_max_batches = 1\n\
             urgent_share_percent = 0\n\n[sender]\nconnections_max_count = {consumers}\n\
             connection_max_inflight_requests = 1\ninflight_min_requests = {consumers}\n\
             inflight_max_requests = {consumers}\n{requests_line}",
            consumers as usize * self.apps.len() + 1
        )
    }

    fn policy(&self, half: Half) -> Value {
        let answers = match self.answers {
            Answers::Accepted => DemoPolicy::AcceptAll,
            Answers::Realistic => DemoPolicy::Realistic,
        };
        let mut policy = answers.of(half);
        let ProviderModel { latency_median_ms, latency_sigma } = self.latency;
        policy["latency"] =
            json!({"kind": "lognormal", "median_ms": latency_median_ms, "sigma": latency_sigma});
        policy
    }

    fn message(&self, mark: &str) -> Value {
        let target = match halves(self.mix) {
            [half] => json!({"topic": topic(*half)}),
            _ => json!("everyone"),
        };
        json!({"target": target, "notification": {"title": "Stentor", "body": mark}})
    }
}

/// Runs a trial.
pub(super) async fn run(
    trial: &Trial,
    site: &mut Site,
    records: &mut Records,
    give_up_after: Duration,
) -> anyhow::Result<Row> {
    site.fcm.renew(trial.policy(Half::Fcm)).await?;
    site.apns.renew(trial.policy(Half::Apns)).await?;
    site.server.restart_with(&trial.server_settings()).await?;
    let mark = format!("trial {}", trial.id);
    let (first, listeners) = (trial.apps[0], trial.answers == Answers::Accepted);
    let known = if listeners { Some(Known::listen(site, first, trial.mix, &mark).await?) } else { None };
    let saves = Saves::start(&site.apps[first], site.background);
    let before = site.server.usage();
    let started = Instant::now();
    let mut campaigns = Vec::new();
    for app in &trial.apps {
        campaigns.push(Watched::post(&site.apps[*app].client, &trial.message(&mark)).await?);
    }
    let mut watch = Watch::new(campaigns, started);
    watch.follow(&trial.id, site, records, give_up_after).await?;
    let (usage, counts) = (site.server.usage(), saves.counts());
    drop(saves);
    let known_devices_reached = match known {
        Some(known) => known.reached().await,
        None => [0, 0],
    };
    let connections_opened = site.connections_opened().await?;
    let proof = Proof::take(site, &trial.apps, trial.mix)?;
    let mut row = told(trial, &watch, &proof);
    row.connections_opened = connections_opened;
    row.known_devices_reached = known_devices_reached;
    (row.saves, row.saves_failed) = counts;
    row.server_cpu_seconds = usage.cpu_seconds - before.cpu_seconds;
    row.server_peak_rss_bytes = usage.peak_rss_bytes;
    Ok(row)
}

fn told(trial: &Trial, watch: &Watch, proof: &Proof) -> Row {
    let ledgers = || watch.campaigns.iter().map(|one| &one.ledger);
    let totals = crate::ledger::Totals {
        accepted: ledgers().map(|ledger| ledger.totals.accepted).sum(),
        rejected: ledgers().map(|ledger| ledger.totals.rejected).sum(),
        ..Default::default()
    };
    let audience: u64 = ledgers().map(|ledger| ledger.audience).sum();
    let (wall, settled) = (watch.wall().as_secs_f64(), totals.accepted + totals.rejected);
    let until = |part| watch.progress.seconds_until(part, proof.devices);
    Row {
        id: trial.id.clone(),
        consumers: trial.consumers,
        mix: trial.mix.word().to_owned(),
        pooled: trial.pooled,
        sent_as: match trial.mix {
            Mix::Gcm => "FCM v1",
            Mix::Apns => "APNs HTTP/2",
            Mix::Both => "FCM v1 + APNs HTTP/2",
        },
        pushes: proof.devices,
        wall_seconds: wall,
        pushes_per_second: settled as f64 / wall.max(1e-9),
        middle_pushes_per_second: watch.progress.middle_per_second(proof.devices),
        latency_mean_ms: trial.latency.mean_ms(),
        accepted: totals.accepted,
        rejected: totals.rejected,
        lost: proof.lost(audience, &totals),
        stuck: ledgers().map(|ledger| ledger.totals.open()).sum(),
        duplicates: proof.duplicates,
        attempts: ledgers().map(|ledger| ledger.attempts).sum(),
        ledger_balanced: watch.campaigns.iter().all(|one| one.balanced && one.ledger.sums_up()),
        p50_seconds: until(0.5),
        p95_seconds: until(0.95),
        p99_seconds: until(0.99),
        inflight_max: watch.inflight_max,
        connections_max: watch.connections_max,
        fairness: shared(watch),
        ..Row::default()
    }
}

/// Tells how evenly the rate was shared, when several apps sent at once.
fn shared(watch: &Watch) -> Option<f64> {
    let rate = |one: &Watched| {
        let seconds = one.ended_after.map_or(f64::INFINITY, |after| after.as_secs_f64());
        one.ledger.totals.ended() as f64 / seconds
    };
    let rates: Vec<f64> = watch.campaigns.iter().map(rate).collect();
    if rates.len() > 1 { fairness(&rates) } else { None }
}
