//! Ways to ask: do, read one row, some rows, all rows. Statements stay prepared.

use super::copy_rows::CopyRows;
use super::engine::Connection;
use super::engine::Row;
use super::fault::Done;
use super::value::Params;

/// Does something; returns how many rows it changed.
pub(super) fn run(connection: &Connection, sql: &str, params: impl Params) -> Done<usize> {
    connection.execute(sql, &params.values())
}

/// Appends rows to a table by `COPY`.
pub(super) fn copy(connection: &Connection, table_and_columns: &str, rows: CopyRows) -> Done<()> {
    connection.copy(&format!("COPY {table_and_columns} FROM STDIN (FORMAT binary)"), rows)
}

/// Reads the first row, if there is one.
pub(super) fn one<T>(
    connection: &Connection,
    sql: &str,
    params: impl Params,
    read: impl FnOnce(&Row<'_>) -> Done<T>,
) -> Done<Option<T>> {
    let rows = connection.query(sql, &params.values())?;
    rows.first().map(|row| read(&Row(row))).transpose()
}

/// Reads every row.
pub(super) fn all<T>(
    connection: &Connection,
    sql: &str,
    params: impl Params,
    mut read: impl FnMut(&Row<'_>) -> Done<T>,
) -> Done<Vec<T>> {
    connection.query(sql, &params.values())?.iter().map(|row| read(&Row(row))).collect()
}

/// Reads numbers that a statement gives as one column called `key`: as one list, which costs much less than as many rows.
pub(super) fn keys(connection: &Connection, sql: &str, params: impl Params) -> Done<Vec<i64>> {
    let sql = format!("SELECT coalesce(array_agg(key), '{{}}') FROM ({sql}) found");
    Ok(one(connection, &sql, params, |row| row.get(0))?.unwrap_or_default())
}

/// Returns whether there is a row.
pub(super) fn exists(connection: &Connection, sql: &str, params: impl Params) -> Done<bool> {
    Ok(!connection.query(sql, &params.values())?.is_empty())
}

/// Turns a count into what `LIMIT` takes.
pub(super) fn limit(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
