//! From an empty or older file to the present schema, one numbered step after the other.

use rusqlite::Connection;
use stentor_core::ports::store::StoreError;

use crate::schema::{
    SchemaUndo, UNDO_ENDED_SESSIONS, UNDO_PERSONS, UNDO_PROPOSALS, UNDO_RECEIPTS, UNDO_RETAINED,
    UNDO_RETIRED, UNDO_SHARED_NAMES, UNDO_TRACES, UNDO_WEBHOOKS, undo_of,
};
use crate::sql::{Done, damaged};

/// One step: statements, and then work that statements cannot do.
pub(crate) struct Migration {
    sql: &'static str,
    work: Option<fn(&Connection) -> Done<()>>,
}

impl Migration {
    const fn sql(sql: &'static str) -> Self {
        Self { sql, work: None }
    }

    /// Returns true if secrets are sealed from this step on.
    #[cfg(test)]
    pub(super) fn begins_to_seal(&self) -> bool {
        self.sql.contains("CREATE TABLE scrubs")
    }
}

/// The steps of the store's file; step i leads to version i + 1 and is never changed once released.
pub(crate) const STORE: &[Migration] = &[
    Migration::sql(include_str!("migrations/0001_store.sql")),
    Migration::sql(include_str!("migrations/0002_store_stops.sql")),
    Migration::sql(include_str!("migrations/0003_store_set_aside.sql")),
    Migration::sql(include_str!("migrations/0004_store_group_audience.sql")),
    Migration::sql(include_str!("migrations/0005_store_fresh_tokens.sql")),
    Migration {
        sql: include_str!("migrations/0006_store_token_leaves.sql"),
        work: Some(super::store::adopt_rows),
    },
    Migration::sql(include_str!("migrations/0007_store_collapse_due.sql")),
    Migration::sql(include_str!("migrations/0008_store_turns.sql")),
    Migration::sql(include_str!("migrations/0009_store_audit.sql")),
    Migration::sql(include_str!("migrations/0010_store_leftovers.sql")),
    Migration::sql(include_str!("migrations/0011_store_seals.sql")),
    Migration::sql(include_str!("migrations/0012_store_starts.sql")),
    Migration::sql(include_str!("migrations/0013_store_service_accounts.sql")),
    Migration::sql(include_str!("migrations/0014_store_services.sql")),
    Migration::sql(include_str!("migrations/0015_store_receipts.sql")),
    Migration::sql(include_str!("migrations/0016_store_offered_tokens.sql")),
    Migration::sql(include_str!("migrations/0017_store_upstream_webhooks.sql")),
    Migration::sql(include_str!("migrations/0018_store_upstream_receipts.sql")),
    Migration::sql(include_str!("migrations/0019_store_device_traces.sql")),
    Migration {
        sql: include_str!("migrations/0020_store_retained.sql"),
        work: Some(|connection| super::store::adopt_retained(connection)),
    },
    Migration::sql(include_str!("migrations/0021_store_shared_names.sql")),
    Migration::sql(include_str!("migrations/0022_store_audit_persons.sql")),
    Migration::sql(include_str!("migrations/0023_store_proposals.sql")),
    Migration::sql(include_str!("migrations/0024_store_retired.sql")),
    Migration::sql(include_str!("migrations/0025_store_ended_sessions.sql")),
];

/// The undoing of steps of the store's file, by the version that each leads to. Other steps cannot be undone.
const UNDO: &[(usize, SchemaUndo)] = &[
    (17, UNDO_WEBHOOKS),
    (18, UNDO_RECEIPTS),
    (19, UNDO_TRACES),
    (20, UNDO_RETAINED),
    (21, UNDO_SHARED_NAMES),
    (22, UNDO_PERSONS),
    (23, UNDO_PROPOSALS),
    (24, UNDO_RETIRED),
    (25, UNDO_ENDED_SESSIONS),
];

/// The steps of the queue's file.
pub(super) const QUEUE: &[Migration] = &[Migration::sql(include_str!("migrations/0001_queue.sql"))];

/// Takes the steps that are still to be taken, each in a transaction of its own.
pub(crate) fn run(connection: &Connection, steps: &[Migration]) -> Done<()> {
    let version = version(connection)?;
    if version > steps.len() {
        return Err(StoreError::Conflict(format!(
            "the file has schema {version}, this program knows {}: use the program that wrote it, or a newer one",
            steps.len()
        ))
        .into());
    }
    for (index, step) in steps.iter().enumerate().skip(version) {
        if version > 0 {
            tracing::info!(
                version = index + 1,
                "the file is brought to a newer schema, which may take a while"
            );
        }
        take(connection, step, index + 1)?;
    }
    Ok(())
}

/// Returns the present version; 0 for an empty file.
pub(super) fn version(connection: &Connection) -> Done<usize> {
    let version: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    usize::try_from(version).map_err(|_| damaged("a negative schema version"))
}

/// Undoes the last step of a store's file.
pub(super) fn undo(connection: &Connection) -> Done<()> {
    let version = version(connection)?;
    let undo = undo_of(UNDO, version, |sql| crate::sql::exists(connection, sql, ()))?;
    let transaction = connection.unchecked_transaction()?;
    transaction.execute_batch(undo.sql)?;
    transaction.pragma_update(None, "user_version", crate::sql::limit(version - 1))?;
    Ok(transaction.commit()?)
}

fn take(connection: &Connection, step: &Migration, version: usize) -> Done<()> {
    let transaction = connection.unchecked_transaction()?;
    transaction.execute_batch(step.sql)?;
    step.work.map_or(Ok(()), |work| work(&transaction))?;
    // In the same transaction: a step that breaks off is taken again from its beginning.
    transaction.pragma_update(None, "user_version", crate::sql::limit(version))?;
    Ok(transaction.commit()?)
}
