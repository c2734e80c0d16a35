//! Announcements of connected devices to the other servers of the store. A device has one session, at the server to which it connected
//! last.

use std::cmp::Ordering as Order;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::{Mutex, MutexGuard};
use stentor_core::id::{AppId, DeviceId};
use stentor_core::time::Timestamp;
use tokio::sync::Notify;

use crate::identity::DeviceIdentity;
use crate::registry::SessionRegistry;
use crate::session_state::SessionState;

/// Most claims queued individually; beyond it, all sessions are announced.
const CLAIMS_MAX_COUNT: usize = 16_384;
/// Claims announced at once.
const CLAIMS_AT_ONCE_MAX_COUNT: usize = 256;

/// The claim of a server to a device's session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionClaim {
    /// The device.
    pub identity: DeviceIdentity,
    /// Time of connection, by the clock shared by all servers of a store.
    pub opened_at: Timestamp,
    /// A random number of the claiming process, by which it recognizes its own claims.
    pub mark: u8,
}

/// The claims to announce to the other servers.
pub(crate) struct SessionClaims {
    mark: u8,
    /// True if a task announces the claims; a server without others keeps none.
    is_followed: AtomicBool,
    waiting: Mutex<WaitingClaims>,
    noted: Notify,
}

#[derive(Default)]
struct WaitingClaims {
    by_device: BTreeMap<DeviceId, (AppId, Timestamp)>,
    /// True if all sessions must be announced.
    all: bool,
}

impl Default for SessionClaims {
    fn default() -> Self {
        let mark = rand::random();
        Self { mark, is_followed: AtomicBool::new(false), waiting: Mutex::default(), noted: Notify::new() }
    }
}

impl SessionClaims {
    /// Queues the claim of a device that connected here.
    pub(crate) fn note(&self, session: &SessionState) {
        self.put(session.identity(), session.opened_at());
    }

    fn put(&self, DeviceIdentity { app, device }: DeviceIdentity, opened_at: Timestamp) {
        // A new follower sets this flag and then requests all sessions, so that none is missed in between.
        if !self.is_followed.load(Ordering::SeqCst) {
            return;
        }
        let mut waiting = self.lock();
        let later = |known: &(AppId, Timestamp)| known.1.max(opened_at);
        let opened_at = waiting.by_device.get(&device).map_or(opened_at, later);
        if waiting.by_device.len() < CLAIMS_MAX_COUNT || waiting.by_device.contains_key(&device) {
            waiting.by_device.insert(device, (app, opened_at));
        } else {
            waiting.all = true;
        }
        drop(waiting);
        self.noted.notify_one();
    }

    /// Queues claims again that could not be announced.
    pub(crate) fn note_again(&self, claims: &[SessionClaim]) {
        claims.iter().for_each(|claim| self.put(claim.identity, claim.opened_at));
    }

    /// Queues the claims of all sessions.
    pub(crate) fn note_all(&self) {
        self.lock().all = true;
        self.noted.notify_one();
    }

    /// Waits for claims, and takes them. Claims are queued from the first call on.
    pub(crate) async fn next(&self, registry: &SessionRegistry) -> Vec<SessionClaim> {
        if !self.is_followed.swap(true, Ordering::SeqCst) {
            self.note_all();
        }
        loop {
            let some = self.take(registry);
            if !some.is_empty() {
                return some;
            }
            self.noted.notified().await;
        }
    }

    /// Compares a session here with a claim of another server. All servers compare the same pairs, so exactly one session remains at any
    /// difference of their clocks. With different clocks it may be the earlier one; then the device reconnects, and has the later one.
    pub(crate) fn compare(&self, session: &SessionState, claim: &SessionClaim) -> Order {
        (session.opened_at(), self.mark).cmp(&(claim.opened_at, claim.mark))
    }

    /// Takes some queued claims.
    fn take(&self, registry: &SessionRegistry) -> Vec<SessionClaim> {
        let mut waiting = self.lock();
        if std::mem::take(&mut waiting.all) {
            // If a device is connected here and already has a queued claim, its session is the later one.
            let of = |session: &SessionState| (session.identity(), session.opened_at());
            let sessions = registry.all().into_iter().map(|session| of(&session));
            let sessions = sessions.map(|(identity, at)| (identity.device, (identity.app, at)));
            waiting.by_device.extend(sessions);
        }
        let some = std::iter::from_fn(|| waiting.by_device.pop_first()).take(CLAIMS_AT_ONCE_MAX_COUNT);
        let claim = |(device, (app, opened_at))| SessionClaim {
            identity: DeviceIdentity { app, device },
            opened_at,
            mark: self.mark,
        };
        some.map(claim).collect()
    }

    fn lock(&self) -> MutexGuard<'_, WaitingClaims> {
        self.waiting.lock()
    }
}
