//! Sends one campaign to everyone and follows it to its end, with kills on the way if configured.

use super::kills::{KillSchedule, KillTarget, Kills};
use super::options::{DemoOptions, SECONDS_PER_KILL};
use crate::child_process::ResourceUsage;
use crate::emulated::elapsed_text;
use crate::engines::EngineSeconds;
use crate::ledger::CampaignLedger;
use crate::nodes::{self, NodeFigures};
use crate::reporter::{Phase, Reporter};
use crate::stage::Stage;
use crate::text::{cell, thousands};
use crate::troubles::AcceptanceCheck;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// Seldom, where nothing is timed by it: each look costs the server that is measured.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// The polling interval when kills have to be timed, or when the whole campaign lasts a second.
const SHORT_POLL_INTERVAL: Duration = Duration::from_millis(10);
/// The polling interval with kills to be timed in a campaign of a second: two thousand deliveries end in that interval.
const KILLING_POLL_INTERVAL: Duration = Duration::from_millis(2);

/// The durations of emulator pauses: one beyond a sender's patience with a silent connection, and one within it.
const STALLS: [Duration; 2] = [Duration::from_secs(6), Duration::from_secs(1)];

/// The result of a campaign.
pub struct CampaignResult {
    /// The books at the end.
    pub ledger: CampaignLedger,
    /// True if the books balanced at every reading.
    pub always_balanced: bool,
    /// The time from the 202 to the ledger that reports everything as settled.
    pub wall_seconds: f64,
    /// The processor time of the servers' processes in that time.
    pub cpu_seconds: f64,
    /// The same for each server that is looked at alone.
    pub nodes: Vec<NodeFigures>,
    /// The processor time of the servers behind its store and queue in that time.
    pub engine_seconds: EngineSeconds,
    /// The most memory that the servers had resident until then.
    pub peak_rss_bytes: u64,
    /// The number of kills, pauses and troubles that happened.
    pub done: Kills,
    /// The check of the messages sent to the server during its trouble.
    pub acceptance: AcceptanceCheck,
    /// Deliveries without a final state when the campaign was over, or given up.
    pub stuck: u64,
}

impl CampaignResult {
    /// Returns true if the books balanced at every reading, by the server's report and by our own sum.
    pub fn is_balanced(&self) -> bool {
        self.always_balanced && self.ledger.balanced && self.ledger.sums_up()
    }
}

/// Sends and watches.
pub(super) async fn run(
    options: &DemoOptions,
    stage: &mut Stage,
    reporter: &dyn Reporter,
) -> anyhow::Result<CampaignResult> {
    let devices = options.stage.devices;
    let (before, engines_before) = (stage.usages(), stage.engines.used());
    let reply = stage.client.post("/v1/messages", &message()).await?;
    let accepted_at = Instant::now();
    let mut running = RunningCampaign {
        stage,
        campaign: cell(&reply["campaign"]),
        plan: KillSchedule::new(options.kills, SECONDS_PER_KILL, options.stage.seed),
        progress: reporter.begin("campaign", devices),
        devices,
        is_fast: options.stage.services.are_sinks(),
        give_up_after: options.give_up_after,
        done: Kills::default(),
        acceptance: AcceptanceCheck::default(),
        always_balanced: true,
        latest: CampaignLedger::default(),
        moved_at: accepted_at,
    };
    running.follow().await?;
    let wall_seconds = accepted_at.elapsed().as_secs_f64();
    let engine_seconds = running.stage.engines.used().since(engines_before);
    let nodes = figures(running.stage, &before, options.kills == Kills::default()).await?;
    running.acceptance.check_kept(&running.stage.client, running.give_up_after).await;
    let cpu_seconds = nodes.iter().map(|node| node.cpu_seconds).sum();
    let peak_rss_bytes = nodes.iter().map(|node| node.peak_rss_bytes).sum();
    let RunningCampaign { progress, always_balanced, latest: ledger, done, acceptance, .. } = running;
    progress.finish(ledger.totals.ended());
    // Devices that are not even in the books have no final state either.
    let stuck = ledger.totals.open() + devices.saturating_sub(ledger.audience);
    Ok(CampaignResult {
        ledger,
        always_balanced,
        wall_seconds,
        cpu_seconds,
        nodes,
        engine_seconds,
        peak_rss_bytes,
        done,
        acceptance,
        stuck,
    })
}

/// Returns the usage of each server since the earlier readings; attempts only if no server was killed.
async fn figures(
    stage: &mut Stage,
    before: &[ResourceUsage],
    counts: bool,
) -> anyhow::Result<Vec<NodeFigures>> {
    let mut figures = Vec::new();
    for (server, before) in stage.servers().zip(before) {
        // Read before the metrics are requested, because that request costs processor time as well.
        let usage = server.usage();
        let attempts = if counts { Some(nodes::attempts(server).await?) } else { None };
        let cpu_seconds = usage.cpu_seconds - before.cpu_seconds;
        figures.push(NodeFigures { cpu_seconds, peak_rss_bytes: usage.peak_rss_bytes, attempts });
    }
    Ok(figures)
}

pub(super) fn message() -> Value {
    json!({
        "target": "everyone",
        "notification": {"title": "Stentor", "body": "One request, every device."},
        "data": {"kind": "demo"},
    })
}

struct RunningCampaign<'a> {
    stage: &'a mut Stage,
    campaign: String,
    plan: KillSchedule,
    progress: Box<dyn Phase>,
    devices: u64,
    is_fast: bool,
    give_up_after: Duration,
    done: Kills,
    acceptance: AcceptanceCheck,
    always_balanced: bool,
    latest: CampaignLedger,
    moved_at: Instant,
}

impl RunningCampaign<'_> {
    /// Returns when the campaign has ended or has not moved for too long.
    async fn follow(&mut self) -> anyhow::Result<()> {
        loop {
            self.poll().await?;
            if self.latest.is_ended() {
                return Ok(());
            }
            if self.moved_at.elapsed() > self.give_up_after {
                self.progress
                    .remark(&format!("campaign: nothing moved for {:?}, giving up", self.give_up_after));
                return Ok(());
            }
            if let Some(target) = self.plan.due(&self.latest.totals, self.devices) {
                self.kill(target).await?;
            } else {
                tokio::time::sleep(self.interval()).await;
            }
        }
    }

    async fn poll(&mut self) -> anyhow::Result<()> {
        self.stage.check_alive()?;
        let (_, ledger) = CampaignLedger::fetch(&self.stage.client, &self.campaign).await?;
        self.always_balanced &= ledger.balanced && ledger.sums_up();
        if (ledger.totals, ledger.attempts) != (self.latest.totals, self.latest.attempts) {
            self.moved_at = Instant::now();
        }
        self.progress.update(ledger.totals.ended());
        self.latest = ledger;
        self.stage.server.usage();
        Ok(())
    }

    async fn kill(&mut self, target: KillTarget) -> anyhow::Result<()> {
        let started = Instant::now();
        let name = match target {
            KillTarget::Server => {
                self.stage.server.kill_and_restart().await?;
                self.done.server += 1;
                "server"
            }
            KillTarget::Emulator => {
                let emulators = self.stage.emulators.all_mut();
                let emulator = &mut emulators[self.done.emulators as usize % emulators.len()];
                emulator.kill_and_restart().await?;
                self.done.emulators += 1;
                emulator.service().word()
            }
            KillTarget::Stalled => {
                let span = STALLS[self.done.stalls as usize % STALLS.len()];
                self.stage.emulators.stall(span).await;
                self.done.stalls += 1;
                "emulators"
            }
            KillTarget::Troubled => {
                self.stage.inject(&mut self.acceptance).await?;
                self.done.troubles += 1;
                "server"
            }
        };
        self.plan.is_back();
        let done = thousands(self.latest.totals.ended());
        self.progress.remark(&format!(
            "{} {name} at {done} deliveries{}",
            target.participle(),
            elapsed_text(", back after ", started.elapsed())
        ));
        Ok(())
    }

    fn interval(&self) -> Duration {
        match (self.plan.is_pending(), self.is_fast) {
            (true, true) => KILLING_POLL_INTERVAL,
            (false, false) => POLL_INTERVAL,
            _ => SHORT_POLL_INTERVAL,
        }
    }
}
