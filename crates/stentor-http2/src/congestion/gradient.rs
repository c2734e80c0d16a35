//! The gradient of latency and throughput over the number of requests in flight. It shows if more requests are completed, or if all of them
//! only wait longer.
//!
//! Latency alone says little: a peer may be far away, or have moved. The gradient compares it before and after a change of the number in
//! flight. Growth without more throughput is reverted. When responses take far longer than the fastest recent one, a lower number is tried.
//! If that costs throughput, the cause was distance, and the number is restored. If not, the cause was a queue, and the lower number stays.

use std::time::Duration;

/// Fewest responses in a window: the mean of fewer is chance.
const WINDOW_MIN_ANSWERS: usize = 32;
/// Growth of requests in flight that is large enough to be judged. The result of smaller growth is lost in the noise of the rates.
const JUDGED_GROWTH: f64 = 1.25;
/// Growth is useless when it raises the throughput by less than this share of it. A peer with spare capacity returns nearly all of the
/// growth, a saturated one nothing.
const USELESS_SHARE: f64 = 0.25;
/// Increases of latency below this are ignored: a loaded machine adds as much by itself.
const WORTH_MS: f64 = 10.0;
/// Windows without growth after useless growth. By then the excess requests have drained, and the mean belongs to the known number in
/// flight.
const STAY_WINDOWS: u32 = 8;
/// A queue is suspected when the mean latency exceeds the shortest recent one by this factor and also by [`SUSPECT_MS`]. Both are needed,
/// because without any queue nearby peers vary by factors and distant ones by milliseconds.
const SUSPECT_FACTOR: f64 = 4.0;
const SUSPECT_MS: f64 = 50.0;
/// A trial of a suspicion reduces the requests in flight to this share. If the cause was distance, the trial costs the rest of the
/// throughput for two windows.
const TRIAL_SHARE: f64 = 0.7;
/// A trial that keeps this share of the throughput has found a queue. The value is half way between the trial's share, which distance would
/// leave, and 1, which a queue would leave.
const KEPT_SHARE: f64 = 0.85;
/// Windows without a trial after one that found no queue: trials of a distant peer then cost less than a fiftieth of its rate.
const CALM_WINDOWS: u32 = 32;
/// Windows for which the fastest response is remembered: between once and twice this number. It is longer than a pause of growth, so that
/// the fastest response predates the queue, and short enough to adapt to a longer route.
const MIN_RTT_WINDOWS: u32 = 16;
/// Weight of a new window in the average for a number in flight. The average spans some four windows, so that one odd window does not
/// condemn growth.
const NEW_WEIGHT: f64 = 0.25;

/// Means over a window of responses that came while the limit held requests back.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Window {
    /// Requests in flight when the responses came.
    pub(super) inflight: f64,
    /// Time from opening the stream to the end of the response.
    pub(super) latency_ms: f64,
    /// The shortest of these latencies.
    pub(super) shortest_ms: f64,
    /// Responses per millisecond.
    pub(super) answers_per_ms: f64,
}

/// The open window of responses, and the gradient over the previous windows.
#[derive(Debug)]
pub(super) struct Sampler {
    /// Start of the window; `None` after a time in which the limit held no request back.
    began: Option<Duration>,
    /// Responses that fill the window: the limit at its start.
    full: usize,
    answers: usize,
    inflight_sum: f64,
    waited_ms: f64,
    shortest_ms: f64,
    gradient: Gradient,
}

impl Sampler {
    pub(super) const fn new() -> Self {
        let (answers, inflight_sum, waited_ms, shortest_ms) = (0, 0.0, 0.0, f64::INFINITY);
        Self {
            began: None,
            full: 0,
            answers,
            inflight_sum,
            waited_ms,
            shortest_ms,
            gradient: Gradient::new(),
        }
    }

    /// Discards the window, because the limit held no request back.
    pub(super) fn interrupt(&mut self) {
        self.began = None;
    }

    /// Adds responses that came together. Returns advice when the window is full, and begins the next one.
    pub(super) fn note(
        &mut self,
        now: Duration,
        answers: usize,
        took: Duration,
        inflight: usize,
        limit: usize,
    ) -> Option<Advice> {
        let Some(began) = self.began else {
            self.begin(now, limit);
            return None;
        };
        let took_ms = took.as_secs_f64() * 1_000.0;
        self.answers += answers;
        self.inflight_sum += (inflight * answers) as f64;
        self.waited_ms += took_ms * answers as f64;
        self.shortest_ms = self.shortest_ms.min(took_ms);
        if self.answers < self.full {
            return None;
        }
        let (count, span) = (self.answers as f64, now.saturating_sub(began));
        let window = Window {
            inflight: self.inflight_sum / count,
            latency_ms: self.waited_ms / count,
            shortest_ms: self.shortest_ms,
            answers_per_ms: count / (span.as_secs_f64() * 1_000.0).max(0.001),
        };
        self.begin(now, limit);
        Some(self.gradient.judge(window))
    }

    fn begin(&mut self, now: Duration, limit: usize) {
        (self.began, self.full, self.answers) = (Some(now), limit.max(WINDOW_MIN_ANSWERS), 0);
        (self.inflight_sum, self.waited_ms, self.shortest_ms) = (0.0, 0.0, f64::INFINITY);
    }
}

/// Advice about the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Advice {
    /// The limit may grow.
    Grow,
    /// The limit stays as it is.
    Stay,
    /// The limit becomes this value.
    Set(usize),
}

/// A trial with fewer requests in flight.
#[derive(Debug, Clone, Copy)]
struct Trial {
    before: Window,
    /// False until one window has passed: the first one after the change still holds responses from before.
    is_settled: bool,
}

/// The latency of the fastest recent response.
#[derive(Debug)]
struct MinRtt {
    past_ms: f64,
    present_ms: f64,
    windows: u32,
}

/// The decisions, window by window.
#[derive(Debug)]
pub(super) struct Gradient {
    known: Option<Window>,
    trial: Option<Trial>,
    min_rtt: MinRtt,
    stay_windows: u32,
    calm_windows: u32,
}

impl Gradient {
    pub(super) const fn new() -> Self {
        let min_rtt = MinRtt { past_ms: f64::INFINITY, present_ms: f64::INFINITY, windows: 0 };
        Self { known: None, trial: None, min_rtt, stay_windows: 0, calm_windows: 0 }
    }

    /// Judges the next window.
    pub(super) fn judge(&mut self, now: Window) -> Advice {
        let min_rtt_ms = self.min_rtt.note(now.shortest_ms);
        if let Some(trial) = self.trial.take() {
            return self.judge_trial(trial, now);
        }
        self.calm_windows = self.calm_windows.saturating_sub(1);
        let Some(known) = self.known else {
            self.known = Some(now);
            return Advice::Grow;
        };
        if self.stay_windows > 0 {
            self.stay_windows -= 1;
            self.learn(known, now);
            return Advice::Stay;
        }
        if now.inflight >= known.inflight * JUDGED_GROWTH {
            return self.judge_growth(known, now);
        }
        self.learn(known, now);
        let is_suspect =
            now.latency_ms >= min_rtt_ms * SUSPECT_FACTOR && now.latency_ms >= min_rtt_ms + SUSPECT_MS;
        if is_suspect && self.calm_windows == 0 {
            self.trial = Some(Trial { before: now, is_settled: false });
            return set(now.inflight * TRIAL_SHARE);
        }
        Advice::Grow
    }

    fn judge_growth(&mut self, known: Window, now: Window) -> Advice {
        let grown = now.inflight / known.inflight - 1.0;
        let gained = now.answers_per_ms / known.answers_per_ms - 1.0;
        if gained < grown * USELESS_SHARE && now.latency_ms >= known.latency_ms + WORTH_MS {
            self.stay_windows = STAY_WINDOWS;
            return set(known.inflight);
        }
        self.known = Some(now);
        Advice::Grow
    }

    fn judge_trial(&mut self, trial: Trial, now: Window) -> Advice {
        if !trial.is_settled {
            self.trial = Some(Trial { is_settled: true, ..trial });
            return Advice::Stay;
        }
        if now.answers_per_ms >= trial.before.answers_per_ms * KEPT_SHARE {
            self.known = Some(now);
            return Advice::Stay;
        }
        self.calm_windows = CALM_WINDOWS;
        self.known = Some(trial.before);
        set(trial.before.inflight)
    }

    /// Updates the averages for the known number in flight. A clearly lower number in flight restarts them.
    fn learn(&mut self, known: Window, now: Window) {
        let is_less = now.inflight * JUDGED_GROWTH < known.inflight;
        let mix = |known: f64, now: f64| known + NEW_WEIGHT * (now - known);
        let latency_ms = mix(known.latency_ms, now.latency_ms);
        let answers_per_ms = mix(known.answers_per_ms, now.answers_per_ms);
        self.known = Some(if is_less { now } else { Window { latency_ms, answers_per_ms, ..known } });
    }
}

impl MinRtt {
    /// Records the shortest latency of a window; returns the shortest recent one.
    fn note(&mut self, shortest_ms: f64) -> f64 {
        if self.windows == MIN_RTT_WINDOWS {
            (self.past_ms, self.present_ms, self.windows) = (self.present_ms, f64::INFINITY, 0);
        }
        self.windows += 1;
        self.present_ms = self.present_ms.min(shortest_ms.max(1.0));
        self.past_ms.min(self.present_ms)
    }
}

fn set(inflight: f64) -> Advice {
    Advice::Set(inflight as usize)
}

#[cfg(test)]
mod tests;
