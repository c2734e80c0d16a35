//! The circuit breaker of a lane: closed, open for a while, or half open for one probe.

use std::time::Duration;

use stentor_core::outcome::Reason;
use stentor_core::retry::RetryPolicy;
use stentor_core::time::Timestamp;

use crate::pipeline::settle::evidence::{
    AnswerShares, ClearedSuspicion, Evidence, ProviderStanding, TroubleSource,
};
use crate::pipeline::settle::{AnswerCounts, Parking};

/// Rules by which breakers open and close.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BreakerRules {
    /// An open breaker without an end is probed after this time.
    pub(crate) probe_after: Duration,
    /// Attempts in a row without an answer that open the breaker.
    pub(crate) unanswered_max_attempts: u32,
    /// The duration for which it then stays open, growing each time.
    pub(crate) policy: RetryPolicy,
}

/// The state of a breaker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BreakerState {
    /// Anything may pass.
    Closed,
    /// One chunk may pass as a probe.
    HalfOpen,
    /// Nothing may pass before this instant.
    Open(Timestamp),
}

/// The result of a batch for the breaker.
#[derive(Debug, Clone)]
pub(crate) struct Verdict {
    /// Set if the lane must rest.
    pub(crate) parking: Option<Parking>,
    /// The numbers of answered and unanswered attempts.
    pub(crate) health: AnswerCounts,
    /// The standing of the push service after the batch.
    pub(crate) standing: ProviderStanding,
    /// True if its deliveries had failed before: a failed probe of such deliveries does not lengthen the next wait.
    pub(crate) repeated: bool,
    /// A number in 0..1.
    pub(crate) jitter: f64,
}

/// The breaker of one app at one provider.
#[derive(Debug, Default)]
pub(crate) struct CircuitBreaker {
    parked: Option<(Parking, Timestamp)>,
    probing: bool,
    shares: AnswerShares,
    disproof: ClearedSuspicion,
    unanswered: u32,
    open_count: u16,
}

impl CircuitBreaker {
    /// Returns the state at `now`.
    pub(crate) fn state(&self, now: Timestamp, rules: &BreakerRules) -> BreakerState {
        let Some((parking, since)) = &self.parked else { return BreakerState::Closed };
        let end = parking.until.unwrap_or_else(|| since.plus(rules.probe_after));
        match (now < end, self.probing) {
            (true, _) => BreakerState::Open(end),
            // Without an end: waiting lanes are woken by the result of the probe, not by time.
            (false, true) => BreakerState::Open(Timestamp::MAX),
            (false, false) => BreakerState::HalfOpen,
        }
    }

    /// Returns the reason why it is open.
    pub(crate) fn parking(&self) -> Option<&Parking> {
        self.parked.as_ref().map(|(parking, _)| parking)
    }

    /// Extends the reason why it is open.
    pub(crate) fn extend_parking(&mut self, add: impl FnOnce(Parking) -> Parking) {
        self.parked = self.parked.take().map(|(parking, since)| (add(parking), since));
    }

    /// Opens it. An end later than the new one stays.
    pub(crate) fn park(&mut self, parking: Parking, now: Timestamp) {
        let end = |parking: &Parking| parking.until.unwrap_or(Timestamp::MAX);
        let existing_ends_later =
            self.parked.as_ref().is_some_and(|(old, _)| end(old) > end(&parking).max(now));
        // Earlier answers say nothing about the push service after the rest.
        self.shares.forget();
        if !existing_ends_later {
            self.parked = Some((parking, now));
        }
    }

    /// Shortens the rest by the step of a clock that went back, if it was opened by the later clock; otherwise it would stay open for that
    /// much longer.
    pub(crate) fn clock_went_back(&mut self, back: Duration, now: Timestamp) {
        if let Some((parking, since)) = &mut self.parked
            && *since > now
        {
            *since = now;
            parking.until = parking.until.map(|until| until.minus(back).max(now));
        }
    }

    /// Closes it, regardless of the reason for which it was opened.
    pub(crate) fn close(&mut self) {
        // A running probe stays recorded until its guard is dropped.
        *self = Self { probing: self.probing, ..Self::default() };
    }

    /// Records that a probe is running or over.
    pub(crate) fn set_probing(&mut self, probing: bool) {
        self.probing = probing;
    }

    /// Adds the evidence of a batch to the recent shares and returns the standing of the push service.
    pub(crate) fn weigh(&mut self, evidence: Evidence, is_probe: bool) -> ProviderStanding {
        let standing = self.shares.weigh(evidence, is_probe);
        let is_disproved = self.disproof.counts(evidence, standing.foreign_in_a_row);
        ProviderStanding { is_suspected: self.is_suspected(), is_disproved, ..standing }
    }

    /// Returns true if it is open because the credential seems to be another sender's.
    pub(crate) fn is_suspected(&self) -> bool {
        self.parking().is_some_and(|parking| parking.reason == Reason::SenderMismatch)
    }

    /// Updates the state after a batch.
    pub(crate) fn judge(&mut self, verdict: Verdict, now: Timestamp, rules: &BreakerRules) {
        let Verdict { parking, health, standing, .. } = &verdict;
        if standing.has_accepted && self.is_suspected() {
            // Recorded so that the next such answers are not taken for a wrong credential again.
            self.disproof.note();
            self.parked = None;
        }
        // A probe is more recent than the cause of the opening; `park` alone would keep a later end.
        if standing.is_probe && parking.is_some() {
            self.parked = None;
        }
        let may_open = standing.is_probe || self.parked.is_none();
        if let Some(parking) = parking {
            self.park(parking.clone(), now);
        } else if standing.trouble == TroubleSource::Service && health.unanswered > 0 {
            if may_open {
                self.open(&verdict, now, rules);
            }
        } else if health.answered > 0 {
            self.note_answers(standing);
        } else if health.unanswered > 0 && may_open {
            self.note_silence(&verdict, now, rules);
        }
    }

    fn note_answers(&mut self, standing: &ProviderStanding) {
        self.unanswered = 0;
        if standing.trouble == TroubleSource::Delivery {
            self.open_count = 0;
        }
        if standing.is_probe {
            self.parked = None;
        }
    }

    fn note_silence(&mut self, verdict: &Verdict, now: Timestamp, rules: &BreakerRules) {
        self.unanswered = self.unanswered.saturating_add(verdict.health.unanswered);
        if verdict.standing.is_probe || self.unanswered >= rules.unanswered_max_attempts {
            self.open(verdict, now, rules);
        }
    }

    /// Opens it, for longer each time that first attempts cause it.
    fn open(&mut self, verdict: &Verdict, now: Timestamp, rules: &BreakerRules) {
        self.unanswered = 0;
        self.shares.forget();
        self.open_count = self.open_count.saturating_add(u16::from(!verdict.repeated)).max(1);
        let until = now.plus(rules.policy.wait(self.open_count, verdict.jitter, None));
        let detail = "the push service does not answer, or says that it is down".to_owned();
        self.parked = Some((Parking { until: Some(until), reason: Reason::Unavailable, detail }, now));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: BreakerRules = BreakerRules {
        probe_after: Duration::from_secs(60),
        unanswered_max_attempts: 20,
        policy: RetryPolicy { base: Duration::from_secs(1), max: Duration::from_secs(300), max_attempts: 10 },
    };

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_millis(seconds * 1_000)
    }

    fn parking(until: Option<Timestamp>) -> Parking {
        Parking { until, reason: Reason::Throttled, detail: String::new() }
    }

    fn verdict(answered: u32, unanswered: u32, probe: bool) -> Verdict {
        let trouble = if answered > 0 { TroubleSource::Delivery } else { TroubleSource::Unclear };
        let standing = ProviderStanding { trouble, is_probe: probe, ..ProviderStanding::default() };
        Verdict {
            parking: None,
            health: AnswerCounts { answered, unanswered },
            standing,
            repeated: false,
            jitter: 1.0,
        }
    }

    #[test]
    fn a_parked_gate_lets_one_probe_pass_after_its_time_and_the_rest_after_its_answer() {
        let mut breaker = CircuitBreaker::default();
        breaker.judge(
            Verdict { parking: Some(parking(Some(at(30)))), ..verdict(0, 0, false) },
            at(0),
            &RULES,
        );
        assert_eq!(breaker.state(at(29), &RULES), BreakerState::Open(at(30)));
        assert_eq!(breaker.state(at(30), &RULES), BreakerState::HalfOpen);
        breaker.set_probing(true);
        assert_eq!(breaker.state(at(30), &RULES), BreakerState::Open(Timestamp::MAX));
        breaker.judge(verdict(5, 0, false), at(31), &RULES);
        assert_ne!(
            breaker.state(at(31), &RULES),
            BreakerState::Closed,
            "a late answer of an earlier batch closes nothing"
        );
        breaker.judge(verdict(1, 0, true), at(31), &RULES);
        assert_eq!(breaker.state(at(31), &RULES), BreakerState::Closed);
    }

    #[test]
    fn a_gate_without_end_is_probed_slowly_and_an_earlier_end_does_not_shorten_it() {
        let mut breaker = CircuitBreaker::default();
        breaker.park(parking(None), at(0));
        breaker.park(parking(Some(at(5))), at(1));
        assert_eq!(breaker.state(at(59), &RULES), BreakerState::Open(at(60)));
        assert_eq!(breaker.state(at(60), &RULES), BreakerState::HalfOpen);
    }

    #[test]
    fn a_gate_shut_by_a_clock_that_was_ahead_opens_after_the_time_that_was_left() {
        let mut ended = CircuitBreaker::default();
        ended.park(parking(Some(at(3_630))), at(3_600));
        let mut endless = CircuitBreaker::default();
        endless.park(parking(None), at(3_600));
        for breaker in [&mut ended, &mut endless] {
            breaker.clock_went_back(Duration::from_secs(3_600), at(1));
        }
        assert_eq!(ended.state(at(1), &RULES), BreakerState::Open(at(30)));
        assert_eq!(endless.state(at(1), &RULES), BreakerState::Open(at(61)));
    }

    #[test]
    fn a_gate_that_was_shut_before_the_clock_went_ahead_stays_as_it_is() {
        let mut breaker = CircuitBreaker::default();
        breaker.park(parking(Some(at(600))), at(0));
        breaker.clock_went_back(Duration::from_secs(3_600), at(2));
        assert_eq!(breaker.state(at(2), &RULES), BreakerState::Open(at(600)));
    }

    #[test]
    fn a_probe_that_is_put_off_again_shuts_the_gate_for_as_long_as_it_was_told() {
        let mut breaker = CircuitBreaker::default();
        breaker.park(parking(None), at(0));
        breaker.judge(
            Verdict { parking: Some(parking(Some(at(70)))), ..verdict(0, 0, true) },
            at(60),
            &RULES,
        );
        assert_eq!(breaker.state(at(69), &RULES), BreakerState::Open(at(70)));
    }

    #[test]
    fn silence_shuts_the_gate_after_many_attempts_and_longer_each_time() {
        let mut breaker = CircuitBreaker::default();
        breaker.judge(verdict(0, 19, false), at(0), &RULES);
        assert_eq!(breaker.state(at(0), &RULES), BreakerState::Closed);
        breaker.judge(verdict(0, 1, false), at(0), &RULES);
        assert_eq!(breaker.state(at(0), &RULES), BreakerState::Open(at(1)));
        breaker.judge(verdict(0, 1, true), at(1), &RULES);
        assert_eq!(breaker.state(at(1), &RULES), BreakerState::Open(at(3)));
        breaker.judge(verdict(1, 0, true), at(3), &RULES);
        assert_eq!(breaker.state(at(3), &RULES), BreakerState::Closed);
    }

    #[test]
    fn one_silent_attempt_among_answers_shuts_nothing() {
        let mut breaker = CircuitBreaker::default();
        for _ in 0..100 {
            breaker.judge(verdict(0, 1, false), at(0), &RULES);
            breaker.judge(verdict(1, 0, false), at(0), &RULES);
        }
        assert_eq!(breaker.state(at(0), &RULES), BreakerState::Closed);
    }

    #[test]
    fn a_service_of_which_most_answers_are_troubled_rests_though_some_are_good() {
        let mut breaker = CircuitBreaker::default();
        let evidence = Evidence { fine: 500, accepted: 500, troubled: 500, ..Evidence::default() };
        let standing = breaker.weigh(evidence, false);
        breaker.judge(Verdict { standing, ..verdict(500, 500, false) }, at(0), &RULES);
        assert_eq!(breaker.state(at(0), &RULES), BreakerState::Open(at(1)));
    }

    #[test]
    fn a_credential_that_seemed_to_be_another_senders_is_good_again_with_the_first_accepted_message() {
        let mut breaker = CircuitBreaker::default();
        let parking = Parking { until: None, reason: Reason::SenderMismatch, detail: String::new() };
        breaker.park(parking, at(0));
        let foreign = Evidence { fine: 5, ..Evidence::default() }.and_foreign(5);
        let standing = breaker.weigh(foreign, false);
        assert!(standing.is_suspected && !standing.is_disproved);
        let accepted = breaker.weigh(Evidence { fine: 1, accepted: 1, ..Evidence::default() }, false);
        breaker.judge(Verdict { standing: accepted, ..verdict(1, 0, false) }, at(0), &RULES);
        assert_eq!(breaker.state(at(0), &RULES), BreakerState::Closed);
        let standing = breaker.weigh(foreign, false);
        assert!(
            !standing.is_suspected && standing.is_disproved,
            "some tokens are foreign, the credential is good"
        );
    }

    #[test]
    fn a_probe_that_had_failed_before_lengthens_no_wait() {
        let mut breaker = CircuitBreaker::default();
        breaker.judge(verdict(0, 20, false), at(0), &RULES);
        for second in 1..50 {
            breaker.judge(Verdict { repeated: true, ..verdict(0, 1, true) }, at(second), &RULES);
            assert_eq!(breaker.state(at(second), &RULES), BreakerState::Open(at(second + 1)));
        }
    }
}
