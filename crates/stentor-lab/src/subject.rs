//! Subjects: client and server halves as separate processes, in any language, driven by LSP-1.
//!
//! LSP-1, the lab subject protocol: orders on standard input, reports on standard output, one JSON object per line (see [`protocol`]);
//! samples in a file, 64 bytes each (see [`sample`]). The correct response of every operation is known in advance ([`mod@reference`]), so
//! that a subject with wrong responses is refused and never timed ([`check`]).

pub mod catalogue;
pub(crate) mod certificate;
pub mod check;
pub mod client;
pub mod clock;
pub mod dialect;
mod grpc;
pub mod needs;
pub mod process;
pub mod protocol;
pub mod reference;
pub mod sample;
pub mod server;
pub mod setup;
pub mod speaker;
pub mod store;

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The part of a built-in subject's id after its dialect.
pub const BUILT_IN: &str = "stentor/rust";

/// Push services as subjects, by the prefixes of their ids.
pub const PUSH_SERVICES: [&str; 2] = ["gcm", "fcm"];

/// Suffix of the ids of subjects with the project's own server.
pub const SERVED: &str = "server/stentor";
/// The stack name of these subjects in a slot.
pub(crate) const SERVED_STACK: &str = "stentor";

/// Ability of a client: it inserts rows.
pub(crate) const INSERT: &str = "insert";
/// Ability of a server: it reads rows.
pub(crate) const STORE: &str = "store";
/// Ability: all halves of the subject encrypt.
pub(crate) const TLS: &str = "tls";
/// Ability: only the client encrypts.
pub(crate) const TLS_CLIENT: &str = "tls-client";
/// Ability: only the server encrypts.
pub(crate) const TLS_SERVER: &str = "tls-server";
/// Ability of a client: it opens a connection for each exchange.
pub(crate) const FRESH: &str = "fresh";
/// Ability of halves that stream: they can also write a whole message before they send it, and receive one before they read it.
pub(crate) const BUFFERING: &str = "buffering";
/// Ability of a server: it sorts the numbers of each request as often as a cell requires.
pub(crate) const SERVICE: &str = "service";
/// Abilities that a definition can state, each with the factor that requires it.
pub(crate) const ABILITIES: [(&str, &str); 8] = [
    (INSERT, "insert"),
    (STORE, "store"),
    (TLS, "tls"),
    (TLS_CLIENT, "tls"),
    (TLS_SERVER, "tls"),
    (FRESH, "connection"),
    (BUFFERING, BUFFERING),
    (SERVICE, SERVICE),
];

/// Placeholder for the heap limit in the command that starts a subject.
const HEAP: &str = "@heap";
/// The garbage collector of a limited heap. With any other, the usable heap depends on how a machine divides it into regions.
const SERIAL: &str = "-XX:+UseSerialGC";
/// The name under which a half's garbage collector is recorded beside its versions.
pub(crate) const COLLECTOR: &str = "collector";
/// Settings of a client on a Java machine, each with its level and the option that follows from it: strings of two bytes a letter, as Dalvik
/// has them, and no compiler beside the interpreter.
const JAVA_OPTIONS: [(&str, &str, &str); 2] =
    [("java_strings", "UTF-16", "-XX:-CompactStrings"), (JAVA_CODE, "interpreted", "-Xint")];
/// The setting that selects how a Java machine executes code.
pub(crate) const JAVA_CODE: &str = "java_code";
/// The setting that limits the heap of both sides. Subjects without a Java heap ignore it.
pub(crate) const JAVA_HEAP: &str = "java_heap";

/// Errors of a subject.
#[derive(Debug, thiserror::Error)]
pub enum SubjectError {
    /// The definition is invalid TOML.
    #[error("the definition of the subject cannot be read (docs/lab/your-own-service.md has one): {0}")]
    Definition(#[from] toml::de::Error),
    /// The dialect is unknown.
    #[error("{0:?} is no dialect: they are {known}", known = dialect::names())]
    Dialect(String),
    /// A file is not a valid definition.
    #[error("{path}: {source}")]
    Unreadable {
        /// The file.
        path: String,
        /// The cause.
        source: Box<SubjectError>,
    },
    /// The subject could not be built.
    #[error("{command:?} in {directory} {what}")]
    Build {
        /// The command.
        command: String,
        /// The working directory.
        directory: String,
        /// The exit status or error of the command.
        what: String,
    },
    /// The subject cannot be started, or its files cannot be used.
    #[error("{what}: {source}")]
    Io {
        /// The attempted action.
        what: String,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// The subject did not answer before the timeout.
    #[error("the subject did not answer {to} within {seconds} s")]
    Silent {
        /// The order sent to it.
        to: &'static str,
        /// The timeout.
        seconds: u64,
    },
    /// The subject sent an unexpected line.
    #[error("the subject said {line:?} where {wanted} was expected")]
    Babble {
        /// The line, shortened.
        line: String,
        /// The expected report.
        wanted: &'static str,
    },
    /// The subject reported failure.
    #[error("the subject gave up: {0}")]
    GaveUp(String),
    /// The subject's responses are wrong.
    #[error("refused: {0}")]
    Wrong(String),
    /// Rows cannot be read or inserted.
    #[error("rows: {0}")]
    Rows(#[from] rusqlite::Error),
    /// The tables of features do not cover the subject's dialect.
    #[error("features are probed of SOAP 1.1, XML-RPC and REST with XML or JSON, not of {0}")]
    Unprobed(&'static str),
    /// The subject answers an exchange with a fault.
    #[error("the exchange: {0}")]
    Fault(String),
    /// The subject closed the connection without an answer.
    #[error("the connection ended without an answer")]
    Unanswered,
    /// The bytes of an exchange violate the dialect.
    #[error("the exchange: {0}")]
    Exchange(String),
}

impl SubjectError {
    pub(crate) fn io(what: impl Into<String>) -> impl FnOnce(std::io::Error) -> Self {
        let what = what.into();
        move |source| Self::Io { what, source }
    }
}

impl From<stentor_wire::WireError> for SubjectError {
    fn from(error: stentor_wire::WireError) -> Self {
        Self::Exchange(error.to_string())
    }
}

/// A subject, as defined by its file in `subjects.d`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Definition {
    /// Dialect, software and runtime, with slashes between: `rest+xml/cxf-2.7.4/jdk17`.
    pub id: String,
    /// Supported operations.
    pub ops: Vec<reference::Op>,
    /// Available halves.
    pub roles: Vec<protocol::SubjectRole>,
    /// Software that must be installed; listed to the user, never installed.
    #[serde(default)]
    pub needs: Vec<String>,
    /// The build command, run on request.
    #[serde(default)]
    pub build: Vec<String>,
    /// The file that the build produces, relative to the directory; if it is missing, the subject is not built.
    #[serde(default)]
    pub artefact: Option<PathBuf>,
    /// The start command. `@heap` is replaced by the options of a Java machine that follow from a cell: `-Xmx` with the level of the factor
    /// `heap` in MiB, the serial collector, strings of two bytes a letter, no compiler; or by nothing.
    pub run: Vec<String>,
    /// The working directory; by default the directory of the definition's file.
    #[serde(default)]
    pub directory: Option<PathBuf>,
    /// Further abilities: `insert` for a client that inserts rows, `store` for a server that reads them, `tls` for halves that encrypt,
    /// `tls-client` or `tls-server` if only its client or its server encrypts, `fresh` for a client that opens a connection for each
    /// exchange, `buffering` for halves that stream and can also send and read whole messages, `service` for a server that repeats its work.
    #[serde(default)]
    pub can: Vec<String>,
}

impl Definition {
    /// Parses a definition.
    pub fn parse(text: &str) -> Result<Self, SubjectError> {
        Ok(toml::from_str(text)?)
    }

    /// Returns the dialect at the start of the id.
    pub fn dialect(&self) -> Result<dialect::SubjectDialect, SubjectError> {
        let name = self.id.split('/').next().unwrap_or_default();
        dialect::SubjectDialect::named(name).ok_or_else(|| SubjectError::Dialect(name.to_owned()))
    }

    /// Returns true if the subject is a part of a push service, which has no dialect.
    #[must_use]
    pub fn is_of_push_service(&self) -> bool {
        PUSH_SERVICES.contains(&self.id.split('/').next().unwrap_or_default())
    }

    /// Returns true if the definition states an ability.
    #[must_use]
    pub fn can(&self, ability: &str) -> bool {
        self.can.iter().any(|one| one == ability)
    }

    /// Returns true if the given half encrypts.
    #[must_use]
    pub fn encrypts(&self, role: protocol::SubjectRole) -> bool {
        let alone = match role {
            protocol::SubjectRole::Client => TLS_CLIENT,
            protocol::SubjectRole::Server | protocol::SubjectRole::Gateway => TLS_SERVER,
        };
        self.can(TLS) || self.can(alone)
    }

    /// Returns the start command for a cell with these factors.
    #[must_use]
    pub fn words(&self, factors: &BTreeMap<String, String>) -> Vec<String> {
        let level = factors.get("heap").or(factors.get(JAVA_HEAP));
        let heap = level.map_or_else(Vec::new, |mib| vec![format!("-Xmx{mib}m"), SERIAL.to_owned()]);
        let is_set = |name: &str, level: &str| factors.get(name).is_some_and(|set| set == level);
        let chosen = JAVA_OPTIONS.into_iter().filter(|(name, level, _)| is_set(name, level));
        let options: Vec<String> = heap.into_iter().chain(chosen.map(|(.., word)| word.to_owned())).collect();
        let words = |word: &String| if word == HEAP { options.clone() } else { vec![word.clone()] };
        self.run.iter().flat_map(words).collect()
    }

    /// Returns the name of the garbage collector, if the subject runs on Java.
    pub(crate) fn collector(&self) -> Option<&'static str> {
        let is_java = self.run.first().is_some_and(|program| program == "java");
        is_java.then(|| if self.run.iter().any(|word| word == SERIAL) { "serial" } else { "default" })
    }

    /// Returns the definition with the start command for a cell with these factors.
    #[must_use]
    pub fn for_cell(&self, factors: &BTreeMap<String, String>) -> Self {
        Self { run: self.words(factors), ..self.clone() }
    }

    /// Describes the subject with the project's own server, given the command that starts its halves. The server lists its own data, read
    /// from rows; the client inserts them as rows if a cell requires it.
    #[must_use]
    pub fn served(dialect: dialect::SubjectDialect, run: Vec<String>) -> Self {
        let id = format!("{}/{SERVED}", dialect.name());
        let ops = vec![reference::Op::Array, reference::Op::Points, reference::Op::Sort];
        let can = vec![INSERT.to_owned(), STORE.to_owned()];
        Self { id, ops, can, ..Self::built_in(dialect, run) }
    }

    /// Describes a push service as a subject, given the command that starts its parts: a device, an app server, and the gateway between
    /// them.
    #[must_use]
    pub fn pushed(service: &str, run: Vec<String>) -> Self {
        use protocol::SubjectRole::{Client, Gateway, Server};
        Self {
            id: format!("{service}/{BUILT_IN}"),
            ops: vec![reference::Op::Echo],
            roles: vec![Gateway, Server, Client],
            run,
            can: vec![TLS.to_owned()],
            ..Self::default()
        }
    }

    /// Describes a built-in subject, given the command that starts it.
    #[must_use]
    pub fn built_in(dialect: dialect::SubjectDialect, run: Vec<String>) -> Self {
        let mut can = vec![INSERT, STORE, FRESH, SERVICE];
        // Two threads cannot share the state of one encrypted connection.
        can.extend((dialect.transport != dialect::SubjectTransport::SocketThreads).then_some(TLS));
        Self {
            id: format!("{}/{BUILT_IN}", dialect.name()),
            ops: reference::Op::ALL.to_vec(),
            roles: vec![protocol::SubjectRole::Server, protocol::SubjectRole::Client],
            run,
            can: can.into_iter().map(str::to_owned).collect(),
            ..Self::default()
        }
    }
}

#[cfg(test)]
mod tests;
