//! The store: one thread writes, a few connections read.

mod accept;
mod acceptance;
mod at_once;
mod audience;
mod book_writes;
mod campaign_writes;
mod chunk_writes;
mod condition;
mod contents;
mod counters;
mod device_list;
mod device_topics;
mod expand;
mod lease;
mod ledger_steps;
mod leftovers;
mod lost;
mod maintenance;
mod pace;
mod parts;
mod pending;
mod prefetch;
mod receipt_rows;
mod register;
mod registrar;
mod rows;
mod start;
mod tokens;
mod transfer;
mod vault;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::future::BoxFuture;
use rusqlite::Connection;
use stentor_core::device::{Device, Registration};
use stentor_core::id::AppId;
use stentor_core::ports::store::{
    Accepted, DeviceFilter, Idempotent, NewMessage, NodeStore, Page, Registered, StoreError,
};
use stentor_core::time::Timestamp;
use tempfile::TempDir;

use super::file::{self, FileLock};
use super::migrations;
use super::readers::{Readers, Reading};
use super::settings::SqliteSettings;
use super::temporary;
use super::wal::{self, WalBound};
use super::writer::{CommitPriority, WriterThread};
use crate::seal::SealKeys;
use crate::sql::store::{
    app_providers, books, campaigns, chunks, codes, collapse, device_texts, devices, groups, merged_devices,
    message_rows, offered_tokens, owners, producers, registration, rehearsal, replies, retained, sequences,
    stretch, tags, targets, topics,
};
use crate::sql::{AcceptanceList, Done, ReadKind, SqlEngine, SqlStore, WriteKind, attempt};
use crate::vault::Vault;
use accept::EncodedMessage;
use acceptance::AcceptanceJob;
use lost::Lost;
use message_rows::MessageCache;
use pace::Pace;
use prefetch::PrefetchCache;
use registration::RegistrationBatch;
pub(super) use retained::adopt as adopt_retained;
pub(super) use tokens::adopt_rows;
pub(crate) use transfer::{SqliteSide, migrate};
pub(super) use vault::sealed_under;

/// A store in one SQLite file; clones share it, and the last one dropped closes it.
pub type SqliteStore = SqlStore<SqliteParts>;

/// Dropped in this order: first the last jobs are committed, last the file is given free.
pub struct SqliteParts {
    writer: WriterThread,
    accepted: Arc<AcceptanceList<EncodedMessage>>,
    readers: Readers,
    messages: Arc<MessageCache>,
    prefetch: Arc<PrefetchCache>,
    vault: Vault,
    log: PathBuf,
    lost: Arc<Lost>,
    pace: Pace,
    _lock: FileLock,
    _temporary: Option<TempDir>,
}

impl SqliteStore {
    /// Opens the file, creates it if needed, and brings its schema up to date. Refuses (Conflict) a file that another process uses, that a
    /// newer program wrote, or that holds sealed credentials. Credentials are stored as they are given: for tests and measurements.
    pub fn open(path: impl AsRef<Path>, settings: SqliteSettings) -> Result<Self, StoreError> {
        Self::open_over(path.as_ref(), settings, Vault::new(None), None)
    }

    /// Opens the file as `open` does, with credentials sealed under keys. Credentials in clear or under a former key are sealed again
    /// first. Fails with Conflict, and changes nothing, if a credential needs a key that is not given.
    pub fn open_sealed(
        path: impl AsRef<Path>,
        settings: SqliteSettings,
        keys: SealKeys,
    ) -> Result<Self, StoreError> {
        Self::open_over(path.as_ref(), settings, Vault::new(Some(keys)), None)
    }

    /// Opens an empty store in a temporary directory, which the last clone removes. No commit waits for the disk.
    ///
    /// Credentials are sealed under a key that exists in this process only.
    pub fn temporary() -> Result<Self, StoreError> {
        let folder = temporary::folder()?;
        let (path, keys) = (folder.path().join("stentor.db"), SealKeys::generate()?);
        Self::open_over(&path, SqliteSettings::temporary(), Vault::new(Some(keys)), Some(folder))
    }

    fn open_over(
        path: &Path,
        settings: SqliteSettings,
        vault: Vault,
        temporary: Option<TempDir>,
    ) -> Result<Self, StoreError> {
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
        // Before the first write: otherwise a changed device could be sent its prefetched token.
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
        let inner = SqliteParts {
            writer,
            accepted: Arc::new(AcceptanceList::new(settings.waiting_max_jobs)),
            readers,
            messages,
            prefetch,
            vault,
            log,
            lost,
            pace,
            _lock: lock,
            _temporary: temporary,
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Executes a job on many chunks, and repeats it without the chunks that the disk cannot read while it reads the rest.
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
            // Only an unreadable page points to one chunk: a failure to write or sync affects all chunks.
            let Err(StoreError::Unreadable(problem)) = done else {
                self.inner.lost.note_success();
                return done;
            };
            if self.prove_writing().await.is_err() || !self.inner.lost.note_failure() {
                return Err(StoreError::Unreadable(problem));
            }
        }
    }
}

#[expect(private_interfaces, reason = "other crates name stores, and never the parts of an engine")]
impl SqlEngine for SqliteParts {
    type Connection = Connection;

    fn write<T, F>(&self, kind: WriteKind, work: F) -> BoxFuture<'_, Result<T, StoreError>>
    where
        T: Send + 'static,
        F: Fn(&Connection) -> Done<T> + Send + 'static,
    {
        match kind {
            WriteKind::Ledger | WriteKind::Registry => Box::pin(self.writer.run(CommitPriority::Usual, work)),
            WriteKind::LedgerFirst | WriteKind::RegistryFirst => {
                Box::pin(self.writer.run(CommitPriority::First, work))
            }
            // Its jobs make all their checks before they write.
            WriteKind::Rows => Box::pin(async move {
                self.writer.submit_checked(CommitPriority::First, work).await.await_commit().await
            }),
        }
    }

    fn read<T, F>(&self, kind: ReadKind, work: F) -> BoxFuture<'_, Result<T, StoreError>>
    where
        T: Send + 'static,
        F: Fn(&Connection) -> Done<T> + Send + 'static,
    {
        let reading = match kind {
            ReadKind::LookUp => return Box::pin(self.readers.look_up(work)),
            ReadKind::Short => Reading::Short,
            ReadKind::Step => Reading::Step,
            ReadKind::Walk => Reading::Walk,
            ReadKind::Long => Reading::Long,
        };
        Box::pin(self.readers.run(reading, work))
    }

    fn accept(
        &self,
        messages: Vec<NewMessage>,
    ) -> BoxFuture<'_, Vec<Result<Idempotent<Accepted>, StoreError>>> {
        let messages = messages.into_iter().map(EncodedMessage::from).collect();
        Box::pin(Arc::clone(&self.accepted).accept(messages, |work| {
            self.writer.queue(Box::new(AcceptanceJob(work)));
        }))
    }

    fn register<'a>(
        store: &'a SqliteStore,
        app: AppId,
        registrations: &'a [Registration],
        now: Timestamp,
    ) -> BoxFuture<'a, Result<Vec<Registered>, StoreError>> {
        Box::pin(async move {
            let plain = match registrations.iter().position(register::takes_parts) {
                Some(first) => {
                    store.check_some(app, &registrations[..=first]).await?;
                    if first == 0 {
                        return store.register_in_parts(app, &registrations[0], now).await;
                    }
                    &registrations[..first]
                }
                None => registrations,
            };
            let some = store.inner.pace.first(plain);
            let batch = RegistrationBatch::new(app, some, now, tokens::hash);
            let given = batch.given.len();
            let registered = store.write(move |connection| register::some(connection, &batch)).await?;
            store.inner.pace.note(given, registered.len());
            Ok(registered)
        })
    }

    fn list_devices<'a>(
        store: &'a SqliteStore,
        app: AppId,
        filter: &'a DeviceFilter,
        page: Page,
    ) -> BoxFuture<'a, Result<Vec<Device>, StoreError>> {
        Box::pin(async move {
            let given = filter.clone();
            let plan = store.read(move |connection| device_list::plan(connection, app, &given)).await?;
            let mut found = Vec::new();
            // The whole page may belong to one fleet, so each fleet is queried for a whole page.
            for list in plan {
                found.extend(store.list(list, page).await?);
            }
            found.sort_by_key(|device: &Device| device.id);
            found.truncate(page.limit);
            Ok(found)
        })
    }

    fn messages(&self) -> &Arc<MessageCache> {
        &self.messages
    }

    fn vault(&self) -> &Vault {
        &self.vault
    }
}

/// Repairs data that all apps share. A failed repair is reported where the data is needed.
fn mend(connection: &Connection) -> Done<()> {
    connection.execute_batch("BEGIN IMMEDIATE")?;
    for mend in [counters::mend, counters::mend_numbers, tokens::mend] {
        if let Err(fault) = attempt(connection, || mend(connection))? {
            tracing::error!(%fault, "a counter could not be put right");
        }
    }
    Ok(connection.execute_batch("COMMIT")?)
}

/// A file has one server, as its lock ensures.
impl NodeStore for SqliteStore {}

impl SqliteStore {
    /// Reports the refusals of registrations without the writer thread.
    async fn check_some(&self, app: AppId, given: &[Registration]) -> Result<(), StoreError> {
        let given = given.to_vec();
        self.read_long(move |connection| rehearsal::check(connection, app, &given)).await
    }

    /// Registers a device with more topics than one transaction takes; refusals were checked before.
    async fn register_in_parts(
        &self,
        app: AppId,
        one: &Registration,
        now: Timestamp,
    ) -> Result<Vec<Registered>, StoreError> {
        let mut registered = Vec::new();
        for part in register::parts(one) {
            let batch = RegistrationBatch::new(app, &[part], now, tokens::hash);
            let done = self.write(move |connection| register::some(connection, &batch)).await?;
            // The first part determines whether the device is new.
            if registered.is_empty() {
                registered = done;
            }
        }
        Ok(registered)
    }
}
