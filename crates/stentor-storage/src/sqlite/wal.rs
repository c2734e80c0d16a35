//! The bound of the write-ahead log's size.
//!
//! SQLite restarts the log only while no connection reads from it, which never happens while reads overlap. Therefore, when the log exceeds
//! its bound, readers are held back at a gate for a moment: in the gap between them the log is copied into the database and truncated. A
//! read that does not end in time is interrupted; it fails as if the store were busy.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::sql::Done;
use rusqlite::{Connection, InterruptHandle};

/// The time for readers to leave by themselves, and again after they were interrupted.
const PATIENCE: Duration = Duration::from_millis(40);
/// The pause after a failed attempt.
const PAUSE: Duration = Duration::from_secs(1);

/// The gate that all readers pass to get their snapshots.
#[derive(Default)]
pub(super) struct Gate {
    state: Mutex<GateState>,
    changed: Condvar,
}

#[derive(Default)]
struct GateState {
    is_shut: bool,
    inside: BTreeMap<u64, InterruptHandle>,
    entered: u64,
}

/// A reader inside; it leaves when this is dropped.
pub(super) struct Inside<'a> {
    gate: &'a Gate,
    number: u64,
}

impl Gate {
    /// Waits while the gate is shut, and enters.
    pub(super) fn enter(&self, interrupt: InterruptHandle) -> Inside<'_> {
        let mut state = self.lock();
        while state.is_shut {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        self.admit(&mut state, interrupt)
    }

    /// Enters unless it is shut or its lock is contended.
    pub(super) fn try_enter(&self, interrupt: InterruptHandle) -> Option<Inside<'_>> {
        let mut state = self.state.try_lock().ok()?;
        (!state.is_shut).then(|| self.admit(&mut state, interrupt))
    }

    fn admit(&self, state: &mut GateState, interrupt: InterruptHandle) -> Inside<'_> {
        state.entered += 1;
        state.inside.insert(state.entered, interrupt);
        Inside { gate: self, number: state.entered }
    }

    /// Executes work while no reader is inside; returns `None` if a reader stays inside.
    pub(super) fn alone<T>(&self, work: impl FnOnce() -> T) -> Option<T> {
        // Shut before the check, so that no reader can enter in between.
        self.lock().is_shut = true;
        let is_empty = self.is_left() || {
            // Under the lock that a leaving reader takes: no connection is interrupted after it left.
            self.lock().inside.values().for_each(InterruptHandle::interrupt);
            self.is_left()
        };
        let done = is_empty.then(work);
        // Also if a reader stayed inside: the other readers wait until the gate is opened.
        self.lock().is_shut = false;
        self.changed.notify_all();
        done
    }

    /// Returns true if all readers leave in time.
    fn is_left(&self) -> bool {
        let wait = self.changed.wait_timeout_while(self.lock(), PATIENCE, |state| !state.inside.is_empty());
        wait.unwrap_or_else(PoisonError::into_inner).0.inside.is_empty()
    }

    fn lock(&self) -> MutexGuard<'_, GateState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Inside<'_> {
    fn drop(&mut self) {
        let mut state = self.gate.lock();
        state.inside.remove(&self.number);
        // Only `alone` waits for readers to leave.
        if state.is_shut {
            self.gate.changed.notify_all();
        }
    }
}

/// Keeps the log of one file within its bound.
pub(super) struct WalBound {
    path: PathBuf,
    max_bytes: u64,
    gate: Arc<Gate>,
    not_before: Option<Instant>,
}

impl WalBound {
    /// Bounds the log of a database file.
    pub(super) const fn new(path: PathBuf, max_bytes: u64, gate: Arc<Gate>) -> Self {
        Self { path, max_bytes, gate, not_before: None }
    }

    /// Checks the log after a commit, and truncates it if it is too long.
    pub(super) fn check(&mut self, connection: &Connection) {
        let bytes = size(&self.path);
        if bytes <= self.max_bytes || self.not_before.is_some_and(|then| Instant::now() < then) {
            return;
        }
        let cut = self.gate.alone(|| cut(connection));
        match cut {
            Some(Ok(true)) => return,
            Some(Err(fault)) => {
                tracing::warn!(?fault, bytes, "the write-ahead log is too long and could not be cut");
            }
            // Another process reads it, a backup for instance, or a read of ours did not end.
            Some(Ok(false)) | None => tracing::debug!(bytes, "the write-ahead log is too long and in use"),
        }
        self.not_before = Some(Instant::now() + PAUSE);
    }
}

/// Returns the path of a database's log.
pub(super) fn path_of(database: &Path) -> PathBuf {
    let mut path = database.as_os_str().to_owned();
    path.push("-wal");
    path.into()
}

/// Returns the size of a log in bytes; 0 when there is none.
pub(super) fn size(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |data| data.len())
}

/// Copies the log into the database and empties it, without waiting for other processes; returns true if it could.
fn cut(connection: &Connection) -> Done<bool> {
    let patience_ms: u32 = connection.pragma_query_value(None, "busy_timeout", |row| row.get(0))?;
    // Readers wait at the gate during this call, so it does not wait for another process that holds the file.
    connection.busy_timeout(Duration::ZERO)?;
    let busy: rusqlite::Result<i64> =
        connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0));
    connection.busy_timeout(Duration::from_millis(patience_ms.into()))?;
    Ok(busy? == 0)
}

#[cfg(test)]
mod tests;
