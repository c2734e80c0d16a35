//! From an empty or older database to the present schema, one numbered step after the other.

use stentor_core::ports::store::StoreError;

use super::engine::Connection;
use super::fault::{Done, conflict, damaged};
use super::query::{exists, one};
use crate::schema::{
    SchemaUndo, UNDO_NODES, UNDO_RECEIPTS, UNDO_TRACES, UNDO_WEBHOOKS, cannot_undo, would_lose,
};

/// The oldest server that is tested (its own number, major version first).
const SERVER_MIN_VERSION: i64 = 150_000;
/// Keeps two programs from taking a step at once.
const LOCK: i64 = 0x5354_4E54_4D49;

/// The steps; step i leads to version i + 1 and is never changed once released.
const STEPS: &[&str] = &[
    include_str!("migrations/0001_store.sql"),
    include_str!("migrations/0002_store_upstream_webhooks.sql"),
    include_str!("migrations/0003_store_upstream_receipts.sql"),
    include_str!("migrations/0004_store_device_traces.sql"),
    include_str!("migrations/0005_store_nodes.sql"),
];

/// What undoes them, by the version that each leads to; the others stay.
const UNDO: &[(usize, SchemaUndo)] =
    &[(2, UNDO_WEBHOOKS), (3, UNDO_RECEIPTS), (4, UNDO_TRACES), (5, UNDO_NODES)];

/// Returns the newest version.
pub(super) const fn newest() -> usize {
    STEPS.len()
}

/// Returns the version that there is; 0 where there is no store.
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
    let undo = UNDO.iter().find(|(of, _)| *of == version);
    let (_, undo) = undo.ok_or_else(|| cannot_undo(version))?;
    if exists(connection, undo.finds_loss, ())? {
        return Err(would_lose(version, undo).into());
    }
    let sql = format!("BEGIN; {}; UPDATE schema_version SET version = {}; COMMIT", undo.sql, version - 1);
    let done = connection.batch(&sql);
    if done.is_err() {
        connection.batch("ROLLBACK")?;
    }
    done
}

/// Takes the steps that are still to be taken, each in a transaction of its own. Refuses a database of a newer program.
pub(super) fn run(connection: &Connection) -> Done<()> {
    check_server(connection)?;
    connection.batch(&format!(
        "SELECT pg_advisory_lock({LOCK});
        CREATE TABLE IF NOT EXISTS schema_version (version INTEGER NOT NULL);
        INSERT INTO schema_version SELECT 0 WHERE NOT EXISTS (SELECT 1 FROM schema_version)"
    ))?;
    let done = take_all(connection);
    connection.batch(&format!("SELECT pg_advisory_unlock({LOCK})"))?;
    done
}

fn take_all(connection: &Connection) -> Done<()> {
    let version: Option<i64> = one(connection, "SELECT version FROM schema_version", (), |row| row.get(0))?;
    let version = version.and_then(|version| usize::try_from(version).ok());
    let version = version.ok_or_else(|| damaged("no schema version"))?;
    if version > STEPS.len() {
        return Err(StoreError::Conflict(format!(
            "the database has schema {version}, this program knows {}: use the program that wrote it, or a newer one",
            STEPS.len()
        ))
        .into());
    }
    for (index, step) in STEPS.iter().enumerate().skip(version) {
        if version > 0 {
            tracing::info!(
                version = index + 1,
                "the database is brought to a newer schema, which may take a while"
            );
        }
        let done = connection
            .batch(&format!("BEGIN; {step}; UPDATE schema_version SET version = {}; COMMIT", index + 1));
        if done.is_err() {
            connection.batch("ROLLBACK")?;
        }
        done?;
    }
    Ok(())
}

fn check_server(connection: &Connection) -> Done<()> {
    let sql = "SELECT current_setting('server_version_num')::int, current_setting('server_encoding')";
    let told = one(connection, sql, (), |row| Ok((row.get::<i64>(0)?, row.get::<String>(1)?)))?;
    let (version, encoding) = told.ok_or_else(|| damaged("a server without a version"))?;
    if version < SERVER_MIN_VERSION {
        let major = version / 10_000;
        return Err(conflict(format!("the server is PostgreSQL {major}: 15 or newer is needed")));
    }
    if encoding != "UTF8" {
        return Err(conflict(format!("the database is kept in {encoding}: it must be UTF8")));
    }
    Ok(())
}
