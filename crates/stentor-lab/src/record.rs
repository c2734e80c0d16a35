//! Result records: one JSON object a line for each fork, so that whoever reads them needs nothing else.
//!
//! A **fork** is one fresh pair of processes for one cell; it is the unit of replication. A fork that does not count is
//! in the file too, with the reason, and is never averaged. Times are nanoseconds, sizes are bytes.

mod campaign;
mod file;
mod latency;

pub use campaign::CampaignRecord;
pub(crate) use file::decompress;
pub use file::{CAMPAIGNS, LINE_MAX_BYTES, RECORDS, RecordWriter, file_of, read, read_directory};
pub use latency::{From, PhaseLatency};

use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

use crate::energy::EnergyValue;

/// The schema that every record names.
pub const SCHEMA: &str = "stentor.lab.result/1";

/// The outcome of a fork that came to its end.
pub const FINISHED: &str = "finished";
/// The outcome of a fork that could not be made here.
pub const NOT_MADE: &str = "not made";

/// Names of phases in [`ForkRecord::latency`].
pub mod phase {
    /// The whole exchange at the client, from its actual start until the answer is values (and rows, where rows are kept);
    /// in albertengo-2020's variant `code` until REST's answer begins.
    pub const RTT: &str = "rtt";
    /// The same from the moment when it should have started.
    pub const RTT_INTENDED: &str = "rtt_intended";
    /// `rtt` without the measured exchanges that a rule finds still warming up (`statistics::warm_up`).
    pub const RTT_STEADY: &str = "rtt_steady";
    /// How late exchanges started: actual start less intended start.
    pub const LATE: &str = "late";
    /// From the client's start to the arrival of the whole request at the server; both read the same clock.
    pub const OWD: &str = "owd";
    /// Client: values become bytes.
    pub const CLIENT_SER: &str = "client_ser";
    /// Client: from bytes sent to the first bytes of the answer (the study's "request").
    pub const REQUEST: &str = "request";
    /// Client: from the first to the last byte of the answer.
    pub const TRANSFER: &str = "transfer";
    /// Client: bytes become values (the study's "parse").
    pub const CLIENT_DESER: &str = "client_deser";
    /// Client: values become rows of a database; only where rows are kept.
    pub const INSERT: &str = "insert";
    /// Server: bytes become values.
    pub const SERVER_DESER: &str = "server_deser";
    /// Server: the work itself, reading rows included.
    pub const SERVER_WORK: &str = "server_work";
    /// Server: values become bytes.
    pub const SERVER_SER: &str = "server_ser";
    /// Server: from the last byte of the request until the answer is bytes.
    pub const SERVICE: &str = "svc";
    /// What the client waited less what the server worked: the way there and back, and both systems' queues.
    pub const NET: &str = "net";
    /// All exchanges that make one whole synchronisation, where a study reads page by page; with an interruption, from the
    /// first request until the last row is kept, by the clock.
    pub const SYNC: &str = "sync";
}

/// What came of one fork.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ForkRecord {
    /// Always [`SCHEMA`].
    pub schema: String,
    /// Names the run; all records of one directory that were made together share it.
    pub run_id: String,
    /// When the fork ended, as RFC 3339 in UTC.
    pub ended: String,
    /// The study's id.
    pub study: String,
    /// Which reading of the study: `paper`, `code` or `modern`.
    pub variant: String,
    /// Which part of the study, in the words of `published.csv`.
    pub experiment: String,
    /// Levels by factor, in the words of `published.csv` where the paper has the factor.
    pub cell: BTreeMap<String, String>,
    /// What was measured.
    pub subject: Subject,
    /// Number of the fork within its cell, from 1.
    pub fork: u32,
    /// Which attempt at this fork, from 1; earlier ones did not count.
    pub attempt: u32,
    /// What contents and schedule were made from.
    pub seed: u64,
    /// The machine and software on which it was measured.
    pub env: Environment,
    /// Between which two.
    pub link: RecordedLink,
    /// Whether it counts.
    pub valid: bool,
    /// Why it does not.
    pub invalid_reason: String,
    /// How it ended: `finished`, or an outcome that is a result by itself, such as `out of memory`.
    pub outcome: String,
    /// Exchanges, counted.
    pub counts: ExchangeCounts,
    /// Times by phase; see [`phase`].
    pub latency: BTreeMap<String, PhaseLatency>,
    /// Names of phases in `latency` that cannot be told from another, since a half streams; `None` in records of older versions,
    /// which did not look.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overlaps: Option<BTreeSet<String>>,
    /// What an interruption did; `None` in cells without that factor.
    pub interruption: Option<InterruptionOutcome>,
    /// What came of a campaign; `None` where exchanges of two halves were measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub campaign: Option<CampaignRecord>,
    /// The first exchange of fresh processes; in no distribution.
    pub first_call_ns: Option<u64>,
    /// From the start of each process until it was ready.
    pub start_ns: Sides,
    /// Bytes of what was exchanged.
    pub bytes: Option<Bytes>,
    /// Processor time.
    pub cpu: Sides,
    /// Most memory held at once.
    pub mem: Sides,
    /// How one-way delay was made comparable: see [`ClockComparison::shared`]; `None` in records of older versions, whose halves shared one
    /// clock too.
    pub clock: Option<ClockComparison>,
    /// Energy by side and component, each with its kind.
    pub energy: Vec<EnergyValue>,
    /// Hours that the paper's battery lasts when the client makes an exchange as often as in the paper; modelled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub battery_hours: Option<f64>,
    /// What the laboratory itself took.
    pub instrument: Instrument,
    /// Raw samples.
    pub raw: Vec<Raw>,
}

/// What was measured.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Subject {
    /// The paper's name for what it stands for, as in the column `subject` of `published.csv`.
    pub label: String,
    /// `period` where the paper's own software or its kind runs, else the software's family, such as `rust`.
    pub stack: String,
    /// Id of the client half.
    pub client: String,
    /// Id of the server half.
    pub server: String,
    /// Versions of the software, by `client` or `server`, a dot and the name.
    pub versions: BTreeMap<String, String>,
}

/// The machine.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Environment {
    /// Release of the kernel.
    pub kernel: String,
    /// Name of the processor.
    pub cpu: String,
    /// How many processors there are.
    pub cores: u32,
    /// Memory, in bytes.
    pub memory_bytes: u64,
    /// How the clock rate is governed; empty where the system does not tell.
    pub governor: String,
    /// `awake` where idle processors were kept from halting, else empty.
    pub idle: String,
    /// Load average over a minute before the fork.
    pub load_before: f64,
    /// The same after it.
    pub load_after: f64,
    /// Share of the last ten seconds in which something waited for a processor, in percent.
    pub psi_cpu: Option<f64>,
    /// What stands between the halves: `netns`, `veth` or `loopback`.
    pub rig: String,
    /// How halves are limited: `v2`, `v1` or nothing.
    pub cgroup: String,
    /// Version of the laboratory.
    pub tool_version: String,
    /// The commit that it was made of, with `-dirty` where its sources differed from it, `unknown` where it was built outside a repository; empty in records of older versions.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub commit: String,
    /// Whether the laboratory and its own subjects were built with optimizations.
    pub optimized: bool,
    /// What speaks for an emulated processor, else empty; with it there are no times in the record.
    pub emulated: String,
}

/// The link between the halves.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RecordedLink {
    /// Name of the profile; `none` without emulation.
    pub profile: String,
    /// What it sets, by name.
    pub params: BTreeMap<String, f64>,
    /// How late frames left the emulation, in microseconds.
    pub lateness_us: Option<Quantiles>,
    /// Frames that a queue dropped (loss that the profile asks for is not here).
    pub drops: u64,
    /// Frames that passed.
    pub frames: u64,
    /// The link between a gateway and its server, where there is one: the client's is this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub behind: Option<Box<RecordedLink>>,
}

/// Some quantiles.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Quantiles {
    /// Half are at or below.
    pub p50: f64,
    /// 99 of 100 are at or below.
    pub p99: f64,
    /// The largest.
    pub max: f64,
}

/// Exchanges, counted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ExchangeCounts {
    /// Started, warm-up and first call not counted.
    pub sent: u64,
    /// Answered rightly.
    pub ok: u64,
    /// Failed, by what went wrong.
    pub errors: BTreeMap<String, u64>,
    /// Not sent, because too many were in flight.
    pub skipped: u64,
    /// Exchanges before the steady state; in no distribution.
    pub warmup_discarded: u64,
}

/// A synchronisation that was interrupted when half of its pages were there.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct InterruptionOutcome {
    /// Pages of the whole synchronisation.
    pub pages: u64,
    /// Pages that were there in the meantime; all where nothing was interrupted.
    pub pages_kept: u64,
    /// Pages that the server was asked for more often than once.
    pub pages_again: u64,
    /// Rows that could be read in the meantime, without the server; every one was compared.
    pub rows_offline: u64,
    /// Whether they were marked as stale.
    pub is_stale: bool,
    /// How long opening the file and reading them took.
    pub offline_ns: u64,
    /// From the interruption until the first page after it was kept.
    pub silence_ns: u64,
}

/// A number for each half; absent where it was not measured.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Sides {
    /// The client.
    pub client: Option<u64>,
    /// The server.
    pub server: Option<u64>,
}

/// Bytes of all measured exchanges, by direction.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Bytes {
    /// How they were counted: `capture` (every frame, at the client's end) or `body` (bodies only; the rest is unknown).
    pub source: String,
    /// Exchanges that the sums are over.
    pub exchanges: u64,
    /// From client to server.
    pub up: DirectionBytes,
    /// From server to client.
    pub down: DirectionBytes,
    /// Both ways: packets that open and close connections; also within `up` and `down`.
    pub handshake: DirectionBytes,
}

/// Sizes of one direction; each but those of data packets is part of the one before. Zero where [`Bytes::source`] cannot know it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DirectionBytes {
    /// Frames, counted.
    pub frames: u64,
    /// IP packets, headers included.
    pub ip: u64,
    /// Of `frames`, those that carry something of the application for the first time: what albertengo-2020 counts. `None` where
    /// nobody looked, as in records of older versions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data_frames: Option<u64>,
    /// Of `ip`, what these take, headers included and each byte once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data_ip: Option<u64>,
    /// What TCP carried.
    pub tcp_payload: u64,
    /// Bodies in their format.
    pub app: u64,
    /// Letters of the content itself.
    pub payload: u64,
}

/// How two clocks were compared.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ClockComparison {
    /// The method; [`ClockComparison::SHARED`] where both halves read one clock.
    pub method: String,
    /// Server's clock less client's.
    pub offset_ns: i64,
    /// It is off by no more than this.
    pub bound_ns: u64,
    /// Drift, in parts of a thousand million.
    pub drift_ppb: f64,
    /// Offset before the exchanges.
    pub before_ns: i64,
    /// Offset after them.
    pub after_ns: i64,
    /// By how much one-way delays would come out too long by clocks of the halves' own, set by queries to a time server; `None` where
    /// that was not tried.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by_queries: Option<QueriedClocks>,
}

/// What clocks that were set by 100 queries each add to a one-way delay, in nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct QueriedClocks {
    /// By the paper's method: the mean of all queries, in whole milliseconds.
    pub papers_mean_ns: f64,
    /// By the queries with the shortest round trips.
    pub shortest_ns: f64,
    /// The latter's bound, as the halves can tell it.
    pub shortest_bound_ns: f64,
}

/// What the laboratory itself took while the fork ran.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Instrument {
    /// Processor time of the laboratory's own process.
    pub cpu_ns: u64,
    /// How late a sleeper was woken, in microseconds.
    pub lateness_us: Quantiles,
}

/// A file of raw samples.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Raw {
    /// Path relative to the directory of the records.
    pub path: String,
    /// Its digest, in hexadecimal digits.
    pub sha256: String,
    /// Its size.
    pub bytes: u64,
}

/// Why records cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The file cannot be used.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: String,
        /// What the system says.
        source: std::io::Error,
    },
    /// A line is longer than any record.
    #[error("{path}, line {line}: longer than {LINE_MAX_BYTES} bytes")]
    TooLong {
        /// The file.
        path: String,
        /// The line, from 1.
        line: usize,
    },
    /// A line is no record.
    #[error("{path}, line {line}: {source}")]
    Line {
        /// The file.
        path: String,
        /// The line, from 1.
        line: usize,
        /// What is wrong with it.
        source: serde_json::Error,
    },
    /// A record of another schema.
    #[error("{path}, line {line}: its schema is {schema:?}, and {SCHEMA:?} is read here")]
    Schema {
        /// The file.
        path: String,
        /// The line, from 1.
        line: usize,
        /// What it says.
        schema: String,
    },
    /// A histogram that is none.
    #[error("a histogram cannot be used: {0}")]
    Histogram(String),
}

impl ClockComparison {
    /// The method of two halves that read the same clock, so that there is nothing to estimate and no error.
    pub const SHARED: &str = "shared";

    /// Describes one clock that both halves read.
    #[must_use]
    pub fn shared() -> Self {
        Self { method: Self::SHARED.to_owned(), ..Self::default() }
    }
}

impl ForkRecord {
    /// Returns whether the processor was emulated, so that nothing of the fork is timed.
    #[must_use]
    pub const fn is_emulated(&self) -> bool {
        !self.env.emulated.is_empty()
    }

    /// Forgets every time, what rests on times, and memory, which is the emulator's: of an emulated processor none of it
    /// says anything. What was answered and how many bytes that took stays.
    pub fn forget_times(&mut self) {
        self.latency.clear();
        self.first_call_ns = None;
        (self.start_ns, self.cpu, self.mem) = (Sides::default(), Sides::default(), Sides::default());
        self.clock = None;
        self.energy.clear();
        self.battery_hours = None;
        if let Some(found) = &mut self.interruption {
            (found.offline_ns, found.silence_ns) = (0, 0);
        }
        self.link.lateness_us = None;
        self.instrument = Instrument::default();
        self.raw.clear();
    }

    /// Returns whether a phase is known to overlap with another.
    #[must_use]
    pub fn overlaps(&self, phase: &str) -> bool {
        self.overlaps.as_ref().is_some_and(|phases| phases.contains(phase))
    }

    /// Returns the rate of a campaign that counts and came to its end.
    #[must_use]
    pub fn pushes_per_second(&self) -> Option<f64> {
        let counts = self.valid && self.outcome == FINISHED;
        self.campaign.as_ref().filter(|_| counts).map(|campaign| campaign.pushes_per_second)
    }

    /// Names cell, subject and fork, the same for every attempt: what `--resume` looks for.
    #[must_use]
    pub fn key(&self) -> String {
        let levels: Vec<String> = self.cell.iter().map(|(name, level)| format!("{name}={level}")).collect();
        let Subject { client, server, .. } = &self.subject;
        format!(
            "{}|{}|{}|{client}|{server}|{}|{}",
            self.variant,
            self.experiment,
            self.subject.label,
            levels.join(";"),
            self.fork
        )
    }
}

#[cfg(test)]
pub(crate) mod tests;
