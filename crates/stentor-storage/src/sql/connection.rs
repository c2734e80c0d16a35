//! The operations of a connection of an engine.

use std::ops::ControlFlow;
use std::time::Duration;

use super::dialect::Dialect;
use super::error::{Done, SqlError};
use super::parts::EngineParts;
use super::row::Row;
use super::value::Value;

/// A connection of either engine.
pub(crate) type Connection = dyn Sql;

/// A connection to a database; it lives and ends on one thread.
pub(crate) trait Sql: EngineParts {
    /// Executes a statement; returns the number of rows that it changed.
    fn execute(&self, sql: &str, values: &[Value<'_>]) -> Done<usize>;

    /// Passes the rows of a query to `read`, until there are no more or `read` breaks.
    fn query(
        &self,
        sql: &str,
        values: &[Value<'_>],
        read: &mut dyn FnMut(&Row<'_>) -> Done<ControlFlow<()>>,
    ) -> Done<()>;

    /// Returns the SQL dialect of the engine.
    fn dialect(&self) -> &'static Dialect;

    /// Returns the number of rows changed over this connection since it was opened.
    fn changes(&self) -> u64;

    /// Returns the time after which a transaction stops divisible work, because all other transactions of its kind wait for it.
    fn portion_time(&self) -> Duration;

    /// Reports that a transaction ran out of time after its minimum of work.
    fn note_slowness(&self) {}

    /// Begins a part of the transaction that can be undone alone; returns a mark for its end.
    fn begin_part(&self) -> Done<usize>;

    /// Commits the part to the transaction.
    fn keep_part(&self) -> Done<()>;

    /// Undoes the part.
    fn undo_part(&self, mark: usize) -> Done<()>;

    /// Logs and counts a damaged row, once. `key` is its number, or 0 for a row without one; `identity` distinguishes such rows.
    fn note_damage(&self, table: &'static str, key: i64, identity: i64, error: &SqlError);

    /// Executes a statement on the rows for which `condition` holds, even if these rows are damaged.
    fn force(&self, table: &str, condition: &str, sql: &str, values: &[Value<'_>]) -> Done<usize>;
}
