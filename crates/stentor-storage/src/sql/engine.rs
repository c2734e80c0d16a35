//! A store over an engine, and the trait of an engine.

use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use stentor_core::device::{Device, Registration};
use stentor_core::id::{AppId, MessageId};
use stentor_core::message::Message;
use stentor_core::ports::store::{
    Accepted, DeviceFilter, Idempotent, NewMessage, Page, Registered, StoreError,
};
use stentor_core::time::Timestamp;

use super::connection::Sql;
use super::error::Done;
use super::parts::EngineParts as _;
use super::store::message_rows::MessageCache;
use crate::vault::Vault;

/// A store in a database; clones share it, and the last one dropped closes it.
pub struct SqlStore<E> {
    pub(crate) inner: Arc<E>,
}

impl<E> Clone for SqlStore<E> {
    fn clone(&self) -> Self {
        Self { inner: Arc::clone(&self.inner) }
    }
}

/// The kind of a transaction, by which engines choose its thread and its place in the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteKind {
    /// The ledger, to move audiences.
    Ledger,
    /// The ledger, for a waiting caller or a single device.
    LedgerFirst,
    /// Devices, topics, users, groups.
    Registry,
    /// Devices, topics, users, groups, for a waiting caller or a single device.
    RegistryFirst,
    /// Rows that no rule reads to decide about other rows, for a waiting caller. All checks come before the first change.
    Rows,
}

/// The kind of a read: its size, and the caller that waits for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadKind {
    /// A few rows in one snapshot, for a caller, a device or a single message.
    Short,
    /// A few rows by their keys, on the thread of the caller where it need not wait.
    LookUp,
    /// A few rows in one snapshot, for a step of an audience.
    Step,
    /// A bounded stretch in one snapshot, for the pipeline.
    Walk,
    /// A bounded stretch in one snapshot, for a caller.
    Long,
}

/// An engine: its threads, its connections, its queues.
#[expect(
    private_bounds,
    private_interfaces,
    reason = "other crates name stores, and never the parts of an engine"
)]
pub trait SqlEngine: Send + Sync + 'static {
    /// A connection of the engine.
    type Connection: Sql;

    /// Executes a job in the next commit; its result is on disk. The job may be executed several times.
    fn write<T, F>(&self, kind: WriteKind, work: F) -> BoxFuture<'_, Result<T, StoreError>>
    where
        T: Send + 'static,
        F: Fn(&Self::Connection) -> Done<T> + Send + 'static;

    /// Reads. The job may be done several times.
    fn read<T, F>(&self, kind: ReadKind, work: F) -> BoxFuture<'_, Result<T, StoreError>>
    where
        T: Send + 'static,
        F: Fn(&Self::Connection) -> Done<T> + Send + 'static;

    /// Stores messages, each as a whole or not at all. Reply i belongs to message i.
    fn accept(
        &self,
        messages: Vec<NewMessage>,
    ) -> BoxFuture<'_, Vec<Result<Idempotent<Accepted>, StoreError>>>;

    /// Registers the first of some devices; returns as many replies as it registered.
    fn register<'a>(
        store: &'a SqlStore<Self>,
        app: AppId,
        registrations: &'a [Registration],
        now: Timestamp,
    ) -> BoxFuture<'a, Result<Vec<Registered>, StoreError>>
    where
        Self: Sized;

    /// Lists devices.
    fn list_devices<'a>(
        store: &'a SqlStore<Self>,
        app: AppId,
        filter: &'a DeviceFilter,
        page: Page,
    ) -> BoxFuture<'a, Result<Vec<Device>, StoreError>>
    where
        Self: Sized;

    /// Returns the instance of this process among the nodes that share the database. Nodes claim work before they do it. A SQLite file has
    /// only one process.
    fn own_node(&self) -> Option<u64> {
        None
    }

    /// Returns the cache of messages.
    fn messages(&self) -> &Arc<MessageCache>;

    /// Returns the vault, which seals and opens secrets.
    fn vault(&self) -> &Vault;
}

/// Declares short names for the kinds of transactions.
macro_rules! kinds {
    ($($(#[$doc:meta])* $name:ident = $method:ident $kind:expr;)+) => {$(
        $(#[$doc])*
        pub(crate) fn $name<T, F>(&self, work: F) -> BoxFuture<'_, Result<T, StoreError>>
        where
            T: Send + 'static,
            F: Fn(&E::Connection) -> Done<T> + Send + 'static,
        {
            self.inner.$method($kind, work)
        }
    )+};
}

impl<E: SqlEngine> SqlStore<E> {
    kinds! {
        /// Changes the ledger.
        write = write WriteKind::Ledger;
        /// Changes the ledger for a caller or a single device that waits.
        write_first = write WriteKind::LedgerFirst;
        /// Changes devices, topics, users and groups.
        write_registry = write WriteKind::Registry;
        /// Changes devices, topics, users and groups for a waiting caller or a single device.
        write_registry_first = write WriteKind::RegistryFirst;
        /// Changes rows that no rule reads to decide about other rows.
        write_rows = write WriteKind::Rows;
        /// Reads a few rows.
        read = read ReadKind::Short;
        /// Reads a few rows by their keys.
        look_up = read ReadKind::LookUp;
        /// Reads a few rows for a step of an audience.
        read_step = read ReadKind::Step;
        /// Reads a stretch for the pipeline.
        read_walk = read ReadKind::Walk;
        /// Reads a stretch for a caller.
        read_long = read ReadKind::Long;
    }

    pub(crate) fn vault(&self) -> Vault {
        self.inner.vault().clone()
    }

    /// Returns a message from memory, or reads it.
    pub(crate) async fn cached_message(&self, id: MessageId) -> Result<Option<Arc<Message>>, StoreError> {
        let cache = Arc::clone(self.inner.messages());
        self.read_step(move |connection| cache.get(connection, id)).await
    }

    /// Writes a row without meaning; fails if the engine cannot commit.
    pub(crate) async fn prove_writing(&self) -> Result<(), StoreError> {
        self.write_rows(|connection| connection.probe()).await
    }
}

impl<E> fmt::Debug for SqlStore<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SqlStore")
    }
}
