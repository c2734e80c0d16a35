//! The one function that decides what outcomes mean: for the delivery, the token, the lane and the campaign.
//!
//! It is pure: the same chunk, outcomes, policy, jitter and instant give the same settlement.
//!
//! Choices worth knowing:
//! - One answer speaks for its delivery; only the share of such answers speaks for the push service (`evidence`). While most
//!   fare well, a rate limit, a 5xx or a refused credential is that delivery's own affair: it waits apart, counts
//!   against `max_attempts`, and rests nobody else.
//! - What is refused or put off for the sake of our credential or of the push service as a whole never ends a delivery
//!   and does not count against `max_attempts`: it goes on in a child chunk that keeps its attempt number.
//! - Where too little was seen to tell, the attempt is numbered, so that the next one is known as a repetition, and ends nothing.
//! - Tokens that all belong to another sender, in each of the first answers of an audience, mean the credential, whatever it
//!   was good for before: the lane rests, no delivery ends, no token is touched. While it rests the same is true of every
//!   such answer, and one accepted message ends the suspicion. The first few of small chunks are asked again before they count.
//! - Such a number lets no wait grow. So what a service could not take, without saying for how long, waits as long again as
//!   its message is old, up to half a minute.
//! - A retry that would come after the message's end is due at that end, and ends `expired` then and not earlier, so
//!   that a delivery is never called too late before it is. Only ttl 0, which means one attempt, ends at once.
//! - A payload refused by each of the first ten answers, or of a whole smaller audience, ends the campaign at that provider
//!   alone: what one push service does not take, another may.
//! - Once an attempt may have reached a device unseen, every later record of that delivery is marked ambiguous.
//! - One jitter for a whole chunk, and waits rounded up to an eighth, keep the children few.

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

/// Wait asked for by a push service that throttles without saying for how long.
const THROTTLE_DEFAULT: Duration = Duration::from_secs(60);
/// Longest wait that a service which is down for a delivery, and does not say for how long, causes by itself.
const UNAVAILABLE_WAIT_MAX: Duration = Duration::from_secs(30);
/// Longest Retry-After that is believed.
const RETRY_AFTER_MAX: Duration = Duration::from_secs(24 * 3_600);

/// Why a lane must rest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parking {
    /// Not before; `None` means until the credential changes, or is tried again after a long while.
    pub until: Option<Timestamp>,
    /// The cause, in the words of the ledger.
    pub reason: Reason,
    /// A sentence for the operator.
    pub detail: String,
}

/// How many deliveries, of those that were not tried before, the push service answered, whatever it said, and how many it did not, asked or not.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AnswerCounts {
    /// Attempts with an answer about the device or the message.
    pub answered: u32,
    /// Attempts that met a service that is down, or silent.
    pub unanswered: u32,
}

/// What one chunk's outcomes mean.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settled {
    /// For the store.
    pub settlement: Settlement,
    /// For the lane, when it must rest.
    pub parking: Option<Parking>,
    /// For the lane, to notice a service that is down.
    pub health: AnswerCounts,
}

/// Decides what the outcomes of a leased chunk mean.
///
/// `outcomes` belong to the first positions with [`SendDecision::Send`], in order; the positions after them were withheld (the
/// message was too late or the lane was closed) and are not attempts. `jitter` is a number in 0..1.
#[must_use]
pub fn settle(
    chunk: &LeasedChunk,
    outcomes: &[Outcome],
    standing: ProviderStanding,
    policy: &RetryPolicy,
    jitter: f64,
    now: Timestamp,
) -> Settled {
    // From all outcomes at once: one refused token says nothing, and each position is judged by it.
    let foreign = foreign(chunk, outcomes, standing);
    let context = SettleContext { chunk, policy, jitter, now, standing, foreign };
    let others = outcomes.iter().filter(|outcome| !matches!(outcome, Outcome::Accepted));
    // Before any position is judged: those withheld wait for as long as the lane rests.
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
    Settled { settlement, parking, health: health_of(outcomes, is_weak(chunk, standing.is_probe)) }
}

/// Returns whether the troubles of a chunk say nothing about the push service, because its deliveries had them before; of a
/// probe any answer is better than none.
pub(crate) const fn is_weak(chunk: &LeasedChunk, is_probe: bool) -> bool {
    chunk.attempt > 1 && !is_probe
}

/// Returns whether anything of it may have reached the push service.
pub(crate) const fn is_attempt(outcome: &Outcome) -> bool {
    !matches!(outcome, Outcome::Unsent { .. })
}

/// Returns whether an outcome speaks of our credential, or asks everybody to wait, if it speaks for the push service.
#[must_use]
fn closes_lane(outcome: &Outcome) -> bool {
    parking(outcome, Timestamp::default()).is_some()
}

/// What decides about one position.
struct SettleContext<'a> {
    chunk: &'a LeasedChunk,
    policy: &'a RetryPolicy,
    jitter: f64,
    now: Timestamp,
    standing: ProviderStanding,
    /// What it means when every device belongs to another sender.
    foreign: Foreign,
}

/// What becomes of one position.
#[derive(Debug, Clone, Copy)]
struct Decision {
    record: Record,
    again: Option<RetryKey>,
}

/// When a position is tried again: the key of its child chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct RetryKey {
    due_at: Timestamp,
    attempt: u16,
    ambiguous: bool,
}

/// The intent to try again.
#[derive(Debug, Clone, Copy)]
struct RetryIntent {
    reason: Reason,
    count: Count,
    floor: Option<Duration>,
    /// Whether to wait as long again as the message is old.
    grows: bool,
    ambiguous: bool,
}

/// How an attempt counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Count {
    /// Not at all: it was not the delivery's affair.
    Not,
    /// As one that the next repeats.
    Repeats,
    /// As well against `max_attempts`.
    Limited,
}

impl SettleContext<'_> {
    /// Returns whether, and for how long, an outcome closes the lane.
    fn parking(&self, outcome: &Outcome) -> Option<Parking> {
        if self.foreign == Foreign::Credential {
            let reason = Reason::SenderMismatch;
            return Some(Parking { until: None, reason, detail: detail(reason) });
        }
        self.is_beyond_delivery(outcome).then(|| parking(outcome, self.now)).flatten()
    }

    /// Returns whether an outcome speaks for the push service or the credential, and not for its delivery alone.
    fn is_beyond_delivery(&self, outcome: &Outcome) -> bool {
        match outcome {
            Outcome::Rejected { .. } | Outcome::Unavailable { scope: OutcomeScope::Credential, .. } => {
                self.standing.credential_refused
            }
            // Not sent because most answers asked to wait; or the quota that was exceeded is named as the sender's own.
            Outcome::Unsent { .. } | Outcome::Throttled { scope: OutcomeScope::Service, .. } => true,
            _ => self.standing.trouble == TroubleSource::Service,
        }
    }

    /// Returns how an outcome that ends nothing is tried again.
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
        // At its end at the latest: there it ends as expired, and is not called so any earlier.
        let due_at = self.now.plus(wait).min(message.expires_at());
        let attempt = self.chunk.attempt.saturating_add(u16::from(intent.count != Count::Not));
        Decision {
            again: Some(RetryKey { due_at, attempt, ambiguous }),
            ..end(DeliveryState::Queued, intent.reason)
        }
    }

    /// Returns how old the message is, up to the longest wait that follows from it; `None` while that asks for no wait.
    fn age(&self) -> Option<Duration> {
        let age = self.now.since(self.chunk.message.due_at).min(UNAVAILABLE_WAIT_MAX);
        (age >= self.policy.base).then_some(age)
    }

    /// Decides about a position of which nothing was sent.
    fn withheld(&self, parking: Option<&Parking>) -> Decision {
        if self.chunk.message.is_expired(self.now) {
            return self.end(DeliveryState::Expired, Reason::TtlPassed);
        }
        let reason = parking.map_or(Reason::None, |parking| parking.reason);
        let until = parking.and_then(|parking| parking.until).unwrap_or(self.now);
        let zero_ttl = self.chunk.message.spec.ttl.as_seconds() == 0;
        // With ttl 0 it expires when it is due: bounded by that, it would come back at once.
        let due_at = if zero_ttl { until } else { until.min(self.chunk.message.expires_at()) };
        let again = RetryKey { due_at, attempt: self.chunk.attempt, ambiguous: self.chunk.ambiguous };
        Decision { again: Some(again), ..self.end(DeliveryState::Queued, reason) }
    }

    /// Stops a campaign at a provider that refuses its payload for everybody asked so far.
    fn stop(&self, outcomes: &[Outcome]) -> Option<Stop> {
        let wide =
            self.chunk.devices.len() > 1 || self.chunk.message.spec.target.class() == TrafficClass::Bulk;
        let first = refused_payload(outcomes.first()?)?;
        let all = outcomes.iter().all(|outcome| refused_payload(outcome).is_some());
        let enough = outcomes.len() as u64 >= self.answers_to_stop();
        // One accepted anywhere shows that the payload can be taken.
        if !wide || !all || !enough || self.chunk.tally.accepted > 0 {
            return None;
        }
        // Only now, where the campaign stops: this is decided for each chunk that is settled.
        let detail = format!(
            "{} refuses this message for every one of the first {} devices ({first}) and has accepted it for none: \
             correct the content and send it again",
            self.chunk.provider,
            outcomes.len(),
        );
        Some(Stop { reason: Reason::PayloadRefused, detail })
    }

    /// Returns how many must refuse before the rest is not asked: a few, or all that can be asked of a smaller audience.
    fn answers_to_stop(&self) -> u64 {
        let silent =
            self.chunk.decisions.iter().filter(|decision| **decision != SendDecision::Send).count() as u64;
        self.chunk.tally.sum().saturating_sub(silent).min(STOP_MIN_ANSWERS)
    }
}

/// Records, token changes and children in the making.
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

/// Returns how an outcome is tried again that speaks for the push service, if it can.
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
        _ => RetryIntent { ambiguous: true, ..intent(Reason::Unanswered, Count::Limited, None) },
    }
}

/// Returns whether, and for how long, an outcome closes the lane.
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

/// Returns why a lane rests, in a sentence.
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

/// Keeps the parking that lasts longer; without an end is longest.
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

/// Counts the attempts that were answered and those that were not; what fails that is `repeated` tells nothing.
pub(crate) fn health_of(outcomes: &[Outcome], repeated: bool) -> AnswerCounts {
    outcomes.iter().fold(AnswerCounts::default(), |mut health, outcome| {
        match outcome {
            Outcome::Accepted => health.answered += 1,
            Outcome::Unsent { retry_after: None, .. } => health.unanswered += 1,
            Outcome::Unknown
            | Outcome::Unavailable { scope: OutcomeScope::Credential | OutcomeScope::Service, .. } => {
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
