//! Ends of sessions whose connections are over: a will waits for them.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use stentor_core::id::DeviceId;
use tokio::sync::watch;

/// The end of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SessionOutcome {
    /// Nothing yet: its device may come back to it.
    Open,
    /// Its device is back.
    Resumed,
    /// It has ended.
    Over,
}

type Listeners = Arc<Mutex<HashMap<DeviceId, watch::Sender<SessionOutcome>>>>;

/// The connections that want to hear it: of each device the last one, if it does.
#[derive(Debug, Default)]
pub(crate) struct SessionOutcomes(Listeners);

/// The channel on which one connection hears of the end of its session.
#[derive(Debug)]
pub(crate) struct OutcomeListener {
    device: DeviceId,
    receiver: Option<watch::Receiver<SessionOutcome>>,
    listeners: Listeners,
}

impl SessionOutcomes {
    /// Lets the connection before know what the next one makes of its session; returns where the next one will hear it.
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
    /// Waits until it is known, which may be never.
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
        // The place may be another connection's by now, which listens.
        if listeners.get(&self.device).is_some_and(watch::Sender::is_closed) {
            listeners.remove(&self.device);
        }
    }
}
