//! The open connections, limited in total and per address. Idle ones make room for new ones.

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;

use super::login_bytes::LoginRoom;
use crate::owner::{Owner, SourceNetwork};
use crate::shares::Shares;

/// One part in this many of all connections is closed at once to make room, because the search examines all of them.
const MADE_ROOM_PART: usize = 128;
/// Interval for checking if a connection that is to end has answered all requests.
const REST_LOOK: Duration = Duration::from_secs(1);
/// Lowest assumed rate at which a peer reads a response.
const ANSWER_MIN_BYTES_PER_SECOND: u64 = 16 * 1_024;

/// Most bytes that unauthenticated connections may have sent together, beyond a free amount for each; one address may use a quarter of it.
const LOGINS_MAX_BYTES: usize = 16 * 1_024 * 1_024;

/// All open connections.
pub(crate) struct Connections {
    max_count: usize,
    per_address_max_count: usize,
    open: Mutex<OpenConnections>,
    /// True if the listener waits for room.
    is_awaited: AtomicBool,
    room: Notify,
    /// Origin of all times.
    began: Instant,
    refused: AtomicU64,
    replaced: AtomicU64,
    idle_closed: AtomicU64,
    /// Bytes received before logins.
    logins: Arc<Shares>,
}

#[derive(Default)]
struct OpenConnections {
    all: usize,
    by_origin: HashMap<SourceNetwork, OriginConnections>,
}

/// The connections of one address.
#[derive(Default)]
struct OriginConnections {
    /// Connections that may be closed to make room.
    replaceable: Vec<Arc<Activity>>,
    /// Number of connections with a permanent place.
    kept: usize,
}

/// The activity of one connection.
struct Activity {
    /// Requests that are not answered yet.
    requests: AtomicUsize,
    /// True after the first request.
    was_asked: AtomicBool,
    /// Time at which the last response was or should be read by the peer, in milliseconds since `began`.
    idle_from_ms: AtomicU64,
    /// Cancelled when the connection must make room.
    replaced: CancellationToken,
}

/// The place of an open connection.
pub(crate) struct Place {
    connections: Arc<Connections>,
    origin: SourceNetwork,
    activity: Arc<Activity>,
}

/// A permanent place, for a connection that waits for messages and is never closed to make room.
pub(crate) struct KeptPlace {
    connections: Arc<Connections>,
    origin: SourceNetwork,
}

/// A request being processed.
pub(crate) struct AtWork {
    connections: Arc<Connections>,
    activity: Arc<Activity>,
    answer_bytes: u64,
}

/// The number of open connections, and of connections closed by reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ConnectionCounts {
    pub(crate) open: usize,
    /// Closed at once, because their address had too many.
    pub(crate) refused: u64,
    /// Closed for a new one while they processed no request.
    pub(crate) replaced: u64,
    /// Closed after too long without a request.
    pub(crate) idle_closed: u64,
}

impl Connections {
    /// Limits the connections to `max_count`, and to `per_address_max_count` of one address.
    pub(crate) fn new(max_count: usize, per_address_max_count: usize) -> Arc<Self> {
        Arc::new(Self {
            max_count,
            per_address_max_count,
            open: Mutex::default(),
            is_awaited: AtomicBool::default(),
            room: Notify::new(),
            began: Instant::now(),
            refused: AtomicU64::default(),
            replaced: AtomicU64::default(),
            idle_closed: AtomicU64::default(),
            logins: Shares::of_nameless(LOGINS_MAX_BYTES),
        })
    }

    /// Waits until a new connection would find a place, possibly that of an idle one.
    pub(crate) async fn room(&self) {
        loop {
            // Created before the check: a notification from here on wakes it, even before it is awaited.
            let notified = self.room.notified();
            if self.has_room() {
                return;
            }
            // Checked once more: room made before the flag was set caused no notification.
            self.is_awaited.store(true, Ordering::SeqCst);
            if self.has_room() {
                return;
            }
            notified.await;
        }
    }

    /// Returns a place for a new connection; `None` if it must be closed.
    pub(crate) fn admit(self: &Arc<Self>, address: IpAddr) -> Option<Place> {
        let origin = SourceNetwork::from(address);
        let mut open = self.open();
        let of_origin = open.by_origin.get(&origin).map_or(0, OriginConnections::count);
        // The limit of its own address first: an address with too many connections replaces one of its own and no other.
        let has_place = (of_origin < self.per_address_max_count
            || self.make_room(&mut open, Some(origin), 1))
            && (open.all < self.max_count
                || self.make_room(&mut open, None, self.max_count.div_ceil(MADE_ROOM_PART)));
        if !has_place {
            self.refused.fetch_add(1, Ordering::Relaxed);
            return None;
        }
        let activity = Arc::new(Activity {
            requests: AtomicUsize::default(),
            was_asked: AtomicBool::default(),
            idle_from_ms: AtomicU64::new(self.now_ms()),
            replaced: CancellationToken::new(),
        });
        open.all += 1;
        open.by_origin.entry(origin).or_default().replaceable.push(activity.clone());
        Some(Place { connections: self.clone(), origin, activity })
    }

    /// Closes the connections that are idle for longest, because the system lacks resources for a new one.
    pub(crate) fn relieve(&self) {
        self.make_room(&mut self.open(), None, self.max_count.div_ceil(MADE_ROOM_PART));
    }

    /// Returns the numbers of open and closed connections.
    pub(crate) fn counts(&self) -> ConnectionCounts {
        ConnectionCounts {
            open: self.open().all,
            refused: self.refused.load(Ordering::Relaxed),
            replaced: self.replaced.load(Ordering::Relaxed),
            idle_closed: self.idle_closed.load(Ordering::Relaxed),
        }
    }

    fn has_room(&self) -> bool {
        let open = self.open();
        open.all < self.max_count
            || open.by_origin.values().any(|of_origin| of_origin.replaceable.iter().any(|one| one.is_idle()))
    }

    /// Closes idle connections, first those of the address with the most, and among these the longest idle. Returns true if there was any.
    fn make_room(&self, open: &mut OpenConnections, of: Option<SourceNetwork>, count: usize) -> bool {
        let origins = open.by_origin.iter().filter(|(origin, _)| of.is_none_or(|of| of == **origin));
        let mut idle: Vec<_> = origins
            .flat_map(|(origin, all)| all.replaceable.iter().map(|one| (*origin, all.count(), one)))
            .filter(|(_, _, one)| one.is_idle())
            .map(|(origin, of_origin, one)| (usize::MAX - of_origin, one.idle_from_ms(), origin, one.clone()))
            .collect();
        let count = count.min(idle.len());
        if count > 0 && count < idle.len() {
            // Only the selection matters, not its order: ten thousand need no sorting to find a hundred.
            idle.select_nth_unstable_by_key(count - 1, |(rank, from, ..)| (*rank, *from));
        }
        for (_, _, origin, one) in &idle[..count] {
            // Removed from the counts at once, although it ends a little later, because the new one takes its place now.
            one.replaced.cancel();
            open.remove(*origin, one);
            self.replaced.fetch_add(1, Ordering::Relaxed);
        }
        count > 0
    }

    fn notify_room(&self) {
        // Reset with the check, so that of many connections that end at once only one wakes the listener. `SeqCst`, because both sides
        // write before they read.
        if self.is_awaited.swap(false, Ordering::SeqCst) {
            self.room.notify_waiters();
        }
    }

    fn now_ms(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    fn open(&self) -> MutexGuard<'_, OpenConnections> {
        self.open.lock()
    }
}

impl OpenConnections {
    /// Removes a connection; does nothing if it has already made room.
    fn remove(&mut self, origin: SourceNetwork, one: &Arc<Activity>) {
        if self.change(origin, |all| all.take(one)) {
            self.all -= 1;
        }
    }

    /// Makes a connection's place permanent. Returns false if it has already made room.
    fn keep(&mut self, origin: SourceNetwork, one: &Arc<Activity>) -> bool {
        self.change(origin, |all| {
            let is_there = all.take(one);
            all.kept += usize::from(is_there);
            is_there
        })
    }

    /// Removes a connection with a permanent place.
    fn remove_kept(&mut self, origin: SourceNetwork) {
        self.all -= 1;
        self.change(origin, |all| {
            all.kept -= 1;
            true
        });
    }

    /// Changes the entry of an address, and removes it with its last connection.
    fn change(&mut self, origin: SourceNetwork, change: impl FnOnce(&mut OriginConnections) -> bool) -> bool {
        let Some(all) = self.by_origin.get_mut(&origin) else { return false };
        let is_changed = change(all);
        if all.count() == 0 {
            self.by_origin.remove(&origin);
        }
        is_changed
    }
}

impl OriginConnections {
    const fn count(&self) -> usize {
        self.replaceable.len() + self.kept
    }

    /// Removes a connection from the replaceable ones. Returns true if it was one.
    fn take(&mut self, one: &Arc<Activity>) -> bool {
        let place = self.replaceable.iter().position(|other| Arc::ptr_eq(other, one));
        place.map(|place| self.replaceable.swap_remove(place)).is_some()
    }
}

impl Activity {
    fn is_idle(&self) -> bool {
        self.requests.load(Ordering::SeqCst) == 0
    }

    fn idle_from_ms(&self) -> u64 {
        self.idle_from_ms.load(Ordering::SeqCst)
    }
}

impl Place {
    /// Counts a request as being processed until the guard is dropped.
    pub(crate) fn begin(&self) -> AtWork {
        // Counted before the request is read on: from here on the connection cannot be replaced.
        self.activity.requests.fetch_add(1, Ordering::SeqCst);
        self.activity.was_asked.store(true, Ordering::SeqCst);
        let (connections, activity) = (self.connections.clone(), self.activity.clone());
        AtWork { connections, activity, answer_bytes: 0 }
    }

    /// Returns room for data received before the login, counted for the address.
    pub(crate) fn login_room(&self) -> LoginRoom {
        LoginRoom::of(self.connections.logins.part(Owner::Address(self.origin)))
    }

    /// Makes the place permanent. Returns `None` if the connection must already make room.
    pub(crate) fn keep(&self) -> Option<KeptPlace> {
        let is_kept = self.connections.open().keep(self.origin, &self.activity);
        is_kept.then(|| KeptPlace { connections: self.connections.clone(), origin: self.origin })
    }

    /// Waits until the connection must make room.
    pub(crate) async fn replaced(&self) {
        self.activity.replaced.cancelled().await;
    }

    /// Waits until the connection was without a request for too long: `first` before the first one, `later` after the last response.
    pub(crate) async fn idle(&self, first: Duration, later: Duration) {
        loop {
            let timeout = if self.activity.was_asked.load(Ordering::SeqCst) { later } else { first };
            if !self.activity.is_idle() {
                // It cannot be idle for long enough before that, because the time counts from the end of the request.
                sleep(timeout).await;
                continue;
            }
            let since = Duration::from_millis(self.activity.idle_from_ms());
            let until = self.connections.began + since + timeout;
            if until <= Instant::now() {
                self.connections.idle_closed.fetch_add(1, Ordering::Relaxed);
                return;
            }
            sleep_until(until).await;
        }
    }

    /// Waits until no request is being processed.
    pub(crate) async fn at_rest(&self) {
        while !self.activity.is_idle() {
            sleep(REST_LOOK).await;
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // Before the notification, and with the lock released before it.
        self.connections.open().remove(self.origin, &self.activity);
        self.connections.notify_room();
    }
}

impl Drop for KeptPlace {
    fn drop(&mut self) {
        self.connections.open().remove_kept(self.origin);
        self.connections.notify_room();
    }
}

impl AtWork {
    /// Records the size of the response, which the peer may read for some time.
    pub(crate) const fn answered(&mut self, bytes: u64) {
        self.answer_bytes = bytes;
    }
}

impl Drop for AtWork {
    fn drop(&mut self) {
        let for_answer = self.answer_bytes.saturating_mul(1_000) / ANSWER_MIN_BYTES_PER_SECOND;
        let from = self.connections.now_ms().saturating_add(for_answer);
        // Before the count: a connection that counts as idle must not seem idle for longer than it is.
        self.activity.idle_from_ms.fetch_max(from, Ordering::SeqCst);
        if self.activity.requests.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.connections.notify_room();
        }
    }
}
