//! Metrics of the process, under the names that all exporters use, and of the build.

use std::fs;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use rustix::process::{Resource, getrlimit};

use super::{Labels, Written, gauges, seconds};

/// The state of the process at one moment; values that the system does not provide are absent.
#[derive(Debug, Default)]
pub(super) struct ProcessFacts {
    cpu_seconds: Option<f64>,
    start_seconds: Option<f64>,
    resident_bytes: Option<f64>,
    virtual_bytes: Option<f64>,
    threads: Option<f64>,
    open_fds: Option<f64>,
    max_fds: Option<f64>,
}

impl ProcessFacts {
    /// Reads the current state from proc(5).
    pub(super) fn now() -> Self {
        let (stat, statm) = (read("/proc/self/stat"), read("/proc/self/statm"));
        // The name of the program, in parentheses, may contain anything: fields are counted from its end.
        let stat: Vec<f64> = numbers(stat.rsplit(')').next().unwrap_or_default());
        let statm = numbers(&statm);
        let (ticks, page) =
            (rustix::param::clock_ticks_per_second() as f64, rustix::param::page_size() as f64);
        let of_stat = |field: usize| stat.get(field - STAT_FIRST_FIELD).copied();
        let of_statm = |field: usize| statm.get(field).map(|pages| pages * page);
        let booted =
            read("/proc/stat").lines().find_map(|line| line.strip_prefix("btime ")?.parse::<f64>().ok());
        Self {
            cpu_seconds: of_stat(14).zip(of_stat(15)).map(|(user, system)| (user + system) / ticks),
            start_seconds: booted.zip(of_stat(22)).map(|(booted, since)| booted + since / ticks),
            virtual_bytes: of_statm(0),
            resident_bytes: of_statm(1),
            threads: of_stat(20),
            open_fds: fs::read_dir("/proc/self/fd").ok().map(|open| open.count() as f64),
            max_fds: getrlimit(Resource::Nofile).current.map(|max| max as f64),
        }
    }
}

/// The number of the first field behind the program's name in /proc/self/stat.
const STAT_FIRST_FIELD: usize = 3;

impl Collector for ProcessFacts {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Written {
        let to = &mut encoder;
        let of = |value: Option<f64>| value.map(|value| (Labels::new(), value));
        seconds(to, "process_cpu_seconds", "Processor time used", of(self.cpu_seconds))?;
        for (name, help, value) in [
            (
                "process_start_time_seconds",
                "When the process began, in seconds since 1970",
                self.start_seconds,
            ),
            ("process_resident_memory_bytes", "Memory in use", self.resident_bytes),
            ("process_virtual_memory_bytes", "Memory addressed", self.virtual_bytes),
            ("process_threads", "Threads", self.threads),
            ("process_open_fds", "Open file descriptors", self.open_fds),
            ("process_max_fds", "Most file descriptors that may be open", self.max_fds),
        ] {
            gauges(to, name, help, of(value))?;
        }
        Ok(())
    }
}

/// Writes the build information.
pub(super) fn encode_build(to: &mut DescriptorEncoder<'_>) -> Written {
    let labels = vec![
        ("version", env!("CARGO_PKG_VERSION").to_owned()),
        ("os", std::env::consts::OS.to_owned()),
        ("arch", std::env::consts::ARCH.to_owned()),
    ];
    gauges(to, "build_info", "The build; the value is always 1", [(labels, 1.0)])
}

fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

/// Parses numbers; the state, which is a letter, becomes a placeholder.
fn numbers(text: &str) -> Vec<f64> {
    text.split_whitespace().map(|word| word.parse().unwrap_or_default()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_process_is_told_in_numbers_that_can_be() {
        let facts = ProcessFacts::now();
        assert!(facts.cpu_seconds.is_some_and(|seconds| seconds >= 0.0), "{facts:?}");
        assert!(facts.start_seconds.is_some_and(|start| start > 1.6e9), "{facts:?}");
        assert!(facts.resident_bytes.is_some_and(|bytes| bytes > 100_000.0), "{facts:?}");
        assert!(facts.resident_bytes <= facts.virtual_bytes, "{facts:?}");
        assert!(
            facts.open_fds.is_some_and(|open| open >= 3.0) && facts.open_fds <= facts.max_fds,
            "{facts:?}"
        );
        assert!(facts.threads.is_some_and(|threads| threads >= 1.0), "{facts:?}");
    }
}
