//! Opening connections: the conditions, the number at once, and the backoff after failures.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use parking_lot::MutexGuard;
use tokio::time::Instant;

use super::member::{PooledConnection, ready};
use super::{Pool, PoolState};

use crate::batch::Reply;
use crate::fault::Fault;

/// Connections that may always be opening at once. More are limited because handshakes cost the peer more than requests.
const OPENINGS_MIN_COUNT: usize = 4;
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

impl Pool {
    /// Opens a connection if there is none, so that the first batch need not wait for it.
    pub(crate) fn warm(self: &Arc<Self>) {
        let mut state = self.lock();
        if state.members.is_empty() && state.opening == 0 && !state.closed {
            self.open_one(&mut state);
        }
    }

    /// Wakes the least loaded connections until their room covers the waiting requests. Opens others if it does not.
    pub(super) fn spread(self: &Arc<Self>, state: &mut PoolState) {
        let mut missing = state.queue.waiting();
        for member in ready(&state.members) {
            if missing == 0 {
                return;
            }
            missing = missing.saturating_sub(member.room.load(Relaxed));
            member.waker.wake();
        }
        let live = state.members.iter().filter(|member| !member.is_retired()).count();
        let may_come = state.members.iter().any(|member| member.is_probing());
        let wanted = missing > 0 && !may_come && (live == 0 || self.congestion.room() > 0);
        let allowed = live < self.limits.max_connections;
        // A peer announces its limit of streams only after connecting, so the first connection is opened alone.
        let streams =
            state.members.iter().map(|member| member.streams()).max().filter(|streams| *streams > 0);
        let streams = streams.unwrap_or(usize::MAX);
        let most = self.openings_at_once(missing, streams, state.members.len());
        let most = most.min(self.limits.max_connections.saturating_sub(live));
        while wanted && allowed && !state.closed && state.opening < most {
            self.open_one(state);
        }
    }

    /// Returns how many connections may be opening: enough for the missing streams, judged by the existing connections. The number is
    /// limited to the existing connections, or four if there are fewer. This limit does not apply to connections that serve only a few
    /// requests each.
    fn openings_at_once(&self, missing: usize, streams: usize, there: usize) -> usize {
        let requests = self.limits.max_requests_per_connection.max(1) as usize;
        let wanted = missing.min(self.congestion.room());
        let is_short = requests < streams;
        let most = if is_short { self.limits.max_connections } else { there.max(OPENINGS_MIN_COUNT) };
        wanted.div_ceil(requests.min(streams.max(1))).clamp(1, most)
    }

    fn open_one(self: &Arc<Self>, state: &mut PoolState) {
        // Counted before it runs; otherwise `spread` would open one connection after the other for the same requests.
        state.opening += 1;
        let opening = (self.opener)(Arc::clone(self), state.not_before);
        match &self.home {
            Some(home) => home.spawn(opening),
            None => tokio::spawn(opening),
        };
    }

    /// Waits until the instant, or until the pool is closed.
    pub(crate) async fn pause_until(&self, instant: Instant) {
        // Created before the check: from then on it receives the notification, though it is not polled yet.
        let closing = self.closing.notified();
        if !self.is_closed() {
            let _ = tokio::time::timeout_at(instant, closing).await;
        }
    }

    /// Records that a connection has the peer's SETTINGS.
    pub(crate) fn settled(&self) {
        let mut state = self.lock();
        state.opening = state.opening.saturating_sub(1);
    }

    /// Records that a connection got a response.
    pub(crate) fn usable(&self) {
        let mut state = self.lock();
        (state.failures, state.not_before, state.trouble) = (0, None, None);
    }

    /// Returns the fault of the last attempt to connect, unless a connection has got a response since.
    pub(crate) fn trouble(&self) -> Option<Fault> {
        self.lock().trouble.clone()
    }

    /// Records that a connection ended without a response: the next one is opened after a backoff.
    pub(crate) fn back_off(&self) {
        self.lock().pause();
    }

    /// Records that a connection could not be opened. Settles the waiting requests with the fault if there is no other connection.
    pub(crate) fn failed_to_open(self: &Arc<Self>, fault: &Fault) {
        let mut state = self.lock();
        state.opening = state.opening.saturating_sub(1);
        self.failed(state, fault);
    }

    /// Records that a connection opened and then proved unusable.
    pub(crate) fn failed_to_settle(self: &Arc<Self>, member: &Arc<PooledConnection>, fault: &Fault) {
        let mut state = self.lock();
        state.opening = state.opening.saturating_sub(1);
        state.members.retain(|other| !Arc::ptr_eq(other, member));
        self.failed(state, fault);
    }

    fn failed(self: &Arc<Self>, mut state: MutexGuard<'_, PoolState>, fault: &Fault) {
        self.counters.connect_failures.add(1);
        state.trouble = Some(fault.clone());
        // Must precede `after_loss`, whose next attempt observes this backoff.
        state.pause();
        let alone = state.opening == 0 && !state.members.iter().any(|member| !member.is_retired());
        // Taken before another connection is opened for them: that one would only wait out its backoff.
        let hopeless = if alone { state.queue.take_all() } else { Vec::new() };
        self.after_loss(state);
        hopeless.into_iter().for_each(|run| run.settle(&Reply::NotSent(fault.clone())));
    }

    pub(super) fn after_loss(self: &Arc<Self>, mut state: MutexGuard<'_, PoolState>) {
        if state.members.is_empty() && state.opening == 0 {
            self.emptied.notify_waiters();
        }
        if state.queue.waiting() > 0 && !state.closed {
            self.spread(&mut state);
        }
    }
}

impl PoolState {
    fn pause(&mut self) {
        // Bounded only for the shift: seven failures reach the longest pause.
        let pause = FIRST_PAUSE.saturating_mul(1 << self.failures.min(16)).min(LONGEST_PAUSE);
        self.failures = self.failures.saturating_add(1);
        self.not_before = Some(Instant::now() + pause);
    }
}

#[cfg(test)]
mod tests;
