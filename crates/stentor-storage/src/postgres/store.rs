//! The store: a few threads write, a few read, each over a connection of its own.

mod accept;
mod acceptance;
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
mod credentials;
mod device_traces;
mod devices;
mod expand;
mod groups;
mod history;
mod lease;
mod leftovers;
mod maintenance;
mod members;
mod message_rows;
mod messages;
mod named_devices;
mod node_events;
mod node_reports;
mod nodes;
mod offered_tokens;
mod owners;
mod pending;
mod pending_writes;
mod pipeline;
mod prefetched_rows;
mod producers;
mod quotas;
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
mod seen_nodes;
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
mod upstream_claims;
mod users;
mod webhooks;

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use stentor_core::ports::store::StoreError;

use super::access::DatabaseAccess;
use super::address::PostgresAddress;
use super::engine::Connection;
use super::fault::Done;
use super::listener::ChannelListener;
use super::migrations;
use super::origin;
use super::readers::ReadThreads;
use super::settings::PostgresSettings;
use super::start::{insist_on_start, refuse_shared_sessions};
use super::transactor::{LockScope, Transactor};
use super::writer::WriteThread;
use crate::commit_queue::CommitPriority;
use crate::seal::{SealKeyId, SealKeys};
use crate::vault::Vault;
use acceptance::AcceptanceList;
pub(super) use chunks::mark_waiting;
use message_rows::MessageMemory;
pub(super) use node_events::write_last;
use nodes::OwnInstance;
pub(super) use retained::adopt as adopt_retained;
pub(super) use transfer::is_unfinished;
pub(crate) use transfer::{PostgresSide, migrate};

/// How long to wait for a server that is only looked at.
const SEALED_PATIENCE: Duration = Duration::from_secs(5);

/// A store in one PostgreSQL database; clones share it, and the last one dropped closes it.
#[derive(Clone)]
pub struct PostgresStore {
    inner: Arc<StoreParts>,
}

/// Dropped in this order: first the last jobs are committed.
struct StoreParts {
    /// Keeps messages: it holds nothing alone.
    acceptance: WriteThread,
    accepted: Arc<AcceptanceList>,
    /// Changes devices, topics, people and groups.
    registry: WriteThread,
    /// Changes the ledger, and both where a change needs both.
    ledger: WriteThread,
    readers: ReadThreads,
    long_readers: ReadThreads,
    messages: Arc<MessageMemory>,
    vault: Vault,
    /// Which of the nodes this is.
    own: Arc<OwnInstance>,
    /// Hears what other nodes tell, once this one has joined them.
    listener: OnceLock<Arc<ChannelListener>>,
    access: DatabaseAccess,
}

impl PostgresStore {
    /// Opens the database and brings its schema up to date; it must exist and be kept in UTF-8. Others may use it as well.
    ///
    /// Refuses (Conflict) a database that a newer program wrote, or that holds sealed credentials.
    /// Credentials are kept as they are given: for tests and measurements.
    pub fn open(address: &PostgresAddress, settings: &PostgresSettings) -> Result<Self, StoreError> {
        Self::open_over(address, settings, Vault::new(None))
    }

    /// Opens the database as `open` does, with credentials sealed under keys. Refuses (Conflict) a database of which a credential
    /// wants another key.
    pub fn open_sealed(
        address: &PostgresAddress,
        settings: &PostgresSettings,
        keys: SealKeys,
    ) -> Result<Self, StoreError> {
        Self::open_over(address, settings, Vault::new(Some(keys)))
    }

    fn open_over(
        address: &PostgresAddress,
        settings: &PostgresSettings,
        vault: Vault,
    ) -> Result<Self, StoreError> {
        let own: Arc<OwnInstance> = Arc::default();
        let access = DatabaseAccess::new(address, settings);
        let transactor = || Transactor::new(access.clone());
        let several = |count: usize| (0..count.max(1)).map(|_| transactor()).collect::<Vec<_>>();
        // Before any other thread starts: none may meet the schema or the secrets of an older version.
        let start_patience = Duration::from_millis(settings.start_patience_ms.into());
        let ledger = prepared((access.clone(), start_patience), vault.clone())?;
        let inner = StoreParts {
            acceptance: WriteThread::start("stentor-accept", LockScope::Rows, transactor(), settings)?,
            accepted: Arc::new(AcceptanceList::new(settings.waiting_max_jobs, Arc::clone(&own))),
            registry: WriteThread::start("stentor-registry", LockScope::Registry, transactor(), settings)?,
            ledger: WriteThread::start("stentor-ledger", LockScope::Ledger, ledger, settings)?,
            readers: ReadThreads::start(
                "stentor-read",
                several(settings.readers_max_count),
                settings.waiting_max_jobs,
            )?,
            long_readers: ReadThreads::start(
                "stentor-walk",
                several(settings.long_readers_max_count),
                settings.waiting_max_jobs,
            )?,
            messages: Arc::default(),
            vault,
            own,
            listener: OnceLock::new(),
            access,
        };
        Ok(Self { inner: Arc::new(inner) })
    }

    fn vault(&self) -> Vault {
        self.inner.vault.clone()
    }

    /// Changes the ledger in the next commit; what it gives is on disk.
    async fn write<T, F>(&self, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: Fn(&Connection) -> Done<T> + Send + 'static,
    {
        self.inner.ledger.run(CommitPriority::Usual, work).await
    }

    /// Changes the ledger for a caller or a single device that waits, before all that moves audiences.
    async fn write_first<T, F>(&self, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: Fn(&Connection) -> Done<T> + Send + 'static,
    {
        self.inner.ledger.run(CommitPriority::First, work).await
    }

    /// Changes devices, topics, people and groups.
    async fn write_registry<T, F>(&self, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: Fn(&Connection) -> Done<T> + Send + 'static,
    {
        self.inner.registry.run(CommitPriority::Usual, work).await
    }

    /// Changes rows that no rule reads to decide about others.
    async fn write_rows<T, F>(&self, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: Fn(&Connection) -> Done<T> + Send + 'static,
    {
        self.inner.acceptance.run(CommitPriority::First, work).await
    }

    /// Writes something of no meaning.
    async fn prove_writing(&self) -> Result<(), StoreError> {
        let probe = |connection: &Connection| {
            connection.probe();
            Ok(())
        };
        self.write_rows(probe).await
    }

    /// Reads a few rows in one snapshot, for whom a caller, a device or a single message waits.
    async fn read<T, F>(&self, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: Fn(&Connection) -> Done<T> + Send + 'static,
    {
        self.inner.readers.run((CommitPriority::First, true), work).await
    }

    /// Reads a few rows by their keys, each statement in a snapshot of its own.
    async fn look_up<T, F>(&self, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: Fn(&Connection) -> Done<T> + Send + 'static,
    {
        self.inner.readers.run((CommitPriority::First, false), work).await
    }

    /// Reads a few rows in one snapshot, for a step of what moves audiences.
    async fn read_step<T, F>(&self, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: Fn(&Connection) -> Done<T> + Send + 'static,
    {
        self.inner.readers.run((CommitPriority::Usual, true), work).await
    }

    /// Reads what the pipeline walks over, a bounded stretch of it in one snapshot.
    async fn read_walk<T, F>(&self, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: Fn(&Connection) -> Done<T> + Send + 'static,
    {
        self.inner.long_readers.run((CommitPriority::Usual, true), work).await
    }

    /// Reads what a caller asked for, a bounded stretch of it in one snapshot.
    async fn read_long<T, F>(&self, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: Fn(&Connection) -> Done<T> + Send + 'static,
    {
        self.inner.long_readers.run((CommitPriority::First, true), work).await
    }
}

impl StoreParts {
    /// Begins to hear what other nodes tell, if it does not yet.
    fn listen(&self) -> Result<(), StoreError> {
        if self.listener.get().is_none() {
            let transactor = Transactor::new(self.access.clone());
            let own = Arc::clone(&self.own);
            let is_anothers = move |word: &str| own.hears(word);
            let listener = ChannelListener::start(transactor, node_events::CHANNEL, is_anothers)?;
            // Of two that join at once one listener ends again.
            let _ = self.listener.set(listener);
        }
        Ok(())
    }
}

/// Counts the credentials of a database under each key; one that holds no store has none. Writes nothing.
pub fn sealed_under(address: &PostgresAddress) -> Result<BTreeMap<SealKeyId, u64>, StoreError> {
    let mut transactor = Transactor::new(DatabaseAccess::for_a_look(address, SEALED_PATIENCE));
    apart(move || Ok(credentials::sealed_under(transactor.connect()?)?))
}

/// Opens a connection and brings schema and secrets up to date.
fn prepared((access, patience): (DatabaseAccess, Duration), vault: Vault) -> Result<Transactor, StoreError> {
    let mut transactor = Transactor::new(access.clone());
    let prepare = move || -> Result<Transactor, StoreError> {
        insist_on_start(patience, || refuse_shared_sessions(transactor.connect()?, &access))?;
        let connection = transactor.connect()?;
        // A step of the schema may work through whole tables.
        connection.limit(DatabaseAccess::long_limits())?;
        migrations::run(connection)?;
        transfer::refuse_unfinished(connection)?;
        origin::check(connection)?;
        credentials::adopt(connection, &vault)?;
        connection.limit(access.limits)?;
        Ok(transactor)
    };
    apart(prepare)
}

/// Does something on a thread of its own: the driver waits in a way that the threads of a runtime refuse.
pub(super) fn apart<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    let failed = |why: &str| StoreError::Unavailable(format!("the database cannot be opened: {why}"));
    let thread = std::thread::Builder::new().name("stentor-open".to_owned()).spawn(work);
    let thread = thread.map_err(|error| failed(&error.to_string()))?;
    thread.join().unwrap_or_else(|_| Err(failed("its thread panicked")))
}

impl std::fmt::Debug for PostgresStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("PostgresStore")
    }
}
