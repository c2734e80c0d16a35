//! Programs connected to this process. A registration over HTTP must reach the connection that serves the program.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;

use super::agent::McsAgent;

const CHANGED: u8 = 1;
const REPLACED: u8 = 2;

/// Notifications for a connection.
#[derive(Debug)]
pub(crate) struct McsAgentSignal {
    flags: AtomicU8,
    wake: Arc<Notify>,
}

impl McsAgentSignal {
    fn raise(&self, flag: u8) {
        // Set before the wake-up, which stores a permit: the connection that takes it finds the flag.
        self.flags.fetch_or(flag, Ordering::AcqRel);
        self.wake.notify_one();
    }

    /// Returns true if the registrations have changed since the last call.
    pub(super) fn take_changed(&self) -> bool {
        // Cleared before the registrations are read: a concurrent change sets it again.
        self.flags.fetch_and(!CHANGED, Ordering::AcqRel) & CHANGED != 0
    }

    /// Returns true if another connection of the same program has replaced this one.
    pub(super) fn is_replaced(&self) -> bool {
        self.flags.load(Ordering::Acquire) & REPLACED != 0
    }
}

/// The connected programs, with the newest connection of each.
#[derive(Debug, Default)]
pub(crate) struct McsAgentRegistry {
    connected: Mutex<HashMap<McsAgent, Arc<McsAgentSignal>>>,
}

impl McsAgentRegistry {
    /// Adds a connection, which is woken through `wake`. An older one of the same program is notified of its replacement.
    pub(super) fn add(&self, agent: McsAgent, wake: Arc<Notify>) -> Arc<McsAgentSignal> {
        let signal = Arc::new(McsAgentSignal { flags: AtomicU8::new(0), wake });
        if let Some(before) = self.lock().insert(agent, Arc::clone(&signal)) {
            before.raise(REPLACED);
        }
        signal
    }

    /// Removes a connection, unless another has taken its place.
    pub(super) fn remove(&self, agent: McsAgent, signal: &Arc<McsAgentSignal>) {
        let mut connected = self.lock();
        if connected.get(&agent).is_some_and(|known| Arc::ptr_eq(known, signal)) {
            connected.remove(&agent);
        }
    }

    /// Notifies a program's connection that its registrations have changed.
    pub(super) fn note_change(&self, agent: McsAgent) {
        if let Some(signal) = self.lock().get(&agent) {
            signal.raise(CHANGED);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<McsAgent, Arc<McsAgentSignal>>> {
        self.connected.lock()
    }
}
