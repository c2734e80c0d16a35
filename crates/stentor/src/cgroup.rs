//! Limits of processor time and memory for one process, by control groups, where the machine and the rights allow it.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

const ROOT: &str = "/sys/fs/cgroup";
/// The span over which processor time is counted, in microseconds.
const PERIOD_MICROSECONDS: u64 = 100_000;

/// Groups made by this process: the next is made while the one before still holds its process.
static MADE: AtomicU32 = AtomicU32::new(0);

/// What a process may use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Limits {
    /// Processor time: 100 is one core.
    pub(crate) cpu_percent: Option<u32>,
    /// Memory with the page cache of its files.
    pub(crate) memory_mib: Option<u32>,
}

/// Groups that hold one process; dropping them removes them.
#[derive(Debug)]
pub(crate) struct Cgroup {
    directories: Vec<PathBuf>,
}

/// A file of a group and what is written to it.
type Setting = (&'static str, String);

impl Cgroup {
    /// Makes groups with these limits; `None` without any, and a sentence when the machine does not allow it.
    pub(crate) fn make(limits: Limits) -> Result<Option<Self>, String> {
        Self::make_below(Path::new(ROOT), limits)
    }

    fn make_below(root: &Path, limits: Limits) -> Result<Option<Self>, String> {
        let is_unified = root.join("cgroup.controllers").exists();
        let plan = if is_unified { unified(limits) } else { divided(limits) };
        // Dropped half-made, it removes what was made.
        let mut group = Self { directories: Vec::new() };
        let name = format!("stentor-lab-{}-{}", std::process::id(), MADE.fetch_add(1, Ordering::Relaxed));
        for (controller, settings) in plan {
            let place = if is_unified { root.to_owned() } else { root.join(controller) };
            group.add(&place.join(&name), controller, &settings)?;
        }
        Ok(Some(group).filter(|group| !group.directories.is_empty()))
    }

    fn add(&mut self, directory: &Path, controller: &str, settings: &[Setting]) -> Result<(), String> {
        let refused = |error: std::io::Error| {
            format!("no control group for {controller} can be made at {}: {error}", directory.display())
        };
        if !self.directories.iter().any(|made| made == directory) {
            std::fs::create_dir(directory).map_err(refused)?;
            self.directories.push(directory.to_owned());
        }
        for (file, value) in settings {
            std::fs::write(directory.join(file), value).map_err(refused)?;
        }
        Ok(())
    }

    /// Moves a process into the groups.
    pub(crate) fn take(&self, process: u32) -> std::io::Result<()> {
        let mut files = self.directories.iter().map(|directory| directory.join("cgroup.procs"));
        files.try_for_each(|file| std::fs::write(file, process.to_string()))
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        for directory in &self.directories {
            // Fails only while a process is in it, which its owner has ended before.
            let _ = std::fs::remove_dir(directory);
        }
    }
}

/// One tree for all controllers (version 2).
fn unified(limits: Limits) -> Vec<(&'static str, Vec<Setting>)> {
    let cpu = limits.cpu_percent.map(|percent| {
        ("cpu", vec![("cpu.max", format!("{} {PERIOD_MICROSECONDS}", quota_microseconds(percent)))])
    });
    let memory = limits.memory_mib.map(|mib| ("memory", vec![("memory.max", bytes(mib).to_string())]));
    cpu.into_iter().chain(memory).collect()
}

/// A tree for each controller (version 1).
fn divided(limits: Limits) -> Vec<(&'static str, Vec<Setting>)> {
    let cpu = limits.cpu_percent.map(|percent| {
        let period = ("cpu.cfs_period_us", PERIOD_MICROSECONDS.to_string());
        ("cpu", vec![period, ("cpu.cfs_quota_us", quota_microseconds(percent).to_string())])
    });
    let memory =
        limits.memory_mib.map(|mib| ("memory", vec![("memory.limit_in_bytes", bytes(mib).to_string())]));
    cpu.into_iter().chain(memory).collect()
}

fn quota_microseconds(percent: u32) -> u64 {
    PERIOD_MICROSECONDS * u64::from(percent) / 100
}

fn bytes(mib: u32) -> u64 {
    u64::from(mib) << 20
}

#[cfg(test)]
mod tests {
    use super::*;

    const HALF_A_CORE: Limits = Limits { cpu_percent: Some(50), memory_mib: Some(64) };

    #[test]
    fn limits_are_written_as_each_version_of_control_groups_wants_them() {
        let one = vec![("cpu", vec![("cpu.max", "50000 100000".to_owned())])];
        assert_eq!(unified(Limits { memory_mib: None, ..HALF_A_CORE }), one);
        let [(_, cpu), (_, memory)] = &divided(HALF_A_CORE)[..] else { panic!("two controllers") };
        assert_eq!(cpu[1], ("cpu.cfs_quota_us", "50000".to_owned()));
        assert_eq!(memory[0], ("memory.limit_in_bytes", "67108864".to_owned()));
    }

    #[test]
    fn nothing_is_made_without_limits() {
        assert!(matches!(Cgroup::make(Limits::default()), Ok(None)));
    }

    #[test]
    fn a_controller_that_the_machine_does_not_have_is_named() {
        let root = tempfile::tempdir().unwrap();
        // A plain directory takes the files of the first controller; the second has none.
        std::fs::create_dir(root.path().join("cpu")).unwrap();
        let refusal = Cgroup::make_below(root.path(), HALF_A_CORE).unwrap_err();
        assert!(refusal.contains("for memory") && refusal.contains("/memory/"), "{refusal}");
        let cpu = Limits { memory_mib: None, ..HALF_A_CORE };
        std::fs::remove_dir_all(root.path().join("cpu")).unwrap();
        std::fs::create_dir(root.path().join("cpu")).unwrap();
        let group = Cgroup::make_below(root.path(), cpu).unwrap().unwrap();
        group.take(7).unwrap();
        let written = |file: &str| std::fs::read_to_string(group.directories[0].join(file)).unwrap();
        assert_eq!((written("cpu.cfs_quota_us"), written("cgroup.procs")), ("50000".into(), "7".into()));
    }
}
