//! Subjects: client and server halves as processes of their own, in whatever language, told what to do by LSP-1.
//!
//! LSP-1, the lab subject protocol: orders on standard input, reports on standard output, one JSON object a line (see
//! [`protocol`]); samples in a file, 64 bytes each (see [`sample`]). What an operation must answer is known beforehand
//! ([`mod@reference`]), so that a subject with wrong answers is refused and never timed ([`check`]).

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

/// Ids of the subjects that the binary plays itself, by their dialects.
pub const BUILT_IN: &str = "stentor/rust";

/// Push services as subjects, by what their ids begin with.
pub const PUSH_SERVICES: [&str; 2] = ["gcm", "fcm"];

/// What the ids of subjects end with whose server is the one that this laboratory belongs to.
pub const SERVED: &str = "server/stentor";
/// Its name among the software that fills a place.
pub(crate) const SERVED_STACK: &str = "stentor";

/// Keeps rows: a client.
pub(crate) const INSERT: &str = "insert";
/// Reads rows: a server.
pub(crate) const STORE: &str = "store";
/// Encrypts: every half that it has.
pub(crate) const TLS: &str = "tls";
/// Encrypts: its client alone.
pub(crate) const TLS_CLIENT: &str = "tls-client";
/// Encrypts: its server alone.
pub(crate) const TLS_SERVER: &str = "tls-server";
/// Opens a connection for each exchange: a client.
pub(crate) const FRESH: &str = "fresh";
/// What a definition can say that its subject can, and the factor that wants it.
pub(crate) const ABILITIES: [(&str, &str); 6] = [
    (INSERT, "insert"),
    (STORE, "store"),
    (TLS, "tls"),
    (TLS_CLIENT, "tls"),
    (TLS_SERVER, "tls"),
    (FRESH, "connection"),
];

/// Stands in the words that start a subject where its heap is limited.
const HEAP: &str = "@heap";
/// The collector of a limited heap: with any other, what fits depends on how a machine cuts the heap into regions.
const SERIAL: &str = "-XX:+UseSerialGC";
/// The name under which a half's collector stands beside its versions.
pub(crate) const COLLECTOR: &str = "collector";
/// The setting of a heap that is limited on both sides, and limits nothing else's subjects.
pub(crate) const JAVA_HEAP: &str = "java_heap";

/// What goes wrong with a subject.
#[derive(Debug, thiserror::Error)]
pub enum SubjectError {
    /// The definition is no such TOML.
    #[error("the definition of the subject cannot be read (docs/lab/your-own-service.md has one): {0}")]
    Definition(#[from] toml::de::Error),
    /// It speaks nothing that we know.
    #[error("{0:?} is no dialect: they are {known}", known = dialect::names())]
    Dialect(String),
    /// A file is no definition.
    #[error("{path}: {source}")]
    Unreadable {
        /// The file.
        path: String,
        /// What is wrong with it.
        source: Box<SubjectError>,
    },
    /// It could not be built.
    #[error("{command:?} in {directory} {what}")]
    Build {
        /// The words of the command.
        command: String,
        /// Where it ran.
        directory: String,
        /// How it ended.
        what: String,
    },
    /// It cannot be started, or its files cannot be used.
    #[error("{what}: {source}")]
    Io {
        /// What was tried.
        what: String,
        /// What the system says.
        source: std::io::Error,
    },
    /// It says nothing in time.
    #[error("the subject did not answer {to} within {seconds} s")]
    Silent {
        /// What it was told.
        to: &'static str,
        /// How long was waited.
        seconds: u64,
    },
    /// It says what nobody understands.
    #[error("the subject said {line:?} where {wanted} was expected")]
    Babble {
        /// Its words, shortened.
        line: String,
        /// What was expected.
        wanted: &'static str,
    },
    /// It says that it cannot.
    #[error("the subject gave up: {0}")]
    GaveUp(String),
    /// It answers, but wrongly.
    #[error("refused: {0}")]
    Wrong(String),
    /// Rows cannot be read or kept.
    #[error("rows: {0}")]
    Rows(#[from] rusqlite::Error),
    /// The tables of features have no place for what it speaks.
    #[error("features are probed of SOAP 1.1, XML-RPC and REST with XML or JSON, not of {0}")]
    Unprobed(&'static str),
    /// It answers that it does not do what was asked.
    #[error("the exchange: {0}")]
    Fault(String),
    /// It closes the connection instead of answering.
    #[error("the connection ended without an answer")]
    Unanswered,
    /// The bytes of an exchange are not as the dialect wants them.
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

/// A subject as its file in `subjects.d` describes it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Definition {
    /// Dialect, software and runtime, with slashes between: `rest+xml/cxf-2.7.4/jdk17`.
    pub id: String,
    /// What it can be asked.
    pub ops: Vec<reference::Op>,
    /// Which halves it has.
    pub roles: Vec<protocol::SubjectRole>,
    /// What has to be installed; told, never installed.
    #[serde(default)]
    pub needs: Vec<String>,
    /// How it is built, when asked.
    #[serde(default)]
    pub build: Vec<String>,
    /// What building leaves behind, seen from the directory; without it, it is not built.
    #[serde(default)]
    pub artefact: Option<PathBuf>,
    /// How it is started; `@heap` becomes `-Xmx` and the level of the factor `heap` in MiB, with the serial
    /// collector, or nothing.
    pub run: Vec<String>,
    /// Where; by default where its file is.
    #[serde(default)]
    pub directory: Option<PathBuf>,
    /// What else it can do: `insert` for a client that keeps rows, `store` for a server that reads them, `tls` for halves that
    /// encrypt, `tls-client` or `tls-server` where only its client or its server does, `fresh` for a client that opens a connection for each exchange.
    #[serde(default)]
    pub can: Vec<String>,
}

impl Definition {
    /// Reads a definition.
    pub fn parse(text: &str) -> Result<Self, SubjectError> {
        Ok(toml::from_str(text)?)
    }

    /// Returns the dialect that the id begins with.
    pub fn dialect(&self) -> Result<dialect::SubjectDialect, SubjectError> {
        let name = self.id.split('/').next().unwrap_or_default();
        dialect::SubjectDialect::named(name).ok_or_else(|| SubjectError::Dialect(name.to_owned()))
    }

    /// Returns whether it says that it can do something.
    #[must_use]
    pub fn can(&self, ability: &str) -> bool {
        self.can.iter().any(|one| one == ability)
    }

    /// Returns whether this half of it encrypts.
    #[must_use]
    pub fn encrypts(&self, role: protocol::SubjectRole) -> bool {
        let alone = match role {
            protocol::SubjectRole::Client => TLS_CLIENT,
            protocol::SubjectRole::Server | protocol::SubjectRole::Gateway => TLS_SERVER,
        };
        self.can(TLS) || self.can(alone)
    }

    /// Returns the words that start it in a cell with these factors.
    #[must_use]
    pub fn words(&self, factors: &BTreeMap<String, String>) -> Vec<String> {
        let level = factors.get("heap").or(factors.get(JAVA_HEAP));
        let heap: Vec<String> =
            level.map_or_else(Vec::new, |mib| vec![format!("-Xmx{mib}m"), SERIAL.to_owned()]);
        let words = |word: &String| if word == HEAP { heap.clone() } else { vec![word.clone()] };
        self.run.iter().flat_map(words).collect()
    }

    /// Names the collector that it is started with, where it runs on a Java machine.
    pub(crate) fn collector(&self) -> Option<&'static str> {
        let is_java = self.run.first().is_some_and(|program| program == "java");
        is_java.then(|| if self.run.iter().any(|word| word == SERIAL) { "serial" } else { "default" })
    }

    /// Returns the definition for a cell with these factors: with them, it is started as the cell wants it.
    #[must_use]
    pub fn for_cell(&self, factors: &BTreeMap<String, String>) -> Self {
        Self { run: self.words(factors), ..self.clone() }
    }

    /// Describes the subject whose server is the real one, given the command that starts its halves: it lists its own data, which it
    /// reads from rows, and its client keeps them as rows where a cell wants it.
    #[must_use]
    pub fn served(dialect: dialect::SubjectDialect, run: Vec<String>) -> Self {
        let id = format!("{}/{SERVED}", dialect.name());
        let ops = vec![reference::Op::Array, reference::Op::Points, reference::Op::Sort];
        let can = vec![INSERT.to_owned(), STORE.to_owned()];
        Self { id, ops, can, ..Self::built_in(dialect, run) }
    }

    /// Describes a push service as a subject, given the command that starts its parts: a device, an app server, and the gateway
    /// that both are connected to.
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

    /// Describes a subject that the binary plays itself, given the command that starts it.
    #[must_use]
    pub fn built_in(dialect: dialect::SubjectDialect, run: Vec<String>) -> Self {
        let mut can = vec![INSERT, STORE, FRESH];
        // Two threads cannot share the one state of an encrypted connection.
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
