//! The floors of the stores.

use super::Floors;

pub(super) const SQLITE_STORE: Floors = Floors {
    folder: "crates/stentor-storage/src/sqlite/store/",
    module: &["sqlite", "store"],
    floors: &[
        &["books", "codes", "lost", "message_rows", "owners", "pace", "sequences", "tags", "vault"],
        &["app_providers", "campaigns", "receipt_rows", "turns"],
        &["chunks", "device_traces", "maintenance", "prefetch", "producers", "stretch"],
        &["collapse", "history", "leftovers"],
        &["accounts", "members", "tokens", "topics", "webhooks"],
        &["registrar", "removal"],
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
