//! How much one transaction does of a work that may be large: what is left is done by later ones, and others write in between.

use std::time::{Duration, Instant};

use super::engine::Connection;

/// Rows changed in one transaction.
const ROWS_MAX_COUNT: u64 = 4_096;
/// A transaction does no more once it took so long: every other one of its scope waits for it.
const TIME: Duration = Duration::from_millis(50);

/// What one transaction may still do.
pub(super) struct WorkPortion<'a> {
    connection: &'a Connection,
    changes: u64,
    max_rows: u64,
    until: Instant,
}

impl<'a> WorkPortion<'a> {
    /// Begins to count.
    pub(super) fn begin(connection: &'a Connection) -> Self {
        Self::of(connection, ROWS_MAX_COUNT, TIME)
    }

    /// Begins to count towards other bounds.
    pub(super) fn of(connection: &'a Connection, max_rows: u64, time: Duration) -> Self {
        Self { connection, changes: connection.changes(), max_rows, until: Instant::now() + time }
    }

    /// Returns whether the rest is for another transaction.
    pub(super) fn is_over(&self) -> bool {
        self.is_over_with(0)
    }

    /// Returns whether the rest is for another transaction, when so many rows are still to be written.
    pub(super) fn is_over_with(&self, pending: u64) -> bool {
        let changed = self.connection.changes().saturating_sub(self.changes) + pending;
        changed >= self.max_rows || Instant::now() >= self.until
    }
}
