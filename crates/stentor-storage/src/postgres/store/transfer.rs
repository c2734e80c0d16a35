//! A database as one side of a copy between engines.

use std::time::{Duration, Instant};

use stentor_core::ports::store::StoreError;
use tokio_postgres::types::Type;

use super::{leftovers, tokens};
use crate::postgres::access::DatabaseAccess;
use crate::postgres::address::PostgresAddress;
use crate::postgres::copy_rows::CopyRows;
use crate::postgres::engine::Connection;
use crate::postgres::migrations;
use crate::postgres::query::copy;
use crate::postgres::transactor::LOCKS;
use crate::schema::{SchemaChange, SchemaGoal};
use crate::sql::{Connection as SqlConnection, Done, Portion, conflict, damaged, exists, one, params, run};
use crate::transfer::{
    SHARED_COUNTERS, TableProgress, TransferCounters, TransferRow, TransferSide, TransferTable,
    TransferValue, device_tokens,
};

/// The second number of the advisory lock of a copy.
const COPY_LOCK: i64 = 8;
/// The longest wait for the server.
const PATIENCE: Duration = Duration::from_secs(10);
/// The longest wait for the lock of a copy that has just ended: the server may notice later that its session was closed.
const UNLOCK_PATIENCE: Duration = Duration::from_secs(2);
/// Counters beside the shared ones: rows of `sequences`, and sequences of the server by their tables.
const SEQUENCES: [&str; 2] = ["chunk", "audit"];
const IDENTITIES: [&str; 3] = ["topics", "users", "groups"];

/// A database without other users.
pub(crate) struct PostgresSide {
    connection: Connection,
}

impl PostgresSide {
    /// Connects and brings the schema up to date.
    pub(crate) fn open(address: &PostgresAddress) -> Result<Self, StoreError> {
        let side = Self::connect(address)?;
        migrations::run(&side.connection)?;
        Ok(side)
    }

    /// Connects and leaves the schema as it is.
    fn connect(address: &PostgresAddress) -> Result<Self, StoreError> {
        let side = Self::connect_beside_servers(address)?;
        refuse_servers(&side.connection)?;
        Ok(side)
    }

    /// Connects to a database that servers may use, but no copy.
    fn connect_beside_servers(address: &PostgresAddress) -> Result<Self, StoreError> {
        let connection = Connection::open(&DatabaseAccess::for_long_work(address, PATIENCE), PATIENCE)?;
        hold_alone(&connection)?;
        Ok(Self { connection })
    }

    fn transact(&self, work: impl FnOnce(&Connection) -> Done<()>) -> Result<(), StoreError> {
        self.connection.defer("BEGIN");
        match work(&self.connection) {
            Ok(()) => Ok(self.connection.batch("COMMIT")?),
            Err(fault) => {
                // The original error is returned; a lost connection rolls the transaction back by itself.
                let _ = self.connection.batch("ROLLBACK");
                Err(fault.into())
            }
        }
    }
}

/// Locks the database for this copy. Fails if another copy uses it. A server that starts during the copy finds it unfinished.
fn hold_alone(connection: &Connection) -> Done<()> {
    let (sql, began) = ("SELECT pg_try_advisory_lock($1, $2)", Instant::now());
    while one(connection, sql, [LOCKS, COPY_LOCK], |row| row.get(0))? != Some(true) {
        if began.elapsed() > UNLOCK_PATIENCE {
            return Err(conflict("another copy uses this database"));
        }
        std::thread::sleep(UNLOCK_PATIENCE / 20);
    }
    Ok(())
}

/// Refuses a database that servers use.
fn refuse_servers(connection: &Connection) -> Done<()> {
    let has_nodes = one(connection, "SELECT to_regclass('nodes') IS NOT NULL", (), |row| row.get(0))?;
    let alive = "SELECT 1 FROM nodes WHERE seen_at > clock_timestamp() - interval '1 minute'";
    if has_nodes == Some(true) && exists(connection, alive, ())? {
        return Err(conflict(
            "servers use this database: stop them, or wait a minute after one that was killed",
        ));
    }
    Ok(())
}

impl TransferSide for PostgresSide {
    fn connection(&self) -> &SqlConnection {
        &self.connection
    }

    fn list_of_columns(&self) -> &'static str {
        "SELECT table_name::text, column_name::text FROM information_schema.columns
            WHERE table_schema = current_schema()"
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
        // The table stands there until the copy is whole: no server opens a database that has it.
        let sql =
            "CREATE TABLE store_copy (name TEXT PRIMARY KEY, row_count BIGINT NOT NULL, last TEXT NOT NULL)";
        Ok(self.connection.batch(sql)?)
    }

    fn write(
        &mut self,
        table: &TransferTable,
        rows: &[TransferRow],
        (count, last): &TableProgress,
    ) -> Result<(), StoreError> {
        self.transact(|connection| {
            append(connection, table, rows)?;
            // Stored with the rows, so that an interrupted copy is resumed behind them.
            let sql = "INSERT INTO store_copy (name, row_count, last) VALUES ($1, $2, $3)
                ON CONFLICT (name) DO UPDATE SET row_count = excluded.row_count, last = excluded.last";
            run(connection, sql, params![table.name, count.cast_signed(), last]).map(drop)
        })
    }

    fn counters(&mut self) -> Result<TransferCounters, StoreError> {
        let mut counters = TransferCounters::new();
        for name in SHARED_COUNTERS.into_iter().chain(SEQUENCES) {
            let sql = "SELECT value FROM sequences WHERE name = $1";
            let value: Option<i64> = one(&self.connection, sql, [name], |row| row.get(0))?;
            counters.insert(name, value.ok_or_else(|| damaged("a sequence is missing"))?);
        }
        for name in IDENTITIES {
            let sql =
                "SELECT coalesce(pg_sequence_last_value(pg_get_serial_sequence($1, 'no')::regclass), 0)";
            let value: Option<i64> = one(&self.connection, sql, [name], |row| row.get(0))?;
            counters.insert(name, value.unwrap_or_default());
        }
        Ok(counters)
    }

    fn finish(&mut self, counters: &TransferCounters) -> Result<(), StoreError> {
        self.transact(|connection| {
            for name in SHARED_COUNTERS.into_iter().chain(SEQUENCES) {
                let value = counters.get(name).copied().unwrap_or_default();
                run(connection, "UPDATE sequences SET value = $2 WHERE name = $1", params![name, value])?;
            }
            for name in IDENTITIES {
                let last = counters.get(name).copied().filter(|last| *last > 0);
                // A sequence begins with 1: `false` means that this value was not assigned.
                let sql = "SELECT setval(pg_get_serial_sequence($1, 'no')::regclass, $2, $3)";
                exists(connection, sql, params![name, last.unwrap_or(1), last.is_some()])?;
            }
            // Last, with the counters: from this commit on a server may open the database.
            connection.batch("DROP TABLE store_copy")
        })
    }
}

/// Migrates the schema of a database; backward only if no server uses it.
pub(crate) fn migrate(address: &PostgresAddress, goal: SchemaGoal) -> Result<SchemaChange, StoreError> {
    let side = match goal {
        SchemaGoal::Newest => PostgresSide::connect_beside_servers(address)?,
        SchemaGoal::OneBack => PostgresSide::connect(address)?,
    };
    let from = migrations::version(&side.connection)?;
    match goal {
        SchemaGoal::Newest => migrations::run(&side.connection)?,
        SchemaGoal::OneBack => migrations::undo(&side.connection)?,
    }
    Ok(SchemaChange { from, to: migrations::version(&side.connection)? })
}

/// Returns true if a copy into the database was begun and not finished.
pub(in crate::postgres) fn is_unfinished(connection: &Connection) -> Done<bool> {
    let found: Option<bool> =
        one(connection, "SELECT to_regclass('store_copy') IS NOT NULL", (), |row| row.get(0))?;
    Ok(found == Some(true))
}

/// Refuses a database into which a copy was not finished.
pub(super) fn refuse_unfinished(connection: &Connection) -> Done<()> {
    if is_unfinished(connection)? { Err(crate::transfer::unfinished().into()) } else { Ok(()) }
}

/// Appends rows to a table, with the columns that only this engine has.
fn append(connection: &Connection, table: &TransferTable, rows: &[TransferRow]) -> Done<()> {
    let mut columns = table.columns.to_vec();
    let types = connection.column_types(&format!("SELECT {} FROM {}", columns.join(", "), table.name))?;
    let hashes = if table.name == "devices" { Some(hashes(connection, &columns, rows)?) } else { None };
    if hashes.is_some() {
        columns.push("token_hash");
    }
    let mut copied = CopyRows::new(i16::try_from(columns.len()).unwrap_or(i16::MAX));
    for (at, row) in rows.iter().enumerate() {
        copied.row();
        for (value, ty) in row.iter().zip(&types) {
            put(&mut copied, value, ty)?;
        }
        if let Some(hash) = hashes.as_ref().and_then(|hashes| hashes.get(at)) {
            copied.bigint(*hash);
        }
    }
    copy(connection, &format!("{} ({})", table.name, columns.join(", ")), copied)
}

/// Returns the hash of each device's token.
fn hashes(connection: &Connection, columns: &[&str], rows: &[TransferRow]) -> Done<Vec<i64>> {
    let held = device_tokens(connection, columns, rows)?;
    Ok(held.iter().map(|one| tokens::hash(one.fleet.app, one.fleet.provider, &one.token)).collect())
}

/// Adds a value in the width that its column has.
fn put(rows: &mut CopyRows, value: &TransferValue, ty: &Type) -> Done<()> {
    match (value, ty) {
        (TransferValue::Null, _) => rows.text(None),
        (TransferValue::Int(number), &Type::INT2) => rows.smallint(narrow(*number)?),
        (TransferValue::Int(number), &Type::INT4) => rows.integer(narrow(*number)?),
        (TransferValue::Int(number), &Type::INT8) => rows.bigint(*number),
        (TransferValue::Int(word), &Type::BOOL) => rows.boolean(*word != 0),
        (TransferValue::Text(text), &Type::TEXT) => rows.text(text.as_str()),
        (TransferValue::Bytes(bytes), &Type::BYTEA) => rows.bytes(bytes),
        _ => return Err(damaged("a value of another kind than its column has")),
    }
    Ok(())
}

fn narrow<T: TryFrom<i64>>(number: i64) -> Done<T> {
    T::try_from(number).map_err(|_| damaged("a number out of its range"))
}
