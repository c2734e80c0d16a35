//! Campaigns beside the main one that are scheduled, paused and resumed, or canceled, while everything around them fails.

use super::batches;
use super::caller::{AnswerLog, ClusterCaller, ClusterRequest};
use super::promises::{CountedPushes, Promise, PromiseEnd, PromiseFindings, until_ended};
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};
use std::ops::Range;
use std::time::{Duration, Instant};
use stentor_stage::client::{ApiClient, segment};
use stentor_stage::devices::DevicePopulation;
use stentor_stage::ledger::CampaignLedger;
use stentor_stage::text::cell;

/// Devices of one campaign.
const DEVICES: u64 = 6;
const CAMPAIGNS_MAX: u64 = 1_000;
/// Limit of the devices of all these campaigns.
pub(crate) const DEVICES_MAX: u64 = DEVICES * CAMPAIGNS_MAX;
/// Time from the request to the due time of a campaign.
const DUE_IN: Duration = Duration::from_secs(4);
/// Time that a paused campaign stays paused after it is due.
const HELD_PAST_DUE: Duration = Duration::from_secs(3);
/// Tolerance of due times: the difference between the clocks of this machine and of the servers, and the time of a response on its way.
const MARGIN: Duration = Duration::from_millis(500);
const LOOK_EVERY: Duration = Duration::from_millis(300);
const PAUSE: Duration = Duration::from_millis(300);
/// Error code of a campaign that ended before it could be paused or canceled.
const TOO_LATE: &[&str] = &["conflict"];

/// Kind of control over a campaign.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CampaignControl {
    /// It is scheduled for later.
    PutOff,
    /// It is scheduled for later, paused until after it is due, and resumed.
    Paused,
    /// It is scheduled for later and canceled before that.
    CanceledEarly,
    /// It is sent now and canceled while it waits for its quota.
    CanceledLate,
}

const CONTROLS: [CampaignControl; 4] = [
    CampaignControl::Paused,
    CampaignControl::CanceledEarly,
    CampaignControl::PutOff,
    CampaignControl::CanceledLate,
];

/// Sends such campaigns one after the other.
pub(crate) struct ControlledTraffic {
    caller: ClusterCaller,
    /// Caller of an app with a small quota.
    slow: ClusterCaller,
    population: DevicePopulation,
    /// Position of its first device in the population.
    first: u64,
    log: ControlledLog,
}

/// The accepted campaigns and the observations of a run.
#[derive(Default)]
pub(crate) struct ControlledLog {
    promises: Vec<Promise>,
    /// Campaigns that waited for their quota, in the other app.
    slow_promises: Vec<Promise>,
    counts: ControlledCounts,
    broken: Vec<String>,
    answers: [AnswerLog; 2],
}

/// Numbers of controlled campaigns and of observations.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ControlledCounts {
    /// Campaigns that were scheduled for later.
    pub(crate) put_off: u64,
    /// Reads of campaigns before they were due.
    pub(crate) early_looks: u64,
    /// Campaigns that were paused.
    pub(crate) paused: u64,
    /// Reads of paused campaigns that had no delivery under way and had not moved.
    pub(crate) paused_looks: u64,
    /// Campaigns that were canceled.
    pub(crate) canceled: u64,
    /// Those of them that were canceled before they were due.
    pub(crate) canceled_unsent: u64,
}

/// The outcomes of these campaigns.
#[derive(Debug, Default)]
pub(crate) struct ControlledFindings {
    /// Numbers of controlled campaigns and of observations.
    pub(crate) counts: ControlledCounts,
    /// Campaigns that were answered with 202.
    pub(crate) campaigns: u64,
    /// Deliveries that were canceled.
    pub(crate) canceled_deliveries: u64,
    /// Devices with no push accepted, although nothing prevented it.
    pub(crate) lost: u64,
    /// Deliveries without an end.
    pub(crate) stuck: u64,
    /// Pushes accepted beyond the first.
    pub(crate) duplicates: u64,
    /// Highest permitted number of duplicates.
    pub(crate) duplicate_bound: u64,
    /// Violations that were found.
    pub(crate) broken: Vec<String>,
}

/// A campaign that was accepted.
struct AcceptedCampaign {
    id: String,
    /// True if it belongs to the app with the small quota.
    is_slow: bool,
    due: Instant,
    /// Number of changes of the database's clock at the time of the request.
    clock_changes: u64,
}

impl ControlledTraffic {
    /// Prepares to send to the devices of a population from this position on.
    pub(crate) fn new([caller, slow]: [ClusterCaller; 2], population: DevicePopulation, first: u64) -> Self {
        Self { caller, slow, population, first, log: ControlledLog::default() }
    }

    /// Runs campaigns until the faults are over, each kind in its turn.
    pub(crate) async fn run(mut self) -> ControlledLog {
        for (number, control) in (0..CAMPAIGNS_MAX).zip(CONTROLS.into_iter().cycle()) {
            if self.caller.state.is_over() {
                break;
            }
            self.play(number, control).await;
            tokio::time::sleep(PAUSE).await;
        }
        self.log.answers = [self.caller.log, self.slow.log];
        self.log
    }

    async fn play(&mut self, number: u64, control: CampaignControl) {
        let first = self.first + number * DEVICES;
        let (places, topic) = (first..first + DEVICES, format!("controlled-{number}"));
        let topic_of = |_| Some(topic.clone());
        let (is_slow, population) = (control == CampaignControl::CanceledLate, self.population);
        if !batches::import(self.caller_of(is_slow), population, places.clone(), topic_of).await {
            return;
        }
        let Some(campaign) = self.send(number, &topic, control).await else { return };
        let end = match control {
            CampaignControl::PutOff => self.watch_until_due(&campaign).await,
            CampaignControl::Paused => self.hold(&campaign).await,
            CampaignControl::CanceledEarly => self.cancel(&campaign).await,
            CampaignControl::CanceledLate => {
                self.wait_for_audience(&campaign).await;
                self.cancel(&campaign).await
            }
        };
        self.remember(campaign, places, end);
    }

    fn remember(&mut self, campaign: AcceptedCampaign, places: Range<u64>, end: PromiseEnd) {
        let promises = if campaign.is_slow { &mut self.log.slow_promises } else { &mut self.log.promises };
        promises.push(Promise::new(campaign.id, places, end));
    }

    async fn send(&mut self, number: u64, topic: &str, control: CampaignControl) -> Option<AcceptedCampaign> {
        let clock_changes = self.caller.state.clock_changes();
        let is_slow = control == CampaignControl::CanceledLate;
        let wait = if is_slow { Duration::ZERO } else { DUE_IN };
        let mut message = json!({"target": {"topic": topic}, "notification": {"body": "under control"}});
        if !wait.is_zero() {
            message["send_at"] = json!((Timestamp::now() + wait).to_string());
            message["exact"] = json!(true);
        }
        let due = Instant::now() + wait;
        let request = ClusterRequest::message(format!("controlled-{number}"), message);
        let said = self.caller_of(is_slow).insist(&request).await?;
        Some(AcceptedCampaign { id: cell(&said["campaign"]), is_slow, due, clock_changes })
    }

    /// Returns true if it is still before the campaign's due time, and the database's clock has been right since the request.
    fn is_early(&self, campaign: &AcceptedCampaign) -> bool {
        let is_right = campaign.clock_changes.is_multiple_of(2)
            && self.caller.state.clock_changes() == campaign.clock_changes;
        is_right && Instant::now() + MARGIN < campaign.due
    }

    const fn caller_of(&mut self, is_slow: bool) -> &mut ClusterCaller {
        if is_slow { &mut self.slow } else { &mut self.caller }
    }

    async fn look(&self, campaign: &AcceptedCampaign) -> Option<CampaignLedger> {
        let caller = if campaign.is_slow { &self.slow } else { &self.caller };
        let said = caller.show(&format!("/v1/campaigns/{}", segment(&campaign.id))).await?;
        CampaignLedger::deserialize(said).ok()
    }

    /// Reads a campaign until it is due: none of its deliveries may begin before.
    async fn watch_until_due(&mut self, campaign: &AcceptedCampaign) -> PromiseEnd {
        self.log.counts.put_off += 1;
        while Instant::now() + MARGIN < campaign.due && !self.caller.state.is_over() {
            let seen = self.look(campaign).await;
            // A response counts only if it arrived before the due time.
            if let Some(ledger) = seen.filter(|_| self.is_early(campaign)) {
                self.log.counts.early_looks += 1;
                if ledger.attempts > 0 || ledger.totals.sending > 0 {
                    self.note(campaign, &format!("it is sent before it is due: {:?}", ledger.totals));
                }
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
        PromiseEnd::Sent
    }

    /// Pauses a campaign until some time after it is due, and resumes it.
    async fn hold(&mut self, campaign: &AcceptedCampaign) -> PromiseEnd {
        let Some(Ok(_)) = self.act(campaign, "pause").await else { return PromiseEnd::Sent };
        self.log.counts.paused += 1;
        // Deliveries under way at the pause cannot be stopped; after they have ended, none may begin.
        let mut still: Option<CampaignLedger> = None;
        // Once the faults are over, further reads show nothing new.
        while Instant::now() < campaign.due + HELD_PAST_DUE && !self.caller.state.is_over() {
            if let Some(ledger) = self.look(campaign).await {
                if ledger.state != "paused" {
                    self.note(campaign, &format!("it was paused and is {}", ledger.state_text()));
                    break;
                }
                match &still {
                    None if ledger.totals.sending == 0 => still = Some(ledger),
                    Some(before) if has_moved(before, &ledger) => {
                        let why = format!(
                            "it moves while it is paused: {:?}, before {:?}",
                            ledger.totals, before.totals
                        );
                        self.note(campaign, &why);
                        break;
                    }
                    Some(_) => self.log.counts.paused_looks += 1,
                    None => {}
                }
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
        self.act(campaign, "resume").await;
        PromiseEnd::Sent
    }

    /// Waits until all devices of a campaign are in the books, so that there is something to cancel.
    async fn wait_for_audience(&self, campaign: &AcceptedCampaign) {
        let begun = Instant::now();
        while begun.elapsed() < DUE_IN {
            let seen = self.look(campaign).await;
            if seen.is_some_and(|ledger| ledger.audience == DEVICES) {
                break;
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    async fn cancel(&mut self, campaign: &AcceptedCampaign) -> PromiseEnd {
        let Some(Ok(_)) = self.act(campaign, "cancel").await else { return PromiseEnd::Sent };
        let is_unsent = self.is_early(campaign);
        self.log.counts.canceled += 1;
        self.log.counts.canceled_unsent += u64::from(is_unsent);
        PromiseEnd::Canceled { is_unsent }
    }

    async fn act(
        &mut self,
        campaign: &AcceptedCampaign,
        action: &str,
    ) -> Option<Result<Value, &'static str>> {
        let path = format!("/v1/campaigns/{}/{action}", segment(&campaign.id));
        self.caller_of(campaign.is_slow).insist_or(&ClusterRequest::Act(path), TOO_LATE).await
    }

    fn note(&mut self, campaign: &AcceptedCampaign, why: &str) {
        self.log.broken.push(format!("the campaign {} beside: {why}", campaign.id));
    }
}

/// Returns true if any delivery was sent or settled between two reads; an expansion does not count.
fn has_moved(before: &CampaignLedger, now: &CampaignLedger) -> bool {
    (now.attempts, now.totals.sending, now.totals.ended())
        != (before.attempts, before.totals.sending, before.totals.ended())
}

impl ControlledLog {
    /// Waits until every campaign has ended, or until `limit`.
    pub(crate) async fn until_ended(&mut self, [clients, slow]: [&[ApiClient]; 2], limit: Instant) {
        until_ended(&mut self.promises, clients, limit).await;
        until_ended(&mut self.slow_promises, slow, limit).await;
    }

    /// Compares every campaign with the pushes that the push services have counted.
    pub(crate) fn compare(mut self, counted: &CountedPushes) -> ControlledFindings {
        self.promises.append(&mut self.slow_promises);
        let found = PromiseFindings::of(&self.promises, counted);
        let PromiseFindings { canceled, lost, stuck, duplicates, duplicate_bound, broken, .. } = found;
        ControlledFindings {
            counts: self.counts,
            campaigns: self.promises.len() as u64,
            canceled_deliveries: canceled,
            lost,
            stuck,
            duplicates,
            duplicate_bound,
            broken: self
                .broken
                .into_iter()
                .chain(broken)
                .chain(self.answers.iter().filter_map(AnswerLog::broken))
                .collect(),
        }
    }
}

impl ControlledFindings {
    /// Returns the findings as an object of the report.
    pub(crate) fn object(&self) -> Value {
        let ControlledCounts { put_off, early_looks, paused, paused_looks, canceled, canceled_unsent } =
            self.counts;
        json!({
            "campaigns": self.campaigns,
            "put_off": put_off,
            "early_looks": early_looks,
            "paused": paused,
            "paused_looks": paused_looks,
            "canceled": canceled,
            "canceled_unsent": canceled_unsent,
            "canceled_deliveries": self.canceled_deliveries,
            "lost": self.lost,
            "stuck": self.stuck,
            "duplicates": self.duplicates,
            "duplicate_bound": self.duplicate_bound,
        })
    }
}
