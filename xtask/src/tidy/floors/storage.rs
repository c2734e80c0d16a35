//! The floors of the stores.

use super::Floors;

pub(super) const SQLITE_STORE: Floors = Floors {
    folder: "crates/stentor-storage/src/sqlite/store/",
    module: &["sqlite", "store"],
    floors: &[
        &["books", "codes", "lost", "message_rows", "owners", "pace", "sequences", "tags", "vault"],
        &["app_providers", "campaigns", "receipt_rows", "retained", "turns"],
        &["chunks", "device_traces", "maintenance", "prefetch", "producers", "stretch"],
        &["collapse", "history", "leftovers", "pending"],
        &["accounts", "members", "tokens", "topics", "webhooks"],
        &["registrar", "rehearsal", "removal"],
        &["apps", "condition", "contents", "groups", "register", "registry", "unlisted", "users"],
        &["devices", "targets"],
        &["audience", "offered_tokens", "rows"],
        &["expand", "lease", "receipts", "start", "upstream"],
        &["accept", "pipeline"],
        &["messages", "schedules", "transfer"],
        &["audit"],
    ],
    back: &[
        ("leftovers", "tokens", "hashes that are to be made again are worked off like all that is left over"),
        ("tokens", "removal", "of two devices with one token that are found meanwhile, one is removed"),
        ("registrar", "register", "the batch, and the rows that it becomes"),
    ],
};

/// An engine knows what two engines must agree on; what is done with either of them is above both.
pub(super) const STORAGE: Floors = Floors {
    folder: "crates/stentor-storage/src/",
    module: &[],
    floors: &[
        &[
            "awaiting",
            "commit_queue",
            "device_keys",
            "failure",
            "held",
            "schema",
            "seal",
            "texts",
            "transfer",
            "turns",
        ],
        &["memory", "nats", "vault"],
        &["conformance", "postgres", "sqlite"],
        &["store_place"],
        &["store_copy"],
    ],
    back: &[],
};

pub(super) const STORAGE_SQLITE: Floors = Floors {
    folder: "crates/stentor-storage/src/sqlite/",
    module: &["sqlite"],
    floors: &[
        &["codes", "portion", "settings", "worker_pool"],
        &["fault"],
        &["bulk", "query", "row", "wal", "writer"],
        &["damage", "file", "migrations"],
        &["queue", "readers"],
        &["store"],
        &["inspection"],
        &["copy"],
    ],
    back: &[("migrations", "store", "a step that statements cannot say fills rows by the store's own code")],
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
        &["portion", "query"],
        &["damage", "incarnation", "migrations", "origin", "start"],
        &["transactor"],
        &["listener", "readers", "writer"],
        &["store"],
        &["inspection", "queue"],
    ],
    back: &[
        ("migrations", "store", "a step that statements cannot say fills rows by the store's own code"),
        ("origin", "store", "what waits in a copy is marked in the store's own rows"),
        ("writer", "store", "what a transaction writes last are rows of the store"),
    ],
};

pub(super) const POSTGRES_STORE: Floors = Floors {
    folder: "crates/stentor-storage/src/postgres/store/",
    module: &["postgres", "store"],
    floors: &[
        &[
            "books",
            "codes",
            "credentials",
            "message_rows",
            "node_reports",
            "owners",
            "quotas",
            "receipt_rows",
            "seen_nodes",
            "sequences",
            "tags",
        ],
        &["app_providers", "campaigns", "maintenance", "node_events", "retained", "turns"],
        &[
            "accounts",
            "chunks",
            "device_traces",
            "members",
            "producers",
            "registry",
            "stretch",
            "tokens",
            "webhooks",
        ],
        &["apps", "collapse", "history", "leftovers", "pending", "pending_writes", "prefetched_rows"],
        &["contents", "groups", "topics", "transfer", "users"],
        &["condition", "registrar", "rehearsal", "removal", "targets"],
        &["accept", "register", "unlisted"],
        &["devices", "upstream_claims"],
        &["audience", "offered_tokens", "rows"],
        &["named_devices"],
        &["expand", "lease", "messages", "nodes", "receipts", "start", "upstream"],
        &["acceptance", "pipeline", "schedules"],
        &["audit"],
    ],
    back: &[
        ("registrar", "register", "the batch, and the rows that it becomes"),
        ("upstream_claims", "upstream", "whose rows it claims, read as they are read there"),
        (
            "quotas",
            "nodes",
            "what is drawn of a quota goes by the clock of the database, which servers that share it read",
        ),
    ],
};

pub(super) const STORAGE_MEMORY: Floors = Floors {
    folder: "crates/stentor-storage/src/memory/",
    module: &["memory"],
    floors: &[
        &["queue", "state"],
        &["apps", "audit", "history", "messages", "receipts", "rows", "schedules", "topics", "upstream"],
        &["devices", "groups", "pipeline", "registry", "users"],
        &["audience"],
    ],
    back: &[],
};

pub(super) const STORAGE_NATS: Floors = Floors {
    folder: "crates/stentor-storage/src/nats/",
    module: &["nats"],
    floors: &[&["address", "leases", "settings", "subject"], &["codes"], &["stream"], &["queue"]],
    back: &[],
};
