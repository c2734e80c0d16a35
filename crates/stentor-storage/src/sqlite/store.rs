//! The store: one thread writes, a few connections read.

mod accept;
mod accounts;
mod app_providers;
mod apps;
mod audience;
mod audit;
mod books;
mod campaigns;
mod chunks;
mod codes;
mod collapse;
mod condition;
mod contents;
mod device_traces;
mod devices;
mod expand;
mod groups;
mod history;
mod lease;
mod leftovers;
mod lost;
mod maintenance;
mod members;
mod message_rows;
mod messages;
mod offered_tokens;
mod owners;
mod pace;
mod pending;
mod pipeline;
mod prefetch;
mod producers;
mod receipt_rows;
mod receipts;
mod register;
mod registrar;
mod registry;
mod rehearsal;
mod removal;
mod retained;
mod rows;
mod schedules;
mod sequences;
mod start;
mod stretch;
mod tags;
mod targets;
mod tokens;
mod topics;
mod transfer;
mod turns;
mod unlisted;
mod upstream;
mod users;
mod vault;
mod webhooks;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rusqlite::Connection;
use stentor_core::ports::store::StoreError;

use super::damage::attempt;
use super::fault::Done;
use super::file::{self, FileLock};
use super::migrations;
use super::readers::{Readers, Reading};
use super::settings::SqliteSettings;
use super::wal::{self, WalBound};
use super::writer::{CommitPriority, WriterThread};
use crate::seal::SealKeys;
use crate::vault::Vault;
use lost::Lost;
use message_rows::MessageCache;
use pace::Pace;
use prefetch::PrefetchCache;
pub(super) use retained::adopt as adopt_retained;
pub(super) use tokens::adopt_rows;
pub(crate) use transfer::{SqliteSide, migrate};
pub(super) use vault::sealed_under;

/// A store in one SQLite file; clones share it, and the last one dropped closes it.
#[derive(Clone)]
pub struct SqliteStore {
    inner: Arc<Inner>,
}

/// Dropped in this order: first the last jobs are committed, last the file is given free.
struct Inner {
    writer: WriterThread,
    readers: Readers,
    messages: Arc<MessageCache>,
    prefetch: Arc<PrefetchCache>,
    vault: Vault,
    log: PathBuf,
    lost: Arc<Lost>,
    pace: Pace,
    _lock: FileLock,
}

impl SqliteStore {
    /// Opens the file, makes it when there is none, and brings its schema up to date.
    ///
    /// Refuses (Conflict) a file that another process uses, that a newer program wrote, or that holds sealed credentials.
    /// Credentials are kept as they are given: for tests and measurements.
    pub fn open(path: impl AsRef<Path>, settings: SqliteSettings) -> Result<Self, StoreError> {
        Self::open_over(path.as_ref(), settings, Vault::new(None))
    }

    /// Opens the file as `open` does, with credentials sealed under keys; those that are clear or under a former key are
    /// sealed anew first. Refuses (Conflict) a file of which a credential wants another key, and changes nothing of it.
    pub fn open_sealed(
        path: impl AsRef<Path>,
        settings: SqliteSettings,
        keys: SealKeys,
    ) -> Result<Self, StoreError> {
        Self::open_over(path.as_ref(), settings, Vault::new(Some(keys)))
    }

    fn open_over(path: &Path, settings: SqliteSettings, vault: Vault) -> Result<Self, StoreError> {
        file::ensure(path)?;
        let lock = FileLock::take(path)?;
        let connection = file::open_writer(path, &settings)?;
        // Before anything is written: a file that wants another key stays as it is.
        vault.check_file(&connection)?;
        migrations::run(&connection, migrations::STORE)?;
        transfer::refuse_unfinished(&connection)?;
        vault.adopt(&connection)?;
        mend(&connection)?;
        let prefetch = Arc::new(PrefetchCache::default());
        // Before the first write: what changed unseen would be sent to as it was.
        prefetch.watch(&connection)?;
        let (settled, gate, log) = (Arc::clone(&prefetch), Arc::default(), wal::path_of(path));
        let mut bound = WalBound::new(log.clone(), settings.wal_max_bytes, Arc::clone(&gate));
        let settled = move |connection: &Connection| {
            settled.note_settled();
            bound.check(connection);
        };
        let writer = WriterThread::start("stentor-store", connection, &settings, settled)?;
        let readers = Readers::new(path, &settings, gate)?;
        let (messages, lost, pace) = (Arc::default(), Arc::default(), Pace::default());
        let inner = Inner { writer, readers, messages, prefetch, vault, log, lost, pace, _lock: lock };
        Ok(Self { inner: Arc::new(inner) })
    }

    fn vault(&self) -> Vault {
        self.inner.vault.clone()
    }

    /// Does a job in the next commit; what it gives is on disk.
    async fn write<T, F>(&self, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Done<T> + Send + 'static,
    {
        self.inner.writer.run(CommitPriority::Usual, work).await
    }

    /// Does a job for which a caller or a single device waits, before all that moves audiences.
    async fn write_first<T, F>(&self, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Done<T> + Send + 'static,
    {
        self.inner.writer.run(CommitPriority::First, work).await
    }

    /// Does a job that works on many chunks, and again without those that the disk does not give while it gives the rest.
    async fn write_around<T, F>(&self, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: Fn(&Connection, &Lost) -> Done<T> + Clone + Send + 'static,
    {
        loop {
            let (lost, work) = (Arc::clone(&self.inner.lost), work.clone());
            // A failure would otherwise be put down to the chunk that was touched last, by another job.
            lost.touch(None);
            let done = self.write(move |connection| work(connection, &lost)).await;
            // Only what cannot be read speaks for a chunk: where the disk fails to write or to sync, it fails for all.
            let Err(StoreError::Unreadable(problem)) = done else {
                self.inner.lost.note_success();
                return done;
            };
            if self.prove_writing().await.is_err() || !self.inner.lost.note_failure() {
                return Err(StoreError::Unreadable(problem));
            }
        }
    }

    /// Writes something of no meaning.
    async fn prove_writing(&self) -> Result<(), StoreError> {
        self.write(|connection| sequences::advance(connection, "id", 0)).await
    }

    /// Reads a few rows in one snapshot, for whom a caller, a device or a single message waits.
    async fn read<T, F>(&self, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Done<T> + Send + 'static,
    {
        self.inner.readers.run(Reading::Short, work).await
    }

    /// Reads a few rows by their keys in one snapshot, on the thread that asks where it need not wait.
    async fn look_up<T, F>(&self, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: Fn(&Connection) -> Done<T> + Send + 'static,
    {
        self.inner.readers.look_up(work).await
    }

    /// Reads a few rows in one snapshot, for a step of what moves audiences: it waits for no caller, and none for it.
    async fn read_step<T, F>(&self, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Done<T> + Send + 'static,
    {
        self.inner.readers.run(Reading::Step, work).await
    }

    /// Reads what the pipeline walks over, a bounded stretch in one snapshot.
    async fn read_walk<T, F>(&self, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Done<T> + Send + 'static,
    {
        self.inner.readers.run(Reading::Walk, work).await
    }

    /// Reads what a caller asked for, a bounded stretch of it in one snapshot.
    async fn read_long<T, F>(&self, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Done<T> + Send + 'static,
    {
        self.inner.readers.run(Reading::Long, work).await
    }
}

/// Puts right what all apps share; what cannot be is told where it is needed.
fn mend(connection: &Connection) -> Done<()> {
    connection.execute_batch("BEGIN IMMEDIATE")?;
    for mend in [sequences::mend, sequences::mend_numbers, tokens::mend] {
        if let Err(fault) = attempt(connection, || mend(connection))? {
            tracing::error!(%fault, "a counter could not be put right");
        }
    }
    Ok(connection.execute_batch("COMMIT")?)
}

impl std::fmt::Debug for SqliteStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SqliteStore")
    }
}
