//! Ways to execute a statement that PostgreSQL alone has.

use super::copy_rows::CopyRows;
use super::engine::Connection;
use crate::sql::{Done, Params, one};

/// Appends rows to a table by `COPY`.
pub(super) fn copy(connection: &Connection, table_and_columns: &str, rows: CopyRows) -> Done<()> {
    connection.copy(&format!("COPY {table_and_columns} FROM STDIN (FORMAT binary)"), rows)
}

/// Reads numbers that a statement gives as one column called `key`: as one list, which costs much less than as many rows.
pub(super) fn keys<'v>(connection: &Connection, sql: &str, params: impl Params<'v>) -> Done<Vec<i64>> {
    let sql = format!("SELECT coalesce(array_agg(key), '{{}}') FROM ({sql}) found");
    Ok(one(connection, &sql, params, |row| row.get(0))?.unwrap_or_default())
}
