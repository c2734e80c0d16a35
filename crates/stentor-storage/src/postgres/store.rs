//! The store: a few threads write, a few read, each over a connection of its own.

mod accept;
mod acceptance;
mod at_once;
mod audience;
mod book_writes;
mod campaign_writes;
mod chunk_writes;
mod condition;
mod contents;
mod device_list;
mod expand;
mod lease;
mod ledger_steps;
mod leftovers;
mod maintenance;
mod many_owners;
mod many_topics;
mod named_devices;
mod node_events;
mod node_reports;
mod nodes;
mod parts;
mod pending;
mod pending_writes;
mod prefetched_rows;
mod quotas;
mod receipt_rows;
mod register;
mod registrar;
mod rows;
mod sealing;
mod seen_nodes;
mod start;
mod tokens;
mod transfer;
mod upstream_claims;

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures_util::future::BoxFuture;
use stentor_core::device::{Device, Registration};
use stentor_core::id::AppId;
use stentor_core::ports::store::{
    Accepted, DeviceFilter, Idempotent, NewMessage, Page, Registered, StoreError,
};
use stentor_core::time::Timestamp;

use super::access::DatabaseAccess;
use super::address::PostgresAddress;
use super::engine::Connection;
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
use crate::sql::store::{
    app_providers, apps, books, campaigns, chunks, codes, collapse, device_texts, devices, groups,
    merged_devices, message_rows, offered_tokens, owners, producers, registration, retained, sequences,
    stretch, tags, targets, topics, upstream,
};
use crate::sql::{AcceptanceList, Done, ReadKind, SqlEngine, SqlStore, WriteKind};
use crate::vault::Vault;
use acceptance::AcceptanceJob;
pub(super) use chunk_writes::mark_waiting;
use message_rows::MessageCache;
pub(super) use node_events::write_last;
pub(super) use nodes::OwnInstance;
use registration::RegistrationBatch;
pub(super) use retained::adopt as adopt_retained;
pub(super) use transfer::is_unfinished;
pub(crate) use transfer::{PostgresSide, migrate};

/// The longest wait for a server that is only inspected.
const SEALED_PATIENCE: Duration = Duration::from_secs(5);

/// A store in one PostgreSQL database; clones share it, and the last one dropped closes it.
pub type PostgresStore = SqlStore<PostgresParts>;

/// Dropped in this order: first the last jobs are committed.
pub struct PostgresParts {
    /// Accepts messages, without a lock.
    acceptance: WriteThread,
    accepted: Arc<AcceptanceList<NewMessage>>,
    /// Changes devices, topics, users and groups.
    registry: WriteThread,
    /// Changes the ledger, and both where a change needs both.
    ledger: WriteThread,
    readers: ReadThreads,
    long_readers: ReadThreads,
    messages: Arc<MessageCache>,
    vault: Vault,
    /// The identity of this process among the nodes.
    own: Arc<OwnInstance>,
    /// Receives the events of other nodes, once this one has joined them.
    listener: OnceLock<Arc<ChannelListener>>,
    access: DatabaseAccess,
}

impl PostgresStore {
    /// Opens the database and brings its schema up to date; it must exist and use the encoding UTF-8. Other servers may use it as well.
    /// Refuses (Conflict) a database that a newer program wrote, or that holds sealed credentials. Credentials are stored as they are
    /// given: for tests and measurements.
    pub fn open(address: &PostgresAddress, settings: &PostgresSettings) -> Result<Self, StoreError> {
        Self::open_over(address, settings, Vault::new(None))
    }

    /// Opens the database as `open` does, with credentials sealed under keys. Fails with Conflict if a credential needs a key that is not
    /// given.
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
        let access = DatabaseAccess::new(address, settings);
        let own = Arc::clone(&access.shared.own);
        let transactor = || Transactor::new(access.clone());
        let several = |count: usize| (0..count.max(1)).map(|_| transactor()).collect::<Vec<_>>();
        // Before any other thread starts: none may meet the schema or the secrets of an older version.
        let start_patience = Duration::from_millis(settings.start_patience_ms.into());
        let ledger = prepared(access.clone(), start_patience, vault.clone())?;
        let inner = PostgresParts {
            acceptance: WriteThread::start("stentor-accept", LockScope::Rows, transactor(), settings)?,
            accepted: Arc::new(AcceptanceList::new(settings.waiting_max_jobs)),
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
}

#[expect(private_interfaces, reason = "other crates name stores, and never the parts of an engine")]
impl SqlEngine for PostgresParts {
    type Connection = Connection;

    fn write<T, F>(&self, kind: WriteKind, work: F) -> BoxFuture<'_, Result<T, StoreError>>
    where
        T: Send + 'static,
        F: Fn(&Connection) -> Done<T> + Send + 'static,
    {
        let (thread, priority) = match kind {
            WriteKind::Ledger => (&self.ledger, CommitPriority::Usual),
            WriteKind::LedgerFirst => (&self.ledger, CommitPriority::First),
            WriteKind::Registry | WriteKind::RegistryFirst => (&self.registry, CommitPriority::Usual),
            WriteKind::Rows => (&self.acceptance, CommitPriority::First),
        };
        Box::pin(thread.run(priority, work))
    }

    fn read<T, F>(&self, kind: ReadKind, work: F) -> BoxFuture<'_, Result<T, StoreError>>
    where
        T: Send + 'static,
        F: Fn(&Connection) -> Done<T> + Send + 'static,
    {
        let (threads, priority, in_snapshot) = match kind {
            ReadKind::Short => (&self.readers, CommitPriority::First, true),
            // Each statement has a snapshot of its own: a common one would cost two network round trips.
            ReadKind::LookUp => (&self.readers, CommitPriority::First, false),
            ReadKind::Step => (&self.readers, CommitPriority::Usual, true),
            ReadKind::Walk => (&self.long_readers, CommitPriority::Usual, true),
            ReadKind::Long => (&self.long_readers, CommitPriority::First, true),
        };
        Box::pin(threads.run((priority, in_snapshot), work))
    }

    fn accept(
        &self,
        messages: Vec<NewMessage>,
    ) -> BoxFuture<'_, Vec<Result<Idempotent<Accepted>, StoreError>>> {
        Box::pin(Arc::clone(&self.accepted).accept(messages, |work| {
            self.acceptance.hand_over(Box::new(AcceptanceJob { work, own: Arc::clone(&self.own) }));
        }))
    }

    fn register<'a>(
        store: &'a PostgresStore,
        app: AppId,
        registrations: &'a [Registration],
        now: Timestamp,
    ) -> BoxFuture<'a, Result<Vec<Registered>, StoreError>> {
        let batch = RegistrationBatch::new(app, registrations, now, tokens::hash);
        store.write_registry(move |connection| register::some(connection, &batch))
    }

    fn list_devices<'a>(
        store: &'a PostgresStore,
        app: AppId,
        filter: &'a DeviceFilter,
        page: Page,
    ) -> BoxFuture<'a, Result<Vec<Device>, StoreError>> {
        let filter = filter.clone();
        store.read_long(move |connection| device_list::list(connection, app, &filter, page))
    }

    fn own_node(&self) -> Option<u64> {
        self.own.get()
    }

    fn messages(&self) -> &Arc<MessageCache> {
        &self.messages
    }

    fn vault(&self) -> &Vault {
        &self.vault
    }
}

impl PostgresParts {
    /// Starts listening for the events of other nodes, unless it has been started.
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

/// Counts the credentials of a database under each key; a database without a store has none. Writes nothing.
pub fn sealed_under(address: &PostgresAddress) -> Result<BTreeMap<SealKeyId, u64>, StoreError> {
    let mut transactor = Transactor::new(DatabaseAccess::for_a_look(address, SEALED_PATIENCE));
    apart(move || Ok(sealing::sealed_under(transactor.connect()?)?))
}

/// Opens a connection and brings schema and secrets up to date.
fn prepared(access: DatabaseAccess, patience: Duration, vault: Vault) -> Result<Transactor, StoreError> {
    let mut transactor = Transactor::new(access.clone());
    let prepare = move || -> Result<Transactor, StoreError> {
        insist_on_start(patience, || refuse_shared_sessions(transactor.connect()?, &access))?;
        let connection = transactor.connect()?;
        // A step of the schema may work through whole tables.
        connection.limit(DatabaseAccess::long_limits())?;
        migrations::run(connection)?;
        transfer::refuse_unfinished(connection)?;
        origin::check(connection)?;
        sealing::adopt(connection, &vault)?;
        connection.limit(access.limits)?;
        Ok(transactor)
    };
    apart(prepare)
}

/// Executes work on a thread of its own, because the driver blocks in a way that the threads of a runtime refuse.
pub(super) fn apart<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    let failed = |why: &str| StoreError::Unavailable(format!("the database cannot be opened: {why}"));
    let thread = std::thread::Builder::new().name("stentor-open".to_owned()).spawn(work);
    let thread = thread.map_err(|error| failed(&error.to_string()))?;
    thread.join().unwrap_or_else(|_| Err(failed("its thread panicked")))
}
