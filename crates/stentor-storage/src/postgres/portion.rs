//! How much one transaction does of a work that may be large: what is left is done by later ones, and others write in between.

use std::cell::Cell;
use std::time::{Duration, Instant};

use super::engine::Connection;

/// Rows changed in one transaction.
const ROWS_MAX_COUNT: u64 = 4_096;
/// A transaction does no more once it took so long: every other one of its scope waits for it.
const TIME: Duration = Duration::from_millis(50);

/// What one transaction may still do. Time alone ends it only after something was done: however slow the database is, each portion gets on.
pub(super) struct WorkPortion<'a> {
    connection: &'a Connection,
    changes: u64,
    max_rows: u64,
    until: Instant,
    /// Something was done that changed no row.
    has_progress: Cell<bool>,
    /// It was asked after something was done, and there was still time.
    had_time: Cell<bool>,
}

impl<'a> WorkPortion<'a> {
    /// Begins to count.
    pub(super) fn begin(connection: &'a Connection) -> Self {
        Self::of(connection, ROWS_MAX_COUNT, TIME)
    }

    /// Begins to count towards other bounds.
    pub(super) fn of(connection: &'a Connection, max_rows: u64, time: Duration) -> Self {
        Self {
            connection,
            changes: connection.changes(),
            max_rows,
            until: Instant::now() + time,
            has_progress: Cell::new(false),
            had_time: Cell::new(false),
        }
    }

    /// Notes that something was done that may have changed no row.
    pub(super) fn note_progress(&self) {
        self.has_progress.set(true);
    }

    /// Returns whether the rest is for another transaction.
    pub(super) fn is_over(&self) -> bool {
        self.is_over_with(0)
    }

    /// Returns whether the rest is for another transaction, when so many rows are still to be written.
    pub(super) fn is_over_with(&self, pending: u64) -> bool {
        let changed = self.connection.changes().saturating_sub(self.changes) + pending;
        if changed >= self.max_rows {
            return true;
        }
        if changed == 0 && !self.has_progress.get() {
            return false;
        }
        let is_late = Instant::now() >= self.until;
        if !is_late {
            self.had_time.set(true);
        } else if !self.had_time.get() {
            self.report_least();
        }
        is_late
    }

    fn report_least(&self) {
        if let Some(kept_back) = self.connection.shared.least_steps.may_say(Instant::now()) {
            tracing::warn!(
                kept_back,
                "the database answers so slowly that steps do only their least: it is far away or overloaded (`stentor doctor` measures)"
            );
        }
    }
}
