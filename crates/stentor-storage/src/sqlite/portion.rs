//! How much one transaction does of a work that may be large: what is left is done by later ones, and others write in between.

use std::cell::Cell;
use std::time::{Duration, Instant};

use rusqlite::Connection;

/// Rows changed in one transaction; what triggers change counts.
pub(super) const ROWS_MAX_COUNT: u64 = 4_096;
/// A transaction does no more once it took so long.
const TIME: Duration = Duration::from_millis(25);

/// What one transaction may still do. Time alone ends it only after something was done: however slow the disk is, each portion gets on.
pub(super) struct Portion<'a> {
    connection: &'a Connection,
    changes: u64,
    max_rows: u64,
    until: Instant,
    /// Something was done that changed no row.
    has_progress: Cell<bool>,
}

impl<'a> Portion<'a> {
    /// Begins to count.
    pub(super) fn begin(connection: &'a Connection) -> Self {
        Self::of(connection, ROWS_MAX_COUNT, TIME)
    }

    /// Begins to count towards other bounds.
    pub(super) fn of(connection: &'a Connection, max_rows: u64, time: Duration) -> Self {
        Self {
            connection,
            changes: connection.total_changes(),
            max_rows,
            until: Instant::now() + time,
            has_progress: Cell::new(false),
        }
    }

    /// Notes that something was done that may have changed no row.
    pub(super) fn note_progress(&self) {
        self.has_progress.set(true);
    }

    /// Returns whether the rest is for another transaction.
    pub(super) fn is_over(&self) -> bool {
        let changed = self.connection.total_changes().saturating_sub(self.changes);
        let has_progress = changed > 0 || self.has_progress.get();
        changed >= self.max_rows || has_progress && Instant::now() >= self.until
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_alone_ends_no_portion_before_something_was_done() {
        let connection = Connection::open_in_memory().expect("opened");
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
