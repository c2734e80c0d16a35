//! Damaged rows: each is left out and logged once, and holds up no other row.

use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};

use stentor_core::ports::store::Listed;

use super::connection::Connection;
use super::error::{Done, SqlError, damaged};
use super::query::limit;
use super::row::Row;
use super::value::{Params, Value};

/// Most damaged rows that one read passes over.
pub(crate) const DAMAGED_MAX_COUNT: usize = 4_096;

/// Reads up to `max` rows that make sense. Returns them, and the first column of each other row, or 0 where that is no number.
///
/// The statement has a certain order, and no limit.
pub(crate) fn readable<'v, T>(
    connection: &Connection,
    table: &'static str,
    (sql, params): (&str, impl Params<'v>),
    max: usize,
    mut read: impl FnMut(&Row<'_>) -> Done<T>,
) -> Done<(Vec<T>, Vec<i64>)> {
    let mut values = params.values().as_ref().to_vec();
    let at = values.len();
    let sql = format!("{sql} LIMIT ?{} OFFSET ?{}", at + 1, at + 2);
    values.extend([Value::Null, Value::Null]);
    let (mut found, mut broken) = (Vec::new(), Vec::new());
    while found.len() < max && broken.len() < DAMAGED_MAX_COUNT {
        let (most, mut count) = (max - found.len(), 0);
        values[at] = limit(most).into();
        values[at + 1] = limit(found.len() + broken.len()).into();
        connection.query(&sql, &values, &mut |row| {
            count += 1;
            match read(row) {
                Ok(value) => found.push(value),
                Err(error) if error.is_damage() => {
                    let key = row.maybe_int(0).ok().flatten();
                    let identity = key.unwrap_or_else(|| row.identity(0));
                    connection.note_damage(table, key.unwrap_or_default(), identity, &error);
                    broken.push(key.unwrap_or_default());
                }
                Err(error) => return Err(error),
            }
            Ok(ControlFlow::Continue(()))
        })?;
        if count < most {
            break;
        }
    }
    Ok((found, broken))
}

/// Reads up to `max` rows like [`readable`], for a caller; the first column is the number of an id.
pub(crate) fn listed<'v, T, I>(
    connection: &Connection,
    table: &'static str,
    statement: (&str, impl Params<'v>),
    max: usize,
    read: impl FnMut(&Row<'_>) -> Done<T>,
    id: impl Fn(u64) -> I,
) -> Done<Listed<T, I>> {
    let (readable, broken) = readable(connection, table, statement, max, read)?;
    let broken = broken.into_iter().filter_map(|number| u64::try_from(number).ok()).map(id).collect();
    Ok(Listed { readable, broken })
}

/// Executes work as a whole or not at all. Returns the error of work that met damage, and fails if the engine fails.
pub(crate) fn attempt<T>(
    connection: &Connection,
    work: impl FnOnce() -> Done<T>,
) -> Done<Result<T, SqlError>> {
    let mark = connection.begin_part()?;
    let done = catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| Err(damaged("it made a job panic")));
    match &done {
        // The engine undoes the whole transaction, and may have ended the part with it.
        Err(error) if error.is_unavailable() => return done.map(Ok),
        Err(_) => connection.undo_part(mark)?,
        Ok(_) => connection.keep_part()?,
    }
    Ok(done)
}

/// Logs and counts a damaged row, unless that was done before.
pub(crate) fn note_damage(connection: &Connection, table: &'static str, key: i64, error: &SqlError) {
    connection.note_damage(table, key, key, error);
}

/// Updates the rows of a table for which `condition` holds, even if these rows are damaged.
pub(crate) fn force<'v>(
    connection: &Connection,
    table: &str,
    condition: &str,
    sql: &str,
    params: impl Params<'v>,
) -> Done<usize> {
    connection.force(table, condition, sql, params.values().as_ref())
}
