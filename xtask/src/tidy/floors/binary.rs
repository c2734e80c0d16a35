//! The floors of the binary and of its commands.

use super::Floors;

pub(super) const BINARY: Floors = Floors {
    folder: "crates/stentor/src/",
    module: &[],
    floors: &[&["copying", "spans"], &["connection", "device"], &["commands"]],
    back: &[],
    parent: &[],
};

pub(super) const BINARY_COMMANDS: Floors = Floors {
    folder: "crates/stentor/src/commands/",
    module: &["commands"],
    floors: &[
        &["account", "campaign", "config", "credential", "demo", "webhook"],
        &[
            "app",
            "audit",
            "channel",
            "completions",
            "contract",
            "device",
            "discover",
            "doctor",
            "emulate",
            "kill",
            "lab",
            "message",
            "node",
            "ready",
            "reference",
        ],
        &["group", "schedule", "secret", "serve", "store", "topic", "user"],
        &["tests"],
    ],
    back: &[],
    parent: &[("tree", "the completions are written from the tree of all commands")],
};

pub(super) const BINARY_EMULATE: Floors = Floors {
    folder: "crates/stentor/src/commands/emulate/",
    module: &["commands", "emulate"],
    floors: &[&["devices", "options"], &["sink"]],
    back: &[],
    parent: &[("refused", "one sentence for all that an emulator refuses")],
};
