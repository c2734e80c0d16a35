//! Seconds that have passed and seconds of processor time, as the kernel counts them for this process.

use std::time::Instant;

use anyhow::Context;

/// Ticks per second in `/proc`: Linux reports a hundred to programs, regardless of the kernel's own rate.
const TICKS_PER_SECOND: f64 = 100.0;
/// Fields of `/proc/PID/stat` after the name in brackets, counted from zero.
const PROCESSOR_FIELDS: std::ops::Range<usize> = 11..15;
const START_FIELD: usize = 19;

/// Cost of an activity.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Cost {
    /// Seconds on the clock.
    pub(crate) wall_seconds: f64,
    /// Processor seconds of this process and of every process that it waited for, with those for which that one waited.
    pub(crate) processor_seconds: f64,
}

/// Measures the cost of one activity.
pub(crate) struct Meter {
    began: Instant,
    processor_seconds: f64,
}

impl Meter {
    /// Begins to measure.
    pub(crate) fn start() -> Self {
        Self { began: Instant::now(), processor_seconds: processor_seconds() }
    }

    /// Returns the cost since the start.
    pub(crate) fn read(&self) -> Cost {
        let wall_seconds = self.began.elapsed().as_secs_f64();
        Cost { wall_seconds, processor_seconds: processor_seconds() - self.processor_seconds }
    }
}

/// Returns the cost since the process began. A script or a cargo that replaced itself by this program is the same process, so that its
/// installing and compiling is included.
pub(crate) fn since_process_start() -> Cost {
    let started = stat_field(std::process::id(), START_FIELD).unwrap_or_default() / TICKS_PER_SECOND;
    let now = uptime_seconds().unwrap_or_default();
    Cost { wall_seconds: (now - started).max(0.0), processor_seconds: processor_seconds() }
}

/// Returns the processor time of this process; zero without `/proc`.
fn processor_seconds() -> f64 {
    processor_seconds_of(std::process::id())
}

/// Returns the processor time of a process that was not yet waited for, with that of every process that it waited for; zero without
/// `/proc`.
pub(crate) fn processor_seconds_of(process: u32) -> f64 {
    let fields = PROCESSOR_FIELDS.map(|index| stat_field(process, index));
    fields.map(Result::unwrap_or_default).sum::<f64>() / TICKS_PER_SECOND
}

fn stat_field(process: u32, index: usize) -> anyhow::Result<f64> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat"))?;
    let (_, behind_name) = stat.rsplit_once(") ").context("no name in brackets")?;
    Ok(behind_name.split(' ').nth(index).context("too few fields")?.parse()?)
}

fn uptime_seconds() -> anyhow::Result<f64> {
    let uptime = std::fs::read_to_string("/proc/uptime")?;
    Ok(uptime.split(' ').next().context("empty")?.parse()?)
}

impl std::ops::Add for Cost {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            wall_seconds: self.wall_seconds + other.wall_seconds,
            processor_seconds: self.processor_seconds + other.processor_seconds,
        }
    }
}

#[cfg(test)]
mod tests;
