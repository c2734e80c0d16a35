//! The floors of the stage, the demo and the benches.

use super::Floors;

pub(super) const STAGE: Floors = Floors {
    folder: "crates/stentor-stage/src/",
    module: &[],
    floors: &[
        &["failure", "files", "text", "reporter", "devices"],
        &["emulated", "client", "child_process", "keys", "policy", "limits", "postgres"],
        &["ledger", "emulator", "import", "mqtt_devices", "device_load"],
        &["server", "troubles", "faces"],
        &["stage"],
        &["demo"],
        &["kill", "bench", "features"],
    ],
    back: &[],
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
};

pub(super) const STAGE_BENCH: Floors = Floors {
    folder: "crates/stentor-stage/src/bench/",
    module: &["bench"],
    floors: &[
        &["singles", "campaigns", "sink"],
        &["sink_log"],
        &["accept", "cold", "faces", "fair", "gateway", "http2", "import", "pipeline", "trouble", "urgent"],
    ],
    back: &[],
};

pub(super) const STAGE_BENCH_FACES: Floors = Floors {
    folder: "crates/stentor-stage/src/bench/faces/",
    module: &["bench", "faces"],
    floors: &[&["measured"], &["rivals"], &["report"]],
    back: &[],
};

pub(super) const STAGE_FEATURES: Floors = Floors {
    folder: "crates/stentor-stage/src/features/",
    module: &["features"],
    floors: &[&["ccs", "event_device"], &["scene"], &["app_server"], &["trials"]],
    back: &[],
};

pub(super) const STAGE_FACES: Floors = Floors {
    folder: "crates/stentor-stage/src/faces/",
    module: &["faces"],
    floors: &[
        &["replay", "list_page", "served"],
        &["replaying_caller", "own_data", "asked_face"],
        &["face_caller"],
        &["subject", "trials"],
    ],
    back: &[],
};
