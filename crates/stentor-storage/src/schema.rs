//! The steps of a store's schema, taken by hand: forward to the newest, or one back for a program that is older.

use stentor_core::ports::store::StoreError;

/// The target of a migration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SchemaGoal {
    /// The schema of this program, which a server takes at its start as well.
    Newest,
    /// The schema before the present one.
    OneBack,
}

/// The result of a migration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SchemaChange {
    /// The former version; 0 if there was no store.
    pub from: usize,
    /// The present version.
    pub to: usize,
}

/// The undoing of a migration step.
#[derive(Debug)]
pub(crate) struct SchemaUndo {
    /// A query for data that would be lost.
    pub(crate) finds_loss: &'static str,
    /// A description of the data that would be lost.
    pub(crate) loss: &'static str,
    /// The statements that undo the step.
    pub(crate) sql: &'static str,
}

/// Undoes the step that stores webhooks for the messages of devices.
pub(crate) const UNDO_WEBHOOKS: SchemaUndo = SchemaUndo {
    finds_loss: "SELECT 1 FROM upstream_webhooks",
    loss: "webhooks of apps: delete them first",
    sql: "DROP TABLE upstream_webhooks",
};

/// Undoes the step that stores receipts for app servers.
pub(crate) const UNDO_RECEIPTS: SchemaUndo = SchemaUndo {
    finds_loss: "SELECT 1 FROM upstream WHERE kind <> 0",
    loss: "confirmations that apps are still to be told: wait until they are told, or have expired",
    sql: "DROP INDEX upstream_by_key; ALTER TABLE upstream DROP COLUMN kind;
        CREATE UNIQUE INDEX upstream_by_key ON upstream (device, key)",
};

/// Undoes the step by which the gateway's data about a device is removed with the device.
pub(crate) const UNDO_TRACES: SchemaUndo = SchemaUndo {
    finds_loss: "SELECT 1 WHERE 1 = 0",
    loss: "nothing",
    sql: "DROP INDEX channels_by_device; DROP INDEX replaced_tokens_by_device",
};

/// Undoes the step by which servers share a database.
pub(crate) const UNDO_NODES: SchemaUndo = SchemaUndo {
    finds_loss: "SELECT 1 FROM nodes",
    loss: "who uses the database: start a server and end it, or wait until the others have found that it is dead",
    sql: "DROP TABLE nodes; DROP TABLE node_events; DROP TABLE quota_levels; ALTER TABLE producers DROP COLUMN instance;
        DELETE FROM sequences WHERE name IN ('event', 'place')",
};

/// Undoes the step by which servers of two versions use a database.
pub(crate) const UNDO_MIXED_VERSIONS: SchemaUndo = SchemaUndo {
    finds_loss: "SELECT 1 WHERE 1 = 0",
    loss: "nothing",
    sql: "ALTER TABLE schema_version DROP COLUMN usable_by; ALTER TABLE nodes DROP COLUMN schema_version",
};

/// Undoes the step by which a message of a device is with one server at a time.
pub(crate) const UNDO_CLAIMS: SchemaUndo = SchemaUndo {
    finds_loss: "SELECT 1 WHERE 1 = 0",
    loss: "nothing",
    sql: "ALTER TABLE upstream DROP COLUMN claimed_by",
};

/// Undoes the step by which the last state of a topic is found. Taking it again fills the columns again.
pub(crate) const UNDO_RETAINED: SchemaUndo = SchemaUndo {
    finds_loss: "SELECT 1 WHERE 1 = 0",
    loss: "nothing",
    sql: "DROP INDEX campaigns_retained; ALTER TABLE campaigns DROP COLUMN retained_place;
        ALTER TABLE campaigns DROP COLUMN retained_topic",
};

/// Undoes the step by which SQLite's tables have PostgreSQL's names.
pub(crate) const UNDO_SHARED_NAMES: SchemaUndo = SchemaUndo {
    finds_loss: "SELECT 1 WHERE 1 = 0",
    loss: "nothing",
    sql: "CREATE TABLE device_topics (key INTEGER NOT NULL, topic INTEGER NOT NULL, PRIMARY KEY (key, topic)) STRICT, WITHOUT ROWID;
        INSERT INTO device_topics (key, topic) SELECT key, topic FROM subscriptions ORDER BY key, topic;
        DROP INDEX subscriptions_by_device; ALTER TABLE group_user_devices RENAME COLUMN owner TO user;
        ALTER TABLE group_users RENAME COLUMN owner TO user; ALTER TABLE user_devices RENAME COLUMN owner TO user;
        ALTER TABLE devices RENAME COLUMN owner TO user; DROP INDEX devices_unlisted;
        CREATE INDEX devices_unlisted ON devices (key) WHERE listed = 0",
};

/// Undoes the step by which nodes report their version, roles and host. Each node reports them again when it joins.
pub(crate) const UNDO_NODE_REPORTS: SchemaUndo = SchemaUndo {
    finds_loss: "SELECT 1 WHERE 1 = 0",
    loss: "nothing",
    sql:
        "DROP TABLE parked_lanes; ALTER TABLE nodes DROP COLUMN version; ALTER TABLE nodes DROP COLUMN roles;
        ALTER TABLE nodes DROP COLUMN host",
};

/// Undoes the step by which the audit trail names persons.
pub(crate) const UNDO_PERSONS: SchemaUndo = SchemaUndo {
    finds_loss: "SELECT 1 FROM audit WHERE person IS NOT NULL",
    loss: "the persons whom the audit trail names, as long as it keeps their entries",
    sql: "ALTER TABLE audit DROP COLUMN person_name; ALTER TABLE audit DROP COLUMN person",
};

/// Undoes the step that stores proposals.
pub(crate) const UNDO_PROPOSALS: SchemaUndo = SchemaUndo {
    finds_loss: "SELECT 1 FROM proposals WHERE message IS NULL",
    loss: "messages that wait for an approval: approve or delete them first",
    sql: "DROP TABLE proposals",
};

/// Undoes the step by which retired devices are found among many.
pub(crate) const UNDO_RETIRED: SchemaUndo =
    SchemaUndo { finds_loss: "SELECT 1 WHERE 1 = 0", loss: "nothing", sql: "DROP INDEX devices_retired" };

/// Undoes the step that stores ended sessions. To the version before, only the server that ended a session knew of its end.
pub(crate) const UNDO_ENDED_SESSIONS: SchemaUndo =
    SchemaUndo { finds_loss: "SELECT 1 WHERE 1 = 0", loss: "nothing", sql: "DROP TABLE ended_sessions" };

/// Returns the undoing of the step to a version, if the step can be undone. Fails with Conflict if it cannot, or if data would be lost.
pub(crate) fn undo_of<E: From<StoreError>>(
    steps: &'static [(usize, SchemaUndo)],
    version: usize,
    finds: impl FnOnce(&'static str) -> Result<bool, E>,
) -> Result<&'static SchemaUndo, E> {
    let Some((_, undo)) = steps.iter().find(|(of, _)| *of == version) else {
        return Err(conflict(format!(
            "the step to schema {version} cannot be undone: restore a backup that was made before it"
        )));
    };
    if finds(undo.finds_loss)? {
        return Err(conflict(format!("undoing the step to schema {version} would lose {}", undo.loss)));
    }
    Ok(undo)
}

fn conflict<E: From<StoreError>>(why: String) -> E {
    StoreError::Conflict(why).into()
}
