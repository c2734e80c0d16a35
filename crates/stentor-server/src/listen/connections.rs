//! The connections that are open: so many at most, so many of one address at most; idle ones make room for new ones.

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

/// Part of all connections that make room at once: looking for them costs a look at all.
const MADE_ROOM_PART: usize = 128;
/// How often a connection that is to end is asked whether it has answered everything.
const REST_LOOK: Duration = Duration::from_secs(1);
/// Slowest pace at which an answer may be taken.
const ANSWER_MIN_BYTES_PER_SECOND: u64 = 16 * 1_024;

/// What connections may have sent together before it is known who they are, beyond what is free for each; one address has a quarter of it.
const LOGINS_MAX_BYTES: usize = 16 * 1_024 * 1_024;

/// All open connections.
pub(crate) struct Connections {
    max_count: usize,
    per_address_max_count: usize,
    open: Mutex<OpenConnections>,
    /// Someone waits for room.
    is_awaited: AtomicBool,
    room: Notify,
    /// What times are told from.
    began: Instant,
    refused: AtomicU64,
    replaced: AtomicU64,
    idle_closed: AtomicU64,
    /// Bytes that came before logins.
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
    /// Those that may have to make room.
    replaceable: Vec<Arc<Activity>>,
    /// How many have their places to their ends.
    kept: usize,
}

/// What one connection is at.
struct Activity {
    /// Requests that are not answered yet.
    requests: AtomicUsize,
    /// Whether there was a request at all.
    was_asked: AtomicBool,
    /// When the last answer was or should be taken, in milliseconds since the beginning.
    idle_from_ms: AtomicU64,
    /// Cancelled when the connection must make room.
    replaced: CancellationToken,
}

/// An open connection's place.
pub(crate) struct Place {
    connections: Arc<Connections>,
    origin: SourceNetwork,
    activity: Arc<Activity>,
}

/// The place of a connection that has it to its end: it waits for messages, and makes room for nobody.
pub(crate) struct KeptPlace {
    connections: Arc<Connections>,
    origin: SourceNetwork,
}

/// A request that is being worked on.
pub(crate) struct AtWork {
    connections: Arc<Connections>,
    activity: Arc<Activity>,
    answer_bytes: u64,
}

/// How many connections there are, and what became of others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ConnectionCounts {
    pub(crate) open: usize,
    /// Closed at once, because their address had too many.
    pub(crate) refused: u64,
    /// Closed for a new one while no request was worked on.
    pub(crate) replaced: u64,
    /// Closed after too long without a request.
    pub(crate) idle_closed: u64,
}

impl Connections {
    /// Allows so many at once, and so many of one address.
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

    /// Waits until a new connection would find a place, be it that of an idle one.
    pub(crate) async fn room(&self) {
        loop {
            // Made before anybody is asked: what is told from here on wakes it, also before it is awaited.
            let told = self.room.notified();
            if self.has_room() {
                return;
            }
            // Looked once more: whoever made room before the flag was set saw nobody to tell.
            self.is_awaited.store(true, Ordering::SeqCst);
            if self.has_room() {
                return;
            }
            told.await;
        }
    }

    /// Returns a new connection a place; `None` when it must be closed.
    pub(crate) fn admit(self: &Arc<Self>, address: IpAddr) -> Option<Place> {
        let origin = SourceNetwork::from(address);
        let mut open = self.open();
        let of_origin = open.by_origin.get(&origin).map_or(0, OriginConnections::count);
        // Its own address first: who has too many makes room among its own, and takes nobody else's place.
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

    /// Closes the longest idle connections, because the machine lacks what another would need.
    pub(crate) fn relieve(&self) {
        self.make_room(&mut self.open(), None, self.max_count.div_ceil(MADE_ROOM_PART));
    }

    /// Returns how many there are, and what became of others.
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

    /// Closes idle connections, those of the address with the most first, the longest idle first; whether there was one.
    fn make_room(&self, open: &mut OpenConnections, of: Option<SourceNetwork>, count: usize) -> bool {
        let origins = open.by_origin.iter().filter(|(origin, _)| of.is_none_or(|of| of == **origin));
        let mut idle: Vec<_> = origins
            .flat_map(|(origin, all)| all.replaceable.iter().map(|one| (*origin, all.count(), one)))
            .filter(|(_, _, one)| one.is_idle())
            .map(|(origin, of_origin, one)| (usize::MAX - of_origin, one.idle_from_ms(), origin, one.clone()))
            .collect();
        let count = count.min(idle.len());
        if count > 0 && count < idle.len() {
            // Who goes matters, not in which order: no sorting of ten thousand for a hundred.
            idle.select_nth_unstable_by_key(count - 1, |(rank, from, ..)| (*rank, *from));
        }
        for (_, _, origin, one) in &idle[..count] {
            // Out of the counts at once, though it ends a little later: the new one has its place now.
            one.replaced.cancel();
            open.remove(*origin, one);
            self.replaced.fetch_add(1, Ordering::Relaxed);
        }
        count > 0
    }

    fn notify_room(&self) {
        // Taken back with the look: of many connections that end at once one wakes the listener. `SeqCst`, for both
        // sides write before they read.
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
    /// Forgets a connection; one that made room is forgotten already.
    fn remove(&mut self, origin: SourceNetwork, one: &Arc<Activity>) {
        if self.change(origin, |all| all.take(one)) {
            self.all -= 1;
        }
    }

    /// Lets a connection have its place to its end; false when it has made room already.
    fn keep(&mut self, origin: SourceNetwork, one: &Arc<Activity>) -> bool {
        self.change(origin, |all| {
            let is_there = all.take(one);
            all.kept += usize::from(is_there);
            is_there
        })
    }

    /// Forgets a connection that had its place to its end.
    fn remove_kept(&mut self, origin: SourceNetwork) {
        self.all -= 1;
        self.change(origin, |all| {
            all.kept -= 1;
            true
        });
    }

    /// Changes what is known of an address; it is forgotten with its last connection.
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

    /// Takes one out of those that may have to make room; whether it was one.
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
    /// Notes a request, which is worked on until the guard is dropped.
    pub(crate) fn begin(&self) -> AtWork {
        // Counted before the request is read on: from here on nobody takes the connection's place.
        self.activity.requests.fetch_add(1, Ordering::SeqCst);
        self.activity.was_asked.store(true, Ordering::SeqCst);
        let (connections, activity) = (self.connections.clone(), self.activity.clone());
        AtWork { connections, activity, answer_bytes: 0 }
    }

    /// Returns room for what comes before it is known who that is, in the name of the address.
    pub(crate) fn login_room(&self) -> LoginRoom {
        LoginRoom::of(self.connections.logins.part(Owner::Address(self.origin)))
    }

    /// Lets the connection have its place to its end; `None` when it must make room for another already.
    pub(crate) fn keep(&self) -> Option<KeptPlace> {
        let is_kept = self.connections.open().keep(self.origin, &self.activity);
        is_kept.then(|| KeptPlace { connections: self.connections.clone(), origin: self.origin })
    }

    /// Waits until the connection must make room for another.
    pub(crate) async fn replaced(&self) {
        self.activity.replaced.cancelled().await;
    }

    /// Waits until no request came for too long: not the first one, or not one after the last answer.
    pub(crate) async fn idle(&self, first: Duration, later: Duration) {
        loop {
            let timeout = if self.activity.was_asked.load(Ordering::SeqCst) { later } else { first };
            if !self.activity.is_idle() {
                // No answer can be so old before: the time counts from the end of the request.
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

    /// Waits until no request is worked on.
    pub(crate) async fn at_rest(&self) {
        while !self.activity.is_idle() {
            sleep(REST_LOOK).await;
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // Before anybody is told of the room, and without the lock then.
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
    /// Notes how large the answer is: taking it may last.
    pub(crate) const fn answered(&mut self, bytes: u64) {
        self.answer_bytes = bytes;
    }
}

impl Drop for AtWork {
    fn drop(&mut self) {
        let for_answer = self.answer_bytes.saturating_mul(1_000) / ANSWER_MIN_BYTES_PER_SECOND;
        let from = self.connections.now_ms().saturating_add(for_answer);
        // Before the count: a connection that counts as idle must not look idle for longer than it is.
        self.activity.idle_from_ms.fetch_max(from, Ordering::SeqCst);
        if self.activity.requests.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.connections.notify_room();
        }
    }
}
