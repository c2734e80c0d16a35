//! Walls: which crate may depend on which, and which crate owns which library.

use cargo_metadata::{Dependency, DependencyKind, Metadata, Package};

use crate::finding::TidyFinding;
use crate::workspace::Workspace;

/// Permitted dependencies of one crate of the workspace.
struct CrateWalls {
    name: &'static str,
    /// Crates that it may depend on.
    may: &'static [&'static str],
    /// Further crates that its tests may depend on.
    tests_may: &'static [&'static str],
}

/// Every crate of the workspace; a dependency that is not listed here is forbidden.
const ROOMS: &[CrateWalls] = &[
    CrateWalls { name: "stentor-core", may: &[], tests_may: &[] },
    // Two RFCs leave no room for interpretation, so that both sides of a connection share the codec.
    CrateWalls { name: "stentor-http2-codec", may: &[], tests_may: &[] },
    CrateWalls { name: "stentor-http2", may: &["stentor-http2-codec"], tests_may: &["stentor-emulators"] },
    CrateWalls { name: "stentor-storage", may: &["stentor-core"], tests_may: &[] },
    CrateWalls {
        // A message of Web Push is sealed by a format, which the gateway's devices open.
        name: "stentor-providers",
        may: &["stentor-core", "stentor-http2", "stentor-wire"],
        tests_may: &["stentor-emulators"],
    },
    // Open connections scale and fail unlike an API: this crate knows the ports of core and formats, and nothing of the programs that run
    // it.
    CrateWalls {
        name: "stentor-gateway",
        may: &["stentor-core", "stentor-wire"],
        tests_may: &["stentor-storage"],
    },
    CrateWalls {
        // The server knows ports. Its tests run over real engines, composed as in the binary.
        name: "stentor-server",
        may: &["stentor-core", "stentor-providers", "stentor-gateway", "stentor-wire"],
        tests_may: &["stentor-emulators", "stentor-node", "stentor-storage"],
    },
    // The composition: the only product crate that knows both the server and the storage.
    CrateWalls {
        name: "stentor-node",
        may: &["stentor-core", "stentor-server", "stentor-storage"],
        tests_may: &[],
    },
    // Facts about the machine belong to no side: the demo and the laboratory both use them.
    CrateWalls { name: "stentor-machine", may: &[], tests_may: &[] },
    // Both sides interpret vendors' documents independently: a mistake in shared code would go unnoticed.
    CrateWalls { name: "stentor-emulators", may: &["stentor-http2-codec"], tests_may: &[] },
    // Formats are bytes and values: the users of a format, a subject or a face of the server, bring their own sockets.
    CrateWalls { name: "stentor-wire", may: &[], tests_may: &[] },
    // Namespaces, links, control groups and clocks know nothing of the processes between them.
    CrateWalls { name: "stentor-rig", may: &[], tests_may: &[] },
    CrateWalls {
        // The laboratory measures the sender from within and all other programs as processes; its own subjects use the formats.
        name: "stentor-lab",
        may: &["stentor-http2", "stentor-machine", "stentor-wire", "stentor-rig"],
        tests_may: &["stentor-emulators"],
    },
    // The stage starts the server as a process and knows nothing of its crate. It reads the counts of the emulators' observers.
    CrateWalls { name: "stentor-stage", may: &["stentor-emulators", "stentor-machine"], tests_may: &[] },
    // Both programs print reports of the stage.
    CrateWalls { name: "stentor-terminal", may: &["stentor-machine", "stentor-stage"], tests_may: &[] },
    CrateWalls {
        // The laboratory's program runs the server within its own process if a study's subject is the server itself. It reads replies of
        // faces by the formats. A device of a study speaks MCS by the gateway's own client.
        name: "stentor-lab-cli",
        may: &[
            "stentor-emulators",
            "stentor-gateway",
            "stentor-lab",
            "stentor-machine",
            "stentor-node",
            "stentor-rig",
            "stentor-server",
            "stentor-stage",
            "stentor-terminal",
            "stentor-wire",
        ],
        tests_may: &[],
    },
    CrateWalls {
        // Its commands request the credential fields of each push service, as its adapter describes them. A machine as a device opens
        // messages with the crate that seals them.
        name: "stentor",
        may: &[
            "stentor-server",
            "stentor-node",
            "stentor-providers",
            "stentor-emulators",
            "stentor-stage",
            "stentor-terminal",
            "stentor-wire",
        ],
        // A test with a device needs a client of MCS; those of the laboratory read its records.
        tests_may: &[
            "stentor-core",
            "stentor-storage",
            "stentor-http2",
            "stentor-gateway",
            "stentor-lab",
            "stentor-rig",
        ],
    },
    // Clients of other servers judge the fronts, which send on to the emulators.
    CrateWalls {
        name: "stentor-judges",
        may: &["stentor-emulators", "stentor-node", "stentor-server"],
        tests_may: &[],
    },
    // All parsers of foreign bytes are fuzzed.
    CrateWalls {
        name: "stentor-fuzz-targets",
        may: &[],
        tests_may: &[
            "stentor-core",
            "stentor-emulators",
            "stentor-gateway",
            "stentor-http2",
            "stentor-lab",
            "stentor-node",
            "stentor-providers",
            "stentor-server",
            "stentor-storage",
            "stentor-wire",
        ],
    },
    CrateWalls { name: "xtask", may: &[], tests_may: &[] },
];

/// A library that only some crates may use.
struct Owned {
    library: &'static str,
    by: &'static [&'static str],
    /// Further crates that may use it in their tests.
    tests_of: &'static [&'static str],
    why: &'static str,
}

const OWNED: &[Owned] = &[
    Owned {
        library: "rusqlite",
        by: &["stentor-storage", "stentor-lab"],
        tests_of: &["stentor"],
        why: "SQL appears in storage only, and in the subjects that a study measures with rows",
    },
    Owned {
        library: "tokio-postgres",
        by: &["stentor-storage"],
        tests_of: &[],
        why: "SQL appears in storage only, each engine's library in its own folder",
    },
    Owned {
        library: "postgres",
        by: &[],
        tests_of: &["stentor", "stentor-storage"],
        why: "SQL appears in storage only, each engine's library in its own folder",
    },
    Owned {
        library: "async-nats",
        by: &["stentor-storage"],
        tests_of: &[],
        why: "a queue's engine is a folder of storage, whatever server it is in",
    },
    Owned {
        library: "h2",
        by: &[],
        tests_of: &["stentor-http2", "stentor-emulators"],
        why: "both sides write frames of their own, and are tested against a foreign other side",
    },
    Owned { library: "axum", by: &["stentor-server"], tests_of: &[], why: "faces live in the server" },
    Owned {
        library: "async-compression",
        by: &["stentor-server"],
        tests_of: &["stentor"],
        why: "bodies are decompressed where their decompressed size is counted",
    },
    Owned {
        library: "quick-xml",
        by: &["stentor-wire"],
        tests_of: &[],
        why: "foreign XML is read in one place, where its limits are",
    },
    Owned {
        library: "rxml",
        by: &["stentor-emulators", "stentor-gateway"],
        tests_of: &[],
        why: "XMPP is a document that never ends, which is read as it comes and with limits of its own",
    },
    Owned {
        library: "prost",
        by: &["stentor-wire"],
        tests_of: &[],
        why: "the formats of services are one room",
    },
    Owned {
        library: "etherparse",
        by: &["stentor-rig"],
        tests_of: &[],
        why: "packets are foreign bytes, and read where they are captured",
    },
    Owned {
        library: "jsonwebtoken",
        by: &["stentor-providers", "stentor-emulators", "stentor-server"],
        tests_of: &[],
        why: "provider tokens are a matter of the two sides of a push service, ID tokens one of the console's login",
    },
    Owned {
        library: "mqtt-protocol-core",
        by: &["stentor-gateway"],
        tests_of: &[],
        why: "packets of devices are read where their connections are",
    },
    Owned {
        library: "mdns-sd",
        by: &["stentor-server"],
        tests_of: &[],
        why: "announcing and finding are the two ends of one agreement",
    },
    Owned {
        library: "clap",
        by: &["stentor", "stentor-lab-cli", "stentor-terminal", "xtask"],
        tests_of: &[],
        why: "the command line belongs to the binaries: a library takes options as plain values",
    },
    Owned {
        library: "anyhow",
        // An error of the stage is for a person: a chain of sentences that a command prints.
        by: &["stentor", "stentor-lab-cli", "stentor-stage", "stentor-terminal", "stentor-judges", "xtask"],
        tests_of: &["stentor-server", "stentor-storage", "stentor-providers", "stentor-emulators"],
        why: "a library names its errors",
    },
];

/// The small, pure libraries that core may use: no IO, no runtime, no engine.
const CORE_MAY_USE: &[&str] = &[
    "async-trait",
    "base64",
    "bytes",
    "croner",
    "ipnet",
    "jiff",
    "parking_lot",
    "proptest",
    "serde",
    "serde_json",
    "thiserror",
    "uuid",
];

/// Libraries that no build may contain.
const BANNED: &[(&str, &str)] = &[
    ("ring", "two crypto providers in one process meet in a panic: aws-lc-rs is ours"),
    ("openssl-sys", "it ties the static binary to a system library: rustls is ours"),
    ("native-tls", "it brings the system's TLS: rustls is ours"),
];

/// One dependency of a workspace member.
#[derive(Debug, Clone)]
pub(crate) struct Edge {
    /// The member that depends.
    pub(crate) from: String,
    /// The package depended on.
    pub(crate) to: String,
    /// True for a dependency of tests only.
    pub(crate) tests_only: bool,
    /// The manifest with the dependency, and its line there.
    pub(crate) place: (String, usize),
}

/// Reports forbidden edges and banned libraries of the whole workspace.
pub(crate) fn check(workspace: &Workspace) -> anyhow::Result<Vec<TidyFinding>> {
    let edges = edges(workspace)?;
    let mut findings: Vec<TidyFinding> = edges.iter().filter_map(forbidden_edge).collect();
    findings.extend(unknown_rooms(&workspace.metadata));
    let built = workspace.built_packages()?;
    findings.extend(banned(|library| built.contains(library)));
    Ok(findings)
}

/// Judges one edge.
pub(crate) fn forbidden_edge(edge: &Edge) -> Option<TidyFinding> {
    let sentence = if ROOMS.iter().any(|room| room.name == edge.to) {
        forbidden_room(edge)
    } else {
        foreign_to_core(edge).or_else(|| owned_elsewhere(edge))
    };
    sentence.map(|sentence| TidyFinding::new(&edge.place.0, edge.place.1, sentence))
}

/// Reports every banned library that the build contains.
pub(crate) fn banned(is_built: impl Fn(&str) -> bool) -> Vec<TidyFinding> {
    let built = BANNED.iter().filter(|(library, _)| is_built(library));
    built
        .map(|(library, why)| {
            let sentence = format!(
                "{library} is compiled in ({why}): find its dependent with `cargo tree -i {library}` and switch that feature off"
            );
            TidyFinding::new("Cargo.lock", 1, sentence)
        })
        .collect()
}

fn forbidden_room(edge: &Edge) -> Option<String> {
    let room = ROOMS.iter().find(|room| room.name == edge.from)?;
    let to = edge.to.as_str();
    let allowed =
        to == edge.from || room.may.contains(&to) || (edge.tests_only && room.tests_may.contains(&to));
    let kind = if edge.tests_only { "may not use it even in tests" } else { "may not depend on it" };
    (!allowed).then(|| {
        format!(
            "{} leans on {to} but {kind}: move the shared thing down, or pass it in from outside",
            edge.from
        )
    })
}

fn foreign_to_core(edge: &Edge) -> Option<String> {
    let foreign = edge.from == "stentor-core" && !CORE_MAY_USE.contains(&edge.to.as_str());
    foreign.then(|| {
        format!(
            "core may use small pure libraries only, not {}: keep it behind a port in another room",
            edge.to
        )
    })
}

fn owned_elsewhere(edge: &Edge) -> Option<String> {
    let owned = OWNED.iter().find(|owned| owned.library == edge.to)?;
    let from = edge.from.as_str();
    let allowed = owned.by.contains(&from) || (edge.tests_only && owned.tests_of.contains(&from));
    (!allowed).then(|| {
        format!(
            "{} belongs to {} ({}): {from} must call that crate",
            owned.library,
            owned.by.join(" and "),
            owned.why
        )
    })
}

fn unknown_rooms(metadata: &Metadata) -> Vec<TidyFinding> {
    let members = metadata.workspace_packages();
    let unknown =
        members.iter().filter(|package| ROOMS.iter().all(|room| room.name != package.name.as_str()));
    unknown
        .map(|package| {
            let sentence =
                format!("{} has no line in the table of rooms: add it to tidy/walls.rs", package.name);
            TidyFinding::new("Cargo.toml", 1, sentence)
        })
        .collect()
}

fn edges(workspace: &Workspace) -> anyhow::Result<Vec<Edge>> {
    let mut edges = Vec::new();
    for package in workspace.metadata.workspace_packages() {
        let manifest = std::fs::read_to_string(&package.manifest_path)?;
        let path = workspace.relative(package.manifest_path.as_std_path());
        edges.extend(
            package.dependencies.iter().map(|dependency| edge(package, dependency, &manifest, &path)),
        );
    }
    Ok(edges)
}

fn edge(package: &Package, dependency: &Dependency, manifest: &str, path: &str) -> Edge {
    let named = |line: &str| {
        line.strip_prefix(dependency.name.as_str()).is_some_and(|rest| rest.starts_with(['.', ' ', '=']))
    };
    let line = manifest.lines().position(named).map_or(1, |index| index + 1);
    Edge {
        from: package.name.to_string(),
        to: dependency.name.clone(),
        tests_only: dependency.kind == DependencyKind::Development,
        place: (path.to_owned(), line),
    }
}
