//! Outcomes of sessions after the end of their connections, for delayed wills.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use stentor_core::id::DeviceId;
use tokio::sync::watch;

/// The outcome of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SessionOutcome {
    /// Undecided: the device may resume it.
    Open,
    /// The device has resumed it.
    Resumed,
    /// It has ended.
    Over,
}

type Listeners = Arc<Mutex<HashMap<DeviceId, watch::Sender<SessionOutcome>>>>;

/// The connections to notify: at most the last one of each device.
#[derive(Debug, Default)]
pub(crate) struct SessionOutcomes(Listeners);

/// The channel that reports the outcome of a session to its former connection.
#[derive(Debug)]
pub(crate) struct OutcomeListener {
    device: DeviceId,
    receiver: Option<watch::Receiver<SessionOutcome>>,
    listeners: Listeners,
}

impl SessionOutcomes {
    /// Notifies the previous connection of the outcome of its session; returns the listener of the next one.
    pub(crate) fn begin(&self, device: DeviceId, is_resumed: bool, listens: bool) -> Option<OutcomeListener> {
        let mut listeners = self.0.lock();
        if let Some(before) = listeners.remove(&device) {
            before.send_replace(if is_resumed { SessionOutcome::Resumed } else { SessionOutcome::Over });
        }
        listens.then(|| {
            let (sender, receiver) = watch::channel(SessionOutcome::Open);
            listeners.insert(device, sender);
            OutcomeListener { device, receiver: Some(receiver), listeners: Arc::clone(&self.0) }
        })
    }
}

impl OutcomeListener {
    /// Waits for the outcome, possibly for ever.
    pub(crate) async fn known(&mut self) -> SessionOutcome {
        if let Some(receiver) = &mut self.receiver
            && let Ok(outcome) = receiver.wait_for(|outcome| *outcome != SessionOutcome::Open).await
        {
            return *outcome;
        }
        std::future::pending().await
    }
}

impl Drop for OutcomeListener {
    fn drop(&mut self) {
        self.receiver = None;
        let mut listeners = self.listeners.lock();
        // The entry may belong to another connection by now, which still listens.
        if listeners.get(&self.device).is_some_and(watch::Sender::is_closed) {
            listeners.remove(&self.device);
        }
    }
}
