//! The floors of the binary and of its commands.

use super::Floors;

pub(super) const BINARY: Floors = Floors {
    folder: "crates/stentor/src/",
    module: &[],
    floors: &[
        &["copying", "failure", "logging", "value_names"],
        &["output"],
        &["connection", "device", "ledger", "process", "progress"],
        &["commands"],
    ],
    back: &[],
};

pub(super) const BINARY_COMMANDS: Floors = Floors {
    folder: "crates/stentor/src/commands/",
    module: &["commands"],
    floors: &[
        &["account", "campaign", "config", "credential", "demo", "webhook"],
        &[
            "app",
            "audit",
            "completions",
            "contract",
            "device",
            "discover",
            "doctor",
            "emulate",
            "lab",
            "message",
            "node",
            "reference",
        ],
        &["schedule", "secret", "serve", "store", "topic"],
        &["tests"],
    ],
    back: &[],
};

pub(super) const BINARY_EMULATE: Floors = Floors {
    folder: "crates/stentor/src/commands/emulate/",
    module: &["commands", "emulate"],
    floors: &[&["devices", "options"], &["sink"]],
    back: &[],
};

/// A study's run stands highest: it probes what it measures and reports what it found.
pub(super) const BINARY_LAB: Floors = Floors {
    folder: "crates/stentor/src/commands/lab/",
    module: &["commands", "lab"],
    floors: &[
        &["rig"],
        &[
            "bench",
            "clock",
            "cluster",
            "doctor",
            "energy",
            "features",
            "kill",
            "link",
            "list",
            "load",
            "mqtt_devices",
            "report",
            "scale",
            "subject",
        ],
        &["advise", "claims", "compare", "probe"],
        &["run"],
    ],
    back: &[],
};

pub(super) const BINARY_LAB_ENERGY: Floors = Floors {
    folder: "crates/stentor/src/commands/lab/energy/",
    module: &["commands", "lab", "energy"],
    floors: &[&["port", "traffic"], &["battery", "import", "measure", "model", "record"], &["phases"]],
    back: &[],
};

pub(super) const BINARY_LAB_LINK: Floors = Floors {
    folder: "crates/stentor/src/commands/lab/link/",
    module: &["commands", "lab", "link"],
    floors: &[&["run", "selftest", "show"]],
    back: &[],
};

pub(super) const BINARY_LAB_BENCH: Floors = Floors {
    folder: "crates/stentor/src/commands/lab/bench/",
    module: &["commands", "lab", "bench"],
    floors: &[&[
        "accept", "cold", "faces", "fair", "gateway", "http2", "import", "pipeline", "trouble", "urgent",
    ]],
    back: &[],
};

pub(super) const BINARY_LAB_RUN: Floors = Floors {
    folder: "crates/stentor/src/commands/lab/run/",
    module: &["commands", "lab", "run"],
    floors: &[
        &["lateness", "policy", "settings", "site"],
        &["background", "known", "proof", "records"],
        &["watch"],
        &["services", "trial"],
        &["campaigns"],
    ],
    back: &[],
};
