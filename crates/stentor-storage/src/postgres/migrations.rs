//! From an empty or older database to the present schema, one numbered step after the other.

use super::engine::Connection;
use crate::schema::{
    SchemaUndo, UNDO_CLAIMS, UNDO_ENDED_SESSIONS, UNDO_MIXED_VERSIONS, UNDO_NODE_REPORTS, UNDO_NODES,
    UNDO_PERSONS, UNDO_PROPOSALS, UNDO_RECEIPTS, UNDO_RETAINED, UNDO_RETIRED, UNDO_TRACES, UNDO_WEBHOOKS,
    undo_of,
};
use crate::sql::{Done, conflict, damaged, exists, one};

/// The oldest tested server version, as PostgreSQL's version number (major version first).
const SERVER_MIN_VERSION: i64 = 150_000;
/// The advisory lock that prevents concurrent migrations.
const LOCK: i64 = 0x5354_4E54_4D49;

/// A step of the schema.
struct Migration {
    sql: &'static str,
    /// The oldest schema version that a program must know to work with the schema after the step. If it is less than the version of the
    /// step, servers of the previous version may run beside newer ones: such a step only adds, and a later step removes anything it makes
    /// useless.
    usable_by: usize,
    /// Work that SQL statements cannot do.
    work: Option<fn(&Connection) -> Done<()>>,
}

const fn step(usable_by: usize, sql: &'static str) -> Migration {
    Migration { sql, usable_by, work: None }
}

/// The steps; step i leads to version i + 1 and is never changed once released.
const STEPS: &[Migration] = &[
    step(1, include_str!("migrations/0001_store.sql")),
    step(2, include_str!("migrations/0002_store_upstream_webhooks.sql")),
    step(3, include_str!("migrations/0003_store_upstream_receipts.sql")),
    step(4, include_str!("migrations/0004_store_device_traces.sql")),
    step(5, include_str!("migrations/0005_store_nodes.sql")),
    step(5, include_str!("migrations/0006_store_mixed_versions.sql")),
    step(5, include_str!("migrations/0007_store_upstream_claims.sql")),
    Migration {
        sql: include_str!("migrations/0008_store_retained.sql"),
        usable_by: 5,
        work: Some(|connection| super::store::adopt_retained(connection)),
    },
    step(5, include_str!("migrations/0009_store_node_reports.sql")),
    step(5, include_str!("migrations/0010_store_audit_persons.sql")),
    step(5, include_str!("migrations/0011_store_proposals.sql")),
    step(5, include_str!("migrations/0012_store_retired.sql")),
    step(5, include_str!("migrations/0013_store_ended_sessions.sql")),
];

/// The first version with the column `usable_by`.
const SAYS_WHO_VERSION: usize = 6;

/// The undoing of steps, by the version that each leads to. Other steps cannot be undone.
const UNDO: &[(usize, SchemaUndo)] = &[
    (2, UNDO_WEBHOOKS),
    (3, UNDO_RECEIPTS),
    (4, UNDO_TRACES),
    (5, UNDO_NODES),
    (6, UNDO_MIXED_VERSIONS),
    (7, UNDO_CLAIMS),
    (8, UNDO_RETAINED),
    (9, UNDO_NODE_REPORTS),
    (10, UNDO_PERSONS),
    (11, UNDO_PROPOSALS),
    (12, UNDO_RETIRED),
    (13, UNDO_ENDED_SESSIONS),
];

/// Returns the newest version.
pub(super) const fn newest() -> usize {
    STEPS.len()
}

/// Returns the present version; 0 if there is no store.
pub(super) fn version(connection: &Connection) -> Done<usize> {
    let sql = "SELECT to_regclass('schema_version') IS NOT NULL";
    if one(connection, sql, (), |row| row.get::<bool>(0))? != Some(true) {
        return Ok(0);
    }
    let version: Option<i64> = one(connection, "SELECT version FROM schema_version", (), |row| row.get(0))?;
    Ok(version.and_then(|version| usize::try_from(version).ok()).unwrap_or(0))
}

/// Undoes the last step.
pub(super) fn undo(connection: &Connection) -> Done<()> {
    let version = version(connection)?;
    let undo = undo_of(UNDO, version, |sql| exists(connection, sql, ()))?;
    transact(connection, || {
        connection.batch(undo.sql)?;
        note_version(connection, version - 1)?;
        note_usable(connection, version - 1)
    })
}

/// Applies the missing steps, each in a transaction of its own. Refuses a database of a newer program unless its schema allows this
/// program, and a step that servers using the database now could not work with.
pub(super) fn run(connection: &Connection) -> Done<()> {
    check_server(connection)?;
    connection.batch(&format!(
        "SELECT pg_advisory_lock({LOCK});
        CREATE TABLE IF NOT EXISTS schema_version (version INTEGER NOT NULL);
        INSERT INTO schema_version SELECT 0 WHERE NOT EXISTS (SELECT 1 FROM schema_version)"
    ))?;
    // A failure is returned only after the unlock, because the session would keep the lock otherwise.
    let done = take_all(connection);
    connection.batch(&format!("SELECT pg_advisory_unlock({LOCK})"))?;
    done
}

fn take_all(connection: &Connection) -> Done<()> {
    // Read under the lock: another server may have taken steps while this one waited for it.
    let version: Option<i64> = one(connection, "SELECT version FROM schema_version", (), |row| row.get(0))?;
    let version = version.and_then(|version| usize::try_from(version).ok());
    let version = version.ok_or_else(|| damaged("no schema version"))?;
    if version > newest() {
        check_usable(connection)?;
        tracing::warn!(
            version,
            known = newest(),
            "the database has a newer schema, with which this version goes on"
        );
    }
    for (index, step) in STEPS.iter().enumerate().skip(version) {
        if version > 0 {
            tracing::info!(
                version = index + 1,
                "the database is brought to a newer schema, which may take a while"
            );
        }
        transact(connection, || {
            // First, so that a server that joins at the same time waits, or is seen.
            note_version(connection, index + 1)?;
            refuse_older(connection, step.usable_by)?;
            connection.batch(step.sql)?;
            step.work.map_or(Ok(()), |work| work(connection))?;
            note_usable(connection, index + 1)
        })?;
    }
    Ok(())
}

fn transact(connection: &Connection, work: impl FnOnce() -> Done<()>) -> Done<()> {
    connection.batch("BEGIN")?;
    let done = work().and_then(|()| connection.batch("COMMIT"));
    if done.is_err() {
        connection.batch("ROLLBACK")?;
    }
    done
}

fn note_version(connection: &Connection, version: usize) -> Done<()> {
    connection.batch(&format!("UPDATE schema_version SET version = {version}"))
}

fn note_usable(connection: &Connection, version: usize) -> Done<()> {
    if version < SAYS_WHO_VERSION {
        return Ok(());
    }
    let usable_by = STEPS[version - 1].usable_by;
    connection.batch(&format!("UPDATE schema_version SET usable_by = {usable_by}"))
}

/// Fails if this program cannot work with the database's schema. Within a transaction, the schema then stays as it is until the transaction
/// ends.
pub(super) fn check_usable(connection: &Connection) -> Done<()> {
    let row = one(connection, "SELECT version, usable_by FROM schema_version FOR SHARE", (), |row| {
        Ok((row.get::<i64>(0)?, row.get::<i64>(1)?))
    });
    let (version, usable_by) = row?.ok_or_else(|| damaged("no schema version"))?;
    if usize::try_from(usable_by).is_ok_and(|usable_by| usable_by <= newest()) {
        return Ok(());
    }
    let known = newest();
    Err(conflict(format!(
        "the database has schema {version}, this program knows {known}: use the program that wrote it, or a newer one"
    )))
}

/// Refuses a step while servers use the database that could not work with the schema after it.
fn refuse_older(connection: &Connection, usable_by: usize) -> Done<()> {
    let sql = "SELECT 1 FROM information_schema.columns
        WHERE table_schema = current_schema() AND table_name = 'nodes' AND column_name = 'schema_version'";
    if !exists(connection, sql, ())? {
        return Ok(());
    }
    let sql = "SELECT min(schema_version), count(*) FROM nodes
        WHERE schema_version < $1 AND seen_at > clock_timestamp() - interval '1 minute'";
    let usable_by = i64::try_from(usable_by).unwrap_or(i64::MAX);
    let older =
        one(connection, sql, [usable_by], |row| Ok((row.get::<Option<i64>>(0)?, row.get::<i64>(1)?)))?;
    let Some((Some(oldest), count)) = older else { return Ok(()) };
    Err(conflict(format!(
        "{count} servers that use this database know its schema up to {oldest} and cannot go on after the next step: bring \
         them to the version before this one first, or stop them, or wait a minute after one that was killed"
    )))
}

fn check_server(connection: &Connection) -> Done<()> {
    let sql = "SELECT current_setting('server_version_num')::int, current_setting('server_encoding')";
    let row = one(connection, sql, (), |row| Ok((row.get::<i64>(0)?, row.get::<String>(1)?)))?;
    let (version, encoding) = row.ok_or_else(|| damaged("a server without a version"))?;
    if version < SERVER_MIN_VERSION {
        let major = version / 10_000;
        return Err(conflict(format!("the server is PostgreSQL {major}: 15 or newer is needed")));
    }
    if encoding != "UTF8" {
        return Err(conflict(format!("the database is kept in {encoding}: it must be UTF8")));
    }
    Ok(())
}
