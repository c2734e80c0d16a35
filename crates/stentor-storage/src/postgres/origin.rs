//! The origin of a store: the database in which it was last used. A restored database, or a copy beside the live one, contains chunks that
//! the original may have sent since. Servers of both would send them, and neither knows of the other.

use stentor_core::ports::store::StoreError;

use super::engine::Connection;
use super::fault::is_refusal;
use crate::sql::{Done, one, params, run};

/// The advisory lock that prevents concurrent comparisons by starting servers.
const LOCK: i64 = 0x5354_4E54_4F52;
const TABLE: &str =
    "CREATE TABLE IF NOT EXISTS origin (one BOOLEAN PRIMARY KEY CHECK (one), system TEXT NOT NULL,
    database BIGINT NOT NULL, timeline BIGINT NOT NULL)";

/// The identity of a database: the server's number, the database's number in it, and the timeline of the server.
#[derive(Debug, Clone, PartialEq, Eq)]
struct DatabaseOrigin {
    system: String,
    database: i64,
    timeline: i64,
}

/// The relation of a database to the one in which the store was created.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OriginChange {
    Same,
    /// A standby was promoted, or the database was restored to an earlier time: everything after the branch is missing.
    Branched,
    /// It is a copy, or it was restored into another place.
    Copied,
}

impl DatabaseOrigin {
    fn since(&self, before: &Self) -> OriginChange {
        if (&self.system, self.database) != (&before.system, before.database) {
            OriginChange::Copied
        } else if self.timeline != before.timeline {
            OriginChange::Branched
        } else {
            OriginChange::Same
        }
    }
}

/// Compares the database with the one in which the store was last used, logs a difference, and marks the waiting chunks of a copy as
/// possibly sent by users of the original. A server that does not reveal its identifiers is not compared.
pub(super) fn check(connection: &Connection) -> Result<(), StoreError> {
    let present = match present(connection) {
        Ok(Some(present)) => present,
        Ok(None) => return Ok(()),
        Err(fault) if is_refusal(&fault) => return Ok(()),
        Err(fault) => return Err(fault.into()),
    };
    connection.batch(&format!("SELECT pg_advisory_lock({LOCK})"))?;
    // A failure is returned only after the unlock, because the session would keep the lock otherwise.
    let compared = compare(connection, &present);
    connection.batch(&format!("SELECT pg_advisory_unlock({LOCK})"))?;
    Ok(compared?)
}

fn compare(connection: &Connection, present: &DatabaseOrigin) -> Done<()> {
    connection.batch(TABLE)?;
    let change = kept(connection)?.map_or(OriginChange::Same, |before| present.since(&before));
    match change {
        OriginChange::Same => {}
        OriginChange::Branched => tracing::warn!(
            timeline = present.timeline,
            "the database was promoted or taken back to an earlier time since a server last used it: what only the former primary had is \
             missing, and may have been sent"
        ),
        OriginChange::Copied => report_copy(connection)?,
    }
    keep(connection, present)
}

fn report_copy(connection: &Connection) -> Done<()> {
    let last_seen = connection.ask_now("SELECT max(seen_at)::text FROM nodes")?.unwrap_or_default();
    let marked = super::store::mark_waiting(connection)?;
    tracing::error!(
        last_seen,
        marked,
        "the database is a copy, or was restored: what waits in it may have been sent since and is marked so. Stop every server that still uses \
         the original, or both send"
    );
    Ok(())
}

fn present(connection: &Connection) -> Done<Option<DatabaseOrigin>> {
    let sql = "SELECT (SELECT system_identifier::text FROM pg_control_system()),
        (SELECT oid::bigint FROM pg_database WHERE datname = current_database()),
        (SELECT timeline_id::bigint FROM pg_control_checkpoint())";
    one(connection, sql, (), |row| {
        Ok(DatabaseOrigin { system: row.get(0)?, database: row.get(1)?, timeline: row.get(2)? })
    })
}

fn kept(connection: &Connection) -> Done<Option<DatabaseOrigin>> {
    one(connection, "SELECT system, database, timeline FROM origin", (), |row| {
        Ok(DatabaseOrigin { system: row.get(0)?, database: row.get(1)?, timeline: row.get(2)? })
    })
}

fn keep(connection: &Connection, present: &DatabaseOrigin) -> Done<()> {
    let sql = "INSERT INTO origin (one, system, database, timeline) VALUES (TRUE, $1, $2, $3)
        ON CONFLICT (one) DO UPDATE SET system = excluded.system, database = excluded.database,
        timeline = excluded.timeline";
    let values = params![&present.system, present.database, present.timeline];
    run(connection, sql, values).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_system_or_number_is_a_copy_and_another_history_a_branch() {
        let before = DatabaseOrigin { system: "7".to_owned(), database: 5, timeline: 1 };
        assert_eq!(before.since(&before), OriginChange::Same);
        assert_eq!(DatabaseOrigin { timeline: 2, ..before.clone() }.since(&before), OriginChange::Branched);
        assert_eq!(DatabaseOrigin { database: 6, ..before.clone() }.since(&before), OriginChange::Copied);
        let elsewhere = DatabaseOrigin { system: "8".to_owned(), ..before.clone() };
        assert_eq!(elsewhere.since(&before), OriginChange::Copied);
    }
}
