//! Reads on the calling thread: their largest number, and the pause after a slow one.
//!
//! Reading a few rows by their keys takes some microseconds if the file's pages are in the system's memory. Handing the read to another
//! thread and back takes tens of microseconds, for two wake-ups. If the pages are not in memory, the thread blocks on the disk, and so do
//! all its other tasks. This cannot be known in advance. Therefore there are three bounds. One worker of the calling runtime never reads by
//! itself, however long the disk takes. A read that waited for the disk is followed by a pause many times as long, during which reads go to
//! other threads. Only look-ups of a few rows are done here at all. A read that waited for a processor is followed by no pause: if
//! processors are scarce, two more wake-ups make them scarcer.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// The duration above which a read must have waited.
const SLOW: Duration = Duration::from_millis(1);
/// The pause after a slow read, as a multiple of its duration: a worker waits for at most a twentieth of its time.
const PAUSE_TIMES: u32 = 20;
/// The longest pause, after a disk that hung.
const PAUSE_MAX: Duration = Duration::from_secs(10);

/// The reads on calling threads: their number, and the end of the pause.
pub(super) struct InlineReads {
    origin: Instant,
    running: AtomicUsize,
    /// Microseconds after the origin.
    paused_until_us: AtomicU64,
}

/// The right to one read; given back when this is dropped.
pub(super) struct InlineTurn<'a> {
    reads: &'a InlineReads,
    began: Instant,
}

/// The reason why a read must not run on the calling thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NotInline {
    /// The limit is reached at the moment.
    Now,
    /// The runtime has one worker, or a read was slow lately.
    ForLonger,
}

impl InlineReads {
    /// Allows reads from now on.
    pub(super) fn new(now: Instant) -> Self {
        Self { origin: now, running: AtomicUsize::new(0), paused_until_us: AtomicU64::new(0) }
    }

    /// Starts a read, in a runtime of `workers` workers.
    pub(super) fn begin(&self, workers: usize, now: Instant) -> Result<InlineTurn<'_>, NotInline> {
        if workers < 2 || self.micros(now) < self.paused_until_us.load(Ordering::Relaxed) {
            return Err(NotInline::ForLonger);
        }
        // Once for each thread.
        READ_BEFORE.with(|_| ());
        // Counted and checked in one step: two reads that begin at once must not each count on the other's worker.
        let others = self.running.fetch_add(1, Ordering::Relaxed);
        // Created before the decision: a refused turn gives its count back when it is dropped.
        let turn = InlineTurn { reads: self, began: now };
        if others + 1 < workers { Ok(turn) } else { Err(NotInline::Now) }
    }

    fn micros(&self, at: Instant) -> u64 {
        at.saturating_duration_since(self.origin).as_micros() as u64
    }
}

impl InlineTurn<'_> {
    /// Ends the read; a slow one causes a pause, unless it is known that it did not wait for the disk.
    pub(super) fn end(self, now: Instant, has_read_disk: impl FnOnce() -> bool) {
        let took = now.saturating_duration_since(self.began);
        if took > SLOW && has_read_disk() {
            let until = now + (took * PAUSE_TIMES).min(PAUSE_MAX);
            self.reads.paused_until_us.fetch_max(self.reads.micros(until), Ordering::Relaxed);
        }
    }
}

impl Drop for InlineTurn<'_> {
    fn drop(&mut self) {
        self.reads.running.fetch_sub(1, Ordering::Relaxed);
    }
}

thread_local! {
    /// The bytes that this thread had read from disk at the last check, or at its first read here.
    static READ_BEFORE: Cell<Option<u64>> = Cell::new(disk_bytes());
}

/// Returns true if this thread has read from a disk since the last check, or if the system does not report it.
pub(super) fn has_read_disk() -> bool {
    let bytes = disk_bytes();
    READ_BEFORE.replace(bytes) != bytes || bytes.is_none()
}

/// Returns the bytes that this thread has read from storage (proc_pid_io(5)); a page in memory adds nothing.
fn disk_bytes() -> Option<u64> {
    let counts = std::fs::read_to_string("/proc/thread-self/io").ok()?;
    counts.lines().find_map(|line| line.strip_prefix("read_bytes: ")?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(turn: Result<InlineTurn<'_>, NotInline>) -> Option<NotInline> {
        turn.err()
    }

    #[test]
    fn one_worker_never_reads_itself() {
        let now = Instant::now();
        let reads = InlineReads::new(now);
        assert_eq!(refusal(reads.begin(1, now)), Some(NotInline::ForLonger), "the only one");
        let first = reads.begin(3, now);
        let second = reads.begin(3, now);
        assert!(first.is_ok() && second.is_ok());
        assert_eq!(refusal(reads.begin(3, now)), Some(NotInline::Now));
        drop(first);
        assert_eq!(
            refusal(reads.begin(3, now)),
            None,
            "a turn was given back, and the refused one took none"
        );
    }

    #[test]
    fn a_slow_read_is_followed_by_a_pause_many_times_as_long() {
        let now = Instant::now();
        let reads = InlineReads::new(now);
        let read = |began: Instant, took: Duration| {
            reads.begin(2, began).expect("it may").end(began + took, || true);
            began + took
        };
        let after = read(now, SLOW);
        assert_eq!(refusal(reads.begin(2, after)), None, "it was not slow");
        let after = read(after, Duration::from_millis(4));
        assert_eq!(refusal(reads.begin(2, after + Duration::from_millis(79))), Some(NotInline::ForLonger));
        let after = read(after + Duration::from_millis(80), Duration::from_secs(60));
        assert_eq!(refusal(reads.begin(2, after + Duration::from_millis(9_999))), Some(NotInline::ForLonger));
        let after = after + PAUSE_MAX;
        assert_eq!(refusal(reads.begin(2, after)), None, "it is tried again in the end");
        reads.begin(2, after).expect("it may").end(after + SLOW * 2, || false);
        assert_eq!(refusal(reads.begin(2, after + SLOW * 2)), None, "it waited for a processor");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_thread_that_reads_from_memory_has_nothing_from_the_disk() {
        assert!(disk_bytes().is_some(), "the system tells");
        assert!(!has_read_disk());
        READ_BEFORE.set(None);
        assert!(has_read_disk(), "nothing was known before");
        assert!(!has_read_disk(), "and once it is told, it is known");
    }
}
