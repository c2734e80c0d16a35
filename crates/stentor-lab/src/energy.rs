//! Energy: measured by a meter, imported from an external meter, or modelled. Every value states its kind.

pub mod battery;
pub mod coefficients;
pub mod exchanges;
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

/// Caveats on every energy figure; printed with results and written into reports.
pub const CAVEATS: [&str; 4] = [
    "models of radios count time in states: the cost of each frame, which does not go away with its size, is missing in them (Garcia-Saavedra et al. 2012)",
    "how Wi-Fi saves power (PSM, its timer, the beacon) differs by phone and access point, and decides more than bytes do",
    "a processor's own counters (powercap) are always below a meter at the wall: power supply, memory, disks and radios are not in them",
    "the coefficients are those of phones of 2010 to 2012; hours follow from them and from the cell, not from any measurement here",
];

/// Errors of energy measurement and models.
#[derive(Debug, thiserror::Error)]
pub enum EnergyError {
    /// A file cannot be read or written.
    #[error("{what}: {source}")]
    Io {
        /// The file.
        what: String,
        /// The error of the operating system.
        source: std::io::Error,
    },
    /// A malformed line of a text.
    #[error("line {line}: {problem}")]
    Line {
        /// Line of the file, from 1.
        line: u64,
        /// The problem and the expected form.
        problem: String,
    },
    /// The capture cannot be read.
    #[error("the capture cannot be read: {0}")]
    Capture(String),
    /// Required input is missing.
    #[error("{0}")]
    Missing(String),
    /// Implausible values.
    #[error("{0}")]
    Senseless(String),
}

impl EnergyError {
    /// Returns a function that adds the file's name to an I/O error.
    pub fn io(what: impl Into<String>) -> impl FnOnce(std::io::Error) -> Self {
        let what = what.into();
        move |source| Self::Io { what, source }
    }

    /// Makes an error for one line.
    pub fn line(line: u64, problem: impl Into<String>) -> Self {
        Self::Line { line, problem: problem.into() }
    }
}

/// Converts nanoseconds to seconds.
#[must_use]
pub fn seconds(nanoseconds: i64) -> f64 {
    nanoseconds as f64 / SECOND_NS as f64
}

/// Converts seconds to the nearest nanosecond, saturating at the range of `i64`.
#[must_use]
pub fn nanoseconds(seconds: f64) -> i64 {
    (seconds * SECOND_NS as f64).round() as i64
}
