//! Messages of paused campaigns, which devices get when the campaigns resume.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::{Mutex, MutexGuard};
use stentor_core::id::{AppId, MessageId};

use crate::limits::HELD_MAX_COUNT;

/// The messages held back since the start of the process. The ledger knows the earlier ones.
#[derive(Debug, Default)]
pub(crate) struct HeldMessages {
    held: Mutex<BTreeSet<(MessageId, AppId)>>,
    /// The number of held messages. It is checked with every message handed to a device, and is mostly zero.
    count: AtomicUsize,
}

impl HeldMessages {
    /// Holds a message of an app back; a message of another app is not affected. Beyond the limit the oldest one is dropped, because
    /// nothing new of it is expected.
    pub(crate) fn hold(&self, app: AppId, message: MessageId) {
        let mut held = self.lock();
        held.insert((message, app));
        if held.len() > HELD_MAX_COUNT {
            held.pop_first();
        }
        // Under the lock, so that the count follows the order of the changes.
        self.count.store(held.len(), Ordering::SeqCst);
    }

    /// Releases a message.
    pub(crate) fn release(&self, app: AppId, message: MessageId) {
        let mut held = self.lock();
        held.remove(&(message, app));
        self.count.store(held.len(), Ordering::SeqCst);
    }

    /// Lists the messages held back.
    pub(crate) fn all(&self) -> Vec<(AppId, MessageId)> {
        self.lock().iter().map(|(message, app)| (*app, *message)).collect()
    }

    /// Returns true if a message is held back.
    pub(crate) fn has(&self, app: AppId, message: MessageId) -> bool {
        // Called under a session's lock: `Gateway::hold` raises the count before it takes that lock.
        self.count.load(Ordering::SeqCst) > 0 && self.lock().contains(&(message, app))
    }

    fn lock(&self) -> MutexGuard<'_, BTreeSet<(MessageId, AppId)>> {
        self.held.lock()
    }
}
