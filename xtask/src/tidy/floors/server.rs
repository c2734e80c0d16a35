//! The floors of the server, of its pipeline, and of its faces.

use super::Floors;

pub(super) const SERVER: Floors = Floors {
    folder: "crates/stentor-server/src/",
    module: &[],
    floors: &[
        &["private", "clock", "dns_sd", "words", "owner", "arrival_limiter"],
        &["shares", "owner_rates", "trace"],
        &["contract"],
        &["keys", "decode", "listen"],
        &["pipeline"],
        &["providers", "config", "operation_meter"],
        &["service"],
        &["oidc", "upstream"],
        &["node"],
        &["status"],
        &["metrics"],
        &["face"],
        &["front", "gateway"],
        &["app"],
    ],
    back: &[],
    parent: &[],
};

pub(super) const PIPELINE: Floors = Floors {
    folder: "crates/stentor-server/src/pipeline/",
    module: &["pipeline"],
    floors: &[
        &[
            "settle",
            "at_once_places",
            "calendar",
            "clock_jump",
            "config",
            "due_index",
            "lease_table",
            "node_standing",
            "roles",
            "store_latency",
            "supervisor",
            "threads",
            "window",
        ],
        &["load"],
        &["budget"],
        &["stats", "settler_inbox"],
        &["provider_table"],
        &["admission", "audiences", "dependencies", "leased_inbox"],
        &["backlog"],
        &["shared"],
        &[
            "acceptance",
            "attempt",
            "producer",
            "quota_draws",
            "republishing",
            "scheduler",
            "starter",
            "store_retry",
        ],
        &["clock_step", "consumer", "settler"],
        &["consumer_pool", "janitor"],
        &["dispatcher"],
        &["tasks"],
    ],
    back: &[],
    parent: &[],
};

pub(super) const PIPELINE_PROVIDER_TABLE: Floors = Floors {
    folder: "crates/stentor-server/src/pipeline/provider_table/",
    module: &["pipeline", "provider_table"],
    floors: &[
        &["circuit_breaker", "factory", "key", "quota_share"],
        &["handle", "levels"],
        &["closed_totals"],
        &["rate_limiter"],
        &["table"],
        &["check", "pictures"],
    ],
    back: &[],
    parent: &[],
};

pub(super) const PIPELINE_SETTLE: Floors = Floors {
    folder: "crates/stentor-server/src/pipeline/settle/",
    module: &["pipeline", "settle"],
    floors: &[&["evidence", "kind"], &["foreign"], &["tests"]],
    back: &[],
    parent: &[],
};

/// A face knows the API that it translates for, and the router of all faces is above them.
pub(super) const FACE: Floors = Floors {
    folder: "crates/stentor-server/src/face/",
    module: &["face"],
    floors: &[
        &["markup", "read_timeout", "request_limits"],
        &["api"],
        &["http"],
        &["record"],
        &["grpc", "soap", "xmlrpc"],
        &["nowhere", "socket"],
        &["rest"],
        &["console", "table"],
        &["discovery"],
        &["router"],
    ],
    back: &[],
    parent: &[],
};
