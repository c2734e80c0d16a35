//! What the connections of one client share: the queue, the congestion, the counters, and the list of each other.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::task::AtomicWaker;
use stentor_http2_codec::hpack::OwnedField;
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::batch::Reply;
use crate::congestion::CongestionControl;
use crate::fault::Fault;
use crate::latency::Latency;
use crate::limits::Limits;
use crate::response::Response;
use crate::stats::{Counters, Stats};
use crate::waits::Waits;
use crate::work::{Run, Work};

/// Most requests of one batch that a connection takes at once.
const PART_MAX_REQUESTS: usize = 64;
/// Requests of one batch that go before the next batch gets its turn. Batches that all went at once would all end late:
/// what was answered of each could not be settled, and would be in doubt after a crash.
const TURN_REQUESTS: usize = 1_024;
/// A batch of at most this size goes before larger ones, as long as they get half of the room.
const SMALL_BATCH_MAX_REQUESTS: usize = 16;
/// How long nothing is taken over after an answer that asks to wait; by then the caller knows.
const HALT: Duration = Duration::from_millis(500);
/// Connections that may always be opening at once: handshakes cost the peer more than requests.
const OPENINGS_MIN_COUNT: usize = 4;
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// Opens one connection for a pool, not before the instant if there is one, and runs it to its end.
///
/// A connection serves the pool and the pool has connections opened: so that neither knows how the other is made, the
/// client passes this in.
pub(crate) type Opener = Box<dyn Fn(Arc<Pool>, Option<Instant>) -> BoxFuture<'static, ()> + Send + Sync>;

pub(crate) struct Pool {
    pub(crate) limits: Limits,
    pub(crate) congestion: CongestionControl,
    pub(crate) latency: Latency,
    /// When the pool was made.
    pub(crate) began: Instant,
    pub(crate) counters: Counters,
    /// What every request to the endpoint begins with.
    pub(crate) origin: Vec<OwnedField>,
    /// Whether an answer asks to wait.
    pub(crate) halts: fn(&Response) -> bool,
    /// How many answers do so lately.
    pub(crate) waits: Waits,
    opener: Opener,
    /// Nothing is settled under this lock: settling takes the batch's own lock, and under that one `again` takes this.
    state: Mutex<PoolState>,
    emptied: Notify,
    closing: Notify,
    /// Where connections live, whoever sends over them: the runtime in which the pool was made.
    home: Option<Handle>,
}

#[derive(Default)]
struct PoolState {
    /// Requests to send again, before all others.
    again: VecDeque<Run>,
    small: VecDeque<Run>,
    large: VecDeque<Run>,
    waiting: usize,
    members: Vec<Arc<PooledConnection>>,
    opening: usize,
    failures: u32,
    not_before: Option<Instant>,
    /// Until when nothing is taken over, and why.
    halt: Option<(Instant, Fault)>,
    closed: bool,
}

/// One open connection as the others see it.
///
/// Its numbers are `Relaxed`: they are written by the connection's loop and read under the pool's lock, which the loop takes
/// after it has written and before it waits. So whoever adds requests after that sees them; before, the loop sees the
/// requests.
#[derive(Debug, Default)]
pub(crate) struct PooledConnection {
    /// Wakes the connection's loop.
    pub(crate) waker: AtomicWaker,
    /// Streams it could open now.
    pub(crate) room: AtomicUsize,
    /// Streams it has open.
    pub(crate) open: AtomicUsize,
    /// One while it asks, after idleness, whether the peer still lives.
    pub(crate) probing: AtomicUsize,
    /// One once it takes no more requests.
    pub(crate) retired: AtomicUsize,
}

impl PooledConnection {
    /// Counts the streams it has and could have; zero before the peer has said how many.
    fn streams(&self) -> usize {
        self.room.load(Relaxed) + self.open.load(Relaxed)
    }

    /// Returns whether it will soon be known to live, or be gone.
    pub(crate) fn is_probing(&self) -> bool {
        self.probing.load(Relaxed) != 0 && !self.is_retired()
    }

    pub(crate) fn is_retired(&self) -> bool {
        self.retired.load(Relaxed) != 0
    }
}

impl Pool {
    pub(crate) fn new(
        opener: Opener,
        origin: Vec<OwnedField>,
        limits: Limits,
        halts: fn(&Response) -> bool,
    ) -> Arc<Self> {
        Arc::new(Self {
            congestion: CongestionControl::new(&limits),
            latency: Latency::default(),
            began: Instant::now(),
            counters: Counters::default(),
            origin,
            halts,
            waits: Waits::default(),
            opener,
            state: Mutex::default(),
            emptied: Notify::new(),
            closing: Notify::new(),
            limits,
            home: Handle::try_current().ok(),
        })
    }

    /// Puts a whole batch in the queue and gets connections going.
    pub(crate) fn submit(self: &Arc<Self>, work: &Arc<Work>) {
        let run = Run { work: Arc::clone(work), from: 0, to: work.count, resends: 0 };
        let mut state = self.lock();
        if state.closed {
            drop(state);
            return run.settle(&Reply::NotSent(Fault::Closed));
        }
        if let Some(fault) = state.halted() {
            drop(state);
            return run.settle(&Reply::NotSent(fault));
        }
        // Before `spread`, which goes by it.
        state.waiting += run.len();
        let queue = if run.len() <= SMALL_BATCH_MAX_REQUESTS { &mut state.small } else { &mut state.large };
        queue.push_back(run);
        self.spread(&mut state);
    }

    /// Takes the requests of a batch that wait for a stream out of the queue and says that they were not sent.
    pub(crate) fn withdraw(&self, work: &Arc<Work>, fault: &Fault) {
        let withdrawn = self.lock().remove(work);
        withdrawn.into_iter().for_each(|run| run.settle(&Reply::NotSent(fault.clone())));
    }

    /// Returns whether requests of a batch wait for a stream.
    pub(crate) fn has_queued(&self, work: &Arc<Work>) -> bool {
        let state = self.lock();
        let mut queued = state.again.iter().chain(&state.small).chain(&state.large);
        queued.any(|run| Arc::ptr_eq(&run.work, work))
    }

    /// Sends nothing more of what waits, nor of what comes within a moment: the peer asks to wait.
    pub(crate) fn halt(&self, fault: Fault) {
        let mut state = self.lock();
        // Under one lock with the emptying, so that nothing is queued in between and forgotten.
        state.halt = Some((Instant::now() + HALT, fault.clone()));
        let rest = state.take_all();
        drop(state);
        rest.into_iter().for_each(|run| run.settle(&Reply::NotSent(fault.clone())));
    }

    /// Hands out up to `most` requests; they count as in flight from here on.
    pub(crate) fn take(&self, most: usize, into: &mut VecDeque<Run>) {
        let now = Instant::now();
        let mut late = Vec::new();
        let mut state = self.lock();
        // Room is found and taken under the lock: of two connections the second finds what the first left.
        self.congestion.wait(now.duration_since(self.began));
        let most = most.min(self.congestion.room());
        let mut left = most;
        while left > 0 {
            let small_first = left > most / 2 || state.large.is_empty();
            let Some(run) = state.pop(left, small_first) else { break };
            if now < run.work.give_up_at && !run.work.is_abandoned() {
                left -= run.len();
                into.push_back(run);
            } else {
                late.push(run);
            }
        }
        self.congestion.started(most - left);
        drop(state);
        late.into_iter().for_each(|run| run.settle(&Reply::NotSent(Fault::QueueTimeout)));
    }

    /// Puts a request first in the queue that the peer has not processed; returns the fault back when it has been tried
    /// too often.
    pub(crate) fn again(&self, mut run: Run, fault: Fault) -> Option<Fault> {
        let mut state = self.lock();
        if let Some(halt) = state.halted() {
            return Some(halt);
        }
        let is_late = Instant::now() >= run.work.give_up_at;
        if state.closed || is_late || run.resends >= self.limits.max_resends {
            return Some(fault);
        }
        self.counters.resends.add(run.len() as u64);
        run.resends += 1;
        state.waiting += run.len();
        state.again.push_back(run);
        None
    }

    /// Puts requests back that were taken and not tried.
    pub(crate) fn give_back(&self, run: Run) {
        let mut state = self.lock();
        // Under the lock, so that nobody takes their room before they are in the queue again, first of all.
        self.congestion.ended(run.len(), 0);
        if let Some(fault) = state.halted() {
            drop(state);
            return run.settle(&Reply::NotSent(fault));
        }
        state.waiting += run.len();
        state.again.push_back(run);
    }

    /// Wakes connections with room for what waits, or opens another.
    pub(crate) fn nudge(self: &Arc<Self>) {
        let mut state = self.lock();
        if state.waiting > 0 {
            self.spread(&mut state);
        }
    }

    /// Opens a connection if there is none, so that the first batch need not wait for it.
    pub(crate) fn warm(self: &Arc<Self>) {
        let mut state = self.lock();
        if state.members.is_empty() && state.opening == 0 && !state.closed {
            self.open_one(&mut state);
        }
    }

    /// Returns whether requests wait for a stream.
    pub(crate) fn has_waiting(&self) -> bool {
        self.lock().waiting > 0
    }

    /// Returns whether requests wait for a stream and no more connections may be opened.
    pub(crate) fn is_crowded(&self) -> bool {
        let state = self.lock();
        let live = state.members.iter().filter(|member| !member.is_retired()).count();
        state.waiting > 0 && live >= self.limits.max_connections
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.lock().closed
    }

    /// Adds a connection that has just opened; it counts as opening until it has settled.
    pub(crate) fn join(&self) -> Arc<PooledConnection> {
        let member = Arc::new(PooledConnection::default());
        self.lock().members.push(Arc::clone(&member));
        self.counters.connects.add(1);
        member
    }

    /// Notes that a connection has the peer's SETTINGS.
    pub(crate) fn settled(&self) {
        let mut state = self.lock();
        state.opening = state.opening.saturating_sub(1);
    }

    /// Notes that a connection answered.
    pub(crate) fn usable(&self) {
        let mut state = self.lock();
        (state.failures, state.not_before) = (0, None);
    }

    /// Notes that a connection ended without a single answer: the next one is opened a little later.
    pub(crate) fn back_off(&self) {
        self.lock().pause();
    }

    /// Removes a connection; its requests are finished before.
    pub(crate) fn leave(self: &Arc<Self>, member: &Arc<PooledConnection>) {
        let mut state = self.lock();
        state.members.retain(|other| !Arc::ptr_eq(other, member));
        self.after_loss(state);
    }

    /// Notes that a connection could not be opened, and tells those who wait if there is no other.
    pub(crate) fn failed_to_open(self: &Arc<Self>, fault: &Fault) {
        let mut state = self.lock();
        state.opening = state.opening.saturating_sub(1);
        self.failed(state, fault);
    }

    /// Notes that a connection opened and then proved unusable.
    pub(crate) fn failed_to_settle(self: &Arc<Self>, member: &Arc<PooledConnection>, fault: &Fault) {
        let mut state = self.lock();
        state.opening = state.opening.saturating_sub(1);
        state.members.retain(|other| !Arc::ptr_eq(other, member));
        self.failed(state, fault);
    }

    fn failed(self: &Arc<Self>, mut state: MutexGuard<'_, PoolState>, fault: &Fault) {
        self.counters.connect_failures.add(1);
        state.pause();
        let alone = state.opening == 0 && !state.members.iter().any(|member| !member.is_retired());
        // Taken before another is opened for what waits: that one would only wait out its pause for them.
        let hopeless = if alone { state.take_all() } else { Vec::new() };
        self.after_loss(state);
        hopeless.into_iter().for_each(|run| run.settle(&Reply::NotSent(fault.clone())));
    }

    fn after_loss(self: &Arc<Self>, mut state: MutexGuard<'_, PoolState>) {
        if state.members.is_empty() && state.opening == 0 {
            self.emptied.notify_waiters();
        }
        if state.waiting > 0 && !state.closed {
            self.spread(&mut state);
        }
    }

    /// Takes no more requests and waits until every connection has ended.
    pub(crate) async fn close(self: &Arc<Self>) {
        // Listening begins before the look: the last connection may leave in between.
        let emptied = self.emptied.notified();
        let mut emptied = std::pin::pin!(emptied);
        emptied.as_mut().enable();
        if !self.stop() {
            emptied.await;
        }
    }

    /// Waits until the instant, or until the pool is closed.
    pub(crate) async fn pause_until(&self, instant: Instant) {
        // Made before the look: from then on it hears the closing, though it is not polled yet.
        let closing = self.closing.notified();
        if !self.is_closed() {
            let _ = tokio::time::timeout_at(instant, closing).await;
        }
    }

    /// Takes no more requests; returns whether no connection is left.
    pub(crate) fn stop(&self) -> bool {
        let mut state = self.lock();
        // Before loops are woken: each looks at it, and at nothing else, to know that it may leave.
        state.closed = true;
        let rest = state.take_all();
        state.members.iter().for_each(|member| member.waker.wake());
        self.closing.notify_waiters();
        let empty = state.members.is_empty() && state.opening == 0;
        drop(state);
        rest.into_iter().for_each(|run| run.settle(&Reply::NotSent(Fault::Closed)));
        empty
    }

    pub(crate) fn stats(&self) -> Stats {
        let state = self.lock();
        Stats {
            connections: state.members.len() as u64,
            inflight: self.congestion.inflight() as u64,
            inflight_limit: self.congestion.limit() as u64,
            min_rtt: self.latency.min_rtt(),
            delivery_rate: self.congestion.delivery_rate(),
            waiting: state.waiting as u64,
            connects: self.counters.connects.get(),
            connect_failures: self.counters.connect_failures.get(),
            goaways: self.counters.goaways.get(),
            resets: self.counters.resets.get(),
            timeouts: self.counters.timeouts.get(),
            resends: self.counters.resends.get(),
        }
    }

    /// Wakes the least loaded connections until their room covers what waits; opens another if it does not.
    fn spread(self: &Arc<Self>, state: &mut PoolState) {
        let mut missing = state.waiting;
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
        // A peer tells how many streams it takes only once it is connected: the first connection is opened alone.
        let streams =
            state.members.iter().map(|member| member.streams()).max().filter(|streams| *streams > 0);
        let streams = streams.unwrap_or(usize::MAX);
        let most = self.openings_at_once(missing, streams, state.members.len());
        let most = most.min(self.limits.max_connections.saturating_sub(live));
        while wanted && allowed && !state.closed && state.opening < most {
            self.open_one(state);
        }
    }

    /// Returns how many connections may be opening: as many as the missing streams need, going by what others have, yet
    /// no more at once than are there already, or four, unless a connection is good for a few requests only.
    fn openings_at_once(&self, missing: usize, streams: usize, there: usize) -> usize {
        let requests = self.limits.max_requests_per_connection.max(1) as usize;
        let wanted = missing.min(self.congestion.room());
        let is_short = requests < streams;
        let most = if is_short { self.limits.max_connections } else { there.max(OPENINGS_MIN_COUNT) };
        wanted.div_ceil(requests.min(streams.max(1))).clamp(1, most)
    }

    fn open_one(self: &Arc<Self>, state: &mut PoolState) {
        // Counted before it runs: `spread` would open one after the other for the same requests.
        state.opening += 1;
        let opening = (self.opener)(Arc::clone(self), state.not_before);
        match &self.home {
            Some(home) => home.spawn(opening),
            None => tokio::spawn(opening),
        };
    }

    fn lock(&self) -> MutexGuard<'_, PoolState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Lists the connections with room, the least loaded first.
fn ready(members: &[Arc<PooledConnection>]) -> Vec<&Arc<PooledConnection>> {
    let mut ready: Vec<_> = members.iter().filter(|member| member.room.load(Relaxed) > 0).collect();
    // Loads change meanwhile: each is looked at once, for an order that contradicts itself makes sorting panic.
    ready.sort_by_cached_key(|member| member.open.load(Relaxed));
    ready
}

impl PoolState {
    fn pause(&mut self) {
        let pause = FIRST_PAUSE.saturating_mul(1 << self.failures.min(16)).min(LONGEST_PAUSE);
        self.failures = self.failures.saturating_add(1);
        self.not_before = Some(Instant::now() + pause);
    }

    /// Returns the reason for which nothing is taken over now.
    fn halted(&mut self) -> Option<Fault> {
        if self.halt.as_ref().is_some_and(|(until, _)| *until <= Instant::now()) {
            self.halt = None;
        }
        self.halt.as_ref().map(|(_, fault)| fault.clone())
    }

    /// Takes up to `most` requests of one batch; batches take turns, so that none is stuck behind a very large one.
    fn pop(&mut self, most: usize, small_first: bool) -> Option<Run> {
        let (one, other) =
            if small_first { (&mut self.small, &mut self.large) } else { (&mut self.large, &mut self.small) };
        let queue = [&mut self.again, one, other].into_iter().find(|queue| !queue.is_empty())?;
        let mut run = queue.pop_front()?;
        // Turns end at multiples, so that a batch which was taken in odd parts still ends its turn.
        let left_of_turn = TURN_REQUESTS - run.from as usize % TURN_REQUESTS;
        let front = run.split(most.min(PART_MAX_REQUESTS).min(left_of_turn));
        if run.len() > 0 && front.len() == left_of_turn {
            queue.push_back(run);
        } else if run.len() > 0 {
            queue.push_front(run);
        }
        self.waiting -= front.len();
        Some(front)
    }

    fn remove(&mut self, work: &Arc<Work>) -> Vec<Run> {
        let mut removed = Vec::new();
        for queue in [&mut self.again, &mut self.small, &mut self.large] {
            let (of_work, rest): (VecDeque<Run>, _) =
                std::mem::take(queue).into_iter().partition(|run| Arc::ptr_eq(&run.work, work));
            *queue = rest;
            removed.extend(of_work);
        }
        self.waiting -= removed.iter().map(Run::len).sum::<usize>();
        removed
    }

    fn take_all(&mut self) -> Vec<Run> {
        self.waiting = 0;
        let queues = [&mut self.again, &mut self.small, &mut self.large];
        queues.into_iter().flat_map(std::mem::take).collect()
    }
}

#[cfg(test)]
mod tests;
