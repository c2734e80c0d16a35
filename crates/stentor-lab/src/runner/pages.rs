//! The memory that a host takes from its guest. A touched page that is not there comes back late, and the guest counts the wait as
//! processor time of the one who touched it: no steal time, no page fault and no load shows it.

use rustix::fs::{MemfdFlags, memfd_create};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

const PAGE_BYTES: usize = 4096;
/// 4 MiB, so that a share of a hundredth is ten pages.
const PAGES: usize = 1024;
/// A page in memory takes less than a microsecond, a page from a host some 100.
const LATE: Duration = Duration::from_micros(50);

/// Waits a second. Returns the share of pages that a host took in it, in percent; `None` if it cannot be measured.
#[must_use]
pub fn late_pages_percent() -> Option<f64> {
    let mut probe = PageProbe::new();
    std::thread::sleep(Duration::from_secs(1));
    probe.touch(PAGES);
    probe.late_percent()
}

/// Pages that are touched in turn. They are a file in memory: other memory may be huge pages, of which hosts take 512 at once.
pub(super) struct PageProbe {
    file: Option<File>,
    next: usize,
    touched: u64,
    late: u64,
}

impl PageProbe {
    /// Takes the memory.
    pub(super) fn new() -> Self {
        let file = memfd_create(c"stentor-pages", MemfdFlags::CLOEXEC).ok().map(File::from);
        let file = file.filter(|file| file.write_all_at(&[1; PAGES * PAGE_BYTES], 0).is_ok());
        Self { file, next: 0, touched: 0, late: 0 }
    }

    /// Touches the next pages.
    pub(super) fn touch(&mut self, pages: usize) {
        for _ in 0..pages {
            let Some(file) = &self.file else { return };
            let began = Instant::now();
            if file.read_exact_at(&mut [0], (self.next * PAGE_BYTES) as u64).is_ok() {
                self.add(began.elapsed());
            }
            self.next = (self.next + 1) % PAGES;
        }
    }

    fn add(&mut self, took: Duration) {
        self.touched += 1;
        self.late += u64::from(took > LATE);
    }

    /// Returns the share of pages that came back late, in percent; `None` before all were touched.
    pub(super) fn late_percent(&self) -> Option<f64> {
        (self.touched >= PAGES as u64).then(|| 100.0 * self.late as f64 / self.touched as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_touched_in_turn_and_judged_once_all_were() {
        let mut probe = PageProbe::new();
        probe.touch(PAGES - 1);
        assert_eq!((probe.late_percent(), probe.touched), (None, PAGES as u64 - 1));
        probe.touch(2);
        assert_eq!((probe.late_percent().is_some(), probe.next), (true, 1));
    }

    #[test]
    fn a_page_is_late_beyond_fifty_microseconds() {
        let mut probe = PageProbe { touched: PAGES as u64, ..PageProbe::new() };
        probe.add(Duration::from_micros(50));
        assert_eq!(probe.late_percent(), Some(0.0));
        probe.add(Duration::from_micros(51));
        assert_eq!(probe.late_percent(), Some(100.0 / (PAGES as f64 + 2.0)));
    }
}
