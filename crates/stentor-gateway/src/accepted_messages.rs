//! Messages that were looked up lately.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use stentor_core::id::{AppId, MessageId};
use stentor_core::message::Message;
use stentor_core::ports::store::{Store, StoreError};

use crate::limits::CONTENTS_MAX_COUNT;

/// A cache of messages: an accepted one never changes.
#[derive(Default)]
pub(crate) struct AcceptedMessages {
    known: Mutex<HashMap<MessageId, Arc<Message>>>,
}

impl AcceptedMessages {
    /// Returns a message of an app; `None` when it is gone.
    pub(crate) async fn message(
        &self,
        store: &dyn Store,
        app: AppId,
        id: MessageId,
    ) -> Result<Option<Arc<Message>>, StoreError> {
        if let Some(known) = self.lock().get(&id).cloned() {
            return Ok(Some(known));
        }
        match store.message(app, id).await {
            Ok(message) => Ok(Some(self.keep(Arc::new(message)))),
            Err(StoreError::NotFound(_)) => Ok(None),
            Err(error) => Err(error),
        }
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
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
