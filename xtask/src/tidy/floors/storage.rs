//! The floors of the stores.

use super::Floors;

pub(super) const SQLITE_STORE: Floors = Floors {
    folder: "crates/stentor-storage/src/sqlite/store/",
    module: &["sqlite", "store"],
    floors: &[
        &["book_writes", "campaign_writes", "chunk_writes", "condition", "counters", "device_list"],
        &["device_topics", "lost", "maintenance", "pace", "prefetch", "receipt_rows", "vault"],
        &["leftovers"],
        &["contents", "pending", "tokens"],
        &["registrar"],
        &["audience", "register", "rows", "transfer"],
        &["at_once", "expand", "lease", "start"],
        &["accept"],
        &["acceptance", "ledger_steps", "parts"],
    ],
    back: &[
        ("leftovers", "tokens", "hashes that are to be made again are worked off like all that is left over"),
        ("registrar", "register", "the batch, and the rows that it becomes"),
    ],
    parent: &[
        ("SqliteStore", "one store, whose ports stand in a file each"),
        ("SqliteParts", "the engine of the store"),
    ],
};

/// An engine knows the common requirements of both engines; their use is above both.
pub(super) const STORAGE: Floors = Floors {
    folder: "crates/stentor-storage/src/",
    module: &[],
    floors: &[
        &["awaiting", "commit_queue", "device_keys", "failure", "held", "schema", "seal", "texts", "turns"],
        &["nats", "vault"],
        &["sql"],
        &["transfer"],
        &["postgres", "sqlite"],
        &["conformance"],
        &["store_place"],
        &["store_copy"],
    ],
    back: &[
        ("sql", "postgres", "the meaning of an engine's error stands in its folder"),
        ("sql", "sqlite", "the meaning of an engine's error stands in its folder"),
    ],
    parent: &[],
};

pub(super) const STORAGE_SQL: Floors = Floors {
    folder: "crates/stentor-storage/src/sql/",
    module: &["sql"],
    floors: &[
        &["dialect", "error", "value"],
        &["portion", "row"],
        &["parts"],
        &["connection"],
        &["engine", "query"],
        &["damage", "ledger_engine", "ledger_rows"],
        &["acceptance"],
        &["store"],
    ],
    back: &[
        ("portion", "connection", "a portion counts the rows that were changed over a connection"),
        ("parts", "store", "a row of the store that engines change in different ways"),
        ("engine", "store", "the messages that an engine keeps in memory"),
    ],
    parent: &[],
};

pub(super) const SQL_STORE: Floors = Floors {
    folder: "crates/stentor-storage/src/sql/store/",
    module: &["sql", "store"],
    floors: &[
        &["books", "codes", "credentials", "device_texts", "message_rows", "owners", "sequences", "tags"],
        &["app_providers", "campaigns", "registration", "retained", "turns"],
        &[
            "accounts",
            "authors",
            "chunks",
            "device_traces",
            "members",
            "producers",
            "registry",
            "replies",
            "sessions",
            "stretch",
            "topics",
            "webhooks",
        ],
        &["apps", "collapse", "groups", "history", "proposals", "rehearsal", "removal", "schedules", "users"],
        &["audit", "devices", "merged_devices", "targets", "unlisted"],
        &["audience_counts", "offered_tokens", "removals", "start"],
        &["messages", "upstream"],
        &["pipeline"],
    ],
    back: &[],
    parent: &[],
};

pub(super) const STORAGE_SQLITE: Floors = Floors {
    folder: "crates/stentor-storage/src/sqlite/",
    module: &["sqlite"],
    floors: &[
        &["bulk", "codes", "damage", "settings", "temporary", "wal", "worker_pool"],
        &["connection", "fault", "file", "writer"],
        &["migrations"],
        &["queue", "readers"],
        &["store"],
        &["inspection"],
        &["copy"],
    ],
    back: &[("migrations", "store", "a step that statements cannot say fills rows by the store's own code")],
    parent: &[],
};

pub(super) const STORAGE_POSTGRES: Floors = Floors {
    folder: "crates/stentor-storage/src/postgres/",
    module: &["postgres"],
    floors: &[
        &["damage_log", "last_writes", "settings", "sqlstate", "value"],
        &["fault"],
        &["copy_rows", "row", "session", "tls"],
        &["address"],
        &["access"],
        &["connection"],
        &["engine"],
        &["query"],
        &["incarnation", "migrations", "origin", "start"],
        &["transactor"],
        &["listener", "readers", "writer"],
        &["store"],
        &["inspection", "queue"],
    ],
    back: &[
        ("access", "store", "which of the nodes a process is, is known by its row"),
        ("migrations", "store", "a step that statements cannot say fills rows by the store's own code"),
        ("origin", "store", "waiting deliveries of a copy are marked in the store's own rows"),
        ("writer", "store", "the last writes of a transaction are rows of the store"),
    ],
    parent: &[],
};

pub(super) const POSTGRES_STORE: Floors = Floors {
    folder: "crates/stentor-storage/src/postgres/store/",
    module: &["postgres", "store"],
    floors: &[
        &["book_writes", "campaign_writes", "chunk_writes", "condition", "device_list", "maintenance"],
        &["many_owners", "many_topics", "node_events", "node_reports", "quotas", "receipt_rows"],
        &["sealing", "seen_nodes", "tokens"],
        &[
            "audience",
            "leftovers",
            "pending",
            "pending_writes",
            "prefetched_rows",
            "registrar",
            "upstream_claims",
        ],
        &["contents", "register", "transfer"],
        &["rows"],
        &["expand", "lease", "named_devices", "nodes"],
        &["at_once"],
        &["accept"],
        &["acceptance", "parts", "start"],
        &["ledger_steps"],
    ],
    back: &[
        ("registrar", "register", "the batch, and the rows that it becomes"),
        (
            "quotas",
            "nodes",
            "quotas are drawn by the clock of the database, which the servers that share it read",
        ),
    ],
    parent: &[
        ("PostgresStore", "one store, whose ports stand in a file each"),
        ("PostgresParts", "the engine of the store"),
    ],
};

pub(super) const STORAGE_NATS: Floors = Floors {
    folder: "crates/stentor-storage/src/nats/",
    module: &["nats"],
    floors: &[&["address", "leases", "settings", "subject"], &["codes"], &["stream"], &["queue"]],
    back: &[],
    parent: &[],
};
