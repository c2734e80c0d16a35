//! How many requests may be in flight: grows while answers come, shrinks when told or when many fail, and never grows
//! beyond what the peer's latency gives work to, nor where growth only made answers later.
//!
//! What is in flight beyond rate times latency only waits somewhere else. So the limit stays below twice the best rate
//! lately times the shortest latency lately (four times at first): that leaves room to find a higher rate, and where a
//! queue builds up at the peer neither number rises, so that the limit does not follow the queue. A queue that stands for
//! long is in every answer, though, and becomes the shortest latency. So growth is judged as well by what it brought
//! (`gradient`).
//!
//! Before the first answer there is neither rate nor latency, only silence, and how long it lasts tells how far away the
//! peer is (`slow_start`).

mod failures;
mod gradient;
mod slow_start;

use std::collections::VecDeque;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::time::Duration;

use parking_lot::Mutex;

use crate::limits::Limits;
use failures::Failures;
use gradient::{Advice, Sampler};
use slow_start::SlowStart;

/// Fewest requests that are added to the limit for a limit's worth of answers: a part of a small limit would be none, and a
/// client that was slowed down to a handful would stay there.
const STEP_MIN_REQUESTS: usize = 8;
/// Part of the limit that is added for each limit's worth of answers after it was halved: in a dozen of them it has doubled,
/// whatever its size, where a fixed step would take a large limit hundreds.
const RECOVERY_PART: usize = 16;

/// What may be in flight at any rate and latency, if as many may at the start: a peer whose answers come at once shows a
/// product of nearly nothing, and would get too little for one write.
const BASE_MAX_REQUESTS: usize = 1_024;
/// Shortest time over which a rate is measured: answers come in bursts, and one burst is no rate.
const SPAN_MIN: Duration = Duration::from_millis(20);
/// Rates remembered: the best of them counts, so that a pause of a few spans takes nothing away.
const RATES_MAX_COUNT: usize = 8;
/// The most in flight, in latencies at the best rate: the one half is under way, the other finds out whether more comes.
const GAIN: f64 = 2.0;
/// The same while each span still brings more than those before: a rate is known only a latency after the growth that
/// brought it.
const FIRST_GAIN: f64 = 4.0;
/// A span that brings this many times the best rate before brings more; less is what rates differ by anyway.
const MORE: f64 = 1.25;
/// Spans that may fail to bring more before that first growth is over: a single one may have been a pause.
const LEVEL_SPANS: u32 = 2;
/// Part of the limit that is added for each limit's worth of answers once growth was useless: twice as much as after a
/// failure, for a queue costs time and no message.
const AVOIDANCE_PART: usize = 8;
/// Answers for each late request that is excused: at most one in three is.
const EXCUSE_ANSWERS: usize = 2;
/// Answers that are remembered for that: a peer that falls silent gets half as many requests beyond the limit.
const EXCUSES_MAX_ANSWERS: usize = 8 * 1_024;
/// What answers may take on this side, beside the way: without it a peer nearby would get too little.
const SLACK: Duration = Duration::from_millis(2);

/// Halves the limit when it is told or too much fails, and lets it grow by steps afterwards; until the first decrease, and
/// again a while after each (`failures`), the limit doubles with each limit's worth of answers.
///
/// All connections of a client share it, without a lock where nothing depends on two values at once. What must not be lost
/// is changed in one step: `inflight`, or room would be gone for ever; `limit`, so that growth does not undo a decrease;
/// `recovery`, so that two connections that see the same failures halve the limit once. The other counters are read and
/// then written: a lost update moves the next step by the answers of one read. Values that publish nothing else are
/// `Relaxed`.
#[derive(Debug)]
pub(crate) struct CongestionControl {
    min: usize,
    max: usize,
    limit: AtomicUsize,
    /// Grows under the pool's lock alone, so that no two connections start requests in the same room; ends only make room.
    inflight: AtomicUsize,
    /// Ends still to come from requests of which the limit let no more start; each answer among them may let it grow.
    window_limited: AtomicUsize,
    /// Answers since the last additive increase.
    increase_answers: AtomicUsize,
    /// Ends still to come that cause no further decrease: those of requests that were in flight at the last one, and as many
    /// again, because a batch is judged when the last of its requests has ended.
    recovery: AtomicUsize,
    failures: Failures,
    /// Answers for which late requests may be excused.
    excuses: AtomicUsize,
    /// What rate and latency allow; at least the base.
    ceiling: AtomicUsize,
    base: usize,
    rates: Mutex<Rates>,
    /// Growth was useless of late.
    is_growth_paused: AtomicBool,
    /// It was useless once: from then on it goes in smaller steps, though not as small as after a failure.
    avoids_congestion: AtomicBool,
    sampler: Mutex<Sampler>,
    slow_start: SlowStart,
}

/// The rates of the last spans.
#[derive(Debug, Default)]
struct Rates {
    /// `None` before the first answer: until then nothing could have come.
    began: Option<Duration>,
    answered: u64,
    past: VecDeque<f64>,
    /// Spans that brought no more than those before, all in all.
    level_spans: u32,
}

impl CongestionControl {
    pub(crate) fn new(limits: &Limits) -> Self {
        let max = limits.max_inflight_requests.max(1);
        let min = limits.min_inflight_requests.clamp(1, max);
        let initial = limits.initial_inflight_requests.clamp(min, max);
        Self {
            min,
            max,
            limit: AtomicUsize::new(initial),
            inflight: AtomicUsize::new(0),
            window_limited: AtomicUsize::new(0),
            increase_answers: AtomicUsize::new(0),
            recovery: AtomicUsize::new(0),
            failures: Failures::new(),
            excuses: AtomicUsize::new(0),
            ceiling: AtomicUsize::new(max),
            base: initial.min(BASE_MAX_REQUESTS).max(min),
            rates: Mutex::default(),
            is_growth_paused: AtomicBool::new(false),
            avoids_congestion: AtomicBool::new(false),
            sampler: Mutex::new(Sampler::new()),
            slow_start: SlowStart::new(initial, limits.slow_start_inflight_requests.clamp(initial, max)),
        }
    }

    pub(crate) fn limit(&self) -> usize {
        self.limit.load(Relaxed)
    }

    pub(crate) fn inflight(&self) -> usize {
        self.inflight.load(Relaxed)
    }

    /// Returns the best rate of answers lately, a second; zero before the first span has ended.
    pub(crate) fn delivery_rate(&self) -> u64 {
        self.rates.lock().best() as u64
    }

    /// Returns how many more may start.
    pub(crate) fn room(&self) -> usize {
        self.limit().saturating_sub(self.inflight())
    }

    pub(crate) fn started(&self, count: usize) {
        let inflight = self.inflight.fetch_add(count, Relaxed) + count;
        if inflight.saturating_mul(4) >= self.limit().saturating_mul(3) {
            self.window_limited.store(inflight, Relaxed);
        }
    }

    /// Lets the limit grow with the silence before the first answer; `now` is any running time. Returns whether it may still
    /// grow that way.
    pub(crate) fn wait(&self, now: Duration) -> bool {
        let Some(allowed) = self.slow_start.allows(now, self.inflight()) else { return false };
        // `slow_down` ends slow start before it releases the lower limit: whoever sees that limit here sees the end too, and
        // does not raise it again.
        let raised = |limit: usize| (!self.slow_start.was_ended()).then(|| limit.max(allowed));
        let _ = self.limit.fetch_update(Relaxed, Acquire, raised);
        true
    }

    /// Notes that the peer is silent no more, or will be for ever.
    pub(crate) fn hear(&self) {
        self.slow_start.end();
    }

    /// Notes the end of `count` requests; each of the `answered` ones lets the limit grow if it held others back.
    pub(crate) fn ended(&self, count: usize, answered: usize) {
        self.inflight.fetch_sub(count, Relaxed);
        // Before anything else is learned of the answers: what time allowed counts no more.
        if answered > 0 {
            self.hear();
        }
        let earned = |excuses: usize| Some((excuses + answered).min(EXCUSES_MAX_ANSWERS));
        let _ = self.excuses.fetch_update(Relaxed, Relaxed, earned);
        let _ = self.recovery.fetch_update(Relaxed, Relaxed, |left| Some(left.saturating_sub(count)));
        self.failures.note_answers(answered, self.limit());
        let window_limited = self.window_limited.load(Relaxed);
        self.window_limited.store(window_limited.saturating_sub(count), Relaxed);
        if window_limited > 0 && !self.is_growth_paused.load(Relaxed) {
            self.grow(answered.min(window_limited));
        }
    }

    /// Lets up to `count` late requests count as in flight no more; returns how many. Each is excused for some answers to others:
    /// where most are late, the peer is slow, and gets no more for it.
    pub(crate) fn excuse(&self, count: usize) -> usize {
        let spent = |excuses: usize| Some(excuses - count.min(excuses / EXCUSE_ANSWERS) * EXCUSE_ANSWERS);
        let before = self.excuses.fetch_update(Relaxed, Relaxed, spent).unwrap_or_default();
        let excused = count.min(before / EXCUSE_ANSWERS);
        self.inflight.fetch_sub(excused, Relaxed);
        excused
    }

    /// Lets `count` requests that failed before count as in flight no more, though nothing is answered; returns how many.
    pub(crate) fn forgive(&self, count: usize) -> usize {
        self.inflight.fetch_sub(count, Relaxed);
        count
    }

    /// Learns from answers that came together: `took` is what the youngest of them took, `min_rtt` the shortest lately, `now`
    /// any running time.
    pub(crate) fn observe(&self, now: Duration, answered: usize, took: Duration, min_rtt: Duration) {
        self.judge(now, answered, took);
        let mut rates = self.rates.lock();
        rates.answered += answered as u64;
        let Some(best) = rates.most(now, SPAN_MIN.max(min_rtt)) else { return };
        drop(rates);
        let wanted = (best * (min_rtt + SLACK).as_secs_f64()) as usize;
        let ceiling = wanted.clamp(self.base, self.max);
        self.ceiling.store(ceiling, Relaxed);
        // Half of the way at a time: one slow span must not take away at once what growth takes round trips to find.
        self.change_limit(|limit| limit - limit.saturating_sub(ceiling) / 2);
    }

    /// Halves the limit because the peer asked for less, once for all requests that were in flight together.
    pub(crate) fn slow_down(&self) {
        // Before the limit is lower: see `wait`.
        self.hear();
        // Of those who see the same failures one enters recovery, and halves.
        let recovery = (2 * self.inflight()).max(1);
        if self.recovery.compare_exchange(0, recovery, Relaxed, Relaxed).is_ok() {
            let halved = |limit: usize| Some((limit / 2).max(self.min));
            let before = self.limit.fetch_update(Release, Relaxed, halved).unwrap_or_else(|limit| limit);
            self.failures.note_decrease(before);
        }
    }

    /// Notes requests that were reset or timed out; more than one in five halve the limit.
    pub(crate) fn failed(&self, count: usize) {
        self.failed_of(count, 0);
    }

    /// The same of requests that are looked at `total` at a time.
    pub(crate) fn failed_of(&self, count: usize, total: usize) {
        if count > 0 {
            self.hear();
        }
        let window = self.limit().max(total);
        let counts = count > 0 && self.recovery.load(Relaxed) == 0;
        if counts && self.failures.note_failures(count, window) {
            self.slow_down();
        }
    }

    /// Obeys the gradient of latency and rate whenever a window of answers is full.
    fn judge(&self, now: Duration, answered: usize, took: Duration) {
        // The answers have been counted out already, and were in flight until they came.
        let (inflight, before) = (self.inflight() + answered, self.limit());
        let mut sampler = self.sampler.lock();
        if self.window_limited.load(Relaxed) == 0 {
            return sampler.interrupt();
        }
        let Some(advice) = sampler.note(now, answered, took, inflight, before) else { return };
        self.is_growth_paused.store(advice != Advice::Grow, Relaxed);
        if let Advice::Set(advised) = advice {
            let advised = advised.clamp(self.min, self.max);
            // A decrease since the advice was asked for holds.
            self.change_limit(|limit| if limit < before { limit.min(advised) } else { advised });
            self.avoids_congestion.store(true, Relaxed);
        }
    }

    fn grow(&self, answered: usize) {
        let (limit, ceiling) = (self.limit(), self.ceiling.load(Relaxed));
        if limit >= ceiling {
            return;
        }
        let (ssthresh, avoids_congestion) = (self.failures.ssthresh(), self.avoids_congestion.load(Relaxed));
        if limit < ssthresh && !avoids_congestion {
            self.change_limit(|limit| (limit + answered).min(ssthresh).min(ceiling).max(limit));
            return;
        }
        let part = if limit < ssthresh { AVOIDANCE_PART } else { RECOVERY_PART };
        let step = (limit / part).max(STEP_MIN_REQUESTS);
        let increase_answers = self.increase_answers.fetch_add(answered, Relaxed) + answered;
        if increase_answers > limit {
            self.increase_answers.store(0, Relaxed);
            self.change_limit(|limit| (limit + step).min(ceiling).max(limit));
        }
    }

    /// Changes the limit in one step, going by what it is at that moment: another connection may have halved it just now.
    fn change_limit(&self, change: impl Fn(usize) -> usize) {
        let _ = self.limit.fetch_update(AcqRel, Acquire, |limit| Some(change(limit)));
    }
}

impl Rates {
    /// Returns the best rate a second times the gain, at the end of a span.
    fn most(&mut self, now: Duration, span_min: Duration) -> Option<f64> {
        let span = now.saturating_sub(*self.began.get_or_insert(now));
        if span < span_min {
            return None;
        }
        let (rate, before) = (self.answered as f64 / span.as_secs_f64(), self.best());
        if rate < before * MORE {
            self.level_spans = self.level_spans.saturating_add(1);
        }
        if self.past.len() == RATES_MAX_COUNT {
            self.past.pop_front();
        }
        self.past.push_back(rate);
        (self.began, self.answered) = (Some(now), 0);
        let gain = if self.level_spans < LEVEL_SPANS { FIRST_GAIN } else { GAIN };
        Some(self.best() * gain)
    }

    fn best(&self) -> f64 {
        self.past.iter().copied().fold(0.0, f64::max)
    }
}

#[cfg(test)]
mod tests;
