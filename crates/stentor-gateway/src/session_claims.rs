//! Which devices came here, for the other servers of the store: a device has one session, at the server to which it came last.

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

/// Claims that wait to be told one by one; of more, those of all sessions are told.
const CLAIMS_MAX_COUNT: usize = 16_384;
/// Claims that are told at once.
const CLAIMS_AT_ONCE_MAX_COUNT: usize = 256;

/// The arrival of a device at a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionClaim {
    /// Which device.
    pub identity: DeviceIdentity,
    /// When it came, by the clock that all servers of a store go by.
    pub opened_at: Timestamp,
    /// Drawn by the process to which it came, so that this one knows its own claims again.
    pub mark: u8,
}

/// The claims that the other servers are to hear of.
pub(crate) struct SessionClaims {
    mark: u8,
    /// Whether anybody passes them on; a server without others keeps none.
    is_followed: AtomicBool,
    waiting: Mutex<WaitingClaims>,
    noted: Notify,
}

#[derive(Default)]
struct WaitingClaims {
    by_device: BTreeMap<DeviceId, (AppId, Timestamp)>,
    /// Those of all sessions are to be told.
    all: bool,
}

impl Default for SessionClaims {
    fn default() -> Self {
        let mark = rand::random();
        Self { mark, is_followed: AtomicBool::new(false), waiting: Mutex::default(), noted: Notify::new() }
    }
}

impl SessionClaims {
    /// Notes that a device came here.
    pub(crate) fn note(&self, session: &SessionState) {
        self.put(session.identity(), session.opened_at());
    }

    fn put(&self, DeviceIdentity { app, device }: DeviceIdentity, opened_at: Timestamp) {
        // Whoever begins to follow asks for all sessions after it has said so: none is missed in between.
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

    /// Notes claims of which the others could not be told.
    pub(crate) fn note_again(&self, claims: &[SessionClaim]) {
        claims.iter().for_each(|claim| self.put(claim.identity, claim.opened_at));
    }

    /// Notes all sessions.
    pub(crate) fn note_all(&self) {
        self.lock().all = true;
        self.noted.notify_one();
    }

    /// Waits until there are some, and takes them. From the first call on they are kept for it.
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

    /// Compares a session here with a claim of another server. All servers compare the same pairs, so one session is left whatever their
    /// clocks show. Where these differ that may be the earlier one: the device comes again then, and is the later one.
    pub(crate) fn compare(&self, session: &SessionState, claim: &SessionClaim) -> Order {
        (session.opened_at(), self.mark).cmp(&(claim.opened_at, claim.mark))
    }

    /// Takes some that wait.
    fn take(&self, registry: &SessionRegistry) -> Vec<SessionClaim> {
        let mut waiting = self.lock();
        if std::mem::take(&mut waiting.all) {
            // Of a device that is here and has a claim already, the session is the later one.
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
