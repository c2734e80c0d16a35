//! Ways to ask: do, read one row, some rows, all rows. Statements stay prepared.

use rusqlite::{Connection, Params, Row};

use super::fault::Done;

/// Does something; returns how many rows it changed.
pub(super) fn run(connection: &Connection, sql: &str, params: impl Params) -> Done<usize> {
    Ok(connection.prepare_cached(sql)?.execute(params)?)
}

/// Reads the first row, if there is one.
pub(super) fn one<T>(
    connection: &Connection,
    sql: &str,
    params: impl Params,
    read: impl FnOnce(&Row<'_>) -> Done<T>,
) -> Done<Option<T>> {
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query(params)?;
    rows.next()?.map(read).transpose()
}

/// Reads every row.
pub(super) fn all<T>(
    connection: &Connection,
    sql: &str,
    params: impl Params,
    mut read: impl FnMut(&Row<'_>) -> Done<T>,
) -> Done<Vec<T>> {
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query(params)?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(read(row)?);
    }
    Ok(found)
}

/// Reads rows until so many of them gave something.
pub(super) fn some<T>(
    connection: &Connection,
    sql: &str,
    params: impl Params,
    max: usize,
    mut read: impl FnMut(&Row<'_>) -> Done<Option<T>>,
) -> Done<Vec<T>> {
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query(params)?;
    let mut found = Vec::new();
    while found.len() < max {
        let Some(row) = rows.next()? else { break };
        found.extend(read(row)?);
    }
    Ok(found)
}

/// Returns whether there is a row.
pub(super) fn exists(connection: &Connection, sql: &str, params: impl Params) -> Done<bool> {
    Ok(connection.prepare_cached(sql)?.exists(params)?)
}

/// Turns a count into what `LIMIT` takes.
pub(super) fn limit(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
