//! What a side used.

use serde::Serialize;

/// Processor time and memory of all processes of a side since the rig was raised.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Usage {
    /// Processor time of user and kernel, in nanoseconds.
    pub cpu_ns: u64,
    /// The most memory that was held at once, in bytes.
    pub memory_peak_bytes: u64,
    /// Where the two come from.
    pub source: Source,
}

/// Where a usage was read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// The side's control group: every process, to its end.
    Cgroup,
    /// `/proc`, each time that somebody looked: what a process did after the last look is missing, times come in steps of
    /// 10 ms, and memory is the sum of each process' own peak.
    #[default]
    Proc,
}
