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
};

pub(super) const LAB: Floors = Floors {
    folder: "crates/stentor-lab/src/",
    module: &[],
    floors: &[
        &["document", "load", "order", "rates", "word"],
        &["plot", "statistics", "subject"],
        &["claims", "energy", "plan"],
        &["record"],
        &["runner"],
        &["probes"],
        &["results"],
        &["advise"],
    ],
    back: &[],
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
};

pub(super) const LAB_RUNNER: Floors = Floors {
    folder: "crates/stentor-lab/src/runner/",
    module: &["runner"],
    floors: &[
        &["environment", "gate", "interruption", "journal", "power", "roster", "samples", "watch"],
        &["testbed"],
        &["fork", "rigged"],
        &["tests"],
    ],
    back: &[],
};

pub(super) const LAB_ENERGY: Floors = Floors {
    folder: "crates/stentor-lab/src/energy/",
    module: &["energy"],
    floors: &[
        &["coefficients", "meter", "value"],
        &["phases", "phone_log", "processor", "series", "trace"],
        &["imported", "measured", "pcap", "radio"],
        &["battery"],
        &["tests"],
    ],
    back: &[],
};

pub(super) const LAB_PROBES: Floors = Floors {
    folder: "crates/stentor-lab/src/probes/",
    module: &["probes"],
    floors: &[
        &["face", "file", "interviews", "sources", "tables", "transport", "types"],
        &["contract", "security"],
        &["multicall", "shapes"],
        &["size"],
        &["list"],
        &["tests"],
    ],
    back: &[],
};

pub(super) const LAB_RESULTS: Floors = Floors {
    folder: "crates/stentor-lab/src/results/",
    module: &["results"],
    floors: &[
        &["basis", "compare", "features", "metric", "own_figure", "payload", "published", "section", "sizes"],
        &["cell", "layers", "setting"],
        &["effects", "figures", "paper"],
        &["ratios"],
        &["columns"],
        &["clocks", "interruptions", "overhead", "phases", "sheet"],
        &["evidence"],
        &["verdicts"],
        &["grounds"],
        &["campaigns"],
        &["plots", "tables"],
        &["breakdown"],
        &["page"],
        &["tests"],
    ],
    back: &[],
};
