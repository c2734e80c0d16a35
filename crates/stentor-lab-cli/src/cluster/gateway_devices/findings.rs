//! Checks all acknowledged messages to and from devices of the gateway.

use super::super::caller::{RETRY_PAUSE, show};
use super::messages::{GatewayLog, GatewayPromise, GatewayTarget};
use super::minutes::MinuteOccurrences;
use super::records::{GatewayRecords, GatewaySums};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Instant;
use stentor_stage::client::{ApiClient, segment};
use stentor_stage::ledger::CampaignLedger;

/// Input of the checks.
pub(super) struct Judgement<'a> {
    pub(super) clients: &'a [ApiClient],
    pub(super) ids: &'a [String],
    pub(super) records: &'a GatewayRecords,
    pub(super) log: GatewayLog,
    pub(super) occurrences: MinuteOccurrences,
    /// Time limit for all messages.
    pub(super) limit: Instant,
}

/// Findings at devices of the gateway.
#[derive(Debug, Default)]
pub(crate) struct GatewayFindings {
    /// Number of devices.
    pub(crate) devices: u64,
    /// Messages that were answered with 202, or fired by the schedule.
    pub(crate) messages: u64,
    /// Campaigns that the schedule fired.
    pub(crate) minutes: u64,
    /// Campaigns that were paused and resumed.
    pub(crate) held: u64,
    /// Deliveries of all of them.
    pub(crate) deliveries: u64,
    /// Deliveries that devices never received although they could have, and devices' messages that the app server never read.
    pub(crate) lost: u64,
    /// Deliveries without an end, and devices' messages that wait although they were acknowledged.
    pub(crate) stuck: u64,
    /// Sums over the devices and their app server.
    sums: GatewaySums,
    /// Temporary refusals, by their code.
    refused: BTreeMap<String, u64>,
    /// Violations that were found.
    pub(crate) broken: Vec<String>,
}

impl Judgement<'_> {
    /// Waits until all messages have arrived, or until the limit, and judges the result.
    pub(super) async fn run(self) -> GatewayFindings {
        let mut findings = GatewayFindings {
            devices: self.ids.len() as u64,
            messages: self.log.promises.len() as u64,
            minutes: self.occurrences.promises().len() as u64,
            held: self.log.held,
            ..GatewayFindings::default()
        };
        for promise in &self.log.promises {
            let ledger = self.until_delivered(promise).await;
            self.judge(promise, &ledger, &mut findings);
        }
        self.judge_upstream(&mut findings).await;
        findings.sums = self.records.sums();
        findings.refused = self.records.refused();
        for (word, count) in &self.log.answers.refused {
            *findings.refused.entry(word.clone()).or_default() += count;
        }
        findings.broken.extend(self.log.answers.broken());
        findings.broken.extend(self.occurrences.broken);
        if let Some(first) = self.records.strange().first() {
            findings.broken.push(format!("at devices of the gateway: {first}"));
        }
        findings
    }

    /// Waits until a message has ended, and until all its devices have confirmed it unless it may expire before.
    async fn until_delivered(&self, promise: &GatewayPromise) -> CampaignLedger {
        let (mut ledger, devices) = (CampaignLedger::default(), self.devices_of(promise));
        let path = format!("/v1/campaigns/{}", segment(&promise.campaign));
        loop {
            if let Some(Ok(seen)) = show(self.clients, &path).await.map(CampaignLedger::deserialize) {
                ledger = seen;
            }
            let is_done = promise.is_short || ledger.totals.delivered == devices;
            if ledger.is_ended() && is_done || Instant::now() > self.limit {
                return ledger;
            }
            tokio::time::sleep(RETRY_PAUSE).await;
        }
    }

    fn devices_of(&self, promise: &GatewayPromise) -> u64 {
        match promise.target {
            GatewayTarget::Everyone => self.ids.len() as u64,
            GatewayTarget::One(_) => 1,
        }
    }

    fn judge(&self, promise: &GatewayPromise, ledger: &CampaignLedger, findings: &mut GatewayFindings) {
        let (devices, totals) = (self.devices_of(promise), ledger.totals);
        let has_got = |device| self.records.has_got(device, &promise.message);
        let got = match promise.target {
            GatewayTarget::Everyone => (0..self.ids.len()).filter(|device| has_got(*device)).count() as u64,
            GatewayTarget::One(device) => u64::from(has_got(device)),
        };
        let missing = if promise.is_short { 0 } else { devices - got };
        findings.deliveries += devices;
        findings.lost += missing.max(devices.saturating_sub(ledger.audience));
        findings.stuck += totals.open();
        let checks = [
            (ledger.audience != devices, format!("its audience is {}, not {devices}", ledger.audience)),
            (!ledger.is_ended(), format!("it is {} and has no end", ledger.state_text())),
            (!(ledger.balanced && ledger.sums_up()), "its books do not balance".to_owned()),
            (
                totals.accepted + totals.expired != devices || !promise.is_short && totals.expired > 0,
                format!("it ended otherwise than accepted: {totals:?}"),
            ),
            (missing > 0, format!("{missing} devices never got it")),
            (
                totals.delivered > got || !promise.is_short && totals.delivered < got,
                format!("{got} devices got it, the ledger has {} as delivered", totals.delivered),
            ),
        ];
        let wrong = checks.into_iter().filter(|(is_wrong, _)| *is_wrong).map(|(_, why)| why);
        findings.broken.extend(wrong.map(|why| format!("the message {} to devices: {why}", promise.message)));
    }

    /// Waits until the app server has read all acknowledged messages of devices, and none waits any more.
    async fn judge_upstream(&self, findings: &mut GatewayFindings) {
        let (mut unread, mut waiting);
        loop {
            unread = self.records.unread(self.ids);
            let listed = show(self.clients, "/v1/upstream/messages").await;
            waiting = listed.and_then(|listed| Some(listed["messages"].as_array()?.len()));
            if unread == 0 && waiting == Some(0) || Instant::now() > self.limit {
                break;
            }
            tokio::time::sleep(RETRY_PAUSE).await;
        }
        findings.lost += unread;
        findings.stuck += waiting.unwrap_or(1) as u64;
        if unread > 0 || waiting != Some(0) {
            let sentence = format!("of messages of devices, {unread} were never read and {waiting:?} wait");
            findings.broken.push(sentence);
        }
    }
}

impl GatewayFindings {
    /// Returns the number of devices' messages that their app server read.
    pub(crate) fn upstream_read(&self) -> u64 {
        self.sums.upstream_read
    }

    /// Returns the findings as an object of the report.
    pub(crate) fn object(&self) -> Value {
        let sums = self.sums;
        json!({
            "devices": self.devices,
            "messages": self.messages,
            "minutes": self.minutes,
            "held": self.held,
            "deliveries": self.deliveries,
            "receptions": sums.receptions,
            "confirmed": sums.confirmed,
            "repeats": sums.repeats,
            "repeats_after_receipt": sums.repeats_after_receipt,
            "upstream_sent": sums.upstream_sent,
            "upstream_read": sums.upstream_read,
            "upstream_repeats": sums.upstream_repeats,
            "upstream_repeats_after_acknowledgement": sums.upstream_repeats_after_acknowledgement,
            "lost": self.lost,
            "stuck": self.stuck,
            "refused": self.refused,
        })
    }
}
