//! The store: one thread writes, a few connections read.

mod accept;
mod ahead;
mod apps;
mod aside;
mod audience;
mod books;
mod campaigns;
mod chunks;
mod collapse;
mod condition;
mod devices;
mod expand;
mod fleets;
mod groups;
mod history;
mod lease;
mod lost;
mod members;
mod messages;
mod owners;
mod pipeline;
mod register;
mod registrar;
mod removal;
mod schedules;
mod sequences;
mod settle;
mod start;
mod tokens;
mod topics;
mod upkeep;
mod users;

use std::path::Path;
use std::sync::Arc;

use rusqlite::Connection;
use stentor_core::ports::store::StoreError;

use super::damage::attempt;
use super::fault::Done;
use super::file::{self, FileLock};
use super::migrations;
use super::readers::Readers;
use super::settings::SqliteSettings;
use super::writer::{Line, Writer};
use ahead::ReadAhead;
use lost::Lost;
use messages::MessageCache;
pub(super) use tokens::adopt_rows;

/// A store in one SQLite file; clones share it, and the last one dropped closes it.
#[derive(Clone)]
pub struct SqliteStore {
    inner: Arc<Inner>,
}

/// Dropped in this order: first the last jobs are committed, last the file is given free.
struct Inner {
    writer: Writer,
    readers: Readers,
    messages: Arc<MessageCache>,
    ahead: Arc<ReadAhead>,
    lost: Arc<Lost>,
    _lock: FileLock,
}

impl SqliteStore {
    /// Opens the file, makes it when there is none, and brings its schema up to date.
    ///
    /// Refuses (Conflict) a file that another process uses or that a newer program wrote.
    pub fn open(path: impl AsRef<Path>, settings: SqliteSettings) -> Result<Self, StoreError> {
        let path = path.as_ref();
        file::ensure(path)?;
        let lock = FileLock::take(path)?;
        let connection = file::open_writer(path, &settings)?;
        migrations::run(&connection, migrations::STORE)?;
        mend(&connection)?;
        let ahead = Arc::new(ReadAhead::default());
        ahead.watch(&connection)?;
        let settled = Arc::clone(&ahead);
        let writer = Writer::start("stentor-store", connection, &settings, move || settled.note_settled())?;
        let readers = Readers::new(path, &settings);
        let (messages, lost) = (Arc::default(), Arc::default());
        Ok(Self { inner: Arc::new(Inner { writer, readers, messages, ahead, lost, _lock: lock }) })
    }

    /// Does a job in the next commit; what it gives is on disk.
    async fn write<T, F>(&self, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Done<T> + Send + 'static,
    {
        self.inner.writer.run(Line::Usual, work).await
    }

    /// Does a job for which a caller or a single device waits, before all that moves audiences.
    async fn write_first<T, F>(&self, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Done<T> + Send + 'static,
    {
        self.inner.writer.run(Line::First, work).await
    }

    /// Does a job that works on many chunks, and again without those that the disk does not give while it gives the rest.
    async fn write_around<T, F>(&self, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: Fn(&Connection, &Lost) -> Done<T> + Clone + Send + 'static,
    {
        loop {
            let (lost, work) = (Arc::clone(&self.inner.lost), work.clone());
            lost.touch(None);
            let done = self.write(move |connection| work(connection, &lost)).await;
            let Err(StoreError::Unavailable(problem)) = done else {
                self.inner.lost.note_success();
                return done;
            };
            if self.prove_writing().await.is_err() || !self.inner.lost.note_failure() {
                return Err(StoreError::Unavailable(problem));
            }
        }
    }

    /// Writes something of no meaning.
    async fn prove_writing(&self) -> Result<(), StoreError> {
        self.write(|connection| sequences::advance(connection, "id", 0)).await
    }

    /// Reads in one snapshot.
    async fn read<T, F>(&self, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Done<T> + Send + 'static,
    {
        self.inner.readers.run(work).await
    }
}

/// Puts right what all apps share; what cannot be is told where it is needed.
fn mend(connection: &Connection) -> Done<()> {
    connection.execute_batch("BEGIN IMMEDIATE")?;
    for mend in [sequences::mend, tokens::mend] {
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
