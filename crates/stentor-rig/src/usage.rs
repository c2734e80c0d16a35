//! The resource usage of a side.

use parking_lot::{Mutex, MutexGuard};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fs;

const SECOND_NS: u64 = 1_000_000_000;

/// Processor time and memory of all processes of a side since the rig was raised.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Usage {
    /// Processor time of user and kernel, in nanoseconds.
    pub cpu_ns: u64,
    /// The most memory that was held at once, in bytes.
    pub memory_peak_bytes: u64,
    /// The source of the two values.
    pub source: UsageSource,
}

/// The source of a usage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum UsageSource {
    /// The side's control group: every process, to its end.
    Cgroup,
    /// `/proc`, sampled at each read: the usage of a process after the last sample is missing, times come in steps of 10 ms, and memory is
    /// the sum of each process' own peak.
    #[default]
    Proc,
}

/// Samples processes in `/proc`, and remembers the values of those that have ended.
#[derive(Debug, Default)]
pub(crate) struct ProcMeter {
    seen: Mutex<BTreeMap<u32, ProcessReading>>,
}

#[derive(Clone, Copy, Debug, Default)]
struct ProcessReading {
    cpu_ns: u64,
    memory_peak_bytes: u64,
    has_gone: bool,
}

impl ProcMeter {
    /// Watches a process from now on.
    pub(crate) fn add(&self, process: u32) {
        self.lock().insert(process, ProcessReading::default());
    }

    /// Returns the usage of all processes together, as far as it could be sampled.
    pub(crate) fn look(&self) -> Usage {
        let mut seen = self.lock();
        for (process, seen) in seen.iter_mut().filter(|(_, seen)| !seen.has_gone) {
            match read(*process) {
                // Once gone, its number can become another's.
                None => seen.has_gone = true,
                Some(now) => {
                    seen.cpu_ns = seen.cpu_ns.max(now.cpu_ns);
                    seen.memory_peak_bytes = seen.memory_peak_bytes.max(now.memory_peak_bytes);
                }
            }
        }
        Usage {
            cpu_ns: seen.values().map(|seen| seen.cpu_ns).sum(),
            memory_peak_bytes: seen.values().map(|seen| seen.memory_peak_bytes).sum(),
            source: UsageSource::Proc,
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u32, ProcessReading>> {
        self.seen.lock()
    }
}

fn read(process: u32) -> Option<ProcessReading> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    Some(ProcessReading { cpu_ns: cpu_ns(&stat)?, memory_peak_bytes: peak_bytes(&status), has_gone: false })
}

/// User and system time of a process and of the children that it has waited for; the fields follow the name in parentheses.
fn cpu_ns(stat: &str) -> Option<u64> {
    let (_, fields) = stat.rsplit_once(')')?;
    let ticks: u64 =
        fields.split_whitespace().skip(11).take(4).map_while(|ticks| ticks.parse::<u64>().ok()).sum();
    Some(ticks * (SECOND_NS / rustix::param::clock_ticks_per_second().max(1)))
}

/// The peak of resident memory; a process that has ended, but was not waited for, has none.
fn peak_bytes(status: &str) -> u64 {
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix("kB"));
    peak.and_then(|kib| kib.trim().parse::<u64>().ok()).unwrap_or(0) * 1024
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_spaces_and_parentheses_does_not_shift_the_fields() {
        let stat = "7 (a) b) S 1 1 1 0 -1 4194304 100 0 0 0 3 4 0 0 20 0 1";
        assert_eq!(cpu_ns(stat), Some(7 * SECOND_NS / rustix::param::clock_ticks_per_second()));
        assert_eq!(peak_bytes("VmPeak:\t 9 kB\nVmHWM:\t    12 kB\n"), 12 * 1024);
    }

    #[test]
    fn what_a_process_used_is_remembered_when_it_has_gone() {
        let meter = ProcMeter::default();
        meter.add(std::process::id());
        meter.look();
        let gone = 4_294_967;
        meter.lock().insert(gone, ProcessReading { cpu_ns: 5, memory_peak_bytes: 9, has_gone: false });
        let usage = meter.look();
        assert!(usage.cpu_ns >= 5 && usage.memory_peak_bytes > 9, "{usage:?}");
        assert!(meter.lock()[&gone].has_gone);
    }
}
