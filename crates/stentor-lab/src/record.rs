//! Result records: one JSON object per line for each fork, self-contained; times in nanoseconds, sizes in bytes.
//!
//! A **fork**, one fresh pair of processes for a cell, is the unit of replication. An invalid one has its reason and is never averaged.

mod campaign;
mod environment;
mod file;
mod latency;
pub mod modelled;

pub use campaign::CampaignRecord;
pub use environment::Environment;
pub(crate) use file::decompress;
pub use file::{
    CAMPAIGNS, LINE_MAX_BYTES, RECORDS, RecordWriter, file_of, joined, read, read_directory, runs_in,
};
pub use latency::{From, PhaseLatency};

use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

use crate::energy::EnergyValue;

/// The schema that every record names.
pub const SCHEMA: &str = "stentor.lab.result/1";

/// The rule of [`ForkRecord::battery_cut`]: every packet is repeated with its exchange.
pub const BATTERY_BY_EXCHANGE: &str = "exchange";

/// The outcome of a completed fork.
pub const FINISHED: &str = "finished";
/// The outcome of a fork that cannot be run here.
pub const NOT_MADE: &str = "not made";

/// Names of phases in [`ForkRecord::latency`].
pub mod phase {
    /// The whole exchange at the client, from its actual start until the response is decoded into values (and inserted as rows, if the
    /// client keeps rows). In albertengo-2020's variant `code` it ends when REST's response begins.
    pub const RTT: &str = "rtt";
    /// `rtt` measured from the intended start.
    pub const RTT_INTENDED: &str = "rtt_intended";
    /// `rtt` without the measured exchanges that the warm-up rule (`statistics::warm_up`) still detects as warming up.
    pub const RTT_STEADY: &str = "rtt_steady";
    /// Lateness of exchanges: actual start minus intended start.
    pub const LATE: &str = "late";
    /// One-way delay: from the client's start to the arrival of the whole request at the server; both read the same clock.
    pub const OWD: &str = "owd";
    /// One-way delay by packets: from the client's start to the arrival of the request's last packet at the server's end of its link.
    pub const OWD_PACKETS: &str = "owd_packets";
    /// Client: serialization of values into bytes.
    pub const CLIENT_SER: &str = "client_ser";
    /// Client: from the bytes sent to the first bytes of the response (the study's "request").
    pub const REQUEST: &str = "request";
    /// Client: from the first to the last byte of the response.
    pub const TRANSFER: &str = "transfer";
    /// Client: deserialization of bytes into values (the study's "parse").
    pub const CLIENT_DESER: &str = "client_deser";
    /// Client: insertion of values as rows of a database; only if rows are kept.
    pub const INSERT: &str = "insert";
    /// Server: deserialization of bytes into values.
    pub const SERVER_DESER: &str = "server_deser";
    /// Server: the work itself, including the reading of rows.
    pub const SERVER_WORK: &str = "server_work";
    /// Server: serialization of values into bytes.
    pub const SERVER_SER: &str = "server_ser";
    /// Server: from the last byte of the request until the response is serialized.
    pub const SERVICE: &str = "svc";
    /// The client's waiting time minus the server's service time: the network in both directions and both systems' queues.
    pub const NET: &str = "net";
    /// All exchanges of one whole synchronisation, if a study reads page by page. With an interruption: wall-clock time from the first
    /// request until the last row is kept.
    pub const SYNC: &str = "sync";
}

/// The result of one fork.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ForkRecord {
    /// Always [`SCHEMA`].
    pub schema: String,
    /// Id of the run, shared by all records that were made together in one directory.
    pub run_id: String,
    /// End time of the fork, as RFC 3339 in UTC.
    pub ended: String,
    /// The study's id.
    pub study: String,
    /// The variant (reading) of the study: `paper`, `code` or `modern`.
    pub variant: String,
    /// The part of the study, named as in `published.csv`.
    pub experiment: String,
    /// Levels by factor, named as in `published.csv` if the paper has the factor.
    pub cell: BTreeMap<String, String>,
    /// The measured subject.
    pub subject: Subject,
    /// Number of the fork within its cell, from 1.
    pub fork: u32,
    /// Number of the attempt at this fork, from 1; earlier ones were invalid.
    pub attempt: u32,
    /// Seed of the fork: of its contents, its schedule, the chance on its links, and the delays of its battery's exchanges. In records of
    /// older versions, and of campaigns, the seed of the whole run.
    pub seed: u64,
    /// Planned number of looks at the results, each of which could end the run; `None` for a run with a fixed number of rounds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub looks: Option<u32>,
    /// The machine and software of the measurement.
    pub env: Environment,
    /// The link between the halves.
    pub link: RecordedLink,
    /// True if the fork is valid.
    pub valid: bool,
    /// The reason for being invalid.
    pub invalid_reason: String,
    /// The outcome: `finished`, or an outcome that is a result by itself, such as `out of memory`.
    pub outcome: String,
    /// Counts of exchanges.
    pub counts: ExchangeCounts,
    /// Times by phase; see [`phase`].
    pub latency: BTreeMap<String, PhaseLatency>,
    /// Names of phases in `latency` that are not separable from another phase, because a half streams. `None` in records of older versions,
    /// which did not detect this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overlaps: Option<BTreeSet<String>>,
    /// False if the exchanges did not settle within their first half (`statistics::warm_up`); `None` if there are too few to tell, and in
    /// records of older versions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub has_settled: Option<bool>,
    /// The effect of an interruption; `None` in cells without that factor.
    pub interruption: Option<InterruptionOutcome>,
    /// The result of a campaign; `None` if exchanges of two halves were measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub campaign: Option<CampaignRecord>,
    /// The first exchange of fresh processes; excluded from all distributions.
    pub first_call_ns: Option<u64>,
    /// Startup time of each process, until it was ready.
    pub start_ns: Sides,
    /// Bytes of the exchanges.
    pub bytes: Option<Bytes>,
    /// Processor time.
    pub cpu: Sides,
    /// Peak memory.
    pub mem: Sides,
    /// Comparison of the clocks for one-way delay: see [`ClockComparison::shared`]. `None` in records of older versions, in which the
    /// halves shared one clock too.
    pub clock: Option<ClockComparison>,
    /// Energy by side and component, each with its kind.
    pub energy: Vec<EnergyValue>,
    /// Battery life of the paper's battery, in hours, if the client makes exchanges as often as in the paper; modelled, of the radio alone.
    /// Records without [`Self::battery_band`] have the client's processor in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub battery_hours: Option<f64>,
    /// The same with all coefficients of the radio high, and low.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub battery_band: Option<[f64; 2]>,
    /// The rule by which packets were repeated for `battery_hours`: [`BATTERY_BY_EXCHANGE`]. Empty in records of older versions, which cut
    /// the capture into pieces by the clock: a piece could hold the head of one exchange and the tail of another.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub battery_cut: String,
    /// Resource use of the laboratory itself.
    pub instrument: Instrument,
    /// Raw samples.
    pub raw: Vec<Raw>,
}

/// The measured subject.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Subject {
    /// The paper's name for it, as in the column `subject` of `published.csv`.
    pub label: String,
    /// `period` for the paper's own software or its kind, else the software's family, such as `rust`.
    pub stack: String,
    /// Id of the client half.
    pub client: String,
    /// Id of the server half.
    pub server: String,
    /// Versions of the software, by `client` or `server`, a dot and the name.
    pub versions: BTreeMap<String, String>,
}

/// The link between the halves.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RecordedLink {
    /// Name of the profile; `none` without emulation.
    pub profile: String,
    /// The parameters of the profile, by name.
    pub params: BTreeMap<String, f64>,
    /// Lateness of frames leaving the emulation, in microseconds.
    pub lateness_us: Option<Quantiles>,
    /// Frames dropped by a queue. Loss requested by the profile is not included.
    pub drops: u64,
    /// Frames passed.
    pub frames: u64,
    /// The link between a gateway and its server, if there is one; this one is then the client's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub behind: Option<Box<RecordedLink>>,
}

/// Selected quantiles.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Quantiles {
    /// The median.
    pub p50: f64,
    /// The 99th percentile.
    pub p99: f64,
    /// The largest.
    pub max: f64,
}

/// Counts of exchanges.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ExchangeCounts {
    /// Started exchanges, without warm-up and first call.
    pub sent: u64,
    /// Correct responses.
    pub ok: u64,
    /// Failed exchanges by cause.
    pub errors: BTreeMap<String, u64>,
    /// Exchanges not sent because too many were in flight.
    pub skipped: u64,
    /// Exchanges before the steady state; excluded from all distributions.
    pub warmup_discarded: u64,
}

/// A synchronisation that was interrupted after half of its pages.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct InterruptionOutcome {
    /// Pages of the whole synchronisation.
    pub pages: u64,
    /// Pages kept during the interruption; all pages if nothing was interrupted.
    pub pages_kept: u64,
    /// Pages requested from the server more than once.
    pub pages_again: u64,
    /// Rows readable during the interruption, without the server; every row was compared.
    pub rows_offline: u64,
    /// True if the rows were marked as stale.
    pub is_stale: bool,
    /// Time to open the file and read the rows.
    pub offline_ns: u64,
    /// Time from the interruption until the first page after it was kept.
    pub silence_ns: u64,
}

/// A number for each half; absent if it was not measured.
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
    /// The method of counting: `capture` (every frame, at the client's end) or `body` (bodies only; the rest is unknown).
    pub source: String,
    /// Exchanges that the sums cover.
    pub exchanges: u64,
    /// Bytes from client to server.
    pub up: DirectionBytes,
    /// Bytes from server to client.
    pub down: DirectionBytes,
    /// Packets that open and close connections, in both directions; also included in `up` and `down`.
    pub handshake: DirectionBytes,
}

/// Sizes in one direction. Each is part of the one before, except those of data packets. Zero if [`Bytes::source`] cannot provide it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DirectionBytes {
    /// Frames, counted.
    pub frames: u64,
    /// IP packets, headers included.
    pub ip: u64,
    /// Those of `frames` that carry application data for the first time, as counted by albertengo-2020. `None` if they were not counted, as
    /// in records of older versions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data_frames: Option<u64>,
    /// The share of `ip` that the data frames take, headers included, each byte counted once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data_ip: Option<u64>,
    /// Payload carried by TCP.
    pub tcp_payload: u64,
    /// Bodies in their encoded format.
    pub app: u64,
    /// Letters of the content itself.
    pub payload: u64,
}

/// The comparison of two clocks.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ClockComparison {
    /// The method; [`ClockComparison::SHARED`] where both halves read one clock.
    pub method: String,
    /// The server's clock minus the client's.
    pub offset_ns: i64,
    /// Error bound of the offset.
    pub bound_ns: u64,
    /// Drift, in parts per billion.
    pub drift_ppb: f64,
    /// Offset before the exchanges.
    pub before_ns: i64,
    /// Offset after them.
    pub after_ns: i64,
    /// Error that one-way delays would have with separate clocks of the halves, each set by queries to a time server; `None` if that was
    /// not measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by_queries: Option<QueriedClocks>,
}

/// The error in one-way delay if each clock was set by 100 queries, in nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct QueriedClocks {
    /// By the paper's method: the mean of all queries, in whole milliseconds.
    pub papers_mean_ns: f64,
    /// By the queries with the shortest round trips.
    pub shortest_ns: f64,
    /// The error bound of `shortest_ns`, as the halves can determine it.
    pub shortest_bound_ns: f64,
}

/// Resource use of the laboratory itself during the fork, and what the machine lost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Instrument {
    /// Processor time of the laboratory's own process.
    pub cpu_ns: u64,
    /// Duration of the fork, in which it was used; 0 in records of older versions.
    #[serde(skip_serializing_if = "is_zero")]
    pub wall_ns: u64,
    /// Processor time that the hypervisor gave to others, in percent; `None` in records of older versions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steal_percent: Option<f64>,
    /// Pages that were touched once a second and came back late, in percent; `None` in records of older versions and of short forks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub late_pages_percent: Option<f64>,
    /// Lateness of wake-ups from sleep, in microseconds.
    pub lateness_us: Quantiles,
}

const fn is_zero(value: &u64) -> bool {
    *value == 0
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

/// Errors of reading and writing records.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The file cannot be used.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: String,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// A line exceeds the maximum length of a record.
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
        /// The error of the parser.
        source: serde_json::Error,
    },
    /// A record of another schema.
    #[error("{path}, line {line}: its schema is {schema:?}, and {SCHEMA:?} is read here")]
    Schema {
        /// The file.
        path: String,
        /// The line, from 1.
        line: usize,
        /// The schema named in the record.
        schema: String,
    },
    /// An invalid histogram.
    #[error("a histogram cannot be used: {0}")]
    Histogram(String),
}

impl ClockComparison {
    /// The method for two halves that read the same clock: no estimate, no error.
    pub const SHARED: &str = "shared";

    /// Describes a clock shared by both halves.
    #[must_use]
    pub fn shared() -> Self {
        Self { method: Self::SHARED.to_owned(), ..Self::default() }
    }
}

impl ForkRecord {
    /// Returns true if the processor was emulated, so that no times of the fork are valid.
    #[must_use]
    pub const fn is_emulated(&self) -> bool {
        !self.env.emulated.is_empty()
    }

    /// Removes every time, the values derived from times, the memory figures and the raw samples: on an emulated processor none of them is
    /// meaningful. Counts of exchanges and bytes stay.
    pub fn forget_times(&mut self) {
        self.latency.clear();
        self.first_call_ns = None;
        (self.start_ns, self.cpu, self.mem) = (Sides::default(), Sides::default(), Sides::default());
        self.clock = None;
        self.energy.clear();
        (self.battery_hours, self.battery_band) = (None, None);
        self.battery_cut.clear();
        if let Some(found) = &mut self.interruption {
            (found.offline_ns, found.silence_ns) = (0, 0);
        }
        self.link.lateness_us = None;
        self.instrument = Instrument::default();
        self.raw.clear();
    }

    /// Returns true if a phase is known to overlap with another.
    #[must_use]
    pub fn overlaps(&self, phase: &str) -> bool {
        self.overlaps.as_ref().is_some_and(|phases| phases.contains(phase))
    }

    /// Returns true if its battery's exchanges were cut by the clock, so that `battery_hours` depend on how late the first one began.
    #[must_use]
    pub const fn is_battery_cut_by_clock(&self) -> bool {
        self.battery_hours.is_some() && self.battery_cut.is_empty()
    }

    /// Returns the rate of a campaign that is valid and finished.
    #[must_use]
    pub fn pushes_per_second(&self) -> Option<f64> {
        let counts = self.valid && self.outcome == FINISHED;
        self.campaign.as_ref().filter(|_| counts).map(|campaign| campaign.pushes_per_second)
    }

    /// Returns the key of cell, subject and fork, equal for every attempt; `--resume` looks records up by it.
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
