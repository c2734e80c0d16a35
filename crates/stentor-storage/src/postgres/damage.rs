//! Rows that make no sense: each is left out, named in the log once, and holds nothing else up.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::damage_log::NAMED_MAX_COUNT;
use super::engine::Connection;
use super::engine::Row;
use super::fault::{Done, PostgresError, damaged};
use super::query::limit;
use super::value::{Params, PostgresValue as Value};

/// Names a damaged row in the log and counts it, unless it was named before; `key` is 0 where the row has no number.
pub(super) fn note(connection: &Connection, table: &'static str, key: i64, fault: &PostgresError) {
    if connection.shared.damage.is_first(table, key) {
        tracing::error!(table, key, %fault, "a row cannot be read: it is left out, the others are not");
    }
}

/// Reads up to `max` rows of those that can be read, and gives the first column of the others, when that is a number.
/// The statement is in a certain order and sets no limit itself.
pub(super) fn readable<T>(
    connection: &Connection,
    table: &'static str,
    (sql, params): (&str, impl Params),
    max: usize,
    mut read: impl FnMut(&Row<'_>) -> Done<T>,
) -> Done<(Vec<T>, Vec<i64>)> {
    let mut values = params.values();
    let at = values.len();
    let sql = format!("{sql} LIMIT ${}::bigint OFFSET ${}::bigint", at + 1, at + 2);
    values.extend([Value::Null, Value::Null]);
    let (mut found, mut broken) = (Vec::new(), Vec::new());
    while found.len() < max && broken.len() < NAMED_MAX_COUNT {
        let most = max - found.len();
        values[at] = Value::Int(limit(most));
        values[at + 1] = Value::Int(limit(found.len() + broken.len()));
        let rows = connection.query(&sql, &values)?;
        for row in rows.iter().map(Row) {
            match read(&row) {
                Ok(value) => found.push(value),
                Err(fault) if fault.is_damage() => {
                    let key = row.get(0).unwrap_or_default();
                    note(connection, table, key, &fault);
                    broken.push(key);
                }
                Err(fault) => return Err(fault),
            }
        }
        if rows.len() < most {
            break;
        }
    }
    Ok((found, broken))
}

/// Does something whole or not at all; returns the fault when what it met makes no sense, and fails when the engine does.
pub(super) fn attempt<T>(
    connection: &Connection,
    work: impl FnOnce() -> Done<T>,
) -> Done<Result<T, PostgresError>> {
    let event_count = connection.event_count();
    connection.defer("SAVEPOINT attempt");
    let done = catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| Err(damaged("it made a job panic")));
    match &done {
        Err(fault) if fault.is_unavailable() => return done.map(Ok),
        Err(_) => {
            connection.take_back(event_count);
            connection.batch("ROLLBACK TO attempt; RELEASE attempt")?;
        }
        Ok(_) => connection.defer("RELEASE attempt"),
    }
    Ok(done)
}
