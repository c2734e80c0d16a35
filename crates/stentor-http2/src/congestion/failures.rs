//! The effect of failures on the limit of requests in flight: a single failure among many responses has none, many together reduce the
//! limit.
//!
//! Failures are counted per window of responses. After a decrease the limit grows in steps that are a fraction of itself. After some
//! windows without another decrease it may double again up to the level at which it failed. After as many windows more, the failure is
//! forgotten.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Fewest responses in a window: in a smaller one a single failure would be a large share.
const WINDOW_MIN_ANSWERS: usize = 100;
/// A window with more than this fraction of failures halves the limit: 20 %. A smaller share is the problem of some devices, and fewer
/// requests would only delay all others.
const FAILED_PART: usize = 5;
/// Windows without a decrease after which the limit may double again up to the level at which it failed. By then growth by steps has
/// brought it back there, unless it was halved more than once.
const CALM_WINDOWS: usize = 16;
/// Windows without a decrease after which the level of failure is forgotten: by then the peer has changed, or was never the cause.
const FORGOTTEN_WINDOWS: usize = 2 * CALM_WINDOWS;

/// The current window, and the age of the last decrease. Accessed without a lock: a lost update only shifts the next decision.
#[derive(Debug)]
pub(super) struct Failures {
    answers: AtomicUsize,
    failures: AtomicUsize,
    /// Windows since the last decrease.
    calm_windows: AtomicUsize,
    /// The limit before the last decrease: the slow-start threshold, up to which the limit may double again.
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

    /// Counts responses towards the current window, which holds `limit` of them.
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

    /// Counts failures towards the current window; returns true if they are too many for a window of `limit` responses.
    pub(super) fn note_failures(&self, count: usize, limit: usize) -> bool {
        let failures = self.failures.fetch_add(count, Relaxed) + count;
        failures > limit.max(WINDOW_MIN_ANSWERS) / FAILED_PART
    }

    /// Restarts counting after a decrease from this limit.
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
