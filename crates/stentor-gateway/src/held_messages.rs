//! Messages whose campaigns are paused: their devices get them when these go on.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use stentor_core::id::{AppId, MessageId};

use crate::limits::HELD_MAX_COUNT;

/// The messages that were held back since the process began; of those before it the ledger tells.
#[derive(Debug, Default)]
pub(crate) struct HeldMessages(Mutex<BTreeSet<(MessageId, AppId)>>);

impl HeldMessages {
    /// Holds a message of an app back; one of another app is not touched, whoever names it. Of too many the oldest is forgotten: nothing new of it comes.
    pub(crate) fn hold(&self, app: AppId, message: MessageId) {
        let mut held = self.lock();
        held.insert((message, app));
        if held.len() > HELD_MAX_COUNT {
            held.pop_first();
        }
    }

    /// Lets a message go.
    pub(crate) fn release(&self, app: AppId, message: MessageId) {
        self.lock().remove(&(message, app));
    }

    /// Returns whether a message is held back.
    pub(crate) fn has(&self, app: AppId, message: MessageId) -> bool {
        self.lock().contains(&(message, app))
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<(MessageId, AppId)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
