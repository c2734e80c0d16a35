//! Detection of an emulated processor: times measured on one say nothing about any processor.
//!
//! An emulator of single programs (such as qemu-user) passes on the host kernel's files, and newer ones rewrite `/proc/cpuinfo`. So several
//! files are read, and one that shows another processor is enough. Not detected are an emulated machine as a whole (its kernel is of the
//! emulated kind too), an emulator on a host of the same kind, and one that rewrites `/proc/cpuinfo` on a kernel older than 6.1 that shows
//! no clocks.

/// The text printed in place of times.
pub const NOT_TIMED: &str = "not timed: the processor is emulated";

const KERNEL: &str = "/proc/sys/kernel/arch";
const CPUINFO: &str = "/proc/cpuinfo";
const CLOCKS: &str = "/sys/devices/system/clocksource/clocksource0/available_clocksource";

/// A kind of processor, with the traits of its kernels.
struct ProcessorKind {
    /// Its names in the compiler.
    programs: &'static [&'static str],
    /// Prefixes of the names of its kernels.
    kernels: &'static [&'static str],
    /// A name in `/proc/cpuinfo`.
    fact: &'static str,
    /// Clocks that are part of it.
    clocks: &'static [&'static str],
}

const KINDS: [ProcessorKind; 2] = [
    ProcessorKind {
        programs: &["aarch64", "arm"],
        kernels: &["aarch64", "arm"],
        fact: "CPU implementer",
        clocks: &["arch_sys_counter"],
    },
    ProcessorKind {
        programs: &["x86_64", "x86"],
        kernels: &["x86_64", "i386", "i486", "i586", "i686"],
        fact: "vendor_id",
        clocks: &["tsc", "hpet", "acpi_pm"],
    },
];

/// The system's files about the processor; empty if missing.
#[derive(Debug, Clone, Default)]
pub struct ProcessorFacts {
    /// The architecture of the kernel (`/proc/sys/kernel/arch`, since Linux 6.1).
    pub kernel: String,
    /// The text of `/proc/cpuinfo`.
    pub cpuinfo: String,
    /// The clocks available to the kernel.
    pub clocks: String,
}

/// Returns the evidence that the processor here is emulated; `None` if there is none.
#[must_use]
pub fn here() -> Option<String> {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let facts = ProcessorFacts { kernel: read(KERNEL), cpuinfo: read(CPUINFO), clocks: read(CLOCKS) };
    facts.emulates(std::env::consts::ARCH)
}

impl ProcessorFacts {
    /// Returns the evidence that a program built for `program` runs on an emulated processor.
    #[must_use]
    pub fn emulates(&self, program: &str) -> Option<String> {
        let own = KINDS.iter().find(|kind| kind.programs.contains(&program))?;
        let kernel = self.kernel.trim();
        if !kernel.is_empty() && !own.kernels.iter().any(|name| kernel.starts_with(name)) {
            return Some(format!("built for {program}, and {KERNEL} says {kernel}"));
        }
        let foreign = || KINDS.iter().filter(|kind| kind.fact != own.fact);
        if let Some(kind) = foreign().find(|kind| self.has_fact(kind.fact)) {
            return Some(format!("built for {program}, and {CPUINFO} has {}", kind.fact));
        }
        let clock = foreign().flat_map(|kind| kind.clocks).find(|clock| self.has_clock(clock))?;
        Some(format!("built for {program}, and the kernel has the clock {clock}"))
    }

    fn has_fact(&self, name: &str) -> bool {
        self.cpuinfo.lines().filter_map(|line| line.split_once(':')).any(|(fact, _)| fact.trim() == name)
    }

    fn has_clock(&self, name: &str) -> bool {
        self.clocks.split_whitespace().any(|clock| clock == name)
    }
}

#[cfg(test)]
mod tests;
