//! Messages through push services that were answered with 202, and their required outcomes at the end.

use super::caller::{RETRY_PAUSE, show};
use serde::Deserialize;
use std::ops::Range;
use std::time::Instant;
use stentor_emulators::{Counts, ObserverFile};
use stentor_stage::client::{ApiClient, segment};
use stentor_stage::devices::{DevicePopulation, StagedService};
use stentor_stage::emulator::Emulators;
use stentor_stage::ledger::CampaignLedger;

/// A message that was answered with 202.
pub(crate) struct Promise {
    pub(crate) campaign: String,
    /// Positions of its devices in their population.
    pub(crate) places: Range<u64>,
    pub(crate) end: PromiseEnd,
    ledger: CampaignLedger,
}

/// The action on a message after its 202.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PromiseEnd {
    /// None: all its devices must receive it.
    Sent,
    /// It was canceled, before it was due if `is_unsent`.
    Canceled {
        /// True if none of its deliveries may have been sent.
        is_unsent: bool,
    },
}

/// The outcomes of messages.
#[derive(Debug, Default)]
pub(crate) struct PromiseFindings {
    /// Number of devices that the messages were for.
    pub(crate) deliveries: u64,
    /// Deliveries that were canceled.
    pub(crate) canceled: u64,
    /// Devices with no push accepted, or missing in the ledger in spite of the 202.
    pub(crate) lost: u64,
    /// Deliveries without an end.
    pub(crate) stuck: u64,
    /// Pushes accepted beyond the first.
    pub(crate) duplicates: u64,
    /// Highest permitted number of duplicates, by the ledger's bounds and marks.
    pub(crate) duplicate_bound: u64,
    /// Violations that were found.
    pub(crate) broken: Vec<String>,
}

/// Counts of the push services for the devices of a message.
#[derive(Default)]
struct SeenPushes {
    accepted: u64,
    unseen: u64,
    /// Devices that received the message more than once, and the number of receptions beyond the first.
    twice: u64,
    extra: u64,
}

/// Counts of both push services.
pub(crate) struct CountedPushes {
    population: DevicePopulation,
    fcm: ObserverFile,
    apns: ObserverFile,
}

impl Promise {
    /// Records a message.
    pub(crate) fn new(campaign: String, places: Range<u64>, end: PromiseEnd) -> Self {
        Self { campaign, places, end, ledger: CampaignLedger::default() }
    }
}

/// Waits until all of these have ended, or until `limit`.
pub(crate) async fn until_ended(promises: &mut [Promise], clients: &[ApiClient], limit: Instant) {
    for promise in promises {
        let path = format!("/v1/campaigns/{}", segment(&promise.campaign));
        loop {
            if let Some(Ok(ledger)) = show(clients, &path).await.map(CampaignLedger::deserialize) {
                promise.ledger = ledger;
            }
            if promise.ledger.is_ended() || Instant::now() > limit {
                break;
            }
            tokio::time::sleep(RETRY_PAUSE).await;
        }
    }
}

impl CountedPushes {
    /// Reads the push services' counts of a population; the emulators must have ended.
    pub(crate) fn read(emulators: &Emulators, population: DevicePopulation) -> anyhow::Result<Self> {
        let of = |service| emulators.of(service)?.counted();
        Ok(Self { population, fcm: of(StagedService::Fcm)?, apns: of(StagedService::Apns)? })
    }

    fn seen(&self, places: &Range<u64>) -> SeenPushes {
        let mut seen = SeenPushes::default();
        for member in places.clone().map(|place| self.population.member(place)) {
            let book = if member.service == StagedService::Fcm { &self.fcm } else { &self.apns };
            let Counts { accepted, rejected, .. } = book.lookup(&self.population.token(member));
            seen.accepted += u64::from(accepted > 0);
            seen.unseen += u64::from(accepted == 0 && rejected == 0);
            seen.twice += u64::from(accepted > 1);
            seen.extra += u64::from(accepted.saturating_sub(1));
        }
        seen
    }
}

impl PromiseFindings {
    /// Judges messages by the push services' counts.
    pub(crate) fn of(promises: &[Promise], counted: &CountedPushes) -> Self {
        let mut findings = Self::default();
        for promise in promises {
            findings.judge(promise, &counted.seen(&promise.places));
        }
        findings
    }

    fn judge(&mut self, promise: &Promise, seen: &SeenPushes) {
        let Promise { campaign, places, end, ledger } = promise;
        let devices = places.end - places.start;
        self.deliveries += devices;
        self.canceled += ledger.totals.canceled;
        self.stuck += ledger.totals.open();
        self.duplicates += seen.extra;
        // A push that a push service never answered may be duplicated as well, and is marked.
        self.duplicate_bound += ledger.duplicate_bound.max(ledger.ambiguous);
        let mut checks = vec![
            (!ledger.is_ended(), format!("it is {} and has no end", ledger.state_text())),
            (!(ledger.balanced && ledger.sums_up()), "its books do not balance".to_owned()),
            (
                seen.twice > ledger.ambiguous,
                format!("{} devices got it twice, {} are marked", seen.twice, ledger.ambiguous),
            ),
        ];
        checks.extend(match end {
            PromiseEnd::Sent => {
                self.lost += seen.unseen.max(devices.saturating_sub(ledger.audience));
                of_sent(devices, seen, ledger)
            }
            PromiseEnd::Canceled { is_unsent } => of_canceled(devices, seen, ledger, *is_unsent),
        });
        let wrong = checks.into_iter().filter(|(is_wrong, _)| *is_wrong).map(|(_, why)| why);
        self.broken.extend(wrong.map(|why| format!("the message {campaign} beside: {why}")));
    }
}

fn of_sent(devices: u64, seen: &SeenPushes, ledger: &CampaignLedger) -> Vec<(bool, String)> {
    let reasons: Vec<_> = ledger.providers.iter().flat_map(|books| &books.reasons).collect();
    vec![
        (ledger.audience != devices, format!("its audience is {} devices, not {devices}", ledger.audience)),
        (
            ledger.totals.accepted != seen.accepted,
            format!(
                "the push services accepted {}, the ledger has {:?}: {reasons:?}",
                seen.accepted, ledger.totals
            ),
        ),
        (seen.unseen > 0, format!("{} devices got nothing", seen.unseen)),
    ]
}

fn of_canceled(
    devices: u64,
    seen: &SeenPushes,
    ledger: &CampaignLedger,
    is_unsent: bool,
) -> Vec<(bool, String)> {
    let (totals, audience) = (ledger.totals, ledger.audience);
    // A push under way without an answer is canceled in the ledger, and marked.
    let accepted = totals.accepted..=totals.accepted + ledger.ambiguous;
    let counted = format!("the push services accepted {}, the ledger has {totals:?}", seen.accepted);
    vec![
        (ledger.state != "canceled", format!("it was canceled and is {}", ledger.state_text())),
        (audience > devices, format!("its audience is {audience} devices, more than {devices}")),
        (!accepted.contains(&seen.accepted), counted.clone()),
        (is_unsent && seen.accepted > 0, format!("it was canceled before it was due: {counted}")),
        (
            totals.failed + totals.expired + totals.collapsed > 0,
            format!("deliveries of a canceled campaign ended otherwise: {totals:?}"),
        ),
    ]
}
