//! Ways to execute a statement: change rows, read the first row, some rows, all rows.

use std::ops::ControlFlow;

use super::connection::Connection;
use super::error::Done;
use super::row::Row;
use super::value::Params;

/// Executes a statement; returns the number of rows that it changed.
pub(crate) fn run<'v>(connection: &Connection, sql: &str, params: impl Params<'v>) -> Done<usize> {
    connection.execute(sql, params.values().as_ref())
}

/// Reads the first row, if there is one.
pub(crate) fn one<'v, T>(
    connection: &Connection,
    sql: &str,
    params: impl Params<'v>,
    read: impl FnOnce(&Row<'_>) -> Done<T>,
) -> Done<Option<T>> {
    let (mut read, mut found) = (Some(read), None);
    connection.query(sql, params.values().as_ref(), &mut |row| {
        if let Some(read) = read.take() {
            found = Some(read(row)?);
        }
        Ok(ControlFlow::Break(()))
    })?;
    Ok(found)
}

/// Reads every row.
pub(crate) fn all<'v, T>(
    connection: &Connection,
    sql: &str,
    params: impl Params<'v>,
    mut read: impl FnMut(&Row<'_>) -> Done<T>,
) -> Done<Vec<T>> {
    some(connection, sql, params, usize::MAX, |row| read(row).map(Some))
}

/// Reads rows until `max` of them gave a value.
pub(crate) fn some<'v, T>(
    connection: &Connection,
    sql: &str,
    params: impl Params<'v>,
    max: usize,
    mut read: impl FnMut(&Row<'_>) -> Done<Option<T>>,
) -> Done<Vec<T>> {
    let mut found = Vec::new();
    if max == 0 {
        return Ok(found);
    }
    connection.query(sql, params.values().as_ref(), &mut |row| {
        found.extend(read(row)?);
        Ok(if found.len() < max { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
    })?;
    Ok(found)
}

/// Returns true if a query has a row.
pub(crate) fn exists<'v>(connection: &Connection, sql: &str, params: impl Params<'v>) -> Done<bool> {
    Ok(one(connection, sql, params, |_| Ok(()))?.is_some())
}

/// Turns a count into a parameter of `LIMIT`.
pub(crate) fn limit(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
