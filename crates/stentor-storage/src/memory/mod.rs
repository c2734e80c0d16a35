//! Store and queue in plain memory: the reference by which engines are judged, and what tests run on.
//!
//! Everything stands behind one mutex, so that every method is one transaction by construction; nothing survives the
//! process. A crash is simulated by going on from [`MemoryStore::snapshot`] as another instance.

mod apps;
mod audience;
mod audit;
mod devices;
mod groups;
mod history;
mod messages;
mod pipeline;
mod queue;
mod receipts;
mod registry;
mod rows;
mod schedules;
mod state;
mod topics;
mod upstream;
mod users;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub use queue::MemoryQueue;
use state::Tables;

/// A store in memory; clones share what they keep.
#[derive(Clone, Default)]
pub struct MemoryStore {
    state: Arc<Mutex<Tables>>,
}

impl MemoryStore {
    /// Starts empty.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Copies all that is kept at this moment into a store of its own.
    #[must_use]
    pub fn snapshot(&self) -> Self {
        let state = self.lock().clone();
        Self { state: Arc::new(Mutex::new(state)) }
    }

    fn lock(&self) -> MutexGuard<'_, Tables> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for MemoryStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MemoryStore").finish_non_exhaustive()
    }
}
