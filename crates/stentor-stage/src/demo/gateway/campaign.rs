//! Sends one message to all devices and kills the server while they confirm it.

use super::super::campaign::{CampaignResult, message};
use super::super::kills::{KillSchedule, Kills};
use super::super::options::SECONDS_PER_KILL;
use super::{GatewayDemoOptions, GatewayStage};
use crate::client::ApiClient;
use crate::emulated::elapsed_text;
use crate::engines::EngineSeconds;
use crate::failure::{Exit, judge};
use crate::ledger::CampaignLedger;
use crate::mqtt_devices::MqttDevices;
use crate::reporter::{Phase, Reporter};
use crate::text::{cell, thousands};
use crate::troubles::AcceptanceCheck;
use std::time::{Duration, Instant};

/// The interval between two readings of the ledger: each reading costs the measured server.
pub(super) const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// The interval between two readings of the number of devices that have confirmed.
const KILLING_POLL_INTERVAL: Duration = Duration::from_millis(5);

/// The result of a gateway campaign.
pub(super) struct GatewayCampaignResult {
    /// The result common to all campaigns.
    pub(super) result: CampaignResult,
    /// Devices that had the message at a kill, without a receipt that is certain to be on disk.
    pub(super) unconfirmed_at_kills: u64,
}

/// Sends and watches.
pub(super) async fn run(
    options: &GatewayDemoOptions,
    stage: &mut GatewayStage,
    devices: &MqttDevices,
    reporter: &dyn Reporter,
) -> anyhow::Result<GatewayCampaignResult> {
    let before = stage.server.usage();
    let reply = stage.client.post("/v1/messages", &message()).await?;
    let accepted_at = Instant::now();
    let mut running = GatewayCampaign {
        stage,
        devices,
        options,
        campaign: cell(&reply["campaign"]),
        plan: KillSchedule::new(options.kills(), SECONDS_PER_KILL, options.seed),
        progress: reporter.begin("receipts", options.devices),
        kills: 0,
        confirmed_at_kill: 0,
        unconfirmed_at_kills: 0,
        always_balanced: true,
        latest: CampaignLedger::default(),
        moved_at: accepted_at,
    };
    running.follow().await?;
    let wall_seconds = accepted_at.elapsed().as_secs_f64();
    let usage = running.stage.server.usage();
    let GatewayCampaign { progress, always_balanced, latest: ledger, kills, unconfirmed_at_kills, .. } =
        running;
    progress.finish(ledger.totals.delivered);
    let stuck = ledger.totals.open() + options.devices.saturating_sub(ledger.audience);
    let result = CampaignResult {
        ledger,
        always_balanced,
        wall_seconds,
        cpu_seconds: usage.cpu_seconds - before.cpu_seconds,
        nodes: Vec::new(),
        engine_seconds: EngineSeconds::default(),
        peak_rss_bytes: usage.peak_rss_bytes,
        done: Kills { server: kills, ..Kills::default() },
        acceptance: AcceptanceCheck::default(),
        stuck,
    };
    Ok(GatewayCampaignResult { result, unconfirmed_at_kills })
}

struct GatewayCampaign<'a> {
    stage: &'a mut GatewayStage,
    devices: &'a MqttDevices,
    options: &'a GatewayDemoOptions,
    campaign: String,
    plan: KillSchedule,
    progress: Box<dyn Phase>,
    kills: u32,
    /// The number of devices that had confirmed when the server was back from its last kill.
    confirmed_at_kill: u64,
    unconfirmed_at_kills: u64,
    always_balanced: bool,
    latest: CampaignLedger,
    moved_at: Instant,
}

impl GatewayCampaign<'_> {
    /// Returns when every device has confirmed, or none has for too long.
    async fn follow(&mut self) -> anyhow::Result<()> {
        loop {
            // A server that is busy with receipts answers late: the devices' state decides when to kill it.
            let due = until_due(&mut self.plan, self.devices, self.options.devices, self.confirmed_at_kill);
            let looked = tokio::select! {
                () = due => None,
                looked = look(&self.stage.client, &self.campaign) => Some(looked?),
            };
            match looked {
                None => self.kill().await?,
                Some(Some(ledger)) => self.note(ledger)?,
                Some(None) => self.stage.server.check_alive()?,
            }
            if self.latest.is_ended() && self.latest.totals.delivered >= self.options.devices {
                return Ok(());
            }
            if self.moved_at.elapsed() > self.options.give_up_after {
                let span = self.options.give_up_after;
                self.progress.remark(&format!("campaign: nothing moved for {span:?}, giving up"));
                return Ok(());
            }
        }
    }

    fn note(&mut self, ledger: CampaignLedger) -> anyhow::Result<()> {
        self.always_balanced &= ledger.balanced && ledger.sums_up();
        if ledger.totals != self.latest.totals {
            self.moved_at = Instant::now();
        }
        self.progress.update(ledger.totals.delivered);
        self.latest = ledger;
        self.stage.server.usage();
        self.stage.server.check_alive()
    }

    async fn kill(&mut self) -> anyhow::Result<()> {
        let (started, delivered) = (Instant::now(), self.latest.totals.delivered);
        self.stage.server.kill_and_restart().await?;
        self.kills += 1;
        self.confirmed_at_kill = self.devices.confirmed();
        // Read after the kill, and the receipts before it: no more than the receipts between the two may have been lost.
        self.unconfirmed_at_kills += self.devices.having().saturating_sub(delivered);
        self.plan.is_back();
        self.moved_at = Instant::now();
        self.progress.remark(&format!(
            "killed server when {} devices had confirmed{}",
            thousands(self.confirmed_at_kill),
            elapsed_text(", back after ", started.elapsed())
        ));
        Ok(())
    }
}

/// Waits until the next kill is due: while devices confirm, and not before they are back from the last kill, because a server without
/// connections loses nothing.
async fn until_due(plan: &mut KillSchedule, devices: &MqttDevices, count: u64, confirmed_at_kill: u64) {
    loop {
        let confirmed = devices.confirmed();
        let on_the_way = if confirmed > confirmed_at_kill { count.saturating_sub(confirmed) } else { 0 };
        if plan.due_at(confirmed, on_the_way, count).is_some() {
            return;
        }
        tokio::time::sleep(KILLING_POLL_INTERVAL).await;
    }
}

/// Reads the ledger; `None` if the server is too busy with its devices to answer.
async fn look(client: &ApiClient, campaign: &str) -> anyhow::Result<Option<CampaignLedger>> {
    tokio::time::sleep(POLL_INTERVAL).await;
    match CampaignLedger::fetch(client, campaign).await {
        Ok((_, ledger)) => Ok(Some(ledger)),
        Err(error) if judge(&error).0 == Exit::Unreachable => Ok(None),
        Err(error) => Err(error),
    }
}
