//! A look at a database from outside, also while a server uses it: nothing is written, nobody waits.

use std::time::{Duration, Instant};

use stentor_core::ports::store::StoreError;

use super::access::DatabaseAccess;
use super::address::PostgresAddress;
use super::engine::Connection;
use super::fault::is_refusal;
use super::{migrations, start, store};
use crate::sql::{Done, Row, SqlError, damaged, one};

/// How long to wait for the server.
const PATIENCE: Duration = Duration::from_secs(5);
/// Questions by which the way to the server is measured.
const ROUND_TRIPS_COUNT: usize = 7;

/// What a database and its server say of themselves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PostgresInspection {
    /// The server's version in words.
    pub server_version: String,
    /// Whether it only repeats what another server does.
    pub is_standby: bool,
    /// Whether the connection is encrypted; without one over TCP, anybody on the way can read.
    pub is_encrypted: bool,
    /// Whether the connection leaves this machine, or may do so.
    pub is_over_tcp: bool,
    /// The version of the schema; 0 where there is no store.
    pub schema_version: usize,
    /// The version that this program knows.
    pub known_schema_version: usize,
    /// Whether this program may use a database of that schema.
    pub is_schema_usable: bool,
    /// Whether a copy into it was begun and not finished.
    pub is_copy_unfinished: bool,
    /// Bytes of the database with its indexes.
    pub bytes: u64,
    /// Whether what is committed is flushed to the disk.
    pub fsync: bool,
    /// Whether torn pages are mended after a crash.
    pub full_page_writes: bool,
    /// The server's default for when a commit is answered; ours are always answered after the flush.
    pub synchronous_commit: String,
    /// Whether rows that are gone are freed by themselves.
    pub autovacuum: bool,
    /// The server's own memory for pages.
    pub shared_buffers_bytes: u64,
    /// Connections that others than its superusers may have.
    pub connections_max_count: u64,
    /// Connections that there are, this one among them.
    pub connections_count: u64,
    /// The round trip in microseconds: the shortest of several.
    pub round_trip_us: u64,
    /// Whether sessions are shared by transaction, with which no server starts.
    pub is_session_shared: bool,
}

/// Looks at a database. Fails (Unavailable) when it cannot be reached.
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
        let asked = Instant::now();
        connection.ask_now("SELECT 1")?;
        shortest = shortest.min(u64::try_from(asked.elapsed().as_micros()).unwrap_or(u64::MAX));
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
