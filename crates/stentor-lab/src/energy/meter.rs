//! The lines of a meter, in a file or on a serial port: time, volt, ampere.

use super::EnergyError;
use serde::Serialize;
use std::io::{self, BufRead, Write};

/// Maximum bytes of a line; the rest of a longer line is dropped.
pub const LINE_MAX_BYTES: usize = 256;
/// The header of a recorded meter file. The last column is this machine's monotonic clock on arrival.
pub const RECORD_HEADER: &str = "time_s,volt,ampere,monotonic_ns";

/// The unit of a meter's time column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeUnit {
    /// Seconds.
    Seconds,
    /// Milliseconds, as `millis()` of an Arduino.
    Milliseconds,
    /// Microseconds, as `micros()` of an Arduino.
    Microseconds,
}

impl TimeUnit {
    /// Returns the number of these units per second.
    #[must_use]
    pub const fn per_second(self) -> f64 {
        match self {
            Self::Seconds => 1.0,
            Self::Milliseconds => 1e3,
            Self::Microseconds => 1e6,
        }
    }
}

/// One line of a meter.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MeterReading {
    /// Seconds of the meter's clock.
    pub time_s: f64,
    /// The voltage in volt.
    pub volt: f64,
    /// The current in ampere.
    pub ampere: f64,
}

impl MeterReading {
    /// Returns the power.
    #[must_use]
    pub fn watt(&self) -> f64 {
        self.volt * self.ampere
    }
}

/// Parses three numbers separated by commas, semicolons, tabs or spaces; the error describes the problem.
pub fn parse(line: &str, unit: TimeUnit) -> Result<MeterReading, String> {
    let mut numbers = line
        .split([',', ';', '\t', ' '])
        .map(str::trim)
        .filter(|cell| !cell.is_empty())
        .map(|cell| number(cell).ok_or_else(|| format!("{cell:?} is no number")));
    let mut next = |what: &str| numbers.next().unwrap_or_else(|| Err(format!("{what} is missing")));
    let (time, volt, ampere) = (next("the time")?, next("volt")?, next("ampere")?);
    Ok(MeterReading { time_s: time / unit.per_second(), volt, ampere })
}

/// Parses a finite number of plausible size.
pub(super) fn number(cell: &str) -> Option<f64> {
    cell.parse::<f64>().ok().filter(|value| value.is_finite() && value.abs() < 1e15)
}

/// The result of a recording.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Recording {
    /// Readings kept.
    pub readings: u64,
    /// Lines without a reading: the first line is often cut, others are noise on the line.
    pub lines_refused: u64,
    /// Gaps of more than one and a half periods, that is, readings lost by the meter or the line.
    pub gaps: u64,
    /// Joules between the first and the last reading, V x I dt by trapezoids.
    pub joule: f64,
    /// Seconds of the meter's clock between the first and the last reading.
    pub seconds: f64,
}

impl Recording {
    /// Returns the actual rate, in readings per second.
    #[must_use]
    pub fn rate(&self) -> Option<f64> {
        (self.seconds > 0.0).then(|| (self.readings - 1) as f64 / self.seconds)
    }
}

/// Records a meter: parses its lines, adds this machine's time, and writes the readings.
pub struct MeterRecorder<W> {
    out: W,
    unit: TimeUnit,
    period_s: f64,
    last: Option<MeterReading>,
    so_far: Recording,
}

impl<W: Write> MeterRecorder<W> {
    /// Starts a file; `rate` is the meter's nominal rate in readings per second.
    pub fn start(mut out: W, unit: TimeUnit, rate: f64) -> io::Result<Self> {
        writeln!(out, "{RECORD_HEADER}")?;
        Ok(Self { out, unit, period_s: 1.0 / rate, last: None, so_far: Recording::default() })
    }

    /// Processes a line received at an instant of the monotonic clock.
    pub fn line(&mut self, line: &[u8], at_ns: i64) -> io::Result<()> {
        let text = std::str::from_utf8(line).unwrap_or_default().trim();
        let rises = |reading: &MeterReading| self.last.is_none_or(|last| reading.time_s > last.time_s);
        let Some(reading) = parse(text, self.unit).ok().filter(rises) else {
            self.so_far.lines_refused += u64::from(!line.trim_ascii().is_empty());
            return Ok(());
        };
        // One write per line, so that every received line is in the file in case of a crash.
        let line_text = format!("{},{},{},{at_ns}\n", reading.time_s, reading.volt, reading.ampere);
        self.out.write_all(line_text.as_bytes())?;
        if let Some(last) = self.last {
            let seconds = reading.time_s - last.time_s;
            self.so_far.joule += (reading.watt() + last.watt()) / 2.0 * seconds;
            self.so_far.seconds += seconds;
            self.so_far.gaps += u64::from(seconds > 1.5 * self.period_s);
        }
        self.last = Some(reading);
        self.so_far.readings += 1;
        Ok(())
    }

    /// Returns the result so far.
    pub fn so_far(&self) -> Recording {
        self.so_far
    }

    /// Flushes the file.
    pub fn finish(mut self) -> io::Result<Recording> {
        self.out.flush()?;
        Ok(self.so_far)
    }
}

/// Reads lines of at most [`LINE_MAX_BYTES`]. Longer lines are truncated, so that noise without a line end takes no memory.
pub fn each_line(
    mut reader: impl BufRead,
    mut take: impl FnMut(&[u8]) -> Result<(), EnergyError>,
) -> Result<(), EnergyError> {
    let mut line = Vec::new();
    loop {
        let part = reader.fill_buf().map_err(EnergyError::io("the meter"))?;
        if part.is_empty() {
            break;
        }
        let end = part.iter().position(|byte| *byte == b'\n');
        let taken = end.map_or(part.len(), |end| end + 1);
        let room = LINE_MAX_BYTES.saturating_sub(line.len());
        line.extend_from_slice(&part[..end.unwrap_or(taken).min(room)]);
        reader.consume(taken);
        if end.is_some() {
            take(&line)?;
            line.clear();
        }
    }
    if line.is_empty() { Ok(()) } else { take(&line) }
}
