//! The floors of the stage and the demo.

use super::Floors;

pub(super) const STAGE: Floors = Floors {
    folder: "crates/stentor-stage/src/",
    module: &[],
    floors: &[
        &["ccs_client", "failure", "files", "text", "reporter", "devices"],
        &["programs"],
        &["emulated", "client", "child_process", "keys", "policy", "mqtt_packets", "postgres"],
        &["limits", "nats"],
        &["engines"],
        &["ledger", "emulator", "import", "mqtt_devices"],
        &["server", "troubles"],
        &["nodes"],
        &["stage"],
        &["demo"],
        &["kill"],
    ],
    back: &[],
    parent: &[],
};

pub(super) const STAGE_DEMO: Floors = Floors {
    folder: "crates/stentor-stage/src/demo/",
    module: &["demo"],
    floors: &[
        &["kills", "histories"],
        &["options", "comparison"],
        &["campaign", "proof"],
        &["report"],
        &["gateway"],
    ],
    back: &[],
    parent: &[],
};
