//! Lines that wait for the thread that writes them.

use std::io::{self, ErrorKind, Write};
use std::sync::Arc;
use std::thread::ThreadId;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};

/// Size of the buffer; lines beyond it are lost.
const WAITING_MAX_BYTES: usize = 1024 * 1024;
/// Time after a failure until a new attempt, even if nothing new was logged.
const AGAIN_AFTER: Duration = Duration::from_secs(1);
/// Pause before the next write to a non-blocking file that is not ready.
const NOT_NOW_PAUSE: Duration = Duration::from_millis(20);

/// A buffer for lines that never blocks their writers or readers.
pub(super) struct LogBuffer {
    state: Mutex<LogState>,
    changed: Condvar,
}

#[derive(Default)]
struct LogState {
    bytes: Vec<u8>,
    is_writing: bool,
    /// Lost lines that the log does not report yet.
    lost_lines: u64,
    /// The thread that writes a notice of lost lines, and the notice itself, which must not be lost like other lines.
    notifier: Option<ThreadId>,
    notice: Vec<u8>,
}

impl LogBuffer {
    /// Starts the thread that writes. It calls `tell` with the number of lines lost since the last call, once writing may be possible
    /// again. Lines that `tell` puts are written before all others.
    pub(super) fn start(
        file: impl Write + Send + 'static,
        tell: impl Fn(u64) + Send + 'static,
    ) -> io::Result<Arc<Self>> {
        let buffer = Arc::new(Self { state: Mutex::default(), changed: Condvar::new() });
        let own = buffer.clone();
        let work = move || own.run(LogFile { file, is_torn: false }, tell);
        std::thread::Builder::new().name("stentor-log".to_owned()).spawn(work)?;
        Ok(buffer)
    }

    /// Puts one line, or counts it as lost if there is no room.
    pub(super) fn put(&self, line: &[u8]) {
        let mut state = self.lock();
        // The notice comes through the log itself, from the writing thread; among the other lines it could be lost like them.
        if state.notifier.is_some_and(|notifier| notifier == std::thread::current().id()) {
            state.notice.extend_from_slice(line);
            return;
        }
        if state.bytes.len() + line.len() > WAITING_MAX_BYTES {
            state.lost_lines += 1;
            return;
        }
        state.bytes.extend_from_slice(line);
        // Unlocked before the notification, because a woken thread would only wait for the lock. No wake-up is lost: a waiting thread has
        // checked the state under this lock.
        drop(state);
        self.changed.notify_all();
    }

    /// Waits until all lines are written or lost, at most for the given time.
    pub(super) fn wait(&self, longest: Duration) {
        let begun = Instant::now();
        let mut state = self.lock();
        while state.is_writing || !state.bytes.is_empty() {
            let Some(left) = longest.checked_sub(begun.elapsed()) else { return };
            self.changed.wait_for(&mut state, left);
        }
    }

    fn run(&self, mut paper: LogFile<impl Write>, tell: impl Fn(u64)) {
        loop {
            let (lines, lost_lines) = self.take();
            let notice = if lost_lines > 0 { self.notice(lost_lines, &tell) } else { Vec::new() };
            let is_told = paper.write(&notice).is_empty();
            let unwritten = if is_told { paper.write(&lines) } else { &lines };
            self.note_written(lines_of(unwritten), if is_told { lost_lines } else { 0 });
        }
    }

    /// Waits for lines, or for the time to report lost ones; returns both.
    fn take(&self) -> (Vec<u8>, u64) {
        let mut state = self.lock();
        while state.bytes.is_empty() {
            if state.lost_lines == 0 {
                self.changed.wait(&mut state);
                continue;
            }
            if self.changed.wait_for(&mut state, AGAIN_AFTER).timed_out() {
                break;
            }
        }
        // Under the same lock as the lines: otherwise `wait` could see neither and consider everything written.
        state.is_writing = true;
        (std::mem::take(&mut state.bytes), state.lost_lines)
    }

    fn notice(&self, lost_lines: u64, tell: &impl Fn(u64)) -> Vec<u8> {
        self.lock().notifier = Some(std::thread::current().id());
        // Without the lock, which `put` takes when the notice comes back through the log.
        tell(lost_lines);
        let mut state = self.lock();
        state.notifier = None;
        std::mem::take(&mut state.notice)
    }

    fn note_written(&self, lost_lines: u64, told_lines: u64) {
        let mut state = self.lock();
        state.lost_lines = state.lost_lines + lost_lines - told_lines;
        // Together with the count: a thread that waited for the end of the write then reads its losses.
        state.is_writing = false;
        drop(state);
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, LogState> {
        self.state.lock()
    }
}

/// The file of the log, and whether its last line is incomplete.
struct LogFile<W> {
    file: W,
    is_torn: bool,
}

impl<W: Write> LogFile<W> {
    /// Writes as much as can be written; returns the rest.
    fn write<'a>(&mut self, lines: &'a [u8]) -> &'a [u8] {
        let mut rest = lines;
        if self.is_torn && !rest.is_empty() && !self.write_on(&mut b"\n".as_slice()) {
            return rest;
        }
        self.write_on(&mut rest);
        rest
    }

    /// Returns true if everything was written.
    fn write_on(&mut self, rest: &mut &[u8]) -> bool {
        while !rest.is_empty() {
            match self.file.write(rest) {
                Ok(0) => return false,
                Ok(count) => {
                    self.is_torn = rest[count - 1] != b'\n';
                    *rest = &rest[count..];
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => std::thread::sleep(NOT_NOW_PAUSE),
                Err(_) => return false,
            }
        }
        true
    }
}

fn lines_of(bytes: &[u8]) -> u64 {
    bytes.iter().filter(|byte| **byte == b'\n').count() as u64
}

#[cfg(test)]
mod tests;
