//! The memory of the halves, kept from the host of a virtual machine, which takes pages that rest ([`super::pages`]). A thread touches all
//! that is in memory again and again, so that it waits for the pages that come back late, in place of the halves.

use procfs::ProcResult;
use procfs::process::{MMPermissions, MemoryPageFlags, PageInfo, Process};
use rustix::process::setpriority_process;
use rustix::thread::gettid;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// Time between two passes. A host that takes a page of twenty in a second finds one of two hundred between them.
const REST: Duration = Duration::from_millis(100);
/// The keeper runs after all others.
const LAST_IN_LINE: i32 = 19;

/// Keeps the memory of processes until it is dropped.
pub(super) struct MemoryKeeper {
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl MemoryKeeper {
    /// Begins.
    pub(super) fn begin(processes: [u32; 2]) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&is_over);
        Self { is_over, thread: Some(std::thread::spawn(move || keep(processes, &flag))) }
    }
}

impl Drop for MemoryKeeper {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

fn keep(processes: [u32; 2], is_over: &AtomicBool) {
    let _ = setpriority_process(Some(gettid()), LAST_IN_LINE);
    while !is_over.load(Ordering::Relaxed) {
        for process in processes {
            // A process that has ended has no memory to keep.
            let _ = touched(process);
        }
        std::thread::sleep(REST);
    }
}

/// Touches the pages that a process has in memory, and gives it no other. Returns their number.
fn touched(process: u32) -> ProcResult<u64> {
    let process = Process::new(process.cast_signed())?;
    let (maps, mut table, memory) = (process.maps()?, process.pagemap()?, process.mem()?);
    let (bytes, mut touched) = (procfs::page_size(), 0);
    for map in maps.into_iter().filter(|map| map.perms.contains(MMPermissions::READ)) {
        let (from, to) = (map.address.0 / bytes, map.address.1 / bytes);
        // The kernel's own mappings are in no table.
        let Ok(pages) = table.get_range_info(from as usize..to as usize) else { continue };
        for (page, _) in (from..to).zip(pages).filter(|(_, info)| is_present(*info)) {
            touched += u64::from(memory.read_at(&mut [0], page * bytes).is_ok());
        }
    }
    Ok(touched)
}

fn is_present(info: PageInfo) -> bool {
    matches!(info, PageInfo::MemoryPage(flags) if flags.contains(MemoryPageFlags::PRESENT))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Child, Command};

    struct Sleeper(Child);

    impl Sleeper {
        fn begin() -> Self {
            let sleeper = Self(Command::new("sleep").arg("60").spawn().expect("a process"));
            while sleeper.state() != 'S' {
                std::thread::yield_now();
            }
            sleeper
        }

        fn process(&self) -> Process {
            Process::new(self.0.id().cast_signed()).expect("a process")
        }

        fn state(&self) -> char {
            self.process().stat().expect("its state").state
        }

        fn pages(&self) -> u64 {
            self.process().statm().expect("its memory").resident
        }
    }

    impl Drop for Sleeper {
        fn drop(&mut self) {
            self.0.kill().and_then(|()| self.0.wait()).expect("ended");
        }
    }

    #[test]
    fn all_pages_of_a_process_are_touched_and_none_is_added() {
        let sleeper = Sleeper::begin();
        let pages = sleeper.pages();
        let touched = touched(sleeper.0.id()).expect("memory");
        assert!(touched >= pages / 2 && touched > 50, "{touched} of {pages}");
        assert_eq!(sleeper.pages(), pages);
    }

    #[test]
    fn a_keeper_ends_when_it_is_dropped_also_after_its_processes() {
        let sleeper = Sleeper::begin();
        let keeper = MemoryKeeper::begin([sleeper.0.id(), u32::MAX]);
        drop(sleeper);
        drop(keeper);
    }
}
