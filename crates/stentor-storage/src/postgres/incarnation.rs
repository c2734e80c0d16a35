//! The incarnation of the server, within which the number of a transaction is unique.
//!
//! A server that crashes forgets transaction numbers that it had assigned and not written down. A promoted standby never received
//! some of them. Both assign them again. A row in an unlogged table identifies the incarnation: the table is empty after a crash and on
//! a promoted standby, and survives everything else.

use tokio_postgres::error::SqlState;

use super::engine::Connection;
use crate::sql::{Done, SqlError, one};

/// The advisory lock that prevents two processes from creating the table at once.
const LOCK: i64 = 0x5354_4E54_494E;
const TABLE: &str = "CREATE UNLOGGED TABLE IF NOT EXISTS incarnation (
    one BOOLEAN PRIMARY KEY CHECK (one), id UUID NOT NULL)";
const BEGIN: &str = "INSERT INTO incarnation VALUES (TRUE, gen_random_uuid()) ON CONFLICT DO NOTHING";
const LOOK: &str = "SELECT id::text FROM incarnation";

/// Returns the incarnation of the server, or `None` if it cannot be determined.
pub(super) fn look(connection: &Connection) -> Option<String> {
    match read(connection) {
        Err(SqlError::Postgres(error)) if error.code() == Some(&SqlState::UNDEFINED_TABLE) => {
            make(connection).ok()?;
        }
        Ok(None) => {}
        told => return told.ok().flatten(),
    }
    // If two sessions begin an incarnation at once, the first insert wins, so it is read again.
    connection.batch(BEGIN).ok()?;
    read(connection).ok().flatten()
}

fn read(connection: &Connection) -> Done<Option<String>> {
    one(connection, LOOK, (), |row| row.get(0))
}

fn make(connection: &Connection) -> Done<()> {
    connection.batch(&format!("SELECT pg_advisory_lock({LOCK})"))?;
    // A failure is returned only after the unlock, because the session would keep the lock otherwise.
    let made = connection.batch(TABLE);
    connection.batch(&format!("SELECT pg_advisory_unlock({LOCK})"))?;
    made
}
