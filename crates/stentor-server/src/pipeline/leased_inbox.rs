//! Chunks that were leased in the transaction that stored their message. They need neither the starter nor the queue, and wait here for
//! their dispatcher.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;
use stentor_core::device::ProviderKind;
use stentor_core::ports::store::LeasedChunk;
use tokio::sync::Notify;

use super::at_once_places::AtOncePlace;
use super::lease_table::LeaseGuard;
use super::provider_table::ProviderKey;

/// A leased chunk that waits for its dispatcher.
pub(crate) struct LeasedArrival {
    pub(crate) chunk: Box<LeasedChunk>,
    /// Extends its lease.
    pub(crate) guard: LeaseGuard,
    /// The place of its message.
    pub(crate) place: Option<Arc<AtOncePlace>>,
}

impl LeasedArrival {
    /// Returns its app and provider.
    pub(crate) fn key(&self) -> ProviderKey {
        (self.chunk.message.app, self.chunk.provider)
    }
}

/// The leased chunks that wait, by credential.
pub(crate) struct LeasedInbox {
    waiting: Mutex<HashMap<ProviderKey, VecDeque<LeasedArrival>>>,
    arrived: HashMap<ProviderKind, Notify>,
}

impl Default for LeasedInbox {
    fn default() -> Self {
        let arrived = ProviderKind::ALL.iter().map(|kind| (*kind, Notify::new())).collect();
        Self { waiting: Mutex::default(), arrived }
    }
}

impl LeasedInbox {
    /// Adds a chunk and wakes its dispatcher.
    pub(crate) fn push(&self, arrival: LeasedArrival) {
        let key = arrival.key();
        self.waiting.lock().entry(key).or_default().push_back(arrival);
        // After the insertion, so that the woken task sees it.
        self.arrived.get(&key.1).into_iter().for_each(Notify::notify_one);
    }

    /// Takes the first chunk of a credential.
    pub(crate) fn pop(&self, key: ProviderKey) -> Option<LeasedArrival> {
        let mut waiting = self.waiting.lock();
        let own = waiting.get_mut(&key)?;
        let first = own.pop_front();
        if own.is_empty() {
            waiting.remove(&key);
        }
        first
    }

    /// Lists the credentials of a provider for which chunks wait.
    pub(crate) fn keys(&self, kind: ProviderKind) -> Vec<ProviderKey> {
        self.waiting.lock().keys().filter(|(_, provider)| *provider == kind).copied().collect()
    }

    /// Returns true if no chunk of a provider waits.
    pub(crate) fn is_empty(&self, kind: ProviderKind) -> bool {
        !self.waiting.lock().keys().any(|(_, provider)| *provider == kind)
    }

    /// Waits for the next chunk of a provider. One that came before the wait is not missed.
    pub(crate) async fn arrived(&self, kind: ProviderKind) {
        match self.arrived.get(&kind) {
            Some(arrived) => arrived.notified().await,
            None => std::future::pending().await,
        }
    }

    /// Takes all chunks.
    pub(crate) fn take_all(&self) -> Vec<LeasedArrival> {
        std::mem::take(&mut *self.waiting.lock()).into_values().flatten().collect()
    }
}
