//! The inspection of a database file from outside, also while another process uses it: it writes nothing and blocks no other process.

use std::collections::BTreeMap;
use std::path::Path;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, Error, OpenFlags};
use stentor_core::ports::store::StoreError;

use super::settings::SqliteSettings;
use crate::seal::SealKeyId;
use crate::sql::{Done, SqlError};

/// The largest number of problems reported; the first is enough to know that the file is damaged.
const PROBLEMS_MAX_COUNT: usize = 10;

/// The extent of an inspection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// Every page and row, but not whether each index agrees with its table.
    Quick,
    /// Everything; takes several times as long.
    Deep,
}

/// The result of inspecting a database file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inspection {
    /// Size of the database, without its write-ahead log.
    pub bytes: u64,
    /// True if the file uses a write-ahead log, as every file of ours does.
    pub is_wal: bool,
    /// Problems reported by SQLite; the first 10. SQLite keeps no checksums: a changed but still readable value inside a row is not
    /// noticed.
    pub problems: Vec<String>,
}

/// Inspects a file of the store or queue with SQLite's own check (sqlite.org/pragma.html, quick_check and integrity_check). It reads one
/// snapshot; during this time the write-ahead log of a running server cannot be truncated. Fails with Unavailable if there is no file or it
/// cannot be opened. Damage is reported in the result, not as an error.
pub fn inspect(path: impl AsRef<Path>, depth: Depth) -> Result<Inspection, StoreError> {
    let path = path.as_ref();
    let unreadable = |error| StoreError::Unavailable(format!("{}: {error}", path.display()));
    let bytes = std::fs::metadata(path).map_err(unreadable)?.len();
    match look(path, depth) {
        Ok((is_wal, problems)) => Ok(Inspection { bytes, is_wal, problems }),
        Err(fault) => match StoreError::from(fault) {
            StoreError::Damaged(what) => Ok(Inspection { bytes, is_wal: true, problems: vec![what] }),
            other => Err(other),
        },
    }
}

/// Counts the credentials of a store's file under each key that seals them; none where there is no file. Writes nothing.
pub fn sealed_under(path: impl AsRef<Path>) -> Result<BTreeMap<SealKeyId, u64>, StoreError> {
    let path = path.as_ref();
    // A file that was created but not yet written is as empty as a missing one.
    match std::fs::metadata(path) {
        Ok(found) if found.len() > 0 => {}
        Ok(_) => return Ok(BTreeMap::new()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(BTreeMap::new()),
        Err(error) => return Err(StoreError::Unavailable(format!("{}: {error}", path.display()))),
    }
    Ok(super::store::sealed_under(&open(path)?)?)
}

/// Counts the rows of all tables of a store's or queue's file. Writes nothing.
pub fn count_rows(path: impl AsRef<Path>) -> Result<u64, StoreError> {
    let connection = open(path.as_ref())?;
    let mut count = 0;
    for table in names_of_tables(&connection)? {
        let sql = format!("SELECT count(*) FROM \"{table}\"");
        let rows = connection.query_row(&sql, [], |row| row.get::<_, i64>(0)).map_err(SqlError::from)?;
        count += rows.unsigned_abs();
    }
    Ok(count)
}

fn names_of_tables(connection: &Connection) -> Done<Vec<String>> {
    let mut statement = connection.prepare("SELECT name FROM sqlite_master WHERE type = 'table'")?;
    let names = statement.query_map([], |row| row.get(0))?;
    Ok(names.collect::<Result<_, Error>>()?)
}

fn look(path: &Path, depth: Depth) -> Done<(bool, Vec<String>)> {
    let connection = open(path)?;
    let mode: String = connection.pragma_query_value(None, "journal_mode", |row| row.get(0))?;
    let pragma = match depth {
        Depth::Quick => "quick_check",
        Depth::Deep => "integrity_check",
    };
    let mut statement = connection.prepare(&format!("PRAGMA {pragma}({PROBLEMS_MAX_COUNT})"))?;
    let lines = statement.query_map([], |row| row.get(0))?;
    let mut problems = lines.collect::<Result<Vec<String>, Error>>()?;
    problems.retain(|line| line != "ok");
    Ok((mode.eq_ignore_ascii_case("wal"), problems))
}

/// Opens for reading only. At the end the log is left as it was, even if no other process has the file open.
pub(super) fn open(path: &Path) -> Result<Connection, SqlError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    let patience_ms = SqliteSettings::store().busy_timeout_ms;
    connection.busy_timeout(std::time::Duration::from_millis(patience_ms.into()))?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    Ok(connection)
}
