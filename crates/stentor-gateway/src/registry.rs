//! Which devices are connected to this process.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use stentor_core::id::{AppId, DeviceId};

use crate::session_state::{Closed, SessionState};

/// The sessions of this process, by device.
#[derive(Default)]
pub(crate) struct SessionRegistry {
    sessions: RwLock<HashMap<DeviceId, Arc<SessionState>>>,
}

impl SessionRegistry {
    /// Adds a session; an older one of the same device is closed.
    pub(crate) fn add(&self, session: &Arc<SessionState>) {
        // In one step: of two connections that come at once, the one that comes second closes the first.
        let before = self.write().insert(session.identity().device, Arc::clone(session));
        if let Some(before) = before {
            before.close(Closed::TakenOver);
        }
    }

    /// Takes a session out, unless another has taken its place.
    pub(crate) fn remove(&self, session: &Arc<SessionState>) {
        let mut sessions = self.write();
        let device = session.identity().device;
        // A session that was taken over ends late, and must not take its successor out.
        if sessions.get(&device).is_some_and(|known| Arc::ptr_eq(known, session)) {
            sessions.remove(&device);
        }
    }

    /// Returns the session of a device.
    pub(crate) fn get(&self, device: DeviceId) -> Option<Arc<SessionState>> {
        self.read().get(&device).cloned()
    }

    /// Lists the sessions of those devices that are connected.
    pub(crate) fn connected(&self, devices: &[DeviceId]) -> Vec<Arc<SessionState>> {
        let sessions = self.read();
        devices.iter().filter_map(|device| sessions.get(device).cloned()).collect()
    }

    /// Lists all sessions.
    pub(crate) fn all(&self) -> Vec<Arc<SessionState>> {
        self.read().values().cloned().collect()
    }

    /// Returns whether no device is connected.
    pub(crate) fn is_empty(&self) -> bool {
        self.read().is_empty()
    }

    /// Lists the sessions of an app.
    pub(crate) fn of_app(&self, app: AppId) -> Vec<Arc<SessionState>> {
        self.read().values().filter(|session| session.identity().app == app).cloned().collect()
    }

    fn read(&self) -> RwLockReadGuard<'_, HashMap<DeviceId, Arc<SessionState>>> {
        self.sessions.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, HashMap<DeviceId, Arc<SessionState>>> {
        self.sessions.write().unwrap_or_else(PoisonError::into_inner)
    }
}
