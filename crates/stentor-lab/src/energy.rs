//! Energy: measured where there is a meter, imported from a meter of somebody else, or modelled; never without saying which.

pub mod battery;
pub mod coefficients;
pub mod imported;
pub mod measured;
pub mod meter;
pub mod pcap;
pub mod phases;
pub mod phone_log;
pub mod processor;
pub mod radio;
pub mod series;
pub mod trace;
mod value;

#[cfg(test)]
mod tests;

pub use value::{EnergyKind, EnergyOrigin, EnergySide, EnergySource, EnergyValue, PhaseName};

/// Nanoseconds of a second.
pub const SECOND_NS: i64 = 1_000_000_000;

/// What has to be known of every figure here; printed with results and written into reports.
pub const CAVEATS: [&str; 4] = [
    "models of radios count time in states: the cost of each frame, which does not go away with its size, is missing in them (Garcia-Saavedra et al. 2012)",
    "how Wi-Fi saves power (PSM, its timer, the beacon) differs by phone and access point, and decides more than bytes do",
    "a processor's own counters (powercap) are always below what a meter at the wall shows: power supply, memory, disks and radios are not in them",
    "the coefficients are those of phones of 2010 to 2012; hours follow from them and from the cell, not from any measurement here",
];

/// Why there is no energy.
#[derive(Debug, thiserror::Error)]
pub enum EnergyError {
    /// A file cannot be read or written.
    #[error("{what}: {source}")]
    Io {
        /// Which file.
        what: String,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// A line of a text is not as it should be.
    #[error("line {line}: {problem}")]
    Line {
        /// Line of the file, from 1.
        line: u64,
        /// What is wrong, and what is wanted.
        problem: String,
    },
    /// A capture is not one that can be read.
    #[error("the capture cannot be read: {0}")]
    Capture(String),
    /// There is nothing to work with.
    #[error("{0}")]
    Missing(String),
    /// Values that make no sense.
    #[error("{0}")]
    Senseless(String),
}

impl EnergyError {
    /// Names the file that the system refused.
    pub fn io(what: impl Into<String>) -> impl FnOnce(std::io::Error) -> Self {
        let what = what.into();
        move |source| Self::Io { what, source }
    }

    /// Names the line at fault.
    pub fn line(line: u64, problem: impl Into<String>) -> Self {
        Self::Line { line, problem: problem.into() }
    }
}

/// Returns seconds for nanoseconds.
#[must_use]
pub fn seconds(nanoseconds: i64) -> f64 {
    nanoseconds as f64 / SECOND_NS as f64
}

/// Returns the nanoseconds that are nearest; what is beyond the range becomes its end.
#[must_use]
pub fn nanoseconds(seconds: f64) -> i64 {
    (seconds * SECOND_NS as f64).round() as i64
}
