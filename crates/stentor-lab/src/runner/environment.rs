//! The environment of a fork.

use crate::record::Environment;
use stentor_machine::emulation;
use stentor_machine::facts::{COMPILER, fact, hypervisor, line, processor, processor_model};

/// Reads the system's description; values that the system does not provide are left empty.
#[must_use]
pub fn environment(rig: &str, cgroup: &str, idle: &str, commit: &str) -> Environment {
    let load = load();
    Environment {
        kernel: line("/proc/sys/kernel/osrelease"),
        cpu: processor(),
        cpu_model: processor_model(),
        hypervisor: hypervisor(),
        compiler: COMPILER.to_owned(),
        cores: std::thread::available_parallelism()
            .map_or(0, |cores| u32::try_from(cores.get()).unwrap_or(0)),
        memory_bytes: memory_bytes(),
        governor: line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        idle: idle.to_owned(),
        load_before: load,
        load_after: load,
        psi_cpu: psi(),
        rig: rig.to_owned(),
        cgroup: cgroup.to_owned(),
        tool_version: env!("CARGO_PKG_VERSION").to_owned(),
        commit: commit.to_owned(),
        optimized: !cfg!(debug_assertions),
        emulated: emulation::here().unwrap_or_default(),
    }
}

/// Returns the load average over a minute.
pub(super) fn load() -> f64 {
    line("/proc/loadavg").split(' ').next().and_then(|text| text.parse().ok()).unwrap_or(0.0)
}

fn memory_bytes() -> u64 {
    let text = fact("/proc/meminfo", "MemTotal");
    text.trim_end_matches(" kB").parse::<u64>().map_or(0, |size| size << 10)
}

fn psi() -> Option<f64> {
    let line = line("/proc/pressure/cpu");
    line.split(' ').find_map(|word| word.strip_prefix("avg10=")).and_then(|share| share.parse().ok())
}
