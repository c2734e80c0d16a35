//! Watches the campaigns of a trial to their end, with the server's metrics.

use super::records::Looks;
use super::site::Site;
use serde_json::Value;
use std::time::{Duration, Instant};
use stentor_lab::rates::{InFlightLog, ProgressCurve};
use stentor_stage::client::ApiClient;
use stentor_terminal::ledger::CampaignLedger;
use stentor_terminal::output::{cell, note};
use stentor_terminal::progress::PhaseProgress;

/// The interval between samples is the elapsed time divided by this number: short at first, so that short trials are timed as well as long
/// ones.
const LOOKS_PER_SPAN: u32 = 100;
const LOOK_EVERY_MIN: Duration = Duration::from_millis(5);
const LOOK_EVERY_MAX: Duration = Duration::from_secs(1);

/// A campaign that is watched.
pub(super) struct Watched {
    client: ApiClient,
    campaign: String,
    pub(super) ledger: CampaignLedger,
    pub(super) balanced: bool,
    /// Time of its observed end, from the start of the trial.
    pub(super) ended_after: Option<Duration>,
}

/// The samples of a trial.
pub(super) struct Watch {
    pub(super) campaigns: Vec<Watched>,
    pub(super) progress: ProgressCurve,
    pub(super) places: InFlightLog,
    /// Ended deliveries of each campaign at the time when half of all had ended.
    pub(super) midway: Option<Vec<f64>>,
    pub(super) inflight_max: u64,
    pub(super) connections_max: u64,
    pushes: u64,
    started: Instant,
    moved_at: Instant,
}

impl Watched {
    /// Posts a message and returns its campaign to be watched.
    pub(super) async fn post(client: &ApiClient, message: &Value) -> anyhow::Result<Self> {
        let reply = client.post("/v1/messages", message).await?;
        let (client, campaign) = (client.clone(), cell(&reply["campaign"]));
        Ok(Self { client, campaign, ledger: CampaignLedger::default(), balanced: true, ended_after: None })
    }

    async fn look(&mut self, started: Instant) -> anyhow::Result<()> {
        if self.ended_after.is_some() {
            return Ok(());
        }
        let (_, ledger) = CampaignLedger::fetch(&self.client, &self.campaign).await?;
        self.balanced &= ledger.balanced && ledger.sums_up();
        self.ended_after = ledger.is_ended().then(|| started.elapsed());
        self.ledger = ledger;
        Ok(())
    }
}

impl Watch {
    /// Begins to watch campaigns to a number of devices in all; `started` is the time before the first request.
    pub(super) fn new(campaigns: Vec<Watched>, pushes: u64, started: Instant) -> Self {
        Self {
            campaigns,
            progress: ProgressCurve::default(),
            places: InFlightLog::default(),
            midway: None,
            inflight_max: 0,
            connections_max: 0,
            pushes,
            started,
            moved_at: Instant::now(),
        }
    }

    /// Watches until all have ended, or until nothing has moved for too long. Samples begin with `name`.
    pub(super) async fn follow(
        &mut self,
        name: &str,
        site: &mut Site,
        looks: &mut Looks,
        give_up_after: Duration,
    ) -> anyhow::Result<()> {
        let mut last = (0, 0);
        let mut bar = PhaseProgress::start(name.replace(',', ", run "), self.pushes);
        while self.campaigns.iter().any(|one| one.ended_after.is_none()) {
            self.look(name, site, looks).await?;
            bar.update(self.ended());
            let now = (self.ended(), self.attempts());
            if now != last {
                (last, self.moved_at) = (now, Instant::now());
            }
            if self.moved_at.elapsed() > give_up_after {
                note(&format!("{name}: nothing moved for {give_up_after:?}, giving up"));
                return Ok(());
            }
            let pause = self.started.elapsed() / LOOKS_PER_SPAN;
            tokio::time::sleep(pause.clamp(LOOK_EVERY_MIN, LOOK_EVERY_MAX)).await;
        }
        Ok(())
    }

    /// Time until the last observed end.
    pub(super) fn wall(&self) -> Duration {
        let ends = self.campaigns.iter().map(|one| one.ended_after.unwrap_or_else(|| self.started.elapsed()));
        ends.max().unwrap_or_default()
    }

    fn ended(&self) -> u64 {
        self.campaigns.iter().map(|one| one.ledger.totals.ended()).sum()
    }

    fn attempts(&self) -> u64 {
        self.campaigns.iter().map(|one| one.ledger.attempts).sum()
    }

    async fn look(&mut self, name: &str, site: &mut Site, looks: &mut Looks) -> anyhow::Result<()> {
        site.check_alive()?;
        let metrics = site.server.client()?.text("/metrics").await?;
        let (inflight, connections) =
            (gauge(&metrics, "stentor_provider_inflight"), gauge(&metrics, "stentor_provider_connections"));
        self.inflight_max = self.inflight_max.max(inflight);
        self.connections_max = self.connections_max.max(connections);
        for campaign in &mut self.campaigns {
            campaign.look(self.started).await?;
        }
        let seconds = self.started.elapsed().as_secs_f64();
        let ended = self.ended();
        self.progress.note(seconds, ended);
        self.places.note(seconds, ended, inflight);
        if self.midway.is_none() && 2 * ended >= self.pushes {
            self.midway = Some(self.campaigns.iter().map(|one| one.ledger.totals.ended() as f64).collect());
        }
        let usage = site.server.usage();
        looks.add(&format!(
            "{name},{seconds:.4},{},{},{inflight},{connections},{:.2},{}",
            ended,
            self.attempts(),
            usage.cpu_seconds,
            usage.peak_rss_bytes
        ));
        Ok(())
    }
}

/// Adds up a gauge over its labels.
fn gauge(metrics: &str, name: &str) -> u64 {
    let of_name = |line: &&str| line.strip_prefix(name).is_some_and(|rest| rest.starts_with(['{', ' ']));
    let value = |line: &str| line.rsplit(' ').next().and_then(|value| value.parse::<f64>().ok());
    metrics.lines().filter(of_name).filter_map(value).sum::<f64>() as u64
}

#[cfg(test)]
mod tests {
    use super::gauge;

    #[test]
    fn a_gauge_is_added_up_over_its_labels_and_no_other_is_taken_for_it() {
        let metrics =
            "# HELP a_b x 9\na_b{provider=\"fcm\"} 20.0\na_b{provider=\"apns\"} 5\na_b_limit{p=\"x\"} 7\n";
        assert_eq!((gauge(metrics, "a_b"), gauge(metrics, "none")), (25, 0));
    }
}
