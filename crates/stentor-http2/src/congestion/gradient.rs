//! The gradient of latency and throughput over the number of requests in flight: whether more of them are answered, or all only wait longer.
//!
//! Latency alone says little: a peer may be far away, or have moved. What counts is what became of it when the number in
//! flight changed. Growth that brought no throughput is taken back to where it began. And when answers take far longer
//! than the fastest of late, fewer are tried: if that costs throughput it was distance, and the number comes back; if
//! not it was a queue, and fewer they stay.

use std::time::Duration;

/// Fewest answers in a window: of fewer the mean is chance.
const WINDOW_MIN_ANSWERS: usize = 32;
/// Growth in flight that is large enough to be judged: of less, what it brought is lost in what rates differ by anyway.
const JUDGED_GROWTH: f64 = 1.25;
/// Growth is useless when less than this share of it came back as throughput: a peer that is not full gives back nearly all
/// of it, one that is full nothing.
const USELESS_SHARE: f64 = 0.25;
/// Answers that take longer by less than this are not worth a change: a loaded machine adds as much by itself.
const WORTH_MS: f64 = 10.0;
/// Windows without growth after growth that was useless: what was taken back has drained by then, and the mean is of the
/// number that is known.
const STAY_WINDOWS: u32 = 8;
/// A queue is suspected when the mean answer takes so many times as long as the fastest of late, and so much longer: both,
/// because near peers differ by factors and far ones by milliseconds without any queue.
const SUSPECT_FACTOR: f64 = 4.0;
const SUSPECT_MS: f64 = 50.0;
/// A suspicion is tried with this share of what is in flight: if it was distance, the rest of the throughput is what the
/// trial costs for two windows.
const TRIAL_SHARE: f64 = 0.7;
/// A trial that keeps this share of the throughput has found a queue: half way between the trial's share, which distance
/// would leave, and all, which a queue would.
const KEPT_SHARE: f64 = 0.85;
/// Windows without a trial after one that found none: trials of a far peer then cost less than a fiftieth of its rate.
const CALM_WINDOWS: u32 = 32;
/// How many windows the fastest answer is remembered: once as long to twice as long. Longer than a pause of growth, so that
/// the fastest is of before the queue; short enough that a way that became longer is believed.
const MIN_RTT_WINDOWS: u32 = 16;
/// Weight of a new window in what is known of a number in flight: some four windows make a mean, so that one odd window
/// condemns no growth.
const NEW_WEIGHT: f64 = 0.25;

/// A window of answers that came while the limit held others back: means over them.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Window {
    /// Requests in flight when they came.
    pub(super) inflight: f64,
    /// From opening the stream to the end of the answer.
    pub(super) latency_ms: f64,
    /// The shortest of those.
    pub(super) shortest_ms: f64,
    /// How many came in a millisecond.
    pub(super) answers_per_ms: f64,
}

/// The window of answers that is open, and what came of those before.
#[derive(Debug)]
pub(super) struct Sampler {
    /// When it began; `None` after a time in which the limit held nobody back.
    began: Option<Duration>,
    /// Answers that make it full: the limit when it began.
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

    /// Forgets the window: it was not the limit that held others back.
    pub(super) fn interrupt(&mut self) {
        self.began = None;
    }

    /// Adds answers that came together; gives advice when the window holds a limit's worth of them, and begins the next.
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

/// What to do about the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Advice {
    /// It may grow.
    Grow,
    /// It stays as it is.
    Stay,
    /// It is this from now on.
    Set(usize),
}

/// Fewer in flight, to see what that costs.
#[derive(Debug, Clone, Copy)]
struct Trial {
    before: Window,
    /// The first window after the change holds answers of before.
    is_settled: bool,
}

/// The fastest answer of late.
#[derive(Debug)]
struct MinRtt {
    past_ms: f64,
    present_ms: f64,
    windows: u32,
}

/// What is known, window by window.
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

    /// Learns what comes at the number that is known; fewer than that are a new beginning.
    fn learn(&mut self, known: Window, now: Window) {
        let is_less = now.inflight * JUDGED_GROWTH < known.inflight;
        let mix = |known: f64, now: f64| known + NEW_WEIGHT * (now - known);
        let latency_ms = mix(known.latency_ms, now.latency_ms);
        let answers_per_ms = mix(known.answers_per_ms, now.answers_per_ms);
        self.known = Some(if is_less { now } else { Window { latency_ms, answers_per_ms, ..known } });
    }
}

impl MinRtt {
    /// Notes the shortest answer of a window; returns the shortest of late.
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
