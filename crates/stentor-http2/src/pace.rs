//! How many requests may be in flight: grows while answers come, shrinks when told or when they fail.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

use crate::limits::Limits;

/// Requests added to the limit for each limit's worth of answers, once slowed down for the first time.
const ADDITIVE_STEP_REQUESTS: usize = 8;

/// Additive increase, multiplicative decrease; until the first decrease the limit doubles with each limit's worth of
/// answers. Its counters are read and written without a lock: a lost update only delays the next step.
#[derive(Debug)]
pub(crate) struct Pace {
    min: usize,
    max: usize,
    limit: AtomicUsize,
    inflight: AtomicUsize,
    credit: AtomicUsize,
    /// Ends still to come from requests that were in flight at the last decrease; they cause no further one.
    grace: AtomicUsize,
    slowed: AtomicBool,
}

impl Pace {
    pub(crate) fn new(limits: &Limits) -> Self {
        let max = limits.max_inflight_requests.max(1);
        let min = limits.min_inflight_requests.clamp(1, max);
        Self {
            min,
            max,
            limit: AtomicUsize::new(limits.initial_inflight_requests.clamp(min, max)),
            inflight: AtomicUsize::new(0),
            credit: AtomicUsize::new(0),
            grace: AtomicUsize::new(0),
            slowed: AtomicBool::new(false),
        }
    }

    pub(crate) fn limit(&self) -> usize {
        self.limit.load(Relaxed)
    }

    pub(crate) fn inflight(&self) -> usize {
        self.inflight.load(Relaxed)
    }

    /// Tells how many more may start.
    pub(crate) fn room(&self) -> usize {
        self.limit().saturating_sub(self.inflight())
    }

    pub(crate) fn started(&self, count: usize) {
        self.inflight.fetch_add(count, Relaxed);
    }

    /// Notes the end of `count` requests; each of the `answered` ones lets the limit grow if it held others back.
    pub(crate) fn ended(&self, count: usize, answered: usize) {
        let inflight = self.inflight.fetch_sub(count, Relaxed);
        let _ = self.grace.fetch_update(Relaxed, Relaxed, |left| Some(left.saturating_sub(count)));
        if inflight.saturating_mul(4) >= self.limit().saturating_mul(3) {
            self.grow(answered);
        }
    }

    /// Halves the limit, once for all requests that were in flight together.
    pub(crate) fn slow_down(&self) {
        let limit = self.limit();
        let in_grace = self.grace.compare_exchange(0, self.inflight().max(1), Relaxed, Relaxed).is_err();
        if !in_grace {
            self.limit.store((limit / 2).max(self.min), Relaxed);
            self.slowed.store(true, Relaxed);
        }
    }

    fn grow(&self, answered: usize) {
        let limit = self.limit();
        if !self.slowed.load(Relaxed) {
            self.limit.store((limit + answered).min(self.max), Relaxed);
            return;
        }
        let credit = self.credit.fetch_add(answered, Relaxed) + answered;
        if credit > limit {
            self.credit.store(0, Relaxed);
            self.limit.store((limit + ADDITIVE_STEP_REQUESTS).min(self.max), Relaxed);
        }
    }
}

#[cfg(test)]
mod tests;
