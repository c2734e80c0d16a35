//! The pace of requests to one push service: what it has answered lately decides how many requests it gets.
//!
//! Push services state no limits in advance. Chrome's, for example, takes 1,000 messages a minute from a site with little engagement, and
//! answers 429 to all others (developer.chrome.com, "Web Push rate limits", 2026). The pace learns such a limit from the first refusals:
//! the push service takes as many messages in a minute as it has taken in the last one. Deliveries beyond it get a place in time instead
//! of a refusal. A limit rises again while the push service refuses nothing.

use std::time::Duration;

use stentor_core::outcome::{Outcome, Reason};
use stentor_core::time::Timestamp;

/// Fewest bad answers that concern the push service and not their deliveries.
const MIN_ANSWERS: u32 = 10;
/// Wait after a refusal that names none.
const THROTTLE_DEFAULT: Duration = Duration::from_secs(60);
/// Longest wait that a push service can demand.
const THROTTLE_MAX: Duration = Duration::from_secs(3_600);
/// Wait after refusals of the key. A new key is a new adapter, which begins afresh.
const REFUSED_WAIT: Duration = Duration::from_secs(60);
/// Longest wait for a push service that is down.
const DOWN_WAIT_MAX: Duration = Duration::from_secs(60);
/// Requests with which a push service is tried after a rest.
const PROBE_COUNT: usize = 10;
/// A limit rises by a quarter after this time without a refusal.
const RAISED_AFTER: Duration = Duration::from_secs(300);
const MINUTE: Duration = Duration::from_secs(60);
const SECONDS: usize = 60;

/// The answers of a push service to a part of a batch, counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct HostAnswers {
    /// Answers about the subscription or the message.
    pub(super) fine: u32,
    /// The accepted ones among them.
    pub(super) accepted: u32,
    /// Requests to slow down.
    pub(super) throttled: u32,
    /// Refusals of the key.
    pub(super) refused: u32,
    /// Requests that the push service could not take or did not answer.
    pub(super) down: u32,
    /// Requests that did not reach it.
    pub(super) unreached: u32,
    /// The longest demanded wait.
    pub(super) retry_after: Option<Duration>,
}

impl HostAnswers {
    const fn bad(&self) -> u32 {
        self.throttled + self.refused + self.down + self.unreached
    }
}

/// The meaning of bad answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct HostVerdict {
    /// True if they concern the push service, and not only their deliveries.
    pub(super) concerns_all: bool,
    /// The wait of deliveries that are deferred.
    pub(super) wait: Duration,
}

/// The number of requests that may be sent now, and the waits of the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Grant {
    /// Requests that may be sent.
    pub(super) allowed: usize,
    /// The wait of the first of the others.
    first: Duration,
    /// The additional wait of each further one.
    step: Duration,
    reason: Reason,
}

impl Grant {
    /// Returns the outcome of the request at a place behind the allowed ones.
    pub(super) fn deferred(&self, place: usize) -> Outcome {
        let steps = self.step.saturating_mul(u32::try_from(place).unwrap_or(u32::MAX));
        Outcome::Deferred { reason: self.reason, retry_after: self.first.saturating_add(steps) }
    }
}

/// The rest of a push service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Rest {
    until: Timestamp,
    reason: Reason,
}

impl Rest {
    /// Returns true if it lasts. One that ends later than any rest can was written by a clock that was ahead.
    fn lasts(&self, now: Timestamp) -> bool {
        now < self.until && self.until.since(now) <= THROTTLE_MAX
    }
}

/// A learned limit.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Limit {
    per_minute: u32,
    /// Requests that may be sent now.
    level: f64,
    /// Time of the last change of the level.
    at: Timestamp,
    /// Time since which nothing was refused, or of the last rise.
    since: Timestamp,
    /// The end of the places that were given to deferred deliveries.
    booked: Timestamp,
}

/// Messages accepted in each of the last sixty seconds.
#[derive(Debug)]
struct LastMinute {
    counts: [u32; SECONDS],
    second: i64,
}

/// The pace of one push service for one key.
#[derive(Debug, Default)]
pub(super) struct Pace {
    rest: Option<Rest>,
    limit: Option<Limit>,
    last_minute: LastMinute,
    /// Bad answers since the last good one.
    bad_in_a_row: u32,
    /// Rests since the last good answer.
    rests: u32,
}

impl Default for LastMinute {
    fn default() -> Self {
        Self { counts: [0; SECONDS], second: i64::MIN / 2 }
    }
}

impl LastMinute {
    fn add(&mut self, count: u32, now: Timestamp) {
        self.forget(now);
        self.counts[place(self.second)] += count;
    }

    fn sum(&mut self, now: Timestamp) -> u32 {
        self.forget(now);
        self.counts.iter().sum()
    }

    /// Clears the seconds that have passed; a clock that went back changes nothing.
    fn forget(&mut self, now: Timestamp) {
        let second = now.as_millis().div_euclid(1_000).max(self.second);
        let passed = (second - self.second).min(SECONDS as i64);
        (0..passed).for_each(|behind| self.counts[place(second - behind)] = 0);
        self.second = second;
    }
}

fn place(second: i64) -> usize {
    second.rem_euclid(SECONDS as i64) as usize
}

impl Limit {
    fn new(per_minute: u32, now: Timestamp) -> Self {
        Self { per_minute, level: 0.0, at: now, since: now, booked: now }
    }

    fn step(&self) -> Duration {
        MINUTE / self.per_minute
    }

    /// Adds the requests of the time that has passed, at most those of a minute.
    fn refill(&mut self, now: Timestamp) {
        // After a step back of the clock, the places stay as far ahead as they were.
        let back = self.at.since(now);
        (self.booked, self.since) = (self.booked.minus(back), self.since.minus(back));
        let passed = now.since(self.at).as_secs_f64();
        let most = f64::from(self.per_minute);
        self.level = (self.level + passed * most / MINUTE.as_secs_f64()).min(most);
        self.at = now;
        if now.since(self.since) >= RAISED_AFTER {
            self.per_minute = self.per_minute.saturating_add(self.per_minute.div_ceil(4));
            self.since = now;
        }
    }

    fn grant(&mut self, count: usize, now: Timestamp) -> Grant {
        self.refill(now);
        let allowed = count.min(self.level as usize);
        self.level -= allowed as f64;
        let booked = self.booked.max(now);
        let others = u32::try_from(count - allowed).unwrap_or(u32::MAX);
        self.booked = booked.plus(self.step().saturating_mul(others));
        Grant {
            allowed,
            first: booked.since(now) + self.step(),
            step: self.step(),
            reason: Reason::Throttled,
        }
    }
}

impl Pace {
    /// Decides how many of `count` requests may be sent now.
    pub(super) fn grant(&mut self, count: usize, now: Timestamp) -> Grant {
        let step = Duration::ZERO;
        if let Some(Rest { until, reason }) = self.rest.filter(|rest| rest.lasts(now)) {
            return Grant { allowed: 0, first: until.since(now), step, reason };
        }
        let trial = if self.rests > 0 { count.min(PROBE_COUNT) } else { count };
        let granted = match &mut self.limit {
            Some(limit) => limit.grant(count, now),
            None => {
                Grant { allowed: count, first: Duration::from_secs(1), step, reason: Reason::Unavailable }
            }
        };
        Grant { allowed: granted.allowed.min(trial), ..granted }
    }

    /// Learns from answers, and decides whether bad ones concern the push service.
    pub(super) fn note(&mut self, answers: &HostAnswers, now: Timestamp) -> HostVerdict {
        self.last_minute.add(answers.accepted, now);
        let bad = answers.bad();
        let most = bad >= MIN_ANSWERS && bad >= answers.fine;
        let none = answers.fine == 0 && self.bad_in_a_row.saturating_add(bad) >= MIN_ANSWERS;
        let unreached = answers.fine == 0 && answers.unreached > 0;
        if answers.fine > 0 {
            (self.bad_in_a_row, self.rests) = (0, 0);
        } else {
            self.bad_in_a_row = self.bad_in_a_row.saturating_add(bad);
        }
        let concerns_all = most || none || unreached;
        if concerns_all {
            self.rest_after(answers, now);
        }
        let wait = self.resting(now).map_or(Duration::ZERO, |(_, until)| until.since(now));
        HostVerdict { concerns_all, wait: wait.max(Duration::from_secs(1)) }
    }

    /// Returns the learned limit in messages a minute.
    pub(super) fn per_minute(&self) -> Option<u32> {
        self.limit.map(|limit| limit.per_minute)
    }

    /// Returns the reason and the end of its rest, if it rests.
    pub(super) fn resting(&self, now: Timestamp) -> Option<(Reason, Timestamp)> {
        self.rest.filter(|rest| rest.lasts(now)).map(|rest| (rest.reason, rest.until))
    }

    /// Returns the time until every deferred delivery has had its place.
    pub(super) fn backlog(&self, now: Timestamp) -> Duration {
        let booked = self.limit.map_or(Duration::ZERO, |limit| limit.booked.since(now));
        let rest = self.resting(now).map_or(Duration::ZERO, |(_, until)| until.since(now));
        booked.max(rest)
    }

    fn rest_after(&mut self, answers: &HostAnswers, now: Timestamp) {
        let (reason, wait) = if answers.throttled > 0 {
            let wait = answers.retry_after.unwrap_or(THROTTLE_DEFAULT).min(THROTTLE_MAX);
            self.learn(now.plus(wait), now);
            (Reason::Throttled, wait)
        } else if answers.refused > 0 {
            (Reason::CredentialRefused, REFUSED_WAIT)
        } else {
            let backoff = Duration::from_secs(1 << self.rests.min(6)).min(DOWN_WAIT_MAX);
            let demanded = answers.retry_after.unwrap_or_default().min(THROTTLE_MAX);
            (Reason::Unavailable, backoff.max(demanded))
        };
        self.rests = self.rests.saturating_add(u32::from(answers.fine == 0));
        let until = now.plus(wait);
        let is_longer = self.resting(now).is_none_or(|(_, end)| end < until);
        if is_longer {
            self.rest = Some(Rest { until, reason });
        }
    }

    /// Learns a limit from refusals: the number of messages accepted within a minute.
    fn learn(&mut self, until: Timestamp, now: Timestamp) {
        let accepted = self.last_minute.sum(now).max(1);
        // Further refusals halve a known limit at most, so that one bad minute costs no more.
        let per_minute = match self.limit {
            Some(Limit { per_minute: known, .. }) => accepted.clamp(known.div_ceil(2), known),
            None => accepted,
        };
        self.limit = Some(Limit { booked: until, ..Limit::new(per_minute, now) });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_millis(1_800_000_000_000 + seconds * 1_000)
    }

    fn fine(count: u32) -> HostAnswers {
        HostAnswers { fine: count, accepted: count, ..HostAnswers::default() }
    }

    /// Returns the wait of a deferred request in seconds.
    fn wait(grant: &Grant, place: usize) -> u64 {
        match grant.deferred(place) {
            Outcome::Deferred { retry_after, .. } => retry_after.as_secs(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_push_service_without_refusals_gets_everything() {
        let mut pace = Pace::default();
        for second in 0..100 {
            assert_eq!(pace.grant(100_000, at(second)).allowed, 100_000);
            assert!(!pace.note(&fine(100_000), at(second)).concerns_all);
        }
        assert_eq!(pace.per_minute(), None);
    }

    #[test]
    fn a_limit_is_learned_from_the_first_refusals_and_the_rest_gets_places_in_time() {
        let mut pace = Pace::default();
        let throttled = HostAnswers { throttled: 4_000, retry_after: Some(MINUTE), ..fine(1_000) };
        let verdict = pace.note(&throttled, at(0));
        assert_eq!(verdict, HostVerdict { concerns_all: true, wait: MINUTE });
        assert_eq!(pace.per_minute(), Some(1_000));
        assert_eq!(pace.grant(500, at(30)).allowed, 0, "it rests");
        let grant = pace.grant(5_000, at(60));
        assert_eq!(grant.allowed, 1_000);
        // 4,000 others at 1,000 a minute.
        assert_eq!((wait(&grant, 0), wait(&grant, 999), wait(&grant, 3_999)), (0, 60, 240));
        assert_eq!(pace.backlog(at(60)).as_secs(), 240);
        let next = pace.grant(1_000, at(61));
        assert_eq!(wait(&next, 983), 298, "behind those that have their places already");
    }

    #[test]
    fn deliveries_that_come_back_at_their_places_are_sent() {
        let mut pace = Pace::default();
        pace.note(
            &HostAnswers { throttled: 100, retry_after: Some(Duration::from_secs(1)), ..fine(60) },
            at(0),
        );
        assert_eq!(pace.grant(0, at(60)).allowed, 0);
        for second in 61..180 {
            assert_eq!(pace.grant(1, at(second)).allowed, 1, "second {second}");
        }
    }

    #[test]
    fn a_limit_rises_while_nothing_is_refused() {
        let mut pace = Pace::default();
        pace.note(&HostAnswers { throttled: 100, ..fine(100) }, at(0));
        pace.grant(1, at(301));
        pace.grant(1, at(602));
        assert_eq!(pace.per_minute(), Some(157));
    }

    #[test]
    fn further_refusals_halve_a_limit_at_most() {
        let mut pace = Pace::default();
        let throttled = |accepted| HostAnswers { throttled: 1_000, ..fine(accepted) };
        let mut learned = |accepted, seconds| {
            pace.note(&throttled(accepted), at(seconds));
            pace.per_minute()
        };
        assert_eq!(learned(800, 0), Some(800));
        assert_eq!(learned(0, 600), Some(400));
        assert_eq!(learned(300, 1_200), Some(300));
        assert_eq!(learned(900, 1_800), Some(300));
    }

    #[test]
    fn few_refusals_among_good_answers_concern_their_deliveries() {
        let mut pace = Pace::default();
        for bad in [
            HostAnswers { throttled: 9, ..fine(3) },
            HostAnswers { refused: 100, ..fine(900) },
            HostAnswers { down: 100, ..fine(900) },
        ] {
            assert!(!pace.note(&bad, at(0)).concerns_all, "{bad:?}");
            assert_eq!(pace.grant(1_000, at(0)).allowed, 1_000);
        }
    }

    #[test]
    fn single_bad_answers_in_a_row_concern_the_push_service_at_last() {
        let mut pace = Pace::default();
        let refused = HostAnswers { refused: 1, ..HostAnswers::default() };
        let verdicts: Vec<_> = (0..10).map(|_| pace.note(&refused, at(0)).concerns_all).collect();
        assert_eq!(verdicts.iter().position(|concerns| *concerns), Some(9));
        assert_eq!(pace.resting(at(1)), Some((Reason::CredentialRefused, at(60))));
        assert_eq!(pace.grant(1_000, at(60)).allowed, PROBE_COUNT);
        pace.note(&fine(10), at(60));
        assert_eq!(pace.grant(1_000, at(61)).allowed, 1_000);
    }

    #[test]
    fn a_push_service_that_is_not_reached_is_tried_less_and_less_often() {
        let mut pace = Pace::default();
        let unreached = HostAnswers { unreached: 1, ..HostAnswers::default() };
        let (mut now, mut waits) = (0, Vec::new());
        for _ in 0..8 {
            let verdict = pace.note(&unreached, at(now));
            assert!(verdict.concerns_all);
            waits.push(verdict.wait.as_secs());
            now += verdict.wait.as_secs() as i64;
            assert_eq!(pace.grant(50, at(now)).allowed, PROBE_COUNT);
        }
        assert_eq!(waits, [1, 2, 4, 8, 16, 32, 60, 60]);
    }

    #[test]
    fn a_clock_that_steps_neither_empties_a_limit_nor_extends_a_rest() {
        let mut pace = Pace::default();
        pace.note(&HostAnswers { throttled: 100, retry_after: Some(MINUTE), ..fine(60) }, at(86_400));
        let after = pace.grant(2, at(0));
        assert_eq!(after.allowed, 0, "its limit is still learned");
        assert!(wait(&after, 1) <= 70, "a rest of a clock that was a day ahead");
        pace.note(&fine(1), at(0));
        assert_eq!(pace.last_minute.sum(at(86_400 + 60)), 0);
    }
}
