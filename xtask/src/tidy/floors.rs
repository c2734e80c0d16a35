//! Floors: inside a crate, a module may use those below it, and nothing runs back up without a reason.

use syn::visit::{self, Visit};
use syn::{ItemUse, UseTree};

use crate::finding::TidyFinding;
use crate::rust_file::RustFile;

/// The modules of one folder, the lowest floor first. Modules of one floor do not use each other.
pub(crate) struct Floors {
    /// The folder, relative to the workspace root, with a slash at its end.
    pub(crate) folder: &'static str,
    /// The path of its modules inside the crate.
    pub(crate) module: &'static [&'static str],
    /// The modules, floor by floor.
    pub(crate) floors: &'static [&'static [&'static str]],
    /// Uses that run back up, or along a floor: from, to, and why.
    pub(crate) back: &'static [(&'static str, &'static str, &'static str)],
}

/// Every crate whose floors are held.
const HOUSES: &[Floors] = &[
    SERVER,
    PIPELINE,
    HTTP2,
    HTTP2_CONNECTION,
    HTTP2_HPACK,
    WIRE,
    PROVIDERS,
    EMULATORS,
    STAGE,
    STAGE_DEMO,
    STAGE_BENCH,
    SQLITE_STORE,
    LAB,
    LAB_SUBJECT,
    LAB_RUNNER,
    LAB_ENERGY,
    LAB_PROBES,
    LAB_RESULTS,
    RIG,
    BINARY,
    BINARY_COMMANDS,
    BINARY_EMULATE,
    BINARY_LAB,
    BINARY_LAB_ENERGY,
    BINARY_LAB_LINK,
    BINARY_LAB_BENCH,
    BINARY_LAB_RUN,
];

const SERVER: Floors = Floors {
    folder: "crates/stentor-server/src/",
    module: &[],
    floors: &[
        &["private", "clock", "preface_timeout", "words", "shares"],
        &["contract"],
        &["keys", "decode", "listen"],
        &["pipeline"],
        &["providers", "config"],
        &["service"],
        &["node"],
        &["status"],
        &["metrics"],
        &["face"],
        &["front"],
        &["app"],
    ],
    back: &[],
};

const PIPELINE: Floors = Floors {
    folder: "crates/stentor-server/src/pipeline/",
    module: &["pipeline"],
    floors: &[
        &[
            "settle",
            "calendar",
            "config",
            "due_index",
            "leap",
            "lease_table",
            "store_latency",
            "supervisor",
            "window",
        ],
        &["load"],
        &["budget"],
        &["stats", "settler_inbox"],
        &["provider_table"],
        &["admission"],
        &["backlog"],
        &["shared"],
        &["attempt", "producer", "republishing", "scheduler", "starter", "store_retry"],
        &["clock_step", "consumer", "settler"],
        &["consumer_pool", "janitor"],
        &["dispatcher"],
    ],
    back: &[],
};

const HTTP2: Floors = Floors {
    folder: "crates/stentor-http2/src/",
    module: &[],
    floors: &[
        &["addresses", "buffer_pool", "gather", "latency", "limits", "line", "response", "stats", "waits"],
        &["congestion", "endpoint", "fault", "transport"],
        &["batch", "tls"],
        &["dial", "work"],
        &["pool"],
        &["connection", "sending"],
        &["fuzzing", "opening"],
        &["client"],
    ],
    back: &[],
};

/// Inside a connection: the protocol without IO, and the clock of the loop that runs it.
const HTTP2_CONNECTION: Floors = Floors {
    folder: "crates/stentor-http2/src/connection/",
    module: &["connection"],
    floors: &[&["phase", "pulse", "streams", "violation"], &["peer"], &["blocked"], &["mux"], &["clock"]],
    back: &[],
};

const HTTP2_HPACK: Floors = Floors {
    folder: "crates/stentor-http2-codec/src/hpack/",
    module: &["hpack"],
    floors: &[
        &["field", "malformed"],
        &["huffman", "integer", "table"],
        &["stateless"],
        &["decoder", "encoder"],
        &["tests"],
    ],
    back: &[],
};

const WIRE: Floors = Floors {
    folder: "crates/stentor-wire/src/",
    module: &[],
    floors: &[
        &["error", "value"],
        &["limits"],
        &["frame", "xml"],
        &["content", "wsdl", "xmlrpc"],
        &["json", "protobuf", "soap"],
        &["tests"],
    ],
    back: &[],
};

/// What all adapters share is below them; FCM hands on what is Apple's in APNs' own words.
const PROVIDERS: Floors = Floors {
    folder: "crates/stentor-providers/src/",
    module: &[],
    floors: &[
        &["credential", "json", "outbound", "retry_after", "schema", "subset"],
        &["descriptor", "replies"],
        &["apns", "null"],
        &["fcm"],
        &["registry"],
    ],
    back: &[],
};

const EMULATORS: Floors = Floors {
    folder: "crates/stentor-emulators/src/",
    module: &[],
    floors: &[
        &["dice", "error", "frames", "json", "prefetch"],
        &["observer", "tls"],
        &["device", "listener", "policy"],
        &["faults"],
        &["service"],
        &["control"],
        &["config"],
        &["apns", "fcm", "sink"],
        &["fuzzing"],
    ],
    back: &[],
};

const STAGE: Floors = Floors {
    folder: "crates/stentor-stage/src/",
    module: &[],
    floors: &[
        &["failure", "files", "text", "reporter", "devices"],
        &["emulated", "client", "child_process", "keys", "policy", "limits"],
        &["ledger", "emulator", "import"],
        &["server", "troubles"],
        &["stage"],
        &["demo"],
        &["kill", "bench"],
    ],
    back: &[],
};

const STAGE_DEMO: Floors = Floors {
    folder: "crates/stentor-stage/src/demo/",
    module: &["demo"],
    floors: &[&["kills", "histories"], &["options", "comparison"], &["campaign", "proof"], &["report"]],
    back: &[],
};

const STAGE_BENCH: Floors = Floors {
    folder: "crates/stentor-stage/src/bench/",
    module: &["bench"],
    floors: &[
        &["singles", "campaigns", "sink"],
        &["sink_log"],
        &["accept", "cold", "fair", "http2", "import", "pipeline", "trouble", "urgent"],
    ],
    back: &[],
};

const SQLITE_STORE: Floors = Floors {
    folder: "crates/stentor-storage/src/sqlite/store/",
    module: &["sqlite", "store"],
    floors: &[
        &["books", "codes", "lost", "message_rows", "owners", "pace", "sequences", "tags", "vault"],
        &["app_providers", "campaigns", "turns"],
        &["chunks", "maintenance", "prefetch", "producers", "stretch"],
        &["collapse", "history", "leftovers"],
        &["members", "tokens", "topics"],
        &["registrar", "removal"],
        &["apps", "condition", "contents", "groups", "register", "unlisted", "users"],
        &["devices", "targets"],
        &["audience", "rows"],
        &["expand", "lease", "start"],
        &["accept", "pipeline"],
        &["messages", "schedules"],
        &["audit"],
    ],
    back: &[
        ("leftovers", "tokens", "hashes that are to be made again are worked off like all that is left over"),
        ("tokens", "removal", "of two devices with one token that are found meanwhile, one is removed"),
        ("registrar", "register", "the batch, and the rows that it becomes"),
    ],
};

const BINARY: Floors = Floors {
    folder: "crates/stentor/src/",
    module: &[],
    floors: &[
        &["copying", "failure", "logging"],
        &["output"],
        &["connection", "ledger", "process", "progress"],
        &["commands"],
    ],
    back: &[],
};

const BINARY_COMMANDS: Floors = Floors {
    folder: "crates/stentor/src/commands/",
    module: &["commands"],
    floors: &[
        &["campaign", "config", "credential", "demo"],
        &[
            "app",
            "audit",
            "completions",
            "contract",
            "device",
            "doctor",
            "emulate",
            "lab",
            "message",
            "reference",
        ],
        &["schedule", "secret", "serve", "topic"],
        &["tests"],
    ],
    back: &[],
};

const BINARY_EMULATE: Floors = Floors {
    folder: "crates/stentor/src/commands/emulate/",
    module: &["commands", "emulate"],
    floors: &[&["options"], &["sink"]],
    back: &[],
};

/// A study's run stands highest: it probes what it measures and reports what it found.
const BINARY_LAB: Floors = Floors {
    folder: "crates/stentor/src/commands/lab/",
    module: &["commands", "lab"],
    floors: &[
        &["rig"],
        &["bench", "clock", "doctor", "energy", "kill", "link", "list", "load", "report", "subject"],
        &["advise", "claims", "compare", "probe"],
        &["run"],
    ],
    back: &[],
};

const BINARY_LAB_ENERGY: Floors = Floors {
    folder: "crates/stentor/src/commands/lab/energy/",
    module: &["commands", "lab", "energy"],
    floors: &[&["port", "traffic"], &["battery", "import", "measure", "model", "record"], &["phases"]],
    back: &[],
};

const BINARY_LAB_LINK: Floors = Floors {
    folder: "crates/stentor/src/commands/lab/link/",
    module: &["commands", "lab", "link"],
    floors: &[&["run", "selftest", "show"]],
    back: &[],
};

const BINARY_LAB_BENCH: Floors = Floors {
    folder: "crates/stentor/src/commands/lab/bench/",
    module: &["commands", "lab", "bench"],
    floors: &[&["accept", "cold", "fair", "http2", "import", "pipeline", "trouble", "urgent"]],
    back: &[],
};

const BINARY_LAB_RUN: Floors = Floors {
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

const RIG: Floors = Floors {
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

const LAB: Floors = Floors {
    folder: "crates/stentor-lab/src/",
    module: &[],
    floors: &[
        &["caller", "document", "emulation", "facts", "load", "order", "rates"],
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

const LAB_SUBJECT: Floors = Floors {
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

const LAB_RUNNER: Floors = Floors {
    folder: "crates/stentor-lab/src/runner/",
    module: &["runner"],
    floors: &[
        &[
            "environment",
            "gate",
            "greeting",
            "interruption",
            "journal",
            "power",
            "roster",
            "samples",
            "watch",
        ],
        &["testbed"],
        &["fork", "rigged"],
        &["tests"],
    ],
    back: &[],
};

const LAB_ENERGY: Floors = Floors {
    folder: "crates/stentor-lab/src/energy/",
    module: &["energy"],
    floors: &[
        &["coefficients", "meter", "value"],
        &["phases", "phone_log", "processor", "series", "trace"],
        &["imported", "measured", "pcap", "radio"],
        &["battery", "observed"],
        &["tests"],
    ],
    back: &[],
};

const LAB_PROBES: Floors = Floors {
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

const LAB_RESULTS: Floors = Floors {
    folder: "crates/stentor-lab/src/results/",
    module: &["results"],
    floors: &[
        &[
            "basis",
            "compare",
            "features",
            "interruptions",
            "metric",
            "own_figure",
            "payload",
            "published",
            "section",
            "sizes",
        ],
        &["cell", "layers", "setting"],
        &["effects", "figures", "paper"],
        &["ratios"],
        &["overhead", "phases", "sheet"],
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

/// Reports every use that runs back up in one file.
pub(crate) fn check(file: &RustFile) -> Vec<TidyFinding> {
    HOUSES.iter().flat_map(|house| check_with(file, house)).collect()
}

/// Reports every use that runs back up in one file, by given floors.
pub(crate) fn check_with(file: &RustFile, house: &Floors) -> Vec<TidyFinding> {
    let Some(rest) = file.path.strip_prefix(house.folder) else { return Vec::new() };
    let mut own: Vec<String> = rest.trim_end_matches(".rs").split('/').map(str::to_owned).collect();
    if own.len() == 1 && matches!(own[0].as_str(), "lib" | "main" | "mod") {
        return Vec::new();
    }
    let from = own[0].clone();
    let Some(floor) = house.floor(&from) else {
        let sentence = format!("`{from}` stands on no floor: add it to xtask/src/tidy/floors.rs");
        return vec![TidyFinding::new(&file.path, 1, sentence)];
    };
    if own.last().is_some_and(|last| last == "mod") {
        own.pop();
    }
    let module = house.module.iter().map(|part| (*part).to_owned()).chain(own).collect();
    let mut uses = Uses { module, found: Vec::new() };
    uses.visit_file(&file.ast);
    let outside_tests = uses.found.iter().filter(|(_, line)| !file.is_test_line(*line));
    let wrong = outside_tests.filter_map(|(path, line)| {
        let to = path.strip_prefix(house.module_path().as_slice())?.first()?;
        let goes_up = *to != from && house.floor(to)? >= floor;
        let is_named = house.back.iter().any(|(a, b, _)| (*a, *b) == (from.as_str(), to.as_str()));
        (goes_up && !is_named).then(|| {
            let sentence = format!("`{from}` uses `{to}`, which is not below it: move what both need down");
            TidyFinding::new(&file.path, *line, sentence)
        })
    });
    wrong.collect()
}

impl Floors {
    fn floor(&self, module: &str) -> Option<usize> {
        self.floors.iter().position(|floor| floor.contains(&module))
    }

    fn module_path(&self) -> Vec<String> {
        self.module.iter().map(|part| (*part).to_owned()).collect()
    }
}

/// The paths that a file names, from the crate's root, with their lines.
struct Uses {
    /// The module that the file is.
    module: Vec<String>,
    found: Vec<(Vec<String>, usize)>,
}

impl Uses {
    fn note(&mut self, parts: &[String], line: usize) {
        let mut base = match parts.first().map(String::as_str) {
            Some("crate") => Vec::new(),
            Some("super" | "self") => self.module.clone(),
            _ => return,
        };
        let mut rest = parts.iter().skip_while(|part| matches!(part.as_str(), "crate" | "self")).peekable();
        while rest.next_if(|part| *part == "super").is_some() {
            base.pop();
        }
        base.extend(rest.cloned());
        self.found.push((base, line));
    }

    fn note_tree(&mut self, tree: &UseTree, before: &[String], line: usize) {
        let with = |name: &syn::Ident| [before, &[name.to_string()]].concat();
        match tree {
            UseTree::Path(path) => self.note_tree(&path.tree, &with(&path.ident), line),
            UseTree::Group(group) => group.items.iter().for_each(|item| self.note_tree(item, before, line)),
            UseTree::Name(name) => self.note(&with(&name.ident), line),
            UseTree::Rename(name) => self.note(&with(&name.ident), line),
            UseTree::Glob(_) => self.note(before, line),
        }
    }
}

impl<'ast> Visit<'ast> for Uses {
    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        self.note_tree(&item.tree, &[], item.use_token.span.start().line);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let parts: Vec<_> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        let line = path.segments.first().map_or(0, |segment| segment.ident.span().start().line);
        self.note(&parts, line);
        visit::visit_path(self, path);
    }
}
