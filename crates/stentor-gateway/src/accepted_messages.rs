//! Messages that were looked up lately.

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

/// Apps whose messages are read one after the other; others are read beside them.
const TURNS_COUNT: usize = 16;

/// A cache of messages: an accepted one never changes.
#[derive(Default)]
pub(crate) struct AcceptedMessages {
    known: Mutex<HashMap<MessageId, Arc<Message>>>,
    /// Of many devices that come back at once, the first reads what they all ask for.
    turns: [ReadingTurn; TURNS_COUNT],
}

impl AcceptedMessages {
    /// Returns messages of an app in the order of their ids, each of which is `None` when it is gone; `read` gives those that are
    /// not known.
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
        // Whoever had the turn before may have read them.
        found = self.known_of(ids);
        let is_unknown = |(id, known): (&MessageId, &Option<_>)| known.is_none().then_some(*id);
        let unknown: Vec<MessageId> = ids.iter().zip(&found).filter_map(is_unknown).collect();
        if !unknown.is_empty() {
            let kept = read(unknown).await?.into_iter().map(|message| self.keep(Arc::new(message)));
            let kept: HashMap<MessageId, Arc<Message>> = kept.map(|message| (message.id, message)).collect();
            for (found, id) in found.iter_mut().zip(ids) {
                *found = found.take().or_else(|| kept.get(id).cloned());
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

    /// Keeps a message that was settled just now: devices that come back will ask for it.
    pub(crate) fn note(&self, message: &Arc<Message>) {
        if !self.lock().contains_key(&message.id) {
            self.keep(Arc::clone(message));
        }
    }

    fn keep(&self, message: Arc<Message>) -> Arc<Message> {
        let mut known = self.lock();
        if known.len() >= CONTENTS_MAX_COUNT {
            // Which of them is asked for again cannot be told: reconnecting devices ask for the same ones soon.
            known.clear();
        }
        known.insert(message.id, Arc::clone(&message));
        message
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<MessageId, Arc<Message>>> {
        self.known.lock()
    }
}
