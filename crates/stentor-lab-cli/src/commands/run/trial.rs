//! One run of a cell: fresh processes with the settings of the cell, campaigns, and their record.

use super::background::Saves;
use super::known::KnownDevices;
use super::lateness;
use super::policy;
use super::proof::Proof;
use super::records::Looks;
use super::settings;
use super::site::{EMULATED, Site, part, services, topic};
use super::watch::{Watch, Watched};
use anyhow::Context;
use serde_json::{Value, json};
use std::time::{Duration, Instant};
use stentor_lab::plan::{Background, CampaignCell, PlatformMix, ProviderModel};
use stentor_lab::rates::fairness;
use stentor_lab::record::{
    CampaignRecord, Environment, FINISHED, ForkRecord, Instrument, NOT_MADE, RecordedLink, SCHEMA, Subject,
};
use stentor_lab::runner::{InstrumentWatch, Settings, environment, time_of_day};
use stentor_rig::cgroup::{self, Cgroup, CgroupLimits};
use stentor_stage::server::ProcessLimit;

/// Longest time from the break of its connections to the end of a server.
const END_LIMIT: Duration = Duration::from_secs(5);
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// Name of the stack in the role of the paper's prototype.
pub(super) const STACK: &str = "stentor-with-emulators";
/// The paper's name for it.
const LABEL: &str = "prototype";
/// The variant of the paper's own tests; other cells have their question.
const PAPER: &str = "paper";

/// A run to be made.
#[derive(Debug, Clone, Copy)]
pub(super) struct CampaignTrial<'a> {
    pub(super) cell: &'a CampaignCell,
    /// Number of the repetition, from 1.
    pub(super) fork: u32,
    /// Number of the attempt at this repetition, from 1.
    pub(super) attempt: u32,
    /// Response times of the push services, unless the cell has its own.
    pub(super) usual: ProviderModel,
    /// Time without progress after which the run is given up.
    pub(super) give_up_after: Duration,
    /// Settings of the study.
    pub(super) settings: &'a Settings,
}

/// Begins the record of a cell's fork.
pub(super) fn blank(cell: &CampaignCell, fork: u32) -> ForkRecord {
    let variant = if cell.question.is_empty() { PAPER } else { &cell.question };
    ForkRecord {
        schema: SCHEMA.to_owned(),
        variant: variant.to_owned(),
        experiment: cell.id.clone(),
        cell: cell.levels(),
        subject: Subject {
            label: LABEL.to_owned(),
            stack: STACK.to_owned(),
            client: "emulators".to_owned(),
            server: "stentor".to_owned(),
            versions: [("server.stentor".to_owned(), env!("CARGO_PKG_VERSION").to_owned())].into(),
        },
        link: RecordedLink { profile: "none".to_owned(), ..RecordedLink::default() },
        fork,
        ..ForkRecord::default()
    }
}

impl CampaignTrial<'_> {
    fn limits(&self) -> CgroupLimits {
        CgroupLimits {
            cpu_percent: self.cell.cpu_percent,
            memory_bytes: self.cell.memory_mib.map(|mib| u64::from(mib) << 20),
        }
    }

    /// The messages that are posted at once to each app.
    fn messages(&self, mark: &str) -> Vec<Value> {
        let producers = self.cell.producers;
        let targets: Vec<Value> = match services(self.cell.mix) {
            [service] if producers > 1 => {
                (0..producers).map(|at| json!({"topic": part(*service, producers, u64::from(at))})).collect()
            }
            [service] => vec![json!({"topic": topic(*service)})],
            _ => vec![json!("everyone")],
        };
        let message = |target| json!({"target": target, "notification": {"title": "Stentor", "body": mark}});
        targets.into_iter().map(message).collect()
    }

    /// Returns the environment of the run, with its present load.
    fn environment(&self) -> Environment {
        let is_limited = self.limits() != CgroupLimits::default();
        environment("loopback", if is_limited { cgroup::version() } else { "" }, "", &self.settings.commit)
    }

    /// Makes the record of this run.
    fn record(
        &self,
        load_before: f64,
        outcome: &str,
        invalid_reason: String,
        campaign: CampaignRecord,
    ) -> ForkRecord {
        let study = self.settings.study.clone();
        ForkRecord {
            run_id: format!("{study}-{}", self.settings.seed),
            ended: time_of_day(),
            study,
            attempt: self.attempt,
            seed: self.settings.seed,
            env: Environment { load_before, ..self.environment() },
            valid: invalid_reason.is_empty(),
            invalid_reason,
            outcome: outcome.to_owned(),
            campaign: Some(campaign),
            ..blank(self.cell, self.fork)
        }
    }

    /// Begins the results of this run.
    fn campaign(&self) -> CampaignRecord {
        let sent_as = match self.cell.mix {
            PlatformMix::Gcm => "FCM v1",
            PlatformMix::Apns => "APNs HTTP/2",
            PlatformMix::Both => "FCM v1 + APNs HTTP/2",
            PlatformMix::LegacyGcm => "GCM HTTP, over HTTP/2",
        };
        CampaignRecord {
            sent_as: sent_as.to_owned(),
            latency_mean_ms: self.cell.latency(self.usual).mean_ms(),
            note: self.cell.note.clone(),
            ..CampaignRecord::default()
        }
    }
}

/// Makes a run. A limit that cannot be set, or that ends the server, is recorded.
pub(super) async fn run(
    trial: CampaignTrial<'_>,
    site: &mut Site,
    looks: &mut Looks,
) -> anyhow::Result<ForkRecord> {
    let load_before = trial.environment().load_before;
    let cgroup = match Cgroup::make(trial.limits()) {
        Ok(cgroup) => cgroup,
        Err(refusal) => {
            return Ok(trial.record(load_before, NOT_MADE, refusal.to_string(), trial.campaign()));
        }
    };
    let apps = site.apps_for(trial.cell).await?;
    for service in EMULATED {
        let policy = policy::of(trial.cell, trial.usual, service, &site.known_tokens(&apps, service));
        site.emulators.of_mut(service)?.renew(policy).await?;
    }
    let measured = match site.server.restart_with(&settings::of(trial.cell), cgroup.map(limit)).await {
        Ok(()) => measure(trial, &apps, site, looks).await,
        Err(error) => Err(error),
    };
    match measured {
        Ok((campaign, instrument)) => {
            if campaign.stuck > 0 {
                site.cancel_running(&apps).await?;
            }
            let doubt = lateness::verdict(campaign.lateness_p95_ms);
            Ok(ForkRecord { instrument, ..trial.record(load_before, FINISHED, doubt, campaign) })
        }
        Err(error) if trial.limits() == CgroupLimits::default() => Err(error),
        Err(error) => {
            let ended = last_word(site).await.ok_or(error)?;
            site.server.restart_with("", None).await?;
            site.cancel_running(&apps).await?;
            Ok(trial.record(load_before, &ended, String::new(), trial.campaign()))
        }
    }
}

/// Returns the group as a limit of one process.
fn limit(cgroup: Cgroup) -> ProcessLimit {
    Box::new(move |process| cgroup.take(process).context("the server cannot be moved into its control group"))
}

/// Returns the reason for which the server ended, if it did: its connections break a little before the end can be observed.
async fn last_word(site: &mut Site) -> Option<String> {
    let started_at = Instant::now();
    while started_at.elapsed() < END_LIMIT {
        if let Err(error) = site.server.check_alive() {
            return Some(format!("{error:#}").lines().next().unwrap_or_default().to_owned());
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
    None
}

async fn measure(
    trial: CampaignTrial<'_>,
    apps: &[usize],
    site: &mut Site,
    looks: &mut Looks,
) -> anyhow::Result<(CampaignRecord, Instrument)> {
    let mark = format!("run {} of {}", trial.fork, trial.cell.id);
    let known = KnownDevices::listen(site, apps[0], trial.cell.mix, &mark).await?;
    let saves = Saves::start(&site.apps[apps[0]], background(trial.cell, site.background));
    let (before, lateness) = (site.server.usage(), InstrumentWatch::begin());
    let started = Instant::now();
    let mut campaigns = Vec::new();
    for app in apps {
        for message in trial.messages(&mark) {
            campaigns.push(Watched::post(&site.apps[*app].client, &message).await?);
        }
    }
    let mut watch = Watch::new(campaigns, site.audience(apps, trial.cell.mix), started);
    // Samples name a trial by its cell and its repetition.
    let name = format!("{},{}", trial.cell.id, trial.fork);
    watch.follow(&name, site, looks, trial.give_up_after).await?;
    // At once: the server's later work is not for these campaigns.
    let (usage, counts) = (site.server.usage(), saves.counts());
    let (instrument, lateness_p95_ms) = lateness.finish();
    let (saves_p50_ms, saves_p99_ms) = (saves.quantile_ms(0.5), saves.quantile_ms(0.99));
    // Before the wait for the known devices: the saves are counted already, and would only load the server.
    drop(saves);
    let known_devices_reached = known.reached().await;
    let connections_opened = site.connections_opened().await?;
    let proof = Proof::take(site, apps, trial.cell.mix)?;
    let campaign = CampaignRecord {
        connections_opened,
        known_devices_reached,
        saves: counts.0,
        saves_failed: counts.1,
        saves_p50_ms,
        saves_p99_ms,
        server_cpu_seconds: usage.cpu_seconds - before.cpu_seconds,
        server_peak_rss_bytes: usage.peak_rss_bytes,
        emulators_cpu_seconds: site.emulators.all_mut().iter_mut().map(|one| one.usage().cpu_seconds).sum(),
        lateness_p95_ms,
        ..record_of(trial, &watch, &proof)
    };
    Ok((campaign, instrument))
}

fn background(cell: &CampaignCell, usual: Background) -> Background {
    cell.saves_per_second.map_or(usual, |per_second| Background {
        device_saves_per_second: per_second,
        user_saves_per_second: per_second,
    })
}

fn record_of(trial: CampaignTrial<'_>, watch: &Watch, proof: &Proof) -> CampaignRecord {
    let ledgers = || watch.campaigns.iter().map(|one| &one.ledger);
    let totals = stentor_terminal::ledger::LedgerTotals {
        accepted: ledgers().map(|ledger| ledger.totals.accepted).sum(),
        rejected: ledgers().map(|ledger| ledger.totals.rejected).sum(),
        ..Default::default()
    };
    let audience: u64 = ledgers().map(|ledger| ledger.audience).sum();
    let (wall, settled) = (watch.wall().as_secs_f64(), totals.accepted + totals.rejected);
    let until = |part| watch.progress.seconds_until(part, proof.devices);
    let is_shared = trial.cell.apps > 1;
    CampaignRecord {
        pushes: proof.devices,
        wall_seconds: wall,
        pushes_per_second: settled as f64 / wall.max(1e-9),
        middle_pushes_per_second: watch.progress.middle_per_second(proof.devices),
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
        inflight_mean: watch.places.mean(proof.devices),
        connections_max: watch.connections_max,
        fairness: if is_shared { shared(watch) } else { None },
        fairness_midway: watch.midway.as_deref().filter(|_| is_shared).and_then(fairness),
        ..trial.campaign()
    }
}

/// Returns the evenness of the shared rate, up to the end of each campaign.
fn shared(watch: &Watch) -> Option<f64> {
    let rate = |one: &Watched| {
        let seconds = one.ended_after.map_or(f64::INFINITY, |after| after.as_secs_f64());
        one.ledger.totals.ended() as f64 / seconds
    };
    fairness(&watch.campaigns.iter().map(rate).collect::<Vec<f64>>())
}
