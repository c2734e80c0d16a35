//! Connections that read, side by side with the one that writes; each read sees one snapshot.
//!
//! Reads wait in three lanes, so that no long one stands before a look-up. What may walk over many rows does it step by
//! step, each step a read of its own: it queues again for each, and its snapshot ends with it.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use rusqlite::Connection;
use stentor_core::ports::store::StoreError;
use tokio::sync::Semaphore;

use super::fault::Done;
use super::file;
use super::settings::SqliteSettings;
use super::wal::Gate;
use super::worker_pool::WorkerPool;

/// How much a read has to look at, and for whom.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reading {
    /// A few rows that an index leads to.
    Short,
    /// A stretch of the registry or of the work that waits, for the pipeline.
    Walk,
    /// A stretch of whatever a caller asked for.
    Long,
}

/// A bounded pool of reading connections, opened when needed.
pub(super) struct Readers {
    shared: Arc<ReaderPool>,
    short: Arc<Semaphore>,
    walk: Arc<Semaphore>,
    long: Arc<Semaphore>,
    /// The threads of long reads.
    pool: WorkerPool,
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
        let walk = places(settings.long_readers_max_count);
        let pool = WorkerPool::new(settings.long_readers_max_count)?;
        let shared = Arc::new(ReaderPool { path, settings: settings.clone(), gate, idle });
        Ok(Self { shared, short, walk, long, pool })
    }

    /// Reads in one snapshot, on a thread where waiting for the disk holds up nobody else.
    pub(super) async fn run<T, F>(&self, reading: Reading, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Done<T> + Send + 'static,
    {
        let lane = match reading {
            Reading::Short => &self.short,
            Reading::Walk => &self.walk,
            Reading::Long => &self.long,
        };
        let place = Arc::clone(lane).acquire_owned().await;
        let place = place.map_err(|error| StoreError::Unavailable(error.to_string()))?;
        let shared = Arc::clone(&self.shared);
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
        let snapshot = connection.unchecked_transaction()?;
        let result = work(&snapshot);
        snapshot.finish()?;
        drop(inside);
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
        result
    }

    fn take(&self) -> Option<Connection> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }
}

#[cfg(test)]
mod tests;
