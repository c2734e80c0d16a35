//! What everything beside the faults has to know of them.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// How far the faults are.
#[derive(Debug, Default)]
pub(crate) struct FaultsState {
    is_over: AtomicBool,
    /// How often the database's clock was set; it is wrong while that is odd.
    clock_changes: AtomicU64,
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
}
