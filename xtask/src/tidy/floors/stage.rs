//! The floors of the stage, the demo and the benches.

use super::Floors;

pub(super) const STAGE: Floors = Floors {
    folder: "crates/stentor-stage/src/",
    module: &[],
    floors: &[
        &["ccs_client", "failure", "files", "orders", "text", "reporter", "devices", "scaling"],
        &["emulated", "client", "child_process", "keys", "policy", "limits", "mqtt_packets", "postgres"],
        &["nats"],
        &["engines"],
        &["ledger", "emulator", "import", "mqtt_devices", "device_load"],
        &["server", "troubles", "faces"],
        &["nodes"],
        &["stage"],
        &["demo"],
        &["kill", "bench", "features", "cluster"],
        &["push_subject"],
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

pub(super) const STAGE_CLUSTER: Floors = Floors {
    folder: "crates/stentor-stage/src/cluster/",
    module: &["cluster"],
    floors: &[
        &["network", "writing", "fault", "roles", "faults_state"],
        &["caller", "database", "queue_servers", "watch"],
        &["batches", "database_pair", "gateway_devices", "promises"],
        &["controlled", "traffic"],
        &["beside", "report", "site"],
        &["injection"],
    ],
    back: &[],
};

pub(super) const STAGE_CLUSTER_DEVICES: Floors = Floors {
    folder: "crates/stentor-stage/src/cluster/gateway_devices/",
    module: &["cluster", "gateway_devices"],
    floors: &[&["records", "messages"], &["device", "minutes", "reader"], &["findings"]],
    back: &[],
};

pub(super) const STAGE_BENCH: Floors = Floors {
    folder: "crates/stentor-stage/src/bench/",
    module: &["bench"],
    floors: &[
        &["singles", "campaigns", "sink", "store_ratio"],
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
    floors: &[&["event_device"], &["scene"], &["app_server"], &["trials"], &["connection_servers"]],
    back: &[],
};

pub(super) const STAGE_PUSH_SUBJECT: Floors = Floors {
    folder: "crates/stentor-stage/src/push_subject/",
    module: &["push_subject"],
    floors: &[&["gateway_api", "provider_delay"], &["gateway_half", "app_server_half", "device_half"]],
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

pub(super) const STAGE_SCALING: Floors = Floors {
    folder: "crates/stentor-stage/src/scaling/",
    module: &["scaling"],
    floors: &[&["measured", "station"], &["simulation"]],
    back: &[],
};
