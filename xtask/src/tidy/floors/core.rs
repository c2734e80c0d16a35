//! The floors of the rules: nouns, ports, and the ledger.

use super::Floors;

pub(super) const CORE: Floors = Floors {
    folder: "crates/stentor-core/src/",
    module: &[],
    floors: &[
        &["error", "limits", "repetition", "retry", "time", "varint", "word"],
        &["codes", "id", "name", "outbound", "person"],
        &["audit", "channel", "group", "provider", "published", "reason", "topic", "upstream", "user"],
        &["device"],
        &["app", "chunk", "outcome"],
        &["account", "delivery", "quota", "target"],
        &["campaign", "message"],
        &["proposal", "schedule", "settlement"],
        &["ports"],
        &["ledger"],
    ],
    back: &[],
    parent: &[],
};

pub(super) const CORE_LEDGER: Floors = Floors {
    folder: "crates/stentor-core/src/ledger/",
    module: &["ledger"],
    floors: &[
        &["books", "collapse", "life"],
        &["rows"],
        &["cache"],
        &["begin", "quarantine", "receipts"],
        &["control"],
        &["lease"],
        &["maintenance", "settle"],
        &["tests"],
    ],
    back: &[],
    parent: &[],
};

pub(super) const CORE_STORE_PORT: Floors = Floors {
    folder: "crates/stentor-core/src/ports/store/",
    module: &["ports", "store"],
    floors: &[
        &["apps", "health", "leases", "precondition", "receipts", "registry", "sessions"],
        &["messages", "pipeline"],
        &["audit", "devices", "nodes", "proposals", "schedules", "upstream"],
    ],
    back: &[],
    parent: &[("StoreError", "each port fails with it")],
};
