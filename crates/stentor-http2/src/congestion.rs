//! The limit of requests in flight. It grows while responses come, and shrinks on demand or when many requests fail. It never grows beyond
//! the need of the peer's rate and latency, nor where growth only increased the latency.
//!
//! Requests in flight beyond rate times latency only wait in a queue. So the limit stays below twice the best recent rate times the
//! shortest recent latency (four times at first). That leaves room to find a higher rate. When a queue builds up at the peer, neither
//! number rises, so the limit does not follow the queue. A queue that persists, though, delays every response and becomes the shortest
//! latency. So growth is also judged by its result (`gradient`).
//!
//! Before the first response neither rate nor latency is known. The duration of the silence then shows the distance of the peer
//! (`slow_start`).

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

/// Smallest increase of the limit per window of responses. Without it, a fraction of a small limit would be zero, and a client that was
/// slowed down to a handful of requests would stay there.
const STEP_MIN_REQUESTS: usize = 8;
/// Fraction of the limit that is added per window of responses after a decrease. A limit of any size doubles in a dozen windows, where a
/// fixed step would take a large limit hundreds.
const RECOVERY_PART: usize = 16;

/// Requests that may be in flight at any rate and latency, unless the initial limit is lower. A peer that responds at once shows a product
/// of nearly zero, and would get too few requests for one write.
const BASE_MAX_REQUESTS: usize = 1_024;
/// Shortest time over which a rate is measured. Responses come in bursts, and one burst is no rate.
const SPAN_MIN: Duration = Duration::from_millis(20);
/// Number of rates remembered. The best of them counts, so that a pause of a few spans changes nothing.
const RATES_MAX_COUNT: usize = 8;
/// Upper bound of requests in flight, in latencies at the best rate. One half is under way, the other probes for a higher rate.
const GAIN: f64 = 2.0;
/// The same gain while each span still improves on the previous ones: a rate is known only one latency after the growth that caused it.
const FIRST_GAIN: f64 = 4.0;
/// Ratio to the best rate so far from which a span counts as an improvement. Smaller differences are noise.
const MORE: f64 = 1.25;
/// Spans without improvement that end the first growth. A single one may have been a pause.
const LEVEL_SPANS: u32 = 2;
/// Fraction of the limit that is added per window of responses once growth was useless. It is twice the fraction after a failure, because a
/// queue costs time but no message.
const AVOIDANCE_PART: usize = 8;
/// Responses needed to excuse one late request: at most one request in three is excused.
const EXCUSE_ANSWERS: usize = 2;
/// Responses remembered for excuses. A peer that falls silent gets at most half this number of requests beyond the limit.
const EXCUSES_MAX_ANSWERS: usize = 8 * 1_024;
/// Allowance for the processing of responses on this side. Without it a nearby peer would get too few requests.
const SLACK: Duration = Duration::from_millis(2);

/// Limits the requests in flight. A demand to slow down or too many failures halve the limit; afterwards it grows in steps. Until the first
/// decrease, and again some time after each (`failures`), the limit doubles with each window of responses.
///
/// All connections of a client share it. There is no lock where no decision depends on two values at once. Values that must not lose an
/// update are changed atomically: `inflight`, or room would be lost for ever; `limit`, so that growth does not undo a decrease; `recovery`,
/// so that two connections that see the same failures halve the limit once. The other counters are read and then written: a lost update
/// shifts the next step by the responses of one read. Values that publish nothing else are `Relaxed`.
#[derive(Debug)]
pub(crate) struct CongestionControl {
    min: usize,
    max: usize,
    limit: AtomicUsize,
    /// Incremented only under the pool's lock, so that no two connections start requests in the same room. Ended requests only make room.
    inflight: AtomicUsize,
    /// Outstanding ends of requests that were started while the limit was nearly exhausted. Each response among them may raise the limit.
    window_limited: AtomicUsize,
    /// Responses since the last additive increase.
    increase_answers: AtomicUsize,
    /// Outstanding ends that cause no further decrease: those of the requests in flight at the last decrease, and as many again, because a
    /// batch is judged only when its last request has ended.
    recovery: AtomicUsize,
    failures: Failures,
    /// Responses available to excuse late requests.
    excuses: AtomicUsize,
    /// The limit derived from rate and latency; at least `base`.
    ceiling: AtomicUsize,
    base: usize,
    rates: Mutex<Rates>,
    /// True after recent growth was useless.
    is_growth_paused: AtomicBool,
    /// True once growth was useless. From then on the limit grows in smaller steps, though not as small as after a failure.
    avoids_congestion: AtomicBool,
    sampler: Mutex<Sampler>,
    slow_start: SlowStart,
}

/// The rates of the last spans.
#[derive(Debug, Default)]
struct Rates {
    /// Start of the current span; `None` before the first response, because earlier time says nothing about the rate.
    began: Option<Duration>,
    answered: u64,
    past: VecDeque<f64>,
    /// Spans without improvement so far.
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

    /// Returns the best recent rate of responses per second; zero before the end of the first span.
    pub(crate) fn delivery_rate(&self) -> u64 {
        self.rates.lock().best() as u64
    }

    /// Returns how many more requests may start.
    pub(crate) fn room(&self) -> usize {
        self.limit().saturating_sub(self.inflight())
    }

    pub(crate) fn started(&self, count: usize) {
        let inflight = self.inflight.fetch_add(count, Relaxed) + count;
        if inflight.saturating_mul(4) >= self.limit().saturating_mul(3) {
            self.window_limited.store(inflight, Relaxed);
        }
    }

    /// Raises the limit with the silence before the first response; `now` is any running time. Returns true while slow start may raise it
    /// further.
    pub(crate) fn wait(&self, now: Duration) -> bool {
        let Some(allowed) = self.slow_start.allows(now, self.inflight()) else { return false };
        // `slow_down` ends slow start before it publishes the lower limit. A thread that reads the lower limit here also sees the end of
        // slow start, and does not raise the limit again.
        let raised = |limit: usize| (!self.slow_start.was_ended()).then(|| limit.max(allowed));
        let _ = self.limit.fetch_update(Relaxed, Acquire, raised);
        true
    }

    /// Ends slow start: the peer has responded, or has failed.
    pub(crate) fn hear(&self) {
        self.slow_start.end();
    }

    /// Records the end of `count` requests, `answered` of them with a response. Responses raise the limit if it held requests back.
    pub(crate) fn ended(&self, count: usize, answered: usize) {
        self.inflight.fetch_sub(count, Relaxed);
        // First of all: the allowance by time ends with the first response.
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

    /// Removes up to `count` late requests from the requests in flight; returns their number. Each needs some responses to other requests:
    /// where most requests are late, the peer is slow and gets no extra requests.
    pub(crate) fn excuse(&self, count: usize) -> usize {
        let spent = |excuses: usize| Some(excuses - count.min(excuses / EXCUSE_ANSWERS) * EXCUSE_ANSWERS);
        let before = self.excuses.fetch_update(Relaxed, Relaxed, spent).unwrap_or_default();
        let excused = count.min(before / EXCUSE_ANSWERS);
        self.inflight.fetch_sub(excused, Relaxed);
        excused
    }

    /// Removes `count` late requests that failed before from the requests in flight, independent of responses; returns their number.
    pub(crate) fn forgive(&self, count: usize) -> usize {
        self.inflight.fetch_sub(count, Relaxed);
        count
    }

    /// Evaluates responses that arrived together: `took` is the latency of the youngest request, `min_rtt` the shortest recent latency,
    /// `now` any running time.
    pub(crate) fn observe(&self, now: Duration, answered: usize, took: Duration, min_rtt: Duration) {
        self.judge(now, answered, took);
        let mut rates = self.rates.lock();
        rates.answered += answered as u64;
        let Some(best) = rates.most(now, SPAN_MIN.max(min_rtt)) else { return };
        drop(rates);
        let wanted = (best * (min_rtt + SLACK).as_secs_f64()) as usize;
        let ceiling = wanted.clamp(self.base, self.max);
        self.ceiling.store(ceiling, Relaxed);
        // Halves the excess each time: one slow span must not undo at once the growth of several round trips.
        self.change_limit(|limit| limit - limit.saturating_sub(ceiling) / 2);
    }

    /// Halves the limit on demand of the peer, once for all requests that were in flight together.
    pub(crate) fn slow_down(&self) {
        // Must precede the decrease of the limit: see `wait`.
        self.hear();
        // Of several threads that see the same failures, one enters recovery and halves the limit.
        let recovery = (2 * self.inflight()).max(1);
        if self.recovery.compare_exchange(0, recovery, Relaxed, Relaxed).is_ok() {
            let halved = |limit: usize| Some((limit / 2).max(self.min));
            let before = self.limit.fetch_update(Release, Relaxed, halved).unwrap_or_else(|limit| limit);
            self.failures.note_decrease(before);
        }
    }

    /// Records requests that were reset or timed out; more than one in five halve the limit.
    pub(crate) fn failed(&self, count: usize) {
        self.failed_of(count, 0);
    }

    /// Like [`Self::failed`], for requests that are evaluated in groups of `total`.
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

    /// Follows the gradient of latency and rate whenever a window of responses is full.
    fn judge(&self, now: Duration, answered: usize, took: Duration) {
        // The responses were already subtracted, but were in flight until they arrived.
        let (inflight, before) = (self.inflight() + answered, self.limit());
        let mut sampler = self.sampler.lock();
        if self.window_limited.load(Relaxed) == 0 {
            return sampler.interrupt();
        }
        let Some(advice) = sampler.note(now, answered, took, inflight, before) else { return };
        self.is_growth_paused.store(advice != Advice::Grow, Relaxed);
        if let Advice::Set(advised) = advice {
            let advised = advised.clamp(self.min, self.max);
            // A decrease since the advice was computed takes precedence.
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

    /// Changes the limit atomically from its current value, because another connection may have just halved it.
    fn change_limit(&self, change: impl Fn(usize) -> usize) {
        let _ = self.limit.fetch_update(AcqRel, Acquire, |limit| Some(change(limit)));
    }
}

impl Rates {
    /// Returns the best rate per second times the gain, at the end of a span.
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
