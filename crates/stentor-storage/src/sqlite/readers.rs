//! Connections that read, side by side with the one that writes; each read sees one snapshot.
//!
//! Reads wait in four lanes, so that no long one stands before a look-up and none of the pipeline's before a caller's: there
//! may be a thousand producers, and their threads give way to all others. What may walk over many rows does it step by
//! step, each step a read of its own: it queues again for each, and its snapshot ends with it. Look-ups by keys are done on
//! the thread that asks, where nothing holds them up.

mod inline;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rusqlite::Connection;
use stentor_core::ports::store::StoreError;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;

use super::fault::is_busy;
use super::file;
use super::settings::SqliteSettings;
use super::wal::Gate;
use super::worker_pool::WorkerPool;
use crate::sql::{Done, damaged, run};
use inline::{InlineReads, NotInline};

/// How often a look-up tries to be done where it is asked for: between, its thread does other things.
const INLINE_ATTEMPTS: usize = 3;

/// How much a read has to look at, and for whom.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reading {
    /// A few rows that an index leads to, for a caller or a device.
    Short,
    /// A few rows for a step of what moves audiences.
    Step,
    /// A stretch of the registry or of the work that waits, for the pipeline.
    Walk,
    /// A stretch of whatever a caller asked for.
    Long,
}

/// A bounded pool of reading connections, opened when needed.
pub(super) struct Readers {
    shared: Arc<ReaderPool>,
    short: Arc<Semaphore>,
    step: Arc<Semaphore>,
    walk: Arc<Semaphore>,
    long: Arc<Semaphore>,
    /// The threads of long reads.
    pool: WorkerPool,
    inline: InlineReads,
}

struct ReaderPool {
    path: PathBuf,
    settings: SqliteSettings,
    gate: Arc<Gate>,
    idle: Mutex<Vec<Connection>>,
}

impl Readers {
    /// Makes an empty pool; whoever reads passes the gate.
    pub(super) fn new(path: &Path, settings: &SqliteSettings, gate: Arc<Gate>) -> Result<Self, StoreError> {
        let (path, idle) = (path.to_owned(), Mutex::default());
        let places = |count: usize| Arc::new(Semaphore::new(count.max(1)));
        let (short, long) = (places(settings.readers_max_count), places(settings.long_readers_max_count));
        let (step, walk) = (places(settings.readers_max_count), places(settings.long_readers_max_count));
        let pool = WorkerPool::new(settings.long_readers_max_count)?;
        let shared = Arc::new(ReaderPool { path, settings: settings.clone(), gate, idle });
        Ok(Self { shared, short, step, walk, long, pool, inline: InlineReads::new(Instant::now()) })
    }

    /// Reads a few rows by their keys in one snapshot: on this thread where neither the disk nor anybody else is likely to
    /// hold it up, otherwise as `Reading::Short`. The work may be begun twice.
    pub(super) async fn look_up<T, F>(&self, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: Fn(&Connection) -> Done<T> + Send + 'static,
    {
        let workers = Handle::try_current().map_or(1, |runtime| runtime.metrics().num_workers());
        for _ in 0..INLINE_ATTEMPTS {
            match self.read_here(workers, &work) {
                Ok(Some(result)) => return Ok(result?),
                Ok(None) | Err(NotInline::ForLonger) => break,
                Err(NotInline::Now) => tokio::task::yield_now().await,
            }
        }
        self.run(Reading::Short, work).await
    }

    /// Reads on this thread; `None` where that would have to wait.
    fn read_here<T>(
        &self,
        workers: usize,
        work: &impl Fn(&Connection) -> Done<T>,
    ) -> Result<Option<Done<T>>, NotInline> {
        let turn = self.inline.begin(workers, Instant::now())?;
        // Among those who read a few rows: whoever waits there for a place comes first.
        let Ok(_place) = self.short.try_acquire() else { return Ok(None) };
        let work = AssertUnwindSafe(|| self.shared.read_without_waiting(work));
        let result =
            catch_unwind(work).unwrap_or_else(|_| Some(Err(damaged("a read made its thread panic"))));
        turn.end(Instant::now(), inline::has_read_disk);
        Ok(result)
    }

    /// Reads in one snapshot, on a thread where waiting for the disk holds up nobody else.
    pub(super) async fn run<T, F>(&self, reading: Reading, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Done<T> + Send + 'static,
    {
        let lane = match reading {
            Reading::Short => &self.short,
            Reading::Step => &self.step,
            Reading::Walk => &self.walk,
            Reading::Long => &self.long,
        };
        let place = Arc::clone(lane).acquire_owned().await;
        let place = place.map_err(|error| StoreError::Unavailable(error.to_string()))?;
        let shared = Arc::clone(&self.shared);
        // The place goes along: where the caller goes away the read still goes on, and keeps it.
        let job = move || {
            let result = shared.read(work);
            drop(place);
            result
        };
        let job = match self.pool.handle().filter(|_| reading == Reading::Long) {
            Some(pool) => pool.spawn_blocking(job),
            None => tokio::task::spawn_blocking(job),
        };
        let result = job.await.map_err(|error| StoreError::Damaged(format!("a read failed: {error}")))?;
        Ok(result?)
    }
}

impl ReaderPool {
    fn read<T>(&self, work: impl FnOnce(&Connection) -> Done<T>) -> Done<T> {
        let connection = match self.take() {
            Some(connection) => connection,
            None => file::open_reader(&self.path, &self.settings)?,
        };
        // Left after the snapshot has ended.
        let inside = self.gate.enter(connection.get_interrupt_handle());
        let result = in_snapshot(&connection, work);
        drop(inside);
        self.put_back(connection);
        result
    }

    /// Reads over a connection that is open and unused; `None` where there is none, or where somebody is to be waited for.
    fn read_without_waiting<T>(&self, work: impl FnOnce(&Connection) -> Done<T>) -> Option<Done<T>> {
        let connection = self.idle.try_lock().ok()?.pop()?;
        // On this thread nothing may wait: neither for the list, nor at the gate, nor for the file.
        let Some(inside) = self.gate.try_enter(connection.get_interrupt_handle()) else {
            self.put_back(connection);
            return None;
        };
        // Another process may hold the file: it is waited for elsewhere.
        let result = wait_at_most(&connection, Duration::ZERO).and_then(|()| in_snapshot(&connection, work));
        drop(inside);
        let patience = Duration::from_millis(self.settings.busy_timeout_ms.into());
        // One that does not wait any more must not get into the hands of those who have the time.
        if wait_at_most(&connection, patience).is_ok() {
            self.put_back(connection);
        }
        if result.as_ref().is_err_and(is_busy) { None } else { Some(result) }
    }

    fn take(&self) -> Option<Connection> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }

    /// Keeps a connection for the next, unless it could not end its snapshot.
    fn put_back(&self, connection: Connection) {
        // In the pool its snapshot would grow old, and hold up the cutting of the log.
        if connection.is_autocommit() {
            self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
        }
    }
}

/// Does something that sees one state of the file. Both ends of it stay prepared, like all statements.
fn in_snapshot<T>(connection: &Connection, work: impl FnOnce(&Connection) -> Done<T>) -> Done<T> {
    run(connection, "BEGIN", ())?;
    let result = work(connection);
    // What the disk does not give ends the transaction by itself.
    if !connection.is_autocommit() {
        run(connection, "COMMIT", ())?;
    }
    result
}

/// Sets how long a connection waits for another process that holds the file.
fn wait_at_most(connection: &Connection, patience: Duration) -> Done<()> {
    Ok(connection.busy_timeout(patience)?)
}

#[cfg(test)]
pub(super) mod tests;
