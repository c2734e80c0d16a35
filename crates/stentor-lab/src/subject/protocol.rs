//! LSP-1: the orders to a subject, and its reports.
//!
//! Orders: `hello`, `prepare`, `arm`, `go`, `stop`; reports: `hello`, `ready`, `armed`, `done`, `error`. Unknown fields are ignored by both
//! sides. Standard error is the subject's log.

use super::SubjectError;
use super::reference::Op;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;

/// The version of the protocol.
pub const VERSION: u32 = 1;
/// Maximum length of a line in both directions.
pub const LINE_MAX_BYTES: usize = 64 << 10;
/// The clock of all samples.
pub const CLOCK: &str = "CLOCK_MONOTONIC";

/// The half of an exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SubjectRole {
    /// The half that sends requests.
    Client,
    /// The half that responds.
    Server,
    /// Relays between both others, which connect to it and not to each other.
    Gateway,
}

/// An order to a subject.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "order", rename_all = "snake_case")]
pub enum SubjectOrder {
    /// Identify yourself.
    Hello,
    /// Prepare: a server listens, a client connects.
    Prepare(Prepare),
    /// Get ready for a schedule; a server only records samples from now on.
    Arm(Arm),
    /// Start.
    Go {
        /// Start time, in nanoseconds of the clock; a time in the past means immediately.
        t0_ns: i64,
    },
    /// Write all output and exit.
    Stop,
}

/// The parameters of preparation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prepare {
    /// The half to play.
    pub role: SubjectRole,
    /// The operation.
    pub op: Op,
    /// Levels of the cell, such as `items`.
    #[serde(default)]
    pub factors: BTreeMap<String, String>,
    /// Listen address of a server; port 0 lets it choose.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bind: Option<SocketAddr>,
    /// Server address of a client.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<SocketAddr>,
    /// The seed of contents.
    pub seed: u64,
    /// The variant (reading) of a study: `paper`, `code` or `modern`.
    #[serde(default)]
    pub variant: String,
}

/// The schedule, and the file of samples.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Arm {
    /// The schedule of the exchanges.
    pub schedule: ExchangeSchedule,
    /// Number of exchanges.
    pub count: u64,
    /// The file of samples.
    pub out: PathBuf,
}

/// The schedule of exchanges.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ExchangeSchedule {
    /// Closed loop: each exchange starts after the previous one and a pause.
    Closed {
        /// The pause, in nanoseconds.
        think_ns: u64,
    },
    /// Open loop: exchanges start at given times, regardless of the previous one. If all slots are taken, an exchange starts as soon as one
    /// is free; its intended time is kept.
    Open {
        /// The interval, in nanoseconds.
        interval_ns: u64,
        /// If set, intervals are drawn at random with this mean, like those of independent callers.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        poisson: bool,
        /// Maximum of concurrent exchanges; each has a connection of its own.
        #[serde(default = "one", skip_serializing_if = "is_one")]
        max_in_flight: u32,
    },
}

const fn one() -> u32 {
    1
}

const fn is_one(count: &u32) -> bool {
    *count == 1
}

/// A report of a subject.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "report", rename_all = "snake_case")]
pub enum Report {
    /// Its identity.
    Hello {
        /// Its version of the protocol.
        lsp: u32,
        /// Versions of its software, by name.
        versions: BTreeMap<String, String>,
        /// The clock of its samples.
        clock: String,
    },
    /// It is prepared.
    Ready {
        /// The port of a server; 0 for a client.
        port: u16,
        /// Facts about a gateway that the other halves need, such as the port for each of them; they receive the facts as factors.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        facts: BTreeMap<String, String>,
    },
    /// It is ready for the schedule.
    Armed,
    /// The exchanges are done.
    Done {
        /// Answered exchanges.
        n: u64,
        /// Failed exchanges.
        errors: u64,
        /// A client's digest of all responses: see [`super::reference::Digest`].
        #[serde(default)]
        digest: String,
    },
    /// It cannot continue.
    Error {
        /// The subject's description of the failure.
        text: String,
    },
}

impl Report {
    /// Returns the error for this report in place of the expected one.
    #[must_use]
    pub fn instead_of(&self, wanted: &'static str) -> SubjectError {
        SubjectError::Babble { line: self.name().into(), wanted }
    }

    /// Returns the name that errors use.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Hello { .. } => "hello",
            Self::Ready { .. } => "ready",
            Self::Armed => "armed",
            Self::Done { .. } => "done",
            Self::Error { .. } => "error",
        }
    }
}
