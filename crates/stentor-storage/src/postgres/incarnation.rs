//! Within which life of the server a transaction's number means something.
//!
//! A server that crashes forgets numbers that it had given to transactions and not written down, and a standby that is promoted
//! never heard of some: both give them to others. What tells a life from the next is a row in an unlogged table, which is empty
//! after a crash and on a promoted standby, and stays over everything else.

use tokio_postgres::error::SqlState;

use super::engine::Connection;
use crate::sql::{Done, SqlError, one};

/// Keeps two processes from making the table at once.
const LOCK: i64 = 0x5354_4E54_494E;
const TABLE: &str = "CREATE UNLOGGED TABLE IF NOT EXISTS incarnation (
    one BOOLEAN PRIMARY KEY CHECK (one), id UUID NOT NULL)";
const BEGIN: &str = "INSERT INTO incarnation VALUES (TRUE, gen_random_uuid()) ON CONFLICT DO NOTHING";
const LOOK: &str = "SELECT id::text FROM incarnation";

/// Returns the life of the server; nothing where that cannot be told.
pub(super) fn look(connection: &Connection) -> Option<String> {
    match read(connection) {
        Err(SqlError::Postgres(error)) if error.code() == Some(&SqlState::UNDEFINED_TABLE) => {
            make(connection).ok()?;
        }
        Ok(None) => {}
        told => return told.ok().flatten(),
    }
    // Of two that begin a life at once the first names it: so it is read again.
    connection.batch(BEGIN).ok()?;
    read(connection).ok().flatten()
}

fn read(connection: &Connection) -> Done<Option<String>> {
    one(connection, LOOK, (), |row| row.get(0))
}

fn make(connection: &Connection) -> Done<()> {
    connection.batch(&format!("SELECT pg_advisory_lock({LOCK})"))?;
    // Its failure is told after the lock is given back, which the session would hold on to.
    let made = connection.batch(TABLE);
    connection.batch(&format!("SELECT pg_advisory_unlock({LOCK})"))?;
    made
}
