//! The floors of the laboratory and of its rig.

use super::Floors;

pub(super) const RIG: Floors = Floors {
    folder: "crates/stentor-rig/src/",
    module: &[],
    floors: &[
        &["check", "kernel", "lateness", "level", "link", "monotonic", "netlink", "side", "usage", "wakeful"],
        &["cgroup", "namespace", "packet", "priority"],
        &["anatomy"],
        &["capture"],
        &["engine"],
        &["rig"],
        &["probe"],
        &["clock", "forward"],
        &["selftest"],
    ],
    back: &[],
    parent: &[],
};

pub(super) const LAB: Floors = Floors {
    folder: "crates/stentor-lab/src/",
    module: &[],
    floors: &[
        &["document", "load", "looks", "order", "rates", "word"],
        &["plot", "statistics", "subject"],
        &["claims", "energy", "plan"],
        &["record"],
        &["runner"],
        &["probes"],
        &["results"],
        &["advise", "artifact", "comparison", "power"],
    ],
    back: &[],
    parent: &[],
};

pub(super) const LAB_SUBJECT: Floors = Floors {
    folder: "crates/stentor-lab/src/subject/",
    module: &["subject"],
    floors: &[
        &["clock", "needs", "reference", "sample", "store"],
        &["catalogue", "dialect", "grpc", "protocol", "setup"],
        &["certificate", "client", "process", "server"],
        &["check", "speaker"],
        &["tests"],
    ],
    back: &[],
    parent: &[
        ("SubjectError", "the error of all that is done with a subject"),
        ("Definition", "the file that defines a subject, which all of it reads"),
        ("ABILITIES", "names of the contract with a subject"),
        ("BUFFERING", "names of the contract with a subject"),
        ("BUILT_IN", "names of the contract with a subject"),
        ("FRESH", "names of the contract with a subject"),
        ("INSERT", "names of the contract with a subject"),
        ("SERVICE", "names of the contract with a subject"),
        ("STORE", "names of the contract with a subject"),
        ("TLS", "names of the contract with a subject"),
        ("TLS_CLIENT", "names of the contract with a subject"),
        ("TLS_SERVER", "names of the contract with a subject"),
    ],
};

pub(super) const LAB_RUNNER: Floors = Floors {
    folder: "crates/stentor-lab/src/runner/",
    module: &["runner"],
    floors: &[
        &["keeper", "pages"],
        &["environment", "gate", "interruption", "journal", "power", "roster", "seed", "watch"],
        &["testbed"],
        &["samples"],
        &["fork", "rigged"],
        &["tests"],
    ],
    back: &[],
    parent: &[
        ("AttemptResult", "the record of an attempt, which a journal keeps"),
        ("RunError", "the error of all that a run does"),
        ("Settings", "the settings of a run"),
        ("quantiles", "one way to sum times up"),
    ],
};

pub(super) const LAB_ENERGY: Floors = Floors {
    folder: "crates/stentor-lab/src/energy/",
    module: &["energy"],
    floors: &[
        &["coefficients", "meter", "value"],
        &["phases", "phone_log", "processor", "series", "trace"],
        &["exchanges", "imported", "measured", "pcap", "radio"],
        &["battery"],
        &["tests"],
    ],
    back: &[],
    parent: &[
        ("EnergyError", "the error of all that reads measurements"),
        ("SECOND_NS", "one unit of time"),
        ("nanoseconds", "one unit of time"),
        ("seconds", "one unit of time"),
    ],
};

pub(super) const LAB_PROBES: Floors = Floors {
    folder: "crates/stentor-lab/src/probes/",
    module: &["probes"],
    floors: &[
        &["face", "file", "interviews", "sources", "tables", "transport", "types"],
        &["contract", "security", "tried"],
        &["multicall", "shapes"],
        &["size"],
        &["list"],
        &["tests"],
    ],
    back: &[],
    parent: &[
        ("PaperProtocol", "the terms of a probe, which each face answers in its own form"),
        ("ProbeAnswer", "the terms of a probe, which each face answers in its own form"),
        ("ProbeContext", "the terms of a probe, which each face answers in its own form"),
        ("ProbeKind", "the terms of a probe, which each face answers in its own form"),
        ("ProbeReply", "the terms of a probe, which each face answers in its own form"),
        ("ProbeResult", "the terms of a probe, which each face answers in its own form"),
        ("ProbeWord", "the terms of a probe, which each face answers in its own form"),
        ("STUDY", "the terms of a probe, which each face answers in its own form"),
    ],
};

pub(super) const LAB_RESULTS: Floors = Floors {
    folder: "crates/stentor-lab/src/results/",
    module: &["results"],
    floors: &[
        &["features", "metric", "published", "section"],
        &["cell", "interviews", "layers"],
        &["basis", "compare", "figures", "own_figure", "payload", "setting", "sizes"],
        &["effects", "paper"],
        &["ratios"],
        &["columns"],
        &["batteries", "clocks", "instrument", "interruptions", "overhead", "phases", "runs", "sheet"],
        &["connection_servers", "delays"],
        &["evidence"],
        &["verdicts"],
        &["grounds"],
        &["campaigns"],
        &["plots", "tables"],
        &["breakdown", "judged_claims"],
        &["page"],
        &["tests"],
    ],
    back: &[("campaigns", "plots", "a plot is drawn from the cells of campaigns, among others")],
    parent: &[
        ("Account", "the data of a study, which each of its tables reads"),
        ("CONFIDENCE", "one level for all intervals"),
        ("RatioRow", "the data of a study, which each of its tables reads"),
        ("Results", "the data of a study, which each of its tables reads"),
        ("ResultsError", "the error of all that reads results"),
        ("joined", "one form of a list in a sentence"),
    ],
};
