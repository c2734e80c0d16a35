//! Portions of work that may be large: one transaction does a portion, later ones do the rest, and others write in between.

use std::cell::Cell;
use std::time::{Duration, Instant};

use super::connection::Connection;

/// Rows changed in one transaction; rows that triggers change count.
pub(crate) const PORTION_MAX_ROWS: u64 = 4_096;

/// The remaining budget of one transaction. Time alone ends a portion only after some progress: however slow the database is, each portion
/// makes progress.
pub(crate) struct Portion<'a> {
    connection: &'a Connection,
    changes: u64,
    max_rows: u64,
    until: Instant,
    /// Something was done that changed no row.
    has_progress: Cell<bool>,
    /// There was still time after something was done.
    had_time: Cell<bool>,
}

impl<'a> Portion<'a> {
    /// Begins to count.
    pub(crate) fn begin(connection: &'a Connection) -> Self {
        Self::of(connection, PORTION_MAX_ROWS, connection.portion_time())
    }

    /// Begins to count towards other bounds.
    pub(crate) fn of(connection: &'a Connection, max_rows: u64, time: Duration) -> Self {
        Self {
            connection,
            changes: connection.changes(),
            max_rows,
            until: Instant::now() + time,
            has_progress: Cell::new(false),
            had_time: Cell::new(false),
        }
    }

    /// Records progress that may have changed no row.
    pub(crate) fn note_progress(&self) {
        self.has_progress.set(true);
    }

    /// Returns true if the rest is left to another transaction.
    pub(crate) fn is_over(&self) -> bool {
        self.is_over_with(0)
    }

    /// Returns true if the rest is left to another transaction, given `pending` rows that are still to be written.
    pub(crate) fn is_over_with(&self, pending: u64) -> bool {
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
            self.connection.note_slowness();
        }
        is_late
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_alone_ends_no_portion_before_something_was_done() {
        let connection = rusqlite::Connection::open_in_memory().expect("opened");
        connection.execute_batch("CREATE TABLE t (n INTEGER)").expect("made");
        let portion = Portion::of(&connection, 100, Duration::ZERO);
        assert!(!portion.is_over() && !portion.is_over(), "nothing was done yet");
        connection.execute_batch("INSERT INTO t VALUES (1)").expect("written");
        assert!(portion.is_over());
        let next = Portion::of(&connection, 100, Duration::ZERO);
        assert!(!next.is_over());
        next.note_progress();
        assert!(next.is_over(), "what changes no row is something, too");
    }
}
