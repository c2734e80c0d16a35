//! The devices connected to this process.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::{RwLock, RwLockReadGuard, RwLockWriteGuard};
use stentor_core::id::{AppId, DeviceId};

use crate::session_state::{Closed, SessionState};

/// The sessions of this process by device, and their number per app.
pub(crate) struct SessionRegistry {
    sessions: RwLock<Sessions>,
    per_app_max_count: AtomicUsize,
}

#[derive(Default)]
struct Sessions {
    by_device: HashMap<DeviceId, Arc<SessionState>>,
    counts: HashMap<AppId, usize>,
}

impl Default for SessionRegistry {
    fn default() -> Self {
        Self { sessions: RwLock::default(), per_app_max_count: AtomicUsize::new(usize::MAX) }
    }
}

impl SessionRegistry {
    /// Limits the sessions of each app, so that one app cannot exclude the devices of others.
    pub(crate) fn limit_per_app(&self, max_count: usize) {
        self.per_app_max_count.store(max_count, Ordering::Relaxed);
    }

    /// Adds a session. An older one of the same device is closed; the new one is closed if its app exceeds the limit.
    pub(crate) fn add(&self, session: &Arc<SessionState>) {
        let (app, device) = (session.identity().app, session.identity().device);
        // Atomic: of two concurrent connections, the second one closes the first.
        let (before, count) = {
            let mut sessions = self.write();
            let before = sessions.by_device.insert(device, Arc::clone(session));
            let count = sessions.counts.entry(app).or_default();
            *count += usize::from(before.is_none());
            (before, *count)
        };
        if let Some(before) = before {
            before.close(Closed::TakenOver);
        }
        if count > self.per_app_max_count.load(Ordering::Relaxed) {
            session.close(Closed::Crowded);
        }
    }

    /// Removes a session, unless another has taken its place.
    pub(crate) fn remove(&self, session: &Arc<SessionState>) {
        let mut sessions = self.write();
        let device = session.identity().device;
        // A replaced session ends late, and must not remove its successor.
        if sessions.by_device.get(&device).is_some_and(|known| Arc::ptr_eq(known, session)) {
            sessions.by_device.remove(&device);
            let app = session.identity().app;
            let left = sessions.counts.get(&app).map_or(0, |count| count.saturating_sub(1));
            match left {
                0 => sessions.counts.remove(&app),
                left => sessions.counts.insert(app, left),
            };
        }
    }

    /// Returns the session of a device.
    pub(crate) fn get(&self, device: DeviceId) -> Option<Arc<SessionState>> {
        self.read().by_device.get(&device).cloned()
    }

    /// Lists the sessions of the given devices, as far as they are connected.
    pub(crate) fn connected(&self, devices: &[DeviceId]) -> Vec<Arc<SessionState>> {
        let sessions = self.read();
        devices.iter().filter_map(|device| sessions.by_device.get(device).cloned()).collect()
    }

    /// Lists all sessions.
    pub(crate) fn all(&self) -> Vec<Arc<SessionState>> {
        self.read().by_device.values().cloned().collect()
    }

    /// Returns true if no device is connected.
    pub(crate) fn is_empty(&self) -> bool {
        self.read().by_device.is_empty()
    }

    /// Lists the sessions of an app.
    pub(crate) fn of_app(&self, app: AppId) -> Vec<Arc<SessionState>> {
        self.read().by_device.values().filter(|session| session.identity().app == app).cloned().collect()
    }

    fn read(&self) -> RwLockReadGuard<'_, Sessions> {
        self.sessions.read()
    }

    fn write(&self) -> RwLockWriteGuard<'_, Sessions> {
        self.sessions.write()
    }
}
