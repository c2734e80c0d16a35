//! State of the faults, for the tasks beside them.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

/// Time for which requests may still be refused after all faults are over, and for which a message may remain unfinished after it is due.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// Progress of the faults.
#[derive(Debug, Default)]
pub(crate) struct FaultsState {
    is_over: AtomicBool,
    /// Number of changes of the database's clock; it is wrong while the number is odd.
    clock_changes: AtomicU64,
    /// Time at which all messages are due that were accepted while the database's clock was ahead.
    all_due_at: Mutex<Option<Instant>>,
}

impl FaultsState {
    /// Returns true if the last fault is over.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    /// Records that the last fault is over.
    pub(crate) fn end(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }

    /// Returns the number of changes of the database's clock, to a wrong time or back. The clock was right between two reads with the same
    /// even number.
    pub(crate) fn clock_changes(&self) -> u64 {
        self.clock_changes.load(Ordering::Relaxed)
    }

    /// Records that the database's clock was set to a wrong time, or back.
    pub(crate) fn note_clock_change(&self) {
        self.clock_changes.fetch_add(1, Ordering::Relaxed);
    }

    /// Records that all servers have the right time again after a clock that was ahead by `by`. Messages accepted or postponed by that
    /// clock are due when the right clock shows the same time.
    pub(crate) fn note_fast_clock(&self, by: Duration) {
        *self.all_due_at.lock() = Some(Instant::now() + by);
    }

    /// Returns the time at which all messages are due that were accepted by a clock that was ahead; `None` if no clock was.
    pub(crate) fn all_due_at(&self) -> Option<Instant> {
        *self.all_due_at.lock()
    }

    /// Returns the time by which everything accepted so far must have ended.
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
