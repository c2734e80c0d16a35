//! The inspection of a database from outside, also while a server uses it: it writes nothing and blocks no other session.

use std::time::{Duration, Instant};

use stentor_core::ports::store::StoreError;

use super::access::DatabaseAccess;
use super::address::PostgresAddress;
use super::engine::Connection;
use super::fault::is_refusal;
use super::{migrations, start, store};
use crate::sql::{Done, Row, SqlError, damaged, one};

/// The longest wait for the server.
const PATIENCE: Duration = Duration::from_secs(5);
/// The number of round trips that are measured.
const ROUND_TRIPS_COUNT: usize = 7;

/// The properties of a database and its server, as they report them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PostgresInspection {
    /// The server's version as text.
    pub server_version: String,
    /// True if the server is a standby.
    pub is_standby: bool,
    /// True if the connection is encrypted; an unencrypted TCP connection can be read by anybody on its path.
    pub is_encrypted: bool,
    /// True if the connection leaves this machine, or may do so.
    pub is_over_tcp: bool,
    /// The version of the schema; 0 if there is no store.
    pub schema_version: usize,
    /// The version that this program knows.
    pub known_schema_version: usize,
    /// True if this program may use a database with that schema.
    pub is_schema_usable: bool,
    /// True if a copy into the database was begun and not finished.
    pub is_copy_unfinished: bool,
    /// Bytes of the database with its indexes.
    pub bytes: u64,
    /// True if commits are flushed to the disk.
    pub fsync: bool,
    /// True if torn pages are repaired after a crash.
    pub full_page_writes: bool,
    /// The server's default of `synchronous_commit`; our commits are always answered after the flush.
    pub synchronous_commit: String,
    /// True if dead rows are removed automatically.
    pub autovacuum: bool,
    /// The size of the server's page cache.
    pub shared_buffers_bytes: u64,
    /// The number of connections available to ordinary users.
    pub connections_max_count: u64,
    /// The number of open connections, including this one.
    pub connections_count: u64,
    /// The round trip in microseconds: the shortest of several.
    pub round_trip_us: u64,
    /// True if a pooler shares sessions between transactions, with which no server starts.
    pub is_session_shared: bool,
}

/// Inspects a database. Fails with Unavailable if it cannot be reached.
pub fn inspect(address: &PostgresAddress) -> Result<PostgresInspection, StoreError> {
    let address = address.clone();
    // On a thread of its own: the driver waits in a way that the threads of a runtime refuse.
    let looking = std::thread::Builder::new().name("stentor-look".to_owned()).spawn(move || {
        let access = DatabaseAccess::for_a_look(&address, PATIENCE);
        let connection = Connection::open(&access, PATIENCE)?;
        let is_session_shared = is_session_shared(&connection, &access)?;
        let found = look(&connection)?;
        let round_trip_us = round_trip_us(&connection)?;
        Ok(PostgresInspection { round_trip_us, is_session_shared, ..found })
    });
    let looking = looking.map_err(|error| StoreError::Unavailable(error.to_string()))?;
    looking.join().unwrap_or_else(|_| Err(StoreError::Unavailable("the look at it broke off".to_owned())))
}

const SETTINGS: &str = "SELECT current_setting('server_version'), pg_is_in_recovery(),
    coalesce((SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()), FALSE), inet_server_addr() IS NOT NULL,
    pg_database_size(current_database()), current_setting('fsync')::boolean,
    current_setting('full_page_writes')::boolean, (SELECT reset_val FROM pg_settings WHERE name = 'synchronous_commit'),
    current_setting('autovacuum')::boolean, pg_size_bytes(current_setting('shared_buffers')),
    current_setting('max_connections')::bigint - current_setting('superuser_reserved_connections')::bigint,
    (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend')";

fn round_trip_us(connection: &Connection) -> Done<u64> {
    let mut shortest = u64::MAX;
    for _ in 0..ROUND_TRIPS_COUNT {
        let began = Instant::now();
        connection.ask_now("SELECT 1")?;
        shortest = shortest.min(u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX));
    }
    Ok(shortest)
}

fn is_session_shared(connection: &Connection, access: &DatabaseAccess) -> Done<bool> {
    match start::refuse_shared_sessions(connection, access) {
        Err(fault) if is_refusal(&fault) => Ok(true),
        done => done.map(|()| false),
    }
}

fn look(connection: &Connection) -> Done<PostgresInspection> {
    let schema_version = migrations::version(connection)?;
    let known = migrations::newest();
    let is_schema_usable = schema_version <= known || migrations::check_usable(connection).is_ok();
    let is_copy_unfinished = store::is_unfinished(connection)?;
    let count = |row: &Row<'_>, at: usize| Ok::<_, SqlError>(row.get::<i64>(at)?.max(0).cast_unsigned());
    let read = |row: &Row<'_>| {
        Ok(PostgresInspection {
            server_version: row.get(0)?,
            is_standby: row.get(1)?,
            is_encrypted: row.get(2)?,
            is_over_tcp: row.get(3)?,
            schema_version,
            known_schema_version: known,
            is_schema_usable,
            is_copy_unfinished,
            bytes: count(row, 4)?,
            fsync: row.get(5)?,
            full_page_writes: row.get(6)?,
            synchronous_commit: row.get(7)?,
            autovacuum: row.get(8)?,
            shared_buffers_bytes: count(row, 9)?,
            connections_max_count: count(row, 10)?,
            connections_count: count(row, 11)?,
            round_trip_us: 0,
            is_session_shared: false,
        })
    };
    one(connection, SETTINGS, (), read)?.ok_or_else(|| damaged("a server without settings"))
}
