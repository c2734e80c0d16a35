//! What failures say about the number of requests in flight: one among many says nothing, many together say less.
//!
//! They are counted by windows of answers. After a decrease the limit grows in steps that are a part of itself; after
//! some windows without another it may double again up to the level at which it failed, and after as many more the
//! failure is forgotten.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Fewest answers in a window: among fewer a single failure would be a large share.
const WINDOW_MIN_ANSWERS: usize = 100;
/// More failures than this part of a window ask for fewer requests: 20 %. A smaller share is what some devices meet, and fewer
/// requests would only delay all others.
const FAILED_PART: usize = 5;
/// Windows without a decrease after which the limit may double again up to where it failed: by then growth by steps has
/// brought it back there itself, unless it was halved more than once.
const CALM_WINDOWS: usize = 16;
/// Windows without a decrease after which it is forgotten where it failed: the peer is another one by then, or was never
/// the cause.
const FORGOTTEN_WINDOWS: usize = 2 * CALM_WINDOWS;

/// The running window, and how long ago the last decrease was. Read and written without a lock: a lost update only moves
/// the next decision.
#[derive(Debug)]
pub(super) struct Failures {
    answers: AtomicUsize,
    failures: AtomicUsize,
    /// Windows since the last decrease.
    calm_windows: AtomicUsize,
    /// The limit before it: up to there the limit may double again, as below a slow-start threshold.
    ssthresh: AtomicUsize,
}

impl Failures {
    pub(super) const fn new() -> Self {
        Self {
            answers: AtomicUsize::new(0),
            failures: AtomicUsize::new(0),
            calm_windows: AtomicUsize::new(FORGOTTEN_WINDOWS),
            ssthresh: AtomicUsize::new(0),
        }
    }

    /// Counts answers towards the running window: `limit` of them fill it.
    pub(super) fn note_answers(&self, count: usize, limit: usize) {
        let answers = self.answers.load(Relaxed) + count;
        let is_full = answers >= limit.max(WINDOW_MIN_ANSWERS);
        self.answers.store(if is_full { 0 } else { answers }, Relaxed);
        if is_full {
            self.failures.store(0, Relaxed);
            let calm = self.calm_windows.load(Relaxed);
            self.calm_windows.store((calm + 1).min(FORGOTTEN_WINDOWS), Relaxed);
        }
    }

    /// Counts failures towards the running window; returns whether they are too many for one of `limit` answers.
    pub(super) fn note_failures(&self, count: usize, limit: usize) -> bool {
        let failures = self.failures.fetch_add(count, Relaxed) + count;
        failures > limit.max(WINDOW_MIN_ANSWERS) / FAILED_PART
    }

    /// Begins anew after a decrease from this limit.
    pub(super) fn note_decrease(&self, limit: usize) {
        self.ssthresh.store(limit, Relaxed);
        for count in [&self.answers, &self.failures, &self.calm_windows] {
            count.store(0, Relaxed);
        }
    }

    /// Returns the limit up to which it may double.
    pub(super) fn ssthresh(&self) -> usize {
        match self.calm_windows.load(Relaxed) {
            ..CALM_WINDOWS => 0,
            CALM_WINDOWS..FORGOTTEN_WINDOWS => self.ssthresh.load(Relaxed),
            FORGOTTEN_WINDOWS.. => usize::MAX,
        }
    }
}
