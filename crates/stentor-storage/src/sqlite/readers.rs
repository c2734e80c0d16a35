//! Reader connections beside the writer's; each read uses one snapshot.
//!
//! Reads wait in four lanes, so that no long read delays a look-up, and none of the pipeline's reads delays a caller: there may be a
//! thousand producers, and their threads yield to all others. A read of many rows proceeds in steps, each of them a read of its own: it
//! queues again for each step, and its snapshot ends with the step. Look-ups by key run on the calling thread if nothing is likely to block
//! them.

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

/// The number of attempts to run a look-up on the calling thread; between attempts, the thread runs other tasks.
const INLINE_ATTEMPTS: usize = 3;

/// The kind of a read: its size, and the caller that waits for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reading {
    /// A few rows that an index leads to, for a caller or a device.
    Short,
    /// A few rows for a step of the audience work.
    Step,
    /// A stretch of the registry or of the work that waits, for the pipeline.
    Walk,
    /// A stretch of rows for a caller's request.
    Long,
}

/// A bounded pool of reading connections, opened when needed.
pub(super) struct Readers {
    shared: Arc<ReaderPool>,
    short: Arc<Semaphore>,
    step: Arc<Semaphore>,
    walk: Arc<Semaphore>,
    long: Arc<Semaphore>,
    /// The threads of long reads; a temporary file has none of its own.
    pool: Option<WorkerPool>,
    inline: InlineReads,
}

struct ReaderPool {
    path: PathBuf,
    settings: SqliteSettings,
    gate: Arc<Gate>,
    idle: Mutex<Vec<Connection>>,
}

impl Readers {
    /// Creates an empty pool; each reader passes the gate.
    pub(super) fn new(path: &Path, settings: &SqliteSettings, gate: Arc<Gate>) -> Result<Self, StoreError> {
        let (path, idle) = (path.to_owned(), Mutex::default());
        let places = |count: usize| Arc::new(Semaphore::new(count.max(1)));
        let (short, long) = (places(settings.readers_max_count), places(settings.long_readers_max_count));
        let (step, walk) = (places(settings.readers_max_count), places(settings.long_readers_max_count));
        let pool = (!settings.writes_inline).then(|| WorkerPool::new(settings.long_readers_max_count));
        let pool = pool.transpose()?;
        let shared = Arc::new(ReaderPool { path, settings: settings.clone(), gate, idle });
        Ok(Self { shared, short, step, walk, long, pool, inline: InlineReads::new(Instant::now()) })
    }

    /// Reads a few rows by their keys in one snapshot: on this thread if neither the disk nor another task is likely to block it, otherwise
    /// as `Reading::Short`. The work may be started twice.
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

    /// Reads on this thread; returns `None` if the read would have to wait.
    fn read_here<T>(
        &self,
        workers: usize,
        work: &impl Fn(&Connection) -> Done<T>,
    ) -> Result<Option<Done<T>>, NotInline> {
        let turn = self.inline.begin(workers, Instant::now())?;
        // It takes a place of the short reads: a task that waits there comes first.
        let Ok(_place) = self.short.try_acquire() else { return Ok(None) };
        let work = AssertUnwindSafe(|| self.shared.read_without_waiting(work));
        let result =
            catch_unwind(work).unwrap_or_else(|_| Some(Err(damaged("a read made its thread panic"))));
        turn.end(Instant::now(), inline::has_read_disk);
        Ok(result)
    }

    /// Reads in one snapshot, on a thread that may block on the disk.
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
        // The place moves into the job: if the caller goes away, the read continues and keeps it.
        let job = move || {
            let result = shared.read(work);
            drop(place);
            result
        };
        let own = self.pool.as_ref().filter(|_| reading == Reading::Long).and_then(WorkerPool::handle);
        let job = match own {
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

    /// Reads over an idle connection; returns `None` if there is none, or if the read would have to wait.
    fn read_without_waiting<T>(&self, work: impl FnOnce(&Connection) -> Done<T>) -> Option<Done<T>> {
        let connection = self.idle.try_lock().ok()?.pop()?;
        // This thread must not block on the list, the gate or the file.
        let Some(inside) = self.gate.try_enter(connection.get_interrupt_handle()) else {
            self.put_back(connection);
            return None;
        };
        // Another process may hold the file: another thread waits for it.
        let result = wait_at_most(&connection, Duration::ZERO).and_then(|()| in_snapshot(&connection, work));
        drop(inside);
        let patience = Duration::from_millis(self.settings.busy_timeout_ms.into());
        // A connection without a busy timeout must not be used by readers that can wait.
        if wait_at_most(&connection, patience).is_ok() {
            self.put_back(connection);
        }
        if result.as_ref().is_err_and(is_busy) { None } else { Some(result) }
    }

    fn take(&self) -> Option<Connection> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }

    /// Returns a connection to the pool, unless it could not end its snapshot.
    fn put_back(&self, connection: Connection) {
        // In the pool its snapshot would grow old, and hold up the cutting of the log.
        if connection.is_autocommit() {
            self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
        }
    }
}

/// Executes work in one snapshot of the file. Its first and last statement stay prepared, like all statements.
fn in_snapshot<T>(connection: &Connection, work: impl FnOnce(&Connection) -> Done<T>) -> Done<T> {
    run(connection, "BEGIN", ())?;
    let result = work(connection);
    // A read error of the disk ends the transaction by itself.
    if !connection.is_autocommit() {
        run(connection, "COMMIT", ())?;
    }
    result
}

/// Sets the longest wait of a connection for another process that holds the file.
fn wait_at_most(connection: &Connection, patience: Duration) -> Done<()> {
    Ok(connection.busy_timeout(patience)?)
}

#[cfg(test)]
pub(super) mod tests;
