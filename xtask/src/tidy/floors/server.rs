//! The floors of the server and of its pipeline.

use super::Floors;

pub(super) const SERVER: Floors = Floors {
    folder: "crates/stentor-server/src/",
    module: &[],
    floors: &[
        &["private", "clock", "dns_sd", "words", "owner", "arrival_limiter"],
        &["shares", "owner_rates"],
        &["contract"],
        &["keys", "decode", "listen"],
        &["pipeline"],
        &["providers", "config", "operation_meter"],
        &["service"],
        &["upstream"],
        &["node"],
        &["status"],
        &["metrics"],
        &["face"],
        &["front", "gateway"],
        &["app"],
    ],
    back: &[],
};

pub(super) const PIPELINE: Floors = Floors {
    folder: "crates/stentor-server/src/pipeline/",
    module: &["pipeline"],
    floors: &[
        &[
            "settle",
            "calendar",
            "clock_jump",
            "config",
            "due_index",
            "lease_table",
            "node_standing",
            "roles",
            "store_latency",
            "supervisor",
            "window",
        ],
        &["load"],
        &["budget"],
        &["stats", "settler_inbox"],
        &["provider_table"],
        &["admission", "audiences"],
        &["backlog"],
        &["shared"],
        &["attempt", "producer", "quota_draws", "republishing", "scheduler", "starter", "store_retry"],
        &["clock_step", "consumer", "settler"],
        &["consumer_pool", "janitor"],
        &["dispatcher"],
    ],
    back: &[],
};
