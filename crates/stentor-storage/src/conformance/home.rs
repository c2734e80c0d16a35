use async_trait::async_trait;
use stentor_core::ports::queue::Queue;
use stentor_core::ports::store::Store;

use crate::memory::{MemoryQueue, MemoryStore};

/// Where an engine keeps a store, so that a case can open it again after a restart.
#[async_trait]
pub trait StoreHome: Send + Sync {
    /// Opens the store; what an earlier one kept here is there again, once that is dropped.
    async fn open(&self) -> Box<dyn Store>;
}

/// Where an engine keeps a queue.
#[async_trait]
pub trait QueueHome: Send + Sync {
    /// Opens the queue.
    async fn open(&self) -> Box<dyn Queue>;

    /// Returns whether tickets outlive the queue that took them.
    fn persists(&self) -> bool;
}

#[async_trait]
impl StoreHome for MemoryStore {
    async fn open(&self) -> Box<dyn Store> {
        Box::new(self.clone())
    }
}

/// The home of queues in memory: each is new and empty.
#[derive(Debug, Clone, Copy, Default)]
pub struct MemoryQueueHome;

#[async_trait]
impl QueueHome for MemoryQueueHome {
    async fn open(&self) -> Box<dyn Queue> {
        Box::new(MemoryQueue::new())
    }

    fn persists(&self) -> bool {
        false
    }
}
