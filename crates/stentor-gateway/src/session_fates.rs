//! What becomes of sessions whose connections are over, for whoever still has to say something in their name.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use stentor_core::id::DeviceId;
use tokio::sync::watch;

/// What became of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SessionFate {
    /// Nothing yet: its device may come back to it.
    Open,
    /// Its device is back.
    Resumed,
    /// It has ended.
    Over,
}

type Listeners = Arc<Mutex<HashMap<DeviceId, watch::Sender<SessionFate>>>>;

/// The connections that want to hear it: of each device the last one, if it does.
#[derive(Debug, Default)]
pub(crate) struct SessionFateBoard(Listeners);

/// Where one connection hears what became of its session.
#[derive(Debug)]
pub(crate) struct SessionFates {
    device: DeviceId,
    told: Option<watch::Receiver<SessionFate>>,
    listeners: Listeners,
}

impl SessionFateBoard {
    /// Tells the connection before what the next one makes of its session; returns where the next one will hear it.
    pub(crate) fn begin(&self, device: DeviceId, is_resumed: bool, listens: bool) -> Option<SessionFates> {
        let mut listeners = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(before) = listeners.remove(&device) {
            before.send_replace(if is_resumed { SessionFate::Resumed } else { SessionFate::Over });
        }
        listens.then(|| {
            let (tell, told) = watch::channel(SessionFate::Open);
            listeners.insert(device, tell);
            SessionFates { device, told: Some(told), listeners: Arc::clone(&self.0) }
        })
    }
}

impl SessionFates {
    /// Waits until it is known, which may be never.
    pub(crate) async fn known(&mut self) -> SessionFate {
        if let Some(told) = &mut self.told
            && let Ok(fate) = told.wait_for(|fate| *fate != SessionFate::Open).await
        {
            return *fate;
        }
        std::future::pending().await
    }
}

impl Drop for SessionFates {
    fn drop(&mut self) {
        self.told = None;
        let mut listeners = self.listeners.lock().unwrap_or_else(PoisonError::into_inner);
        // The place may be another connection's by now, which listens.
        if listeners.get(&self.device).is_some_and(watch::Sender::is_closed) {
            listeners.remove(&self.device);
        }
    }
}
