//! Homes of stores and queues, which outlive a restart.

use async_trait::async_trait;
use stentor_core::ports::queue::Queue;
use stentor_core::ports::store::Store;

use crate::sqlite::SqliteStore;

/// The place where an engine keeps a store, so that a case can open it again after a restart.
#[async_trait]
pub trait StoreHome: Send + Sync {
    /// Opens the store with the rows of an earlier one, once that is dropped.
    async fn open(&self) -> Box<dyn Store>;
}

/// The place where an engine keeps a queue.
#[async_trait]
pub trait QueueHome: Send + Sync {
    /// Opens the queue.
    async fn open(&self) -> Box<dyn Queue>;

    /// Returns true if tickets survive a restart of the queue.
    fn persists(&self) -> bool;
}

/// A temporary store is its own home: it stays open for the whole case.
#[async_trait]
impl StoreHome for SqliteStore {
    async fn open(&self) -> Box<dyn Store> {
        Box::new(self.clone())
    }
}
