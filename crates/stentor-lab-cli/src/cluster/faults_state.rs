//! What everything beside the faults has to know of them.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// How long something may be refused after all faults are over, and how long a message may need to end once it is due.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// How far the faults are.
#[derive(Debug, Default)]
pub(crate) struct FaultsState {
    is_over: AtomicBool,
    /// How often the database's clock was set; it is wrong while that is odd.
    clock_changes: AtomicU64,
    /// When all is due that was accepted while the database's clock was ahead.
    all_due_at: Mutex<Option<Instant>>,
}

impl FaultsState {
    /// Returns whether the last fault is over.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    /// Notes that the last fault is over.
    pub(crate) fn end(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }

    /// Returns how often the database's clock was set wrong or right: what lies between two equal even numbers went by the right time.
    pub(crate) fn clock_changes(&self) -> u64 {
        self.clock_changes.load(Ordering::Relaxed)
    }

    /// Notes that the database's clock was set wrong, or right again.
    pub(crate) fn note_clock_change(&self) {
        self.clock_changes.fetch_add(1, Ordering::Relaxed);
    }

    /// Notes that everybody goes by the right time again, after a clock that was so far ahead: what was accepted or put off by it is
    /// due when the right clock shows the same.
    pub(crate) fn note_fast_clock(&self, by: Duration) {
        *self.all_due_at.lock() = Some(Instant::now() + by);
    }

    /// Returns when all is due that was accepted by a clock that was ahead; `None` where none was.
    pub(crate) fn all_due_at(&self) -> Option<Instant> {
        *self.all_due_at.lock()
    }

    /// Returns when everything that has been accepted so far must have ended.
    pub(crate) fn end_limit(&self) -> Instant {
        let now = Instant::now();
        self.all_due_at().map_or(now, |at| at.max(now)) + PATIENCE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_accepted_by_a_fast_clock_is_waited_for() {
        let state = FaultsState::default();
        assert!(state.end_limit() <= Instant::now() + PATIENCE);
        let offset = Duration::from_secs(300);
        let before = Instant::now();
        state.note_fast_clock(offset);
        assert!(state.all_due_at() >= Some(before + offset));
        assert!(state.end_limit() >= before + offset + PATIENCE);
        state.note_fast_clock(Duration::ZERO);
        assert!(state.end_limit() <= Instant::now() + PATIENCE, "it is past");
    }
}
