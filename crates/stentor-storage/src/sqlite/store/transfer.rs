//! A file as one side of a copy between engines.

use std::path::Path;

use rusqlite::Connection;
use stentor_core::ports::store::StoreError;

use super::{leftovers, tokens};
use crate::schema::{SchemaChange, SchemaGoal};
use crate::sql::{Connection as SqlConnection, Done, Portion, SqlError, exists, one, params, run};
use crate::sqlite::file::{self, FileLock};
use crate::sqlite::migrations;
use crate::sqlite::settings::SqliteSettings;
use crate::transfer::{
    DeviceToken, SHARED_COUNTERS, TableProgress, TransferCounters, TransferRow, TransferSide, TransferTable,
    device_tokens, values_of,
};

/// The tables that SQLite numbers by itself, by the names of counter and table.
const NUMBERED: [(&str, &str); 5] =
    [("chunk", "chunks"), ("audit", "audit"), ("topics", "topics"), ("users", "users"), ("groups", "groups")];

/// Lists tables and their columns, without those of SQLite's own.
const COLUMNS: &str = "SELECT t.name, c.name FROM sqlite_schema t JOIN pragma_table_info(t.name) c
    WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite_%'";

/// A store's file that no other process uses.
pub(crate) struct SqliteSide {
    connection: Connection,
    _lock: FileLock,
}

impl SqliteSide {
    /// Opens the file and brings its schema up to date; a missing target is created.
    pub(crate) fn open(path: &Path, is_target: bool) -> Result<Self, StoreError> {
        let side = Self::connect(path, is_target)?;
        migrations::run(&side.connection, migrations::STORE)?;
        Ok(side)
    }

    /// Opens the file and leaves the schema as it is.
    fn connect(path: &Path, is_target: bool) -> Result<Self, StoreError> {
        if !is_target && !path.is_file() {
            return Err(StoreError::Unavailable(format!("{} is no file", path.display())));
        }
        file::ensure(path)?;
        // Before the file is opened: a server that runs holds it.
        let lock = FileLock::take(path)?;
        let connection = file::open_writer(path, &SqliteSettings::store())?;
        Ok(Self { connection, _lock: lock })
    }

    fn transact(&mut self, work: impl FnOnce(&Connection) -> Done<()>) -> Result<(), StoreError> {
        let transaction = self.connection.transaction().map_err(SqlError::from)?;
        work(&transaction)?;
        Ok(transaction.commit().map_err(SqlError::from)?)
    }
}

impl TransferSide for SqliteSide {
    fn connection(&self) -> &SqlConnection {
        &self.connection
    }

    fn list_of_columns(&self) -> &'static str {
        COLUMNS
    }

    fn is_unfinished(&self) -> Done<bool> {
        is_unfinished(&self.connection)
    }

    fn work_off(&mut self) -> Result<bool, StoreError> {
        let mut has_more = false;
        self.transact(|connection| {
            has_more = leftovers::go_on(connection, &Portion::begin(connection))?;
            Ok(())
        })?;
        Ok(has_more)
    }

    fn begin(&mut self) -> Result<(), StoreError> {
        // The table stands there until the copy is whole: no server opens a file that has it.
        let sql = "CREATE TABLE store_copy (name TEXT PRIMARY KEY, row_count INTEGER NOT NULL, last TEXT NOT NULL) STRICT";
        run(&self.connection, sql, ())?;
        Ok(())
    }

    fn write(
        &mut self,
        table: &TransferTable,
        rows: &[TransferRow],
        (count, last): &TableProgress,
    ) -> Result<(), StoreError> {
        let columns = table.columns;
        let (name, value) = table.only_in_sqlite.map_or(("", ""), |(name, value)| (name, value));
        let comma = if name.is_empty() { "" } else { ", " };
        let sql = format!(
            "INSERT INTO {} ({}{comma}{name}) VALUES ({}{comma}{value})",
            table.name,
            columns.join(", "),
            vec!["?"; columns.len()].join(", ")
        );
        self.transact(|connection| {
            for row in rows {
                run(connection, &sql, values_of(row))?;
            }
            if table.name == "devices" {
                note_tokens(connection, columns, rows)?;
            }
            // Stored with the rows, so that an interrupted copy is resumed behind them.
            let sql = "INSERT OR REPLACE INTO store_copy (name, row_count, last) VALUES (?1, ?2, ?3)";
            run(connection, sql, params![table.name, count.cast_signed(), last])?;
            Ok(())
        })
    }

    fn counters(&mut self) -> Result<TransferCounters, StoreError> {
        let mut counters = TransferCounters::new();
        for name in SHARED_COUNTERS {
            let value =
                one(&self.connection, "SELECT value FROM sequences WHERE name = ?1", [name], |row| {
                    row.get(0)
                })?;
            counters
                .insert(name, value.ok_or_else(|| StoreError::Damaged("a sequence is missing".to_owned()))?);
        }
        for (name, table) in NUMBERED {
            let value =
                one(&self.connection, "SELECT seq FROM sqlite_sequence WHERE name = ?1", [table], |row| {
                    row.get(0)
                })?;
            counters.insert(name, value.unwrap_or(0));
        }
        Ok(counters)
    }

    fn finish(&mut self, counters: &TransferCounters) -> Result<(), StoreError> {
        self.transact(|connection| {
            for name in SHARED_COUNTERS {
                let sql = "INSERT OR REPLACE INTO sequences (name, value) VALUES (?1, ?2)";
                run(connection, sql, params![name, counters.get(name)])?;
            }
            for (name, table) in NUMBERED {
                // This table of SQLite's has no key by which a row would be replaced.
                run(connection, "DELETE FROM sqlite_sequence WHERE name = ?1", [table])?;
                let sql = "INSERT INTO sqlite_sequence (name, seq) VALUES (?1, ?2)";
                run(connection, sql, params![table, counters.get(name)])?;
            }
            // Last, with the counters: from this commit on a server may open the file.
            run(connection, "DROP TABLE store_copy", ())?;
            Ok(())
        })
    }
}

/// Migrates the schema of a file that is not in use.
pub(crate) fn migrate(path: &Path, goal: SchemaGoal) -> Result<SchemaChange, StoreError> {
    let side = SqliteSide::connect(path, false)?;
    let from = migrations::version(&side.connection)?;
    match goal {
        SchemaGoal::Newest => migrations::run(&side.connection, migrations::STORE)?,
        SchemaGoal::OneBack => migrations::undo(&side.connection)?,
    }
    Ok(SchemaChange { from, to: migrations::version(&side.connection)? })
}

/// Returns true if a copy into the file was begun and not finished.
fn is_unfinished(connection: &Connection) -> Done<bool> {
    exists(connection, "SELECT 1 FROM sqlite_schema WHERE name = 'store_copy'", ())
}

/// Refuses a file into which a copy was not finished.
pub(super) fn refuse_unfinished(connection: &Connection) -> Done<()> {
    if is_unfinished(connection)? { Err(crate::transfer::unfinished().into()) } else { Ok(()) }
}

/// Records the holders of the tokens.
fn note_tokens(connection: &Connection, columns: &[&str], rows: &[TransferRow]) -> Done<()> {
    let held = device_tokens(connection, columns, rows)?;
    let hash = |one: DeviceToken| (tokens::hash(one.fleet.app, one.fleet.provider, &one.token), one.key);
    tokens::note(connection, held.into_iter().map(hash))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::all;
    use crate::transfer::check_columns;

    #[test]
    fn it_is_known_how_every_column_of_the_file_is_copied() {
        let connection = Connection::open_in_memory().expect("opened");
        migrations::run(&connection, migrations::STORE).expect("made");
        let list = || -> Vec<(String, String)> {
            all(&connection, COLUMNS, (), |row| Ok((row.get(0)?, row.get(1)?))).expect("listed")
        };
        assert_eq!(check_columns(&list()), Ok(()));
        connection.execute_batch("ALTER TABLE devices ADD COLUMN nobody_knows INTEGER").expect("added");
        assert!(check_columns(&list()).is_err());
    }
}
