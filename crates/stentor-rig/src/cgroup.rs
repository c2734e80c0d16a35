//! Limits and usage of processor time and memory by control groups, if the machine and the rights allow it.

use crate::usage::{Usage, UsageSource};
use rustix::process::{Pid, Signal, kill_process};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use std::{fs, io};

const ROOT: &str = "/sys/fs/cgroup";
/// The prefix of our groups' names; the id of the creating process follows.
const PREFIX: &str = "stentor-lab-";
/// The accounting period of processor time, in microseconds: a tenth of the kernel's usual one. Work of some milliseconds is slowed down
/// evenly, instead of running at full speed or waiting for most of a period.
const PERIOD_MICROSECONDS: u64 = 10_000;
const MICROSECOND_NS: u64 = 1_000;
/// The time that a killed process may take to end.
const END_WITHIN: Duration = Duration::from_secs(2);
const LOOK_EVERY: Duration = Duration::from_millis(2);

/// Groups made by this process: the next is made while the one before still holds its process.
static MADE: AtomicU32 = AtomicU32::new(0);

/// The limits of a group of processes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CgroupLimits {
    /// Processor time: 100 is one core; the kernel takes 10 and more.
    pub cpu_percent: Option<u32>,
    /// Memory with the page cache of its files.
    pub memory_bytes: Option<u64>,
}

/// The reason why there is no control group.
#[derive(Debug, thiserror::Error)]
#[error("no control group for {controller} can be made at {}: {source}", directory.display())]
pub struct CgroupError {
    controller: &'static str,
    directory: PathBuf,
    source: io::Error,
}

/// Groups that hold processes together; dropping them removes them.
#[derive(Debug)]
pub struct Cgroup {
    is_unified: bool,
    directories: Vec<PathBuf>,
}

/// A file of a group and the value written to it.
type Setting = (&'static str, String);
/// A controller and its settings.
type GroupSettings = (&'static str, Vec<Setting>);

/// Names the version of control groups that this machine has.
#[must_use]
pub fn version() -> &'static str {
    if is_unified(Path::new(ROOT)) { "v2" } else { "v1" }
}

fn is_unified(root: &Path) -> bool {
    root.join("cgroup.controllers").exists()
}

impl Cgroup {
    /// Creates groups with these limits; `None` without any.
    pub fn make(limits: CgroupLimits) -> Result<Option<Self>, CgroupError> {
        Self::make_below(Path::new(ROOT), limits, false)
    }

    /// Creates groups with these limits that also count usage, even without any limit.
    pub fn make_counting(limits: CgroupLimits) -> Result<Self, CgroupError> {
        let made = Self::make_below(Path::new(ROOT), limits, true)?;
        Ok(made.unwrap_or(Self { is_unified: false, directories: Vec::new() }))
    }

    fn make_below(root: &Path, limits: CgroupLimits, counts: bool) -> Result<Option<Self>, CgroupError> {
        let is_unified = is_unified(root);
        let plan = if is_unified { unified(limits, counts) } else { divided(limits, counts) };
        // Dropped after an error, it removes the directories created so far.
        let mut group = Self { is_unified, directories: Vec::new() };
        let name = format!("{PREFIX}{}-{}", std::process::id(), MADE.fetch_add(1, Ordering::Relaxed));
        for (controller, settings) in plan {
            let place = if is_unified { root.to_owned() } else { root.join(controller) };
            if is_unified {
                // A failure is ignored: if the controller is missing, writing the files below fails.
                let _ = fs::write(root.join("cgroup.subtree_control"), format!("+{controller}"));
            }
            // Two controllers can be one tree under two names.
            let place = fs::canonicalize(&place).unwrap_or(place);
            sweep(&place);
            group.add(&place.join(&name), controller, &settings)?;
        }
        Ok(Some(group).filter(|group| !group.directories.is_empty()))
    }

    fn add(
        &mut self,
        directory: &Path,
        controller: &'static str,
        settings: &[Setting],
    ) -> Result<(), CgroupError> {
        let refused = |source| CgroupError { controller, directory: directory.to_owned(), source };
        if !self.directories.iter().any(|made| made == directory) {
            fs::create_dir(directory).map_err(refused)?;
            self.directories.push(directory.to_owned());
        }
        for (file, value) in settings {
            fs::write(directory.join(file), value).map_err(refused)?;
        }
        Ok(())
    }

    /// Moves a process into the groups, with all its threads.
    pub fn take(&self, process: u32) -> io::Result<()> {
        self.write_each("cgroup.procs", process)
    }

    /// Moves one thread into the groups, so that processes started by it are born there. Returns `false` if only whole processes can be
    /// moved (version 2).
    pub fn take_thread(&self, thread: u32) -> io::Result<bool> {
        if !self.is_unified {
            self.write_each("tasks", thread)?;
        }
        Ok(!self.is_unified)
    }

    /// Limits the processor time of its processes from now on, or lifts the limit. Only groups created with such a limit can be changed.
    pub fn hold_cpu(&self, percent: Option<u32>) -> io::Result<()> {
        let (file, value) = quota(self.is_unified, percent);
        let directory = self.directories.iter().find(|directory| directory.join(file).exists());
        let missing = || io::Error::new(io::ErrorKind::NotFound, format!("no control group has {file}"));
        fs::write(directory.ok_or_else(missing)?.join(file), value)
    }

    /// Returns the usage of its processes since it was created.
    pub fn usage(&self) -> io::Result<Usage> {
        let cpu_ns = match self.read("cpuacct.usage") {
            Ok(text) => number(&text)?,
            Err(_) => stat(&self.read("cpu.stat")?, "usage_usec")? * MICROSECOND_NS,
        };
        let peak = self.read("memory.max_usage_in_bytes").or_else(|_| self.read("memory.peak"))?;
        Ok(Usage { cpu_ns, memory_peak_bytes: number(&peak)?, source: UsageSource::Cgroup })
    }

    /// Ends every other process that is still in the groups, and waits a little until they are gone.
    pub fn end_all(&self) {
        // Version 1 lists a process of which only one thread is in the group: us.
        let ours = Pid::from_raw(std::process::id().cast_signed());
        let deadline = Instant::now() + END_WITHIN;
        loop {
            let listed = self.read("cgroup.procs").unwrap_or_default();
            let left: Vec<Pid> = listed
                .lines()
                .filter_map(|line| Pid::from_raw(line.parse().ok()?))
                .filter(|process| Some(*process) != ours)
                .collect();
            if left.is_empty() || Instant::now() > deadline {
                return;
            }
            for process in left {
                // An error means that the process has already ended.
                let _ = kill_process(process, Signal::KILL);
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }

    fn write_each(&self, file: &str, id: u32) -> io::Result<()> {
        self.directories.iter().try_for_each(|directory| fs::write(directory.join(file), id.to_string()))
    }

    fn read(&self, file: &str) -> io::Result<String> {
        let found =
            self.directories.iter().find_map(|directory| fs::read_to_string(directory.join(file)).ok());
        found.ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, format!("no control group has {file}")))
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        for directory in &self.directories {
            // Fails only while a process is in it, which its owner has ended before.
            let _ = fs::remove_dir(directory);
        }
    }
}

/// Removes the empty groups of our earlier processes that were killed before they could remove them.
fn sweep(place: &Path) {
    let Ok(entries) = fs::read_dir(place) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let maker =
            name.to_str().and_then(|name| name.strip_prefix(PREFIX)?.split('-').next()?.parse::<u32>().ok());
        if maker.is_some_and(|maker| !Path::new("/proc").join(maker.to_string()).exists()) {
            // Fails while a process is in it.
            let _ = fs::remove_dir(entry.path());
        }
    }
}

/// One tree for all controllers (version 2).
fn unified(limits: CgroupLimits, counts: bool) -> Vec<GroupSettings> {
    let cpu = limits.cpu_percent.map(|percent| ("cpu", vec![quota(true, Some(percent))]));
    let memory = limits.memory_bytes.map(|bytes| ("memory", vec![("memory.max", bytes.to_string())]));
    let counted = |controller| counts.then(|| (controller, Vec::new()));
    cpu.or_else(|| counted("cpu")).into_iter().chain(memory.or_else(|| counted("memory"))).collect()
}

/// A tree for each controller (version 1).
fn divided(limits: CgroupLimits, counts: bool) -> Vec<GroupSettings> {
    let cpu = limits.cpu_percent.map(|percent| {
        let period = ("cpu.cfs_period_us", PERIOD_MICROSECONDS.to_string());
        ("cpu", vec![period, quota(false, Some(percent))])
    });
    let memory =
        limits.memory_bytes.map(|bytes| ("memory", vec![("memory.limit_in_bytes", bytes.to_string())]));
    let counted = |controller| counts.then(|| (controller, Vec::new()));
    let memory = memory.or_else(|| counted("memory"));
    cpu.into_iter().chain(counted("cpuacct")).chain(memory).collect()
}

/// Processor time of each period, as both versions want it written.
fn quota(is_unified: bool, percent: Option<u32>) -> Setting {
    let microseconds = percent.map(|percent| PERIOD_MICROSECONDS * u64::from(percent) / 100);
    if is_unified {
        let most = microseconds.map_or_else(|| "max".to_owned(), |most| most.to_string());
        ("cpu.max", format!("{most} {PERIOD_MICROSECONDS}"))
    } else {
        ("cpu.cfs_quota_us", microseconds.map_or_else(|| "-1".to_owned(), |most| most.to_string()))
    }
}

fn number(text: &str) -> io::Result<u64> {
    text.trim().parse().map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

/// Finds a line `name value`.
fn stat(text: &str, name: &str) -> io::Result<u64> {
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    number(value.unwrap_or_default())
}

#[cfg(test)]
mod tests;
