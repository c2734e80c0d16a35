//! LSP-1: what is told to a subject, and what it tells.
//!
//! Orders: `hello`, `prepare`, `arm`, `go`, `stop`; reports: `hello`, `ready`, `armed`, `done`, `error`. Unknown fields are
//! ignored by both sides. Standard error is the subject's log.

use super::SubjectError;
use super::reference::Op;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;

/// The version of the protocol.
pub const VERSION: u32 = 1;
/// The longest line of either side.
pub const LINE_MAX_BYTES: usize = 64 << 10;
/// The clock of all samples.
pub const CLOCK: &str = "CLOCK_MONOTONIC";

/// Which half of an exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SubjectRole {
    /// The half that asks.
    Client,
    /// The half that answers.
    Server,
    /// Passes on what both others say: they connect to it, and not to each other.
    Gateway,
}

/// What a subject is told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "order", rename_all = "snake_case")]
pub enum SubjectOrder {
    /// Say who you are.
    Hello,
    /// Get ready: a server listens, a client connects.
    Prepare(Prepare),
    /// Know what is to be done; a server only keeps samples from now on.
    Arm(Arm),
    /// The order to begin.
    Go {
        /// When, in nanoseconds of the clock; what is past means at once.
        t0_ns: i64,
    },
    /// Write everything down and end.
    Stop,
}

/// How to get ready.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prepare {
    /// Which half to play.
    pub role: SubjectRole,
    /// What is asked and answered.
    pub op: Op,
    /// Levels of the cell, such as `items`.
    #[serde(default)]
    pub factors: BTreeMap<String, String>,
    /// Where a server listens; port 0 lets it choose.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bind: Option<SocketAddr>,
    /// Where a client's server is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<SocketAddr>,
    /// What contents are made from.
    pub seed: u64,
    /// Which reading of a study: `paper`, `code` or `modern`.
    #[serde(default)]
    pub variant: String,
}

/// What to do, and where samples go.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Arm {
    /// When each exchange starts.
    pub schedule: ExchangeSchedule,
    /// How many there are.
    pub count: u64,
    /// The file of samples.
    pub out: PathBuf,
}

/// When exchanges start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ExchangeSchedule {
    /// After the one before has ended, and a pause.
    Closed {
        /// The pause, in nanoseconds.
        think_ns: u64,
    },
    /// At given times, whether or not the one before has ended. What finds no place starts as soon as there is one; its
    /// intended time is kept.
    Open {
        /// The interval, in nanoseconds.
        interval_ns: u64,
        /// Whether intervals are drawn, with this mean, as independent callers would come.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        poisson: bool,
        /// Exchanges at once, at most; each has a connection of its own.
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

/// What a subject tells.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "report", rename_all = "snake_case")]
pub enum Report {
    /// Who it is.
    Hello {
        /// Its version of the protocol.
        lsp: u32,
        /// Versions of its software, by name.
        versions: BTreeMap<String, String>,
        /// The clock of its samples.
        clock: String,
    },
    /// It is ready.
    Ready {
        /// The port of a server; 0 for a client.
        port: u16,
        /// What the other halves have to know of a gateway, such as the ports for each of them; they are told it as factors.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        facts: BTreeMap<String, String>,
    },
    /// It knows what to do.
    Armed,
    /// It has done it.
    Done {
        /// Exchanges that were answered.
        n: u64,
        /// Exchanges that failed.
        errors: u64,
        /// Digest of all answers, of a client: see [`super::reference::Digest`].
        #[serde(default)]
        digest: String,
    },
    /// It cannot go on.
    Error {
        /// What the subject says about the failure.
        text: String,
    },
}

impl Report {
    /// Returns the error of a subject that says this where something else was expected.
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
