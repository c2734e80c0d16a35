//! Whether a lane may be served: open, shut for a while, or waiting for one probe to tell.

use std::time::Duration;

use stentor_core::outcome::Reason;
use stentor_core::retry::RetryPolicy;
use stentor_core::time::Timestamp;

use crate::pipeline::evidence::{Blame, Disproof, Evidence, Shares, Standing};
use crate::pipeline::settle::{Health, Parking};

/// How gates close and open.
#[derive(Debug, Clone, Copy)]
pub(crate) struct GateRules {
    /// A gate without end is tried again after this long.
    pub(crate) probe_after: Duration,
    /// Attempts in a row without an answer that shut the gate.
    pub(crate) unanswered_max_attempts: u32,
    /// How long it stays shut then, growing with each time.
    pub(crate) policy: RetryPolicy,
}

/// What a look at a gate shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Look {
    /// Anything may pass.
    Open,
    /// One chunk may pass, to see.
    Probe,
    /// Nothing may pass before this instant.
    Shut(Timestamp),
}

/// What a batch showed of the push service.
#[derive(Debug, Clone)]
pub(crate) struct Verdict {
    /// Set when the lane must rest.
    pub(crate) parking: Option<Parking>,
    /// How many attempts were answered.
    pub(crate) health: Health,
    /// How the push service stands after it.
    pub(crate) standing: Standing,
    /// Whether its deliveries had failed before: of a probe that fails again nothing follows for the next wait.
    pub(crate) repeated: bool,
    /// A number in 0..1.
    pub(crate) jitter: f64,
}

/// The gate of one app at one provider.
#[derive(Debug, Default)]
pub(crate) struct Gate {
    parked: Option<(Parking, Timestamp)>,
    probing: bool,
    shares: Shares,
    disproof: Disproof,
    unanswered: u32,
    trips: u16,
}

impl Gate {
    /// Returns what may pass at `now`.
    pub(crate) fn look(&self, now: Timestamp, rules: &GateRules) -> Look {
        let Some((parking, since)) = &self.parked else { return Look::Open };
        let end = parking.until.unwrap_or_else(|| since.plus(rules.probe_after));
        match (now < end, self.probing) {
            (true, _) => Look::Shut(end),
            (false, true) => Look::Shut(Timestamp::MAX),
            (false, false) => Look::Probe,
        }
    }

    /// Shows why it is shut.
    pub(crate) fn parking(&self) -> Option<&Parking> {
        self.parked.as_ref().map(|(parking, _)| parking)
    }

    /// Shuts it; an end later than the new one stays.
    pub(crate) fn park(&mut self, parking: Parking, now: Timestamp) {
        let end = |parking: &Parking| parking.until.unwrap_or(Timestamp::MAX);
        let kept = self.parked.as_ref().is_some_and(|(old, _)| end(old) > end(&parking).max(now));
        self.shares.forget();
        if !kept {
            self.parked = Some((parking, now));
        }
    }

    /// Keeps the rest of its time when the clock goes back: what was shut by a later clock would stay shut until then.
    pub(crate) fn clock_went_back(&mut self, back: Duration, now: Timestamp) {
        if let Some((parking, since)) = &mut self.parked
            && *since > now
        {
            *since = now;
            parking.until = parking.until.map(|until| until.minus(back).max(now));
        }
    }

    /// Opens it, whatever shut it.
    pub(crate) fn open(&mut self) {
        *self = Self { probing: self.probing, ..Self::default() };
    }

    /// Notes that a probe is under way, or over.
    pub(crate) fn set_probing(&mut self, probing: bool) {
        self.probing = probing;
    }

    /// Adds what a batch showed to the shares of the last answers; returns how the push service stands.
    pub(crate) fn weigh(&mut self, evidence: Evidence, is_probe: bool) -> Standing {
        let standing = self.shares.weigh(evidence, is_probe);
        let is_disproved = self.disproof.counts(evidence, standing.foreign_in_a_row);
        Standing { is_suspected: self.is_suspected(), is_disproved, ..standing }
    }

    /// Returns whether it is shut because the credential seems to be another sender's.
    pub(crate) fn is_suspected(&self) -> bool {
        self.parking().is_some_and(|parking| parking.reason == Reason::SenderMismatch)
    }

    /// Learns from a batch.
    pub(crate) fn judge(&mut self, verdict: Verdict, now: Timestamp, rules: &GateRules) {
        let Verdict { parking, health, standing, .. } = &verdict;
        if standing.has_accepted && self.is_suspected() {
            self.disproof.note();
            self.parked = None;
        }
        if standing.is_probe && parking.is_some() {
            self.parked = None;
        }
        let may_trip = standing.is_probe || self.parked.is_none();
        if let Some(parking) = parking {
            self.park(parking.clone(), now);
        } else if standing.trouble == Blame::Service && health.unanswered > 0 {
            if may_trip {
                self.trip(&verdict, now, rules);
            }
        } else if health.answered > 0 {
            self.note_answers(standing);
        } else if health.unanswered > 0 && may_trip {
            self.note_silence(&verdict, now, rules);
        }
    }

    fn note_answers(&mut self, standing: &Standing) {
        self.unanswered = 0;
        if standing.trouble == Blame::Delivery {
            self.trips = 0;
        }
        if standing.is_probe {
            self.parked = None;
        }
    }

    fn note_silence(&mut self, verdict: &Verdict, now: Timestamp, rules: &GateRules) {
        self.unanswered = self.unanswered.saturating_add(verdict.health.unanswered);
        if verdict.standing.is_probe || self.unanswered >= rules.unanswered_max_attempts {
            self.trip(verdict, now, rules);
        }
    }

    /// Shuts it, longer each time that fresh attempts shut it.
    fn trip(&mut self, verdict: &Verdict, now: Timestamp, rules: &GateRules) {
        self.unanswered = 0;
        self.shares.forget();
        self.trips = self.trips.saturating_add(u16::from(!verdict.repeated)).max(1);
        let until = now.plus(rules.policy.wait(self.trips, verdict.jitter, None));
        let detail = "the push service does not answer, or says that it is down".to_owned();
        self.parked = Some((Parking { until: Some(until), reason: Reason::Unavailable, detail }, now));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: GateRules = GateRules {
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
        let trouble = if answered > 0 { Blame::Delivery } else { Blame::Unclear };
        let standing = Standing { trouble, is_probe: probe, ..Standing::default() };
        Verdict {
            parking: None,
            health: Health { answered, unanswered },
            standing,
            repeated: false,
            jitter: 1.0,
        }
    }

    #[test]
    fn a_parked_gate_lets_one_probe_pass_after_its_time_and_the_rest_after_its_answer() {
        let mut gate = Gate::default();
        gate.judge(Verdict { parking: Some(parking(Some(at(30)))), ..verdict(0, 0, false) }, at(0), &RULES);
        assert_eq!(gate.look(at(29), &RULES), Look::Shut(at(30)));
        assert_eq!(gate.look(at(30), &RULES), Look::Probe);
        gate.set_probing(true);
        assert_eq!(gate.look(at(30), &RULES), Look::Shut(Timestamp::MAX));
        gate.judge(verdict(5, 0, false), at(31), &RULES);
        assert_ne!(gate.look(at(31), &RULES), Look::Open, "a late answer of an earlier batch opens nothing");
        gate.judge(verdict(1, 0, true), at(31), &RULES);
        assert_eq!(gate.look(at(31), &RULES), Look::Open);
    }

    #[test]
    fn a_gate_without_end_is_probed_slowly_and_an_earlier_end_does_not_shorten_it() {
        let mut gate = Gate::default();
        gate.park(parking(None), at(0));
        gate.park(parking(Some(at(5))), at(1));
        assert_eq!(gate.look(at(59), &RULES), Look::Shut(at(60)));
        assert_eq!(gate.look(at(60), &RULES), Look::Probe);
    }

    #[test]
    fn a_gate_shut_by_a_clock_that_was_ahead_opens_after_the_time_that_was_left() {
        let mut ended = Gate::default();
        ended.park(parking(Some(at(3_630))), at(3_600));
        let mut endless = Gate::default();
        endless.park(parking(None), at(3_600));
        for gate in [&mut ended, &mut endless] {
            gate.clock_went_back(Duration::from_secs(3_600), at(1));
        }
        assert_eq!(ended.look(at(1), &RULES), Look::Shut(at(30)));
        assert_eq!(endless.look(at(1), &RULES), Look::Shut(at(61)));
    }

    #[test]
    fn a_gate_that_was_shut_before_the_clock_went_ahead_stays_as_it_is() {
        let mut gate = Gate::default();
        gate.park(parking(Some(at(600))), at(0));
        gate.clock_went_back(Duration::from_secs(3_600), at(2));
        assert_eq!(gate.look(at(2), &RULES), Look::Shut(at(600)));
    }

    #[test]
    fn a_probe_that_is_put_off_again_shuts_the_gate_for_as_long_as_it_was_told() {
        let mut gate = Gate::default();
        gate.park(parking(None), at(0));
        gate.judge(Verdict { parking: Some(parking(Some(at(70)))), ..verdict(0, 0, true) }, at(60), &RULES);
        assert_eq!(gate.look(at(69), &RULES), Look::Shut(at(70)));
    }

    #[test]
    fn silence_shuts_the_gate_after_many_attempts_and_longer_each_time() {
        let mut gate = Gate::default();
        gate.judge(verdict(0, 19, false), at(0), &RULES);
        assert_eq!(gate.look(at(0), &RULES), Look::Open);
        gate.judge(verdict(0, 1, false), at(0), &RULES);
        assert_eq!(gate.look(at(0), &RULES), Look::Shut(at(1)));
        gate.judge(verdict(0, 1, true), at(1), &RULES);
        assert_eq!(gate.look(at(1), &RULES), Look::Shut(at(3)));
        gate.judge(verdict(1, 0, true), at(3), &RULES);
        assert_eq!(gate.look(at(3), &RULES), Look::Open);
    }

    #[test]
    fn one_silent_attempt_among_answers_shuts_nothing() {
        let mut gate = Gate::default();
        for _ in 0..100 {
            gate.judge(verdict(0, 1, false), at(0), &RULES);
            gate.judge(verdict(1, 0, false), at(0), &RULES);
        }
        assert_eq!(gate.look(at(0), &RULES), Look::Open);
    }

    #[test]
    fn a_service_of_which_most_answers_are_troubled_rests_though_some_are_good() {
        let mut gate = Gate::default();
        let evidence = Evidence { fine: 500, accepted: 500, troubled: 500, ..Evidence::default() };
        let standing = gate.weigh(evidence, false);
        gate.judge(Verdict { standing, ..verdict(500, 500, false) }, at(0), &RULES);
        assert_eq!(gate.look(at(0), &RULES), Look::Shut(at(1)));
    }

    #[test]
    fn a_credential_that_seemed_to_be_another_senders_is_good_again_with_the_first_accepted_message() {
        let mut gate = Gate::default();
        let parking = Parking { until: None, reason: Reason::SenderMismatch, detail: String::new() };
        gate.park(parking, at(0));
        let foreign = Evidence { fine: 5, ..Evidence::default() }.and_foreign(5);
        let standing = gate.weigh(foreign, false);
        assert!(standing.is_suspected && !standing.is_disproved);
        let accepted = gate.weigh(Evidence { fine: 1, accepted: 1, ..Evidence::default() }, false);
        gate.judge(Verdict { standing: accepted, ..verdict(1, 0, false) }, at(0), &RULES);
        assert_eq!(gate.look(at(0), &RULES), Look::Open);
        let standing = gate.weigh(foreign, false);
        assert!(
            !standing.is_suspected && standing.is_disproved,
            "some tokens are foreign, the credential is good"
        );
    }

    #[test]
    fn a_probe_that_had_failed_before_lengthens_no_wait() {
        let mut gate = Gate::default();
        gate.judge(verdict(0, 20, false), at(0), &RULES);
        for second in 1..50 {
            gate.judge(Verdict { repeated: true, ..verdict(0, 1, true) }, at(second), &RULES);
            assert_eq!(gate.look(at(second), &RULES), Look::Shut(at(second + 1)));
        }
    }
}
