//! Messages whose campaigns are paused: their devices get them when these go on.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::{Mutex, MutexGuard};
use stentor_core::id::{AppId, MessageId};

use crate::limits::HELD_MAX_COUNT;

/// The messages that were held back since the process began; of those before it the ledger tells.
#[derive(Debug, Default)]
pub(crate) struct HeldMessages {
    held: Mutex<BTreeSet<(MessageId, AppId)>>,
    /// How many there are: with every message that is given to a device they are looked for, and mostly there is none.
    count: AtomicUsize,
}

impl HeldMessages {
    /// Holds a message of an app back; one of another app is not touched, whoever names it. Of too many the oldest is forgotten: nothing new of it comes.
    pub(crate) fn hold(&self, app: AppId, message: MessageId) {
        let mut held = self.lock();
        held.insert((message, app));
        if held.len() > HELD_MAX_COUNT {
            held.pop_first();
        }
        // Under the lock, so that the count follows the order of the changes.
        self.count.store(held.len(), Ordering::SeqCst);
    }

    /// Lets a message go.
    pub(crate) fn release(&self, app: AppId, message: MessageId) {
        let mut held = self.lock();
        held.remove(&(message, app));
        self.count.store(held.len(), Ordering::SeqCst);
    }

    /// Lists what is held back.
    pub(crate) fn all(&self) -> Vec<(AppId, MessageId)> {
        self.lock().iter().map(|(message, app)| (*app, *message)).collect()
    }

    /// Returns whether a message is held back.
    pub(crate) fn has(&self, app: AppId, message: MessageId) -> bool {
        // Asked with a session's lock held: whoever holds a message back counts it before taking that lock.
        self.count.load(Ordering::SeqCst) > 0 && self.lock().contains(&(message, app))
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<(MessageId, AppId)>> {
        self.held.lock()
    }
}
