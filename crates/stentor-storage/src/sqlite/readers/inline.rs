//! Reads on the thread that asks: how many at once, and for how long none after a slow one.
//!
//! To read a few rows by their keys takes some microseconds where the file's pages are in the system's memory; to hand the
//! read to a thread of its own and back takes tens of them, for two wake-ups. Where the pages are not in memory, the thread
//! waits for the disk, and so does all that it has to do. Nobody can know before. So there are three bounds: one worker of the
//! asking runtime never reads itself, however long the disk takes; a read that waited for the disk is followed by a pause
//! many times as long, in which reads go to threads of their own; and only look-ups of a few rows come here at all. A read that
//! waited for a processor is followed by none: where processors are short, two more wake-ups make them shorter.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// A read that takes longer waited for something.
const SLOW: Duration = Duration::from_millis(1);
/// The pause after a slow read, in times of what it took: a worker waits for at most a twentieth of its time.
const PAUSE_TIMES: u32 = 20;
/// After a disk that hung, look again so soon.
const PAUSE_MAX: Duration = Duration::from_secs(10);

/// How many reads are done where they are asked for, and whether they may be.
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

/// Why a read must not be done where it is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NotInline {
    /// As many are, for the moment.
    Now,
    /// The runtime has one worker, or a read was slow lately.
    ForLonger,
}

impl InlineReads {
    /// Allows reads from now on.
    pub(super) fn new(now: Instant) -> Self {
        Self { origin: now, running: AtomicUsize::new(0), paused_until_us: AtomicU64::new(0) }
    }

    /// Lets a read begin, in a runtime of so many workers.
    pub(super) fn begin(&self, workers: usize, now: Instant) -> Result<InlineTurn<'_>, NotInline> {
        if workers < 2 || self.micros(now) < self.paused_until_us.load(Ordering::Relaxed) {
            return Err(NotInline::ForLonger);
        }
        // Once for each thread.
        READ_BEFORE.with(|_| ());
        // Counted and asked in one step: two that begin at once must not each count on the other's worker.
        let others = self.running.fetch_add(1, Ordering::Relaxed);
        // Made before it is decided: the turn that is refused gives its count back when it is dropped.
        let turn = InlineTurn { reads: self, began: now };
        if others + 1 < workers { Ok(turn) } else { Err(NotInline::Now) }
    }

    fn micros(&self, at: Instant) -> u64 {
        at.saturating_duration_since(self.origin).as_micros() as u64
    }
}

impl InlineTurn<'_> {
    /// Notes that the read has ended; a slow one stops the next, unless it is known that it did not wait for the disk.
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
    /// What this thread had from the disk when it was last asked, or when it first read here.
    static READ_BEFORE: Cell<Option<u64>> = Cell::new(disk_bytes());
}

/// Returns whether this thread has had something from a disk since it was last asked; where the system does not tell, it may
/// have.
pub(super) fn has_read_disk() -> bool {
    let bytes = disk_bytes();
    READ_BEFORE.replace(bytes) != bytes || bytes.is_none()
}

/// Returns for how many bytes this thread sent to the storage (proc_pid_io(5)): a page that is in memory adds nothing.
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
