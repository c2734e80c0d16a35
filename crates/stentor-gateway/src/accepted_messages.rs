//! A cache of recently read messages.

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use stentor_core::id::{AppId, MessageId};
use stentor_core::message::Message;
use stentor_core::ports::store::StoreError;

use crate::limits::CONTENTS_MAX_COUNT;

type ReadingTurn = tokio::sync::Mutex<()>;

/// Number of locks for reads. Reads of one app run one after the other; those of different apps run in parallel unless they share a lock.
const TURNS_COUNT: usize = 16;

/// A cache of messages. Accepted messages never change.
#[derive(Default)]
pub(crate) struct AcceptedMessages {
    known: Mutex<HashMap<MessageId, Arc<Message>>>,
    /// Serializes reads, so that of many devices reconnecting at once only the first one reads their common messages.
    turns: [ReadingTurn; TURNS_COUNT],
}

impl AcceptedMessages {
    /// Returns messages of an app in the order of their ids; `None` for deleted ones. `read` loads those that are not cached.
    pub(crate) async fn messages(
        &self,
        app: AppId,
        ids: &[MessageId],
        read: impl AsyncFnOnce(Vec<MessageId>) -> Result<Vec<Message>, StoreError>,
    ) -> Result<Vec<Option<Arc<Message>>>, StoreError> {
        let mut found = self.known_of(ids);
        if found.iter().all(Option::is_some) {
            return Ok(found);
        }
        let _turn = self.turn(app).lock().await;
        // The previous holder of the lock may have read them.
        found = self.known_of(ids);
        let is_unknown = |(id, known): (&MessageId, &Option<_>)| known.is_none().then_some(*id);
        let unknown: Vec<MessageId> = ids.iter().zip(&found).filter_map(is_unknown).collect();
        if !unknown.is_empty() {
            let stored = read(unknown).await?.into_iter().map(|message| self.keep(Arc::new(message)));
            let stored: HashMap<MessageId, Arc<Message>> =
                stored.map(|message| (message.id, message)).collect();
            for (found, id) in found.iter_mut().zip(ids) {
                *found = found.take().or_else(|| stored.get(id).cloned());
            }
        }
        Ok(found)
    }

    fn turn(&self, app: AppId) -> &ReadingTurn {
        &self.turns[app.raw() as usize % TURNS_COUNT]
    }

    fn known_of(&self, ids: &[MessageId]) -> Vec<Option<Arc<Message>>> {
        let known = self.lock();
        ids.iter().map(|id| known.get(id).cloned()).collect()
    }

    /// Caches a message that was just settled, because reconnecting devices will need it.
    pub(crate) fn note(&self, message: &Arc<Message>) {
        if !self.lock().contains_key(&message.id) {
            self.keep(Arc::clone(message));
        }
    }

    fn keep(&self, message: Arc<Message>) -> Arc<Message> {
        let mut known = self.lock();
        if known.len() >= CONTENTS_MAX_COUNT {
            // There is no way to know which of them are needed again; reconnecting devices soon fill the cache with the same ones.
            known.clear();
        }
        known.insert(message.id, Arc::clone(&message));
        message
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<MessageId, Arc<Message>>> {
        self.known.lock()
    }
}
