//! The floors of the laboratory's program.

use super::Floors;

pub(super) const PROGRAM: Floors = Floors {
    folder: "crates/stentor-lab-cli/src/",
    module: &[],
    floors: &[
        &["caller", "device_load", "orders", "scaling"],
        &["faces"],
        &["bench", "features", "cluster"],
        &["push_subject"],
        &["commands"],
    ],
    back: &[],
    parent: &[],
};

pub(super) const PROGRAM_CLUSTER: Floors = Floors {
    folder: "crates/stentor-lab-cli/src/cluster/",
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
    parent: &[("ClusterAbilities", "the options of a run"), ("ClusterOptions", "the options of a run")],
};

pub(super) const PROGRAM_CLUSTER_DEVICES: Floors = Floors {
    folder: "crates/stentor-lab-cli/src/cluster/gateway_devices/",
    module: &["cluster", "gateway_devices"],
    floors: &[&["records", "messages"], &["device", "minutes", "reader"], &["findings"]],
    back: &[],
    parent: &[],
};

/// The benches, each with a file for its work and one for its command.
const BENCHES: &[&str] = &[
    "accept",
    "cold",
    "console",
    "faces",
    "fair",
    "gateway",
    "http2",
    "import",
    "limits",
    "live_activities",
    "pipeline",
    "trouble",
    "urgent",
    "web_push",
];

pub(super) const PROGRAM_BENCH: Floors = Floors {
    folder: "crates/stentor-lab-cli/src/bench/",
    module: &["bench"],
    floors: &[
        &["singles", "campaigns", "sink", "store_ratio"],
        &["sink_log", "steady"],
        &["killed_singles", "sustained", "single_rivals"],
        BENCHES,
    ],
    back: &[],
    parent: &[],
};

pub(super) const PROGRAM_BENCH_FACES: Floors = Floors {
    folder: "crates/stentor-lab-cli/src/bench/faces/",
    module: &["bench", "faces"],
    floors: &[&["measured"], &["rivals"], &["report"]],
    back: &[],
    parent: &[
        ("FacePair", "the rows of a report"),
        ("FacesOptions", "the options of a run"),
        ("OPERATION", "the operation that all faces carry"),
        ("show", "one form of a figure"),
    ],
};

pub(super) const PROGRAM_FEATURES: Floors = Floors {
    folder: "crates/stentor-lab-cli/src/features/",
    module: &["features"],
    floors: &[&["event_device"], &["scene"], &["app_server"], &["trials"], &["connection_servers"]],
    back: &[],
    parent: &[("PushServiceFront", "the front that a trial asks"), ("TrialOutcome", "the result of a trial")],
};

pub(super) const PROGRAM_PUSH_SUBJECT: Floors = Floors {
    folder: "crates/stentor-lab-cli/src/push_subject/",
    module: &["push_subject"],
    floors: &[&["gateway_api", "provider_delay"], &["gateway_half", "app_server_half", "device_half"]],
    back: &[],
    parent: &[],
};

pub(super) const PROGRAM_FACES: Floors = Floors {
    folder: "crates/stentor-lab-cli/src/faces/",
    module: &["faces"],
    floors: &[
        &["replay", "list_page", "served"],
        &["replaying_caller", "own_data", "asked_face"],
        &["face_caller"],
        &["subject", "trials"],
    ],
    back: &[],
    parent: &[],
};

pub(super) const PROGRAM_SCALING: Floors = Floors {
    folder: "crates/stentor-lab-cli/src/scaling/",
    module: &["scaling"],
    floors: &[&["measured", "station"], &["simulation"]],
    back: &[],
    parent: &[
        ("ScalingCosts", "the figures that a simulation starts from"),
        ("ScalingResult", "the figures that a simulation ends with"),
        ("ScalingShape", "the figures that a simulation starts from"),
    ],
};

/// The run of a study is on the top floor: it uses the probes and the reports.
pub(super) const PROGRAM_COMMANDS: Floors = Floors {
    folder: "crates/stentor-lab-cli/src/commands/",
    module: &["commands"],
    floors: &[
        &["rig"],
        &[
            "bench",
            "clock",
            "cluster",
            "doctor",
            "energy",
            "features",
            "link",
            "list",
            "load",
            "mqtt_devices",
            "report",
            "scale",
            "selftest",
            "subject",
        ],
        &["advise", "artifact", "claims", "compare", "measure", "probe"],
        &["run"],
    ],
    back: &[],
    parent: &[],
};

pub(super) const PROGRAM_COMMANDS_ENERGY: Floors = Floors {
    folder: "crates/stentor-lab-cli/src/commands/energy/",
    module: &["commands", "energy"],
    floors: &[&["port", "traffic"], &["battery", "import", "measure", "model", "record"], &["phases"]],
    back: &[],
    parent: &[
        ("caveats", "one form of output for all commands"),
        ("facts", "one form of output for all commands"),
        ("short", "one form of output for all commands"),
        ("values", "one form of output for all commands"),
    ],
};

pub(super) const PROGRAM_COMMANDS_LINK: Floors = Floors {
    folder: "crates/stentor-lab-cli/src/commands/link/",
    module: &["commands", "link"],
    floors: &[&["server_side"], &["run", "selftest", "show"]],
    back: &[],
    parent: &[],
};

pub(super) const PROGRAM_COMMANDS_BENCH: Floors = Floors {
    folder: "crates/stentor-lab-cli/src/commands/bench/",
    module: &["commands", "bench"],
    floors: &[&["shared_engines"], BENCHES],
    back: &[],
    parent: &[("exit", "one exit code for all benches")],
};

pub(super) const PROGRAM_COMMANDS_RUN: Floors = Floors {
    folder: "crates/stentor-lab-cli/src/commands/run/",
    module: &["commands", "run"],
    floors: &[
        &["lateness", "policy", "settings", "site"],
        &["background", "known", "proof", "records"],
        &["watch"],
        &["services", "trial"],
        &["campaigns"],
    ],
    back: &[],
    parent: &[
        ("COMMIT", "the commit that a record names"),
        ("RunArgs", "options that all studies have"),
        ("refused", "one sentence for all that is refused"),
    ],
};
