//! The function that interprets outcomes: for the delivery, the token, the lane and the campaign.
//!
//! It is pure: the same chunk, outcomes, policy, jitter and instant give the same settlement.
//!
//! Design decisions:
//! - One answer concerns its delivery; only the share of such answers concerns the push service (`evidence`). While most deliveries
//!   succeed, a rate limit, a 5xx or a refused credential counts for that delivery alone: it waits separately, counts against
//!   `max_attempts`, and pauses no other delivery.
//! - A wait of a delivery alone (`OutcomeScope::Delivery`) parks no lane, however long it is and whatever the others meet.
//! - A refusal or deferral because of our credential or of the push service as a whole never ends a delivery and does not count against
//!   `max_attempts`: the delivery continues in a child chunk that keeps its attempt number.
//! - If too few answers are known, the attempt gets a number, so that the next one is known to be a retry, and ends nothing.
//! - If every token among the first answers of an audience belongs to another sender, the cause is the credential, even if it was good
//!   before. The lane rests, no delivery ends, no token is changed. While it rests, every such answer is treated the same way, and one
//!   accepted message ends the suspicion. Such answers in small chunks are retried a few times before they count.
//! - One of several push services behind a provider defers its own deliveries alone: they wait as long as the adapter says, count against
//!   nothing, and are no evidence about the lane.
//! - An attempt number that stays the same does not lengthen the wait. If a service could not take a delivery and named no retry time, the
//!   delivery therefore waits as long again as its message is old, up to half a minute.
//! - A retry that would come after the message's end is due at that end, and ends `expired` then and not earlier, so that no delivery is
//!   reported expired before it is. Only ttl 0, which means one attempt, ends at once.
//! - A payload refused by each of the first ten answers, or by all of a smaller audience, ends the campaign at that provider alone, because
//!   another push service may accept it.
//! - Once an attempt may have reached a device without an answer, every later record of that delivery is marked ambiguous.
//! - One jitter for a whole chunk, and waits rounded up to an eighth, keep the number of children low.

pub mod evidence;
mod foreign;
pub mod kind;

use std::collections::BTreeMap;
use std::time::Duration;

use stentor_core::campaign::Stop;
use stentor_core::chunk::TrafficClass;
use stentor_core::delivery::{DeliveryState, Record};
use stentor_core::id::DeviceId;
use stentor_core::outcome::{Outcome, OutcomeScope, Reason};
use stentor_core::ports::store::{LeasedChunk, SendDecision};
use stentor_core::retry::RetryPolicy;
use stentor_core::settlement::{Child, Settlement, TokenChange};
use stentor_core::time::Timestamp;

use evidence::{ProviderStanding, TroubleSource};
use foreign::{Foreign, STOP_MIN_ANSWERS, foreign};
pub(crate) use foreign::{count_foreign, is_foreign};

/// Wait after a throttling response without a retry time.
const THROTTLE_DEFAULT: Duration = Duration::from_secs(60);
/// Longest wait after an unavailable service without a retry time.
const UNAVAILABLE_WAIT_MAX: Duration = Duration::from_secs(30);
/// Longest Retry-After that is honoured.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(24 * 3_600);

/// The reason why a lane must rest, and for how long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parking {
    /// End of the rest; `None` means until the credential changes, or a probe succeeds after a long wait.
    pub until: Option<Timestamp>,
    /// The cause, as a reason of the ledger.
    pub reason: Reason,
    /// A sentence for the operator.
    pub detail: String,
}

/// Numbers of deliveries answered by the push service, with any answer, and of deliveries not answered, whether they were sent or not.
/// Failures of repeated attempts are not counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AnswerCounts {
    /// Attempts with an answer about the device or the message.
    pub answered: u32,
    /// Attempts without an answer, or with an unavailable service.
    pub unanswered: u32,
}

/// The interpretation of one chunk's outcomes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settled {
    /// The settlement for the store.
    pub settlement: Settlement,
    /// The rest of the lane, if it must rest.
    pub parking: Option<Parking>,
    /// The counts by which the lane's breaker notices a service that is down.
    pub health: AnswerCounts,
}

/// Interprets the outcomes of a leased chunk.
///
/// `outcomes` belong to the first positions with [`SendDecision::Send`], in order. The positions after them were withheld, because the
/// message was expired or the lane closed, and are not attempts. `jitter` is a number in 0..1.
#[must_use]
pub fn settle(
    chunk: &LeasedChunk,
    outcomes: &[Outcome],
    standing: ProviderStanding,
    policy: &RetryPolicy,
    jitter: f64,
    now: Timestamp,
) -> Settled {
    // From all outcomes at once, because a single refused token proves nothing and the result applies to each position.
    let foreign = foreign(chunk, outcomes, standing);
    let context = SettleContext { chunk, policy, jitter, now, standing, foreign };
    let others = outcomes.iter().filter(|outcome| !matches!(outcome, Outcome::Accepted));
    // Before any position is judged, because withheld positions wait for as long as the lane rests.
    let parking = others.filter_map(|outcome| context.parking(outcome)).reduce(longer);
    let mut builder = SettlementBuilder {
        records: Vec::with_capacity(chunk.devices.len()),
        ..SettlementBuilder::default()
    };
    let mut answers = outcomes.iter();
    for (index, device) in chunk.devices.iter().enumerate() {
        let verdict = match chunk.decisions.get(index) {
            Some(SendDecision::Send) => match answers.next() {
                Some(outcome) => context.judge(outcome, *device, &mut builder.tokens),
                None => context.withheld(parking.as_ref()),
            },
            Some(SendDecision::Collapsed) => context.end(DeliveryState::Collapsed, Reason::ReplacedByNewer),
            Some(SendDecision::Gone) | None => context.end(DeliveryState::Canceled, Reason::DeviceGone),
        };
        builder.write(index as u32, verdict);
    }
    let health = health_of(&evidence::evident(chunk.provider, outcomes), is_weak(chunk, standing.is_probe));
    let settlement = Settlement {
        chunk: chunk.id,
        epoch: chunk.epoch,
        now,
        records: builder.records,
        attempts: outcomes.iter().filter(|outcome| is_attempt(outcome)).count() as u32,
        tokens: builder.tokens,
        awaited: Vec::new(),
        children: builder.children.into_iter().map(|(again, positions)| child(again, positions)).collect(),
        stop: context.stop(outcomes),
    };
    Settled { settlement, parking, health }
}

/// Returns true if failures of a chunk say nothing about the push service, because its deliveries failed before. A probe's failures always
/// count.
pub(crate) const fn is_weak(chunk: &LeasedChunk, is_probe: bool) -> bool {
    chunk.attempt > 1 && !is_probe
}

/// Returns true if one of a chunk's earlier attempts was answered: of an ambiguous chunk, one was not.
pub(crate) const fn answered_before(chunk: &LeasedChunk) -> bool {
    chunk.attempt > if chunk.ambiguous { 2 } else { 1 }
}

/// Returns true if any of it may have reached the push service.
pub(crate) const fn is_attempt(outcome: &Outcome) -> bool {
    !matches!(outcome, Outcome::Unsent { .. } | Outcome::Deferred { .. })
}

/// Returns true if an outcome closes the lane, provided that it concerns the push service: a problem of our credential, or a request to
/// wait.
#[must_use]
fn closes_lane(outcome: &Outcome) -> bool {
    parking(outcome, Timestamp::default()).is_some()
}

/// The context for judging one position.
struct SettleContext<'a> {
    chunk: &'a LeasedChunk,
    policy: &'a RetryPolicy,
    jitter: f64,
    now: Timestamp,
    standing: ProviderStanding,
    /// The meaning of answers that all tokens belong to another sender.
    foreign: Foreign,
}

/// The decision for one position.
#[derive(Debug, Clone, Copy)]
struct Decision {
    record: Record,
    again: Option<RetryKey>,
}

/// The retry of a position: the key of its child chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct RetryKey {
    due_at: Timestamp,
    attempt: u16,
    ambiguous: bool,
}

/// The intention to retry.
#[derive(Debug, Clone, Copy)]
struct RetryIntent {
    reason: Reason,
    count: Count,
    floor: Option<Duration>,
    /// True to wait as long again as the message is old.
    grows: bool,
    ambiguous: bool,
}

/// The way an attempt counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Count {
    /// Not counted: the cause was outside the delivery.
    Not,
    /// Numbered, so that the next attempt is known to be a retry.
    Repeats,
    /// Numbered, and counted against `max_attempts`.
    Limited,
}

impl SettleContext<'_> {
    /// Returns the rest of the lane that an outcome causes, if any.
    fn parking(&self, outcome: &Outcome) -> Option<Parking> {
        if self.foreign == Foreign::Credential {
            let reason = Reason::SenderMismatch;
            return Some(Parking { until: None, reason, detail: detail(reason) });
        }
        self.is_beyond_delivery(outcome).then(|| parking(outcome, self.now)).flatten()
    }

    /// Returns true if an outcome concerns the push service or the credential, and not only its delivery.
    fn is_beyond_delivery(&self, outcome: &Outcome) -> bool {
        match outcome {
            Outcome::Rejected { .. } | Outcome::Unavailable { scope: OutcomeScope::Credential, .. } => {
                self.standing.credential_refused
            }
            // `Unsent`: held back because most answers requested a wait. `Throttled`: the push service names the exceeded quota as the
            // sender's own.
            // `Deferred`: one of several push services defers all its deliveries; it parks nothing.
            Outcome::Unsent { .. }
            | Outcome::Deferred { .. }
            | Outcome::Throttled { scope: OutcomeScope::Service, .. } => true,
            _ => self.standing.trouble == TroubleSource::Service,
        }
    }

    /// Returns the retry of an outcome that ends nothing.
    fn intent(&self, outcome: &Outcome) -> RetryIntent {
        let intent = intent(outcome);
        match self.foreign {
            Foreign::Credential => return intent,
            Foreign::Unclear => return RetryIntent { count: Count::Repeats, ..intent },
            Foreign::Token => {}
        }
        if intent.count != Count::Not || self.is_beyond_delivery(outcome) {
            return intent;
        }
        let reason = if intent.reason == Reason::Throttled { Reason::DeviceThrottled } else { intent.reason };
        let is_alone = self.standing.trouble == TroubleSource::Delivery;
        let count = if is_alone { Count::Limited } else { Count::Repeats };
        RetryIntent { reason, count, grows: false, ..intent }
    }

    fn judge(&self, outcome: &Outcome, device: DeviceId, tokens: &mut Vec<TokenChange>) -> Decision {
        match outcome {
            Outcome::Accepted => self.end(DeliveryState::Accepted, Reason::None),
            Outcome::Replaced { token } => {
                tokens.push(TokenChange::Replace { device, token: token.clone() });
                self.end(DeliveryState::Accepted, Reason::None)
            }
            Outcome::Unregistered { reason, since } => {
                tokens.push(TokenChange::Retire { device, reason: *reason, since: *since });
                self.end(DeliveryState::Rejected, *reason)
            }
            Outcome::Rejected { reason, scope: OutcomeScope::Device | OutcomeScope::Payload }
                if self.foreign == Foreign::Token =>
            {
                self.end(DeliveryState::Rejected, *reason)
            }
            other => self.again(self.intent(other)),
        }
    }

    fn end(&self, state: DeliveryState, reason: Reason) -> Decision {
        Decision { record: Record::new(state, reason, self.chunk.ambiguous), again: None }
    }

    fn again(&self, intent: RetryIntent) -> Decision {
        let ambiguous = self.chunk.ambiguous || intent.ambiguous;
        let end = |state, reason| Decision { record: Record::new(state, reason, ambiguous), again: None };
        let message = &self.chunk.message;
        if message.spec.ttl.as_seconds() == 0 || message.is_expired(self.now) {
            return end(DeliveryState::Expired, Reason::TtlPassed);
        }
        if intent.count == Count::Limited && self.chunk.attempt >= self.policy.max_attempts {
            return end(DeliveryState::Failed, Reason::AttemptsExhausted);
        }
        let floor = if intent.grows { self.age() } else { intent.floor };
        let wait = rounded(self.policy.wait(self.chunk.attempt, self.jitter, floor));
        // Due at its end at the latest: there it ends as expired, and not earlier.
        let due_at = self.now.plus(wait).min(message.expires_at());
        let attempt = self.chunk.attempt.saturating_add(u16::from(intent.count != Count::Not));
        Decision {
            again: Some(RetryKey { due_at, attempt, ambiguous }),
            ..end(DeliveryState::Queued, intent.reason)
        }
    }

    /// Returns the age of the message, up to the longest wait that follows from it; `None` while it is below the base wait.
    fn age(&self) -> Option<Duration> {
        let age = self.now.since(self.chunk.message.due_at).min(UNAVAILABLE_WAIT_MAX);
        (age >= self.policy.base).then_some(age)
    }

    /// Decides about a position that was not sent.
    fn withheld(&self, parking: Option<&Parking>) -> Decision {
        if self.chunk.message.is_expired(self.now) {
            return self.end(DeliveryState::Expired, Reason::TtlPassed);
        }
        let reason = parking.map_or(Reason::None, |parking| parking.reason);
        let until = parking.and_then(|parking| parking.until).unwrap_or(self.now);
        let zero_ttl = self.chunk.message.spec.ttl.as_seconds() == 0;
        // With ttl 0 the message expires at its due time; limited by that, it would come back at once.
        let due_at = if zero_ttl { until } else { until.min(self.chunk.message.expires_at()) };
        let again = RetryKey { due_at, attempt: self.chunk.attempt, ambiguous: self.chunk.ambiguous };
        Decision { again: Some(again), ..self.end(DeliveryState::Queued, reason) }
    }

    /// Stops a campaign at a provider if every answer so far refused its payload.
    fn stop(&self, outcomes: &[Outcome]) -> Option<Stop> {
        let wide =
            self.chunk.devices.len() > 1 || self.chunk.message.spec.target.class() == TrafficClass::Bulk;
        let first = refused_payload(outcomes.first()?)?;
        let all = outcomes.iter().all(|outcome| refused_payload(outcome).is_some());
        let enough = outcomes.len() as u64 >= self.answers_to_stop();
        // One accepted delivery proves that the payload is acceptable.
        if !wide || !all || !enough || self.chunk.tally.accepted > 0 {
            return None;
        }
        // Built only if the campaign stops, because this check runs for each settled chunk.
        let detail = format!(
            "{} refuses this message for every one of the first {} devices ({first}) and has accepted it for none: \
             correct the content and send it again",
            self.chunk.provider,
            outcomes.len(),
        );
        Some(Stop { reason: Reason::PayloadRefused, detail })
    }

    /// Returns the number of refusals that stop the campaign: a few, or all deliveries of a smaller audience.
    fn answers_to_stop(&self) -> u64 {
        let silent =
            self.chunk.decisions.iter().filter(|decision| **decision != SendDecision::Send).count() as u64;
        self.chunk.tally.sum().saturating_sub(silent).min(STOP_MIN_ANSWERS)
    }
}

/// Collects records, token changes and children.
#[derive(Default)]
struct SettlementBuilder {
    records: Vec<Record>,
    tokens: Vec<TokenChange>,
    children: BTreeMap<RetryKey, Vec<u32>>,
}

impl SettlementBuilder {
    fn write(&mut self, position: u32, verdict: Decision) {
        self.records.push(verdict.record);
        if let Some(again) = verdict.again {
            self.children.entry(again).or_default().push(position);
        }
    }
}

fn child(again: RetryKey, positions: Vec<u32>) -> Child {
    let RetryKey { due_at, attempt, ambiguous } = again;
    Child { positions, due_at, attempt, ambiguous }
}

/// Returns the retry of an outcome that concerns the push service.
fn intent(outcome: &Outcome) -> RetryIntent {
    let intent = |reason, count, floor: Option<Duration>| RetryIntent {
        reason,
        count,
        floor: floor.map(|floor| floor.min(RETRY_AFTER_MAX)),
        grows: false,
        ambiguous: false,
    };
    match *outcome {
        Outcome::Throttled { scope: OutcomeScope::Device | OutcomeScope::Payload, retry_after } => {
            intent(Reason::DeviceThrottled, Count::Limited, retry_after)
        }
        Outcome::Throttled { retry_after, .. } => {
            intent(Reason::Throttled, Count::Not, Some(retry_after.unwrap_or(THROTTLE_DEFAULT)))
        }
        Outcome::Unavailable { reason, scope: OutcomeScope::Device | OutcomeScope::Payload, retry_after } => {
            intent(reason, Count::Limited, retry_after)
        }
        Outcome::Unavailable { reason, retry_after, .. } => {
            RetryIntent { grows: retry_after.is_none(), ..intent(reason, Count::Not, retry_after) }
        }
        Outcome::Rejected { reason, .. } => intent(reason, Count::Not, None),
        Outcome::Unsent { reason, retry_after } => intent(reason, Count::Not, retry_after),
        Outcome::Deferred { reason, retry_after } => intent(reason, Count::Not, Some(retry_after)),
        _ => RetryIntent { ambiguous: true, ..intent(Reason::Unanswered, Count::Limited, None) },
    }
}

/// Returns the rest of the lane that an outcome causes, if any.
fn parking(outcome: &Outcome, now: Timestamp) -> Option<Parking> {
    let rest = |wait: Duration| Some(now.plus(wait.min(RETRY_AFTER_MAX)));
    let (until, reason) = match *outcome {
        Outcome::Rejected { reason, scope: OutcomeScope::Credential } => (None, reason),
        Outcome::Rejected { reason, scope: OutcomeScope::Service } => (rest(THROTTLE_DEFAULT), reason),
        Outcome::Throttled { scope: OutcomeScope::Credential | OutcomeScope::Service, retry_after } => {
            (rest(retry_after.unwrap_or(THROTTLE_DEFAULT)), Reason::Throttled)
        }
        Outcome::Unavailable {
            reason,
            scope: OutcomeScope::Credential | OutcomeScope::Service,
            retry_after: Some(wait),
        }
        | Outcome::Unsent { reason, retry_after: Some(wait) } => (rest(wait), reason),
        Outcome::Unavailable { reason, scope: OutcomeScope::Credential, retry_after: None }
            if reason != Reason::Unavailable =>
        {
            (None, reason)
        }
        Outcome::Unsent { reason: Reason::AddressRefused, retry_after: None } => {
            (None, Reason::AddressRefused)
        }
        _ => return None,
    };
    Some(Parking { until, reason, detail: detail(reason) })
}

/// Describes the reason of a rest in a sentence.
pub(crate) fn detail(reason: Reason) -> String {
    match reason {
        Reason::Throttled => "the push service asks to slow down",
        Reason::CredentialRefused => "the push service refuses the credential: check it and put it again",
        Reason::CredentialMissing => "the app has no credential for this provider: put one",
        Reason::SenderMismatch => "the credential belongs to another sender than the devices: check it",
        Reason::ThirdPartyAuth => {
            "a key stored at the push service is refused by its partner: renew it there"
        }
        Reason::AddressRefused => {
            "the endpoint leads only to addresses that the server may not connect to: the log names one, \
             outbound.allowed_networks allows more"
        }
        _ => "the push service cannot take messages now",
    }
    .to_owned()
}

/// Returns the parking that ends later; one without an end is the longest.
fn longer(one: Parking, other: Parking) -> Parking {
    let end = |parking: &Parking| parking.until.unwrap_or(Timestamp::MAX);
    if end(&other) > end(&one) { other } else { one }
}

fn refused_payload(outcome: &Outcome) -> Option<Reason> {
    match outcome {
        Outcome::Rejected { reason, scope: OutcomeScope::Payload } => Some(*reason),
        _ => None,
    }
}

/// Counts the attempts that were answered and those that were not. Failures of `repeated` attempts are not counted.
pub(crate) fn health_of(outcomes: &[Outcome], repeated: bool) -> AnswerCounts {
    outcomes.iter().fold(AnswerCounts::default(), |mut health, outcome| {
        match outcome {
            Outcome::Accepted => health.answered += 1,
            Outcome::Unsent { retry_after: None, .. } => health.unanswered += 1,
            Outcome::Deferred { .. } => {}
            Outcome::Unknown
            | Outcome::Unavailable {
                scope: OutcomeScope::Delivery | OutcomeScope::Credential | OutcomeScope::Service,
                ..
            } => {
                health.unanswered += u32::from(!repeated);
            }
            other if !closes_lane(other) => health.answered += 1,
            _ => {}
        }
        health
    })
}

/// Rounds a wait up to an eighth of its size, so that many different waits give few children.
fn rounded(wait: Duration) -> Duration {
    let millis = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX / 4).max(1);
    let grain = (1 << millis.ilog2().saturating_sub(3)).max(100);
    Duration::from_millis(millis.div_ceil(grain) * grain)
}

#[cfg(test)]
mod tests;
