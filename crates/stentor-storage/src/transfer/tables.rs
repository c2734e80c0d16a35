//! The tables and columns that two engines have in common, in the order of the copy.

use stentor_core::device::{DEVICE_TEXTS_COUNT, with_device_texts};
use stentor_core::ports::store::StoreError;

const DEVICE_COLUMNS: [&str; 10 + DEVICE_TEXTS_COUNT] = with_device_texts(
    &[
        "key",
        "token_since",
        "registered_at",
        "platform",
        "listed",
        "retired_at",
        "retired_reason",
        "owner",
        "token",
    ],
    &["tags"],
);

/// A table that is copied row by row.
#[derive(Debug)]
pub(crate) struct TransferTable {
    pub(crate) name: &'static str,
    /// The number of leading columns that identify a row; rows are read in their order.
    pub(crate) key_columns_count: usize,
    pub(crate) columns: &'static [&'static str],
    /// A column that only SQLite has, and its value.
    pub(crate) only_in_sqlite: Option<(&'static str, &'static str)>,
}

const fn table(
    name: &'static str,
    key_columns_count: usize,
    columns: &'static [&'static str],
) -> TransferTable {
    TransferTable { name, key_columns_count, columns, only_in_sqlite: None }
}

/// All tables. Fleets come before devices, because the hash of a device's token depends on its fleet. A group's users come before the
/// devices of users, which SQLite adds to the group as they come.
pub(crate) const TABLES: &[TransferTable] = &[
    table("apps", 1, &["id", "name", "created_at"]),
    table("accounts", 1, &["id", "app", "name", "scopes", "public_key", "token_uri", "created_at"]),
    table("api_keys", 1, &["id", "app", "name", "scopes", "hash", "created_at"]),
    table("credentials", 2, &["app", "provider", "secret", "updated_at"]),
    table(
        "audit",
        1,
        &[
            "id",
            "at",
            "kind",
            "app",
            "place",
            "key",
            "key_name",
            "action",
            "thing",
            "detail",
            "address",
            "request_id",
            "person",
            "person_name",
        ],
    ),
    table("services", 2, &["app", "name", "kind", "address", "description", "published_at", "expires_at"]),
    table("fleets", 1, &["no", "app", "provider", "active_count"]),
    table("devices", 1, &DEVICE_COLUMNS),
    table("device_tags", 3, &["app", "tag", "key"]),
    table("topics", 1, &["no", "app", "name", "device_count"]),
    table("subscriptions", 2, &["topic", "key"]),
    table("users", 1, &["no", "app", "external_id", "created_at"]),
    table("groups", 1, &["no", "app", "name", "created_at", "member_count"]),
    table("group_devices", 2, &["grp", "device", "key"]),
    table("group_users", 2, &["grp", "external_id", "owner"]),
    table("user_devices", 2, &["owner", "key"]),
    table("messages", 1, &["id", "app", "created_at", "due_at", "schedule", "instant", "spec"]),
    TransferTable {
        name: "replies",
        key_columns_count: 2,
        columns: &["app", "key", "request_hash", "body", "created_at"],
        only_in_sqlite: Some(("status", "0")),
    },
    table(
        "campaigns",
        1,
        &[
            "id",
            "app",
            "state",
            "class",
            "created_at",
            "due_at",
            "expires_at",
            "collapse_key",
            "as_of",
            "started_at",
            "ended_at",
            "stop_reason",
            "stop_detail",
            "retained_topic",
            "retained_place",
        ],
    ),
    table(
        "ledgers",
        2,
        &[
            "campaign",
            "provider",
            "audience",
            "audience_complete",
            "queued",
            "sending",
            "accepted",
            "rejected",
            "expired",
            "collapsed",
            "canceled",
            "failed",
            "delivered",
            "attempts",
            "ambiguous",
            "duplicate_bound",
            "stop_reason",
            "stop_detail",
        ],
    ),
    table("reasons", 4, &["campaign", "provider", "state", "reason", "count"]),
    table("producers", 2, &["campaign", "fleet", "cursor"]),
    table(
        "chunks",
        1,
        &[
            "id",
            "message",
            "fleet",
            "state",
            "attempt",
            "ambiguous",
            "epoch",
            "due_at",
            "created_at",
            "changed_at",
            "instance",
            "lease_until",
            "parent",
            "count",
            "first",
            "last",
            "level",
            "records",
            "devices",
            "receipts_until",
        ],
    ),
    table(
        "schedules",
        1,
        &["id", "app", "name", "state", "created_at", "next_due", "last_fired", "recurrence", "spec"],
    ),
    table(
        "proposals",
        1,
        &[
            "id",
            "app",
            "key",
            "person",
            "person_name",
            "spec",
            "send_at",
            "exact",
            "device_count",
            "created_at",
            "expires_at",
            "message",
        ],
    ),
    table("ended_sessions", 1, &["number", "expires_at"]),
    table("occurrences", 2, &["schedule", "instant", "message"]),
    table(
        "upstream",
        1,
        &[
            "id",
            "app",
            "device",
            "key",
            "body",
            "created_at",
            "expires_at",
            "attempts",
            "settled_at",
            "dead_reason",
            "kind",
        ],
    ),
    table("channels", 2, &["agent", "name", "app", "device"]),
    table("offered_tokens", 1, &["device", "app", "token", "former", "offered_at"]),
    table("replaced_tokens", 2, &["app", "token", "device", "replaced_at"]),
    table("upstream_webhooks", 1, &["app", "secret", "updated_at"]),
];

/// Tables of either engine that are not copied row by row, each with the reason.
const APART: &[(&str, &str)] = &[
    ("sequences", "the numbers go on by `TransferCounters`"),
    ("schema_version", "each engine has its own steps"),
    ("leftovers", "worked off before the copy begins"),
    ("group_user_devices", "SQLite's sum of two tables, kept by triggers"),
    ("token_leaves", "SQLite's index of tokens"),
    ("token_leaves_fresh", "SQLite's index of tokens"),
    ("token_leaves_fresh_count", "SQLite's index of tokens"),
    ("scrubs", "says that SQLite's file is to be rewritten"),
    ("store_copy", "how far a copy has come"),
    ("queue_tickets", "the queue, which is filled anew from the store"),
    ("nodes", "the servers that run beside each other"),
    ("node_events", "what they tell each other"),
    ("parked_lanes", "which lanes rest at which of them"),
    ("quota_levels", "what they may send within this second"),
    ("incarnation", "which life of the database this is"),
    ("origin", "where the database is, which the copy is not"),
];

/// Columns that only one engine has, by table, each with where they come from.
const MADE: &[(&str, &str, &str)] = &[
    ("devices", "token_hash", "made from the token"),
    ("replies", "status", "a status of HTTP that is not used any more"),
    ("producers", "instance", "which server expands it"),
    ("upstream", "claimed_by", "which server hands it over"),
];

/// Refuses a schema with a column that is not listed for the copy, as its data would be lost.
pub(crate) fn check_columns(found: &[(String, String)]) -> Result<(), StoreError> {
    for (table, column) in found {
        let is_named = |one: &&TransferTable| one.name == table;
        let is_copied = TABLES.iter().find(is_named).is_some_and(|one| {
            let names = one.columns.iter().flat_map(|names| names.split('='));
            names.into_iter().any(|name| name == column)
        });
        let is_made = MADE.iter().any(|(of, name, _)| of == table && name == column);
        let is_apart = APART.iter().any(|(name, _)| name == table);
        if !(is_copied || is_made || is_apart) {
            return Err(StoreError::Conflict(format!(
                "this program does not know how to copy {table}.{column}"
            )));
        }
    }
    Ok(())
}
