//! Facts of the system from its files; missing ones are empty.

/// Returns a file's first line.
#[must_use]
pub fn line(path: &str) -> String {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.lines().next().unwrap_or_default().to_owned()
}

/// Returns the value of a name in a file of names and values.
#[must_use]
pub fn fact(path: &str, name: &str) -> String {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    line.unwrap_or_default().trim_start_matches([':', ' ', '\t']).to_owned()
}

/// The compiler of this program.
pub const COMPILER: &str = env!("STENTOR_COMPILER");
/// The leaf of CPUID in which a hypervisor tells its name.
#[cfg(target_arch = "x86_64")]
const HYPERVISOR_LEAF: u32 = 0x4000_0000;

/// Returns family, model and stepping of the processor, which tell more than the name that a hypervisor passes on; empty if the kernel does
/// not list them.
#[must_use]
pub fn processor_model() -> String {
    let part = |name: &str, word: &str| {
        let value = fact("/proc/cpuinfo", name);
        (!value.is_empty()).then(|| format!("{word} {value}"))
    };
    let parts = [part("cpu family", "family"), part("model\t", "model"), part("stepping", "stepping")];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// Returns the name of the hypervisor, `none` on a bare machine, and an empty text on processors that cannot tell.
#[must_use]
pub fn hypervisor() -> String {
    let flags = fact("/proc/cpuinfo", "flags");
    if flags.is_empty() {
        String::new()
    } else if flags.split(' ').any(|flag| flag == "hypervisor") {
        hypervisor_name()
    } else {
        "none".to_owned()
    }
}

#[cfg(target_arch = "x86_64")]
fn hypervisor_name() -> String {
    let leaf = core::arch::x86_64::__cpuid(HYPERVISOR_LEAF);
    let letters = [leaf.ebx, leaf.ecx, leaf.edx].map(u32::to_le_bytes);
    let name = String::from_utf8_lossy(letters.as_flattened()).into_owned();
    name.trim_matches(['\0', ' ']).to_owned()
}

#[cfg(not(target_arch = "x86_64"))]
fn hypervisor_name() -> String {
    String::new()
}

/// Processor time of the whole machine since its start, in clock ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessorTicks {
    all: u64,
    stolen: u64,
}

impl ProcessorTicks {
    /// Reads the counters; `None` if the kernel does not have them.
    #[must_use]
    pub fn now() -> Option<Self> {
        Self::parse(&line("/proc/stat"))
    }

    /// Parses the line of all processors. Guests are part of user and nice, so they are not added again.
    fn parse(line: &str) -> Option<Self> {
        let ticks = line.strip_prefix("cpu ")?.split_whitespace().take(8).map(str::parse::<u64>);
        let ticks: Vec<u64> = ticks.collect::<Result<_, _>>().ok()?;
        Some(Self { all: ticks.iter().sum(), stolen: *ticks.get(7)? })
    }

    /// Returns the time that the hypervisor gave to others since `before`, in percent of the processors' time.
    #[must_use]
    pub fn stolen_percent_since(&self, before: &Self) -> f64 {
        let all = self.all.saturating_sub(before.all).max(1);
        100.0 * self.stolen.saturating_sub(before.stolen) as f64 / all as f64
    }
}

/// Returns the name of the processor, or of the board if the kernel names only that.
#[must_use]
pub fn processor() -> String {
    let name = fact("/proc/cpuinfo", "model name");
    if name.is_empty() { fact("/proc/cpuinfo", "Model") } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stolen_time_is_a_share_of_all_time_without_that_of_guests() {
        let ticks = |line: &str| ProcessorTicks::parse(line).expect("a line of ticks");
        let before = ticks("cpu  100 0 100 700 0 0 0 100 50 0");
        let after = ticks("cpu  150 0 100 725 0 0 0 125 99 0");
        assert!((after.stolen_percent_since(&before) - 25.0).abs() < 1e-9);
        assert_eq!(after.stolen_percent_since(&after), 0.0);
        assert_eq!(ProcessorTicks::parse("cpu  1 2 3"), None);
    }

    #[test]
    fn the_compiler_is_named_with_its_version() {
        assert!(COMPILER.starts_with("rustc 1."), "{COMPILER}");
    }
}
