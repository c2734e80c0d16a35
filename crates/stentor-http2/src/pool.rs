//! The state shared by the connections of one client: the queue, congestion control, the counters, and the list of connections.

mod member;
mod openings;
mod queue;

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use futures_util::future::BoxFuture;
use parking_lot::{Mutex, MutexGuard};
use stentor_http2_codec::hpack::OwnedField;
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::time::Instant;

pub(crate) use self::member::PooledConnection;
use self::queue::RunQueue;

use crate::batch::Reply;
use crate::congestion::CongestionControl;
use crate::fault::Fault;
use crate::latency::Latency;
use crate::limits::Limits;
use crate::response::Response;
use crate::stats::{Counters, Stats};
use crate::waits::Waits;
use crate::work::{Run, Work};

/// Time during which no request is accepted after a response that demanded a pause; by then the caller has been notified.
const HALT: Duration = Duration::from_millis(500);

/// Opens one connection for a pool, not before the given instant, and runs it to its end.
///
/// A connection serves the pool, and the pool has connections opened. The client passes this function in, so that neither depends on the
/// construction of the other.
pub(crate) type Opener = Box<dyn Fn(Arc<Pool>, Option<Instant>) -> BoxFuture<'static, ()> + Send + Sync>;

pub(crate) struct Pool {
    pub(crate) limits: Limits,
    pub(crate) congestion: CongestionControl,
    pub(crate) latency: Latency,
    /// Time of creation.
    pub(crate) began: Instant,
    pub(crate) counters: Counters,
    /// The fields at the beginning of every request to the endpoint.
    pub(crate) origin: Vec<OwnedField>,
    /// Returns true if a response demands a pause.
    pub(crate) halts: fn(&Response) -> bool,
    /// Counts of recent responses that demanded a pause.
    pub(crate) waits: Waits,
    opener: Opener,
    /// Nothing is settled under this lock. Settling takes the batch's own lock, under which `again` takes this one.
    state: Mutex<PoolState>,
    emptied: Notify,
    closing: Notify,
    /// The runtime in which the pool was created. All connections run there, independent of the runtime of the callers.
    home: Option<Handle>,
}

#[derive(Default)]
struct PoolState {
    queue: RunQueue,
    members: Vec<Arc<PooledConnection>>,
    opening: usize,
    failures: u32,
    /// The fault of the last attempt to connect; `None` once a connection got a response.
    trouble: Option<Fault>,
    not_before: Option<Instant>,
    /// End of the halt, during which no request is accepted, and its reason.
    halt: Option<(Instant, Fault)>,
    closed: bool,
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

    /// Queues a whole batch, and wakes or opens connections.
    pub(crate) fn submit(self: &Arc<Self>, work: &Arc<Work>) {
        let run = Run { work: Arc::clone(work), from: 0, to: work.count, resends: 0 };
        let mut state = self.lock();
        if state.closed {
            drop(state);
            // Without the lock, here and below: see `state`.
            return run.settle(&Reply::NotSent(Fault::Closed));
        }
        if let Some(fault) = state.halted() {
            drop(state);
            return run.settle(&Reply::NotSent(fault));
        }
        // Must precede `spread`, which depends on the number of waiting requests.
        state.queue.push(run);
        self.spread(&mut state);
    }

    /// Removes the requests of a batch that wait for a stream from the queue, and settles them as not sent.
    pub(crate) fn withdraw(&self, work: &Arc<Work>, fault: &Fault) {
        let withdrawn = self.lock().queue.remove(work);
        withdrawn.into_iter().for_each(|run| run.settle(&Reply::NotSent(fault.clone())));
    }

    /// Returns true if requests of a batch wait for a stream.
    pub(crate) fn has_queued(&self, work: &Arc<Work>) -> bool {
        self.lock().queue.holds(work)
    }

    /// Settles all waiting requests as not sent, and rejects new ones for a moment, because the peer demands a pause.
    pub(crate) fn halt(&self, fault: Fault) {
        let mut state = self.lock();
        // Set under the same lock as the emptying, so that no request is queued in between and forgotten.
        state.halt = Some((Instant::now() + HALT, fault.clone()));
        let rest = state.queue.take_all();
        drop(state);
        rest.into_iter().for_each(|run| run.settle(&Reply::NotSent(fault.clone())));
    }

    /// Takes up to `most` requests; they count as in flight from here on.
    pub(crate) fn take(&self, most: usize, into: &mut VecDeque<Run>) {
        let now = Instant::now();
        let mut late = Vec::new();
        let mut state = self.lock();
        // Room is computed and taken under the lock: the second of two connections gets the rest left by the first.
        self.congestion.wait(now.duration_since(self.began));
        let most = most.min(self.congestion.room());
        let mut left = most;
        while left > 0 {
            let small_first = left > most / 2 || !state.queue.has_large();
            let Some(run) = state.queue.pop(left, small_first) else { break };
            // Checked when a request would be sent: the queue itself never expires requests, and a late one takes no room.
            if now < run.work.give_up_at && !run.work.is_abandoned() {
                left -= run.len();
                into.push_back(run);
            } else {
                late.push(run);
            }
        }
        // Counted before the lock is released; otherwise the next connection would take the same room.
        self.congestion.started(most - left);
        drop(state);
        late.into_iter().for_each(|run| run.settle(&Reply::NotSent(Fault::QueueTimeout)));
    }

    /// Queues requests again, before all others, after the peer did not process them. Returns the fault instead if they may not be sent
    /// again.
    pub(crate) fn again(&self, mut run: Run, fault: Fault) -> Option<Fault> {
        let mut state = self.lock();
        // Precedes all other reasons, because only this fault gives the caller the time to wait.
        if let Some(halt) = state.halted() {
            return Some(halt);
        }
        let is_late = Instant::now() >= run.work.give_up_at;
        if state.closed || is_late || run.resends >= self.limits.max_resends {
            return Some(fault);
        }
        self.counters.resends.add(run.len() as u64);
        run.resends += 1;
        // Its deadline runs since its submission, so it goes before later requests.
        state.queue.push_again(run);
        None
    }

    /// Gives back requests that were taken and not written.
    pub(crate) fn give_back(&self, run: Run) {
        let mut state = self.lock();
        // Under the lock, so that no connection takes their room before they are queued again, ahead of all others.
        self.congestion.ended(run.len(), 0);
        // Closing or halting the pool settled only the requests that waited at that time; requests given back later are settled here.
        let refusal = if state.closed { Some(Fault::Closed) } else { state.halted() };
        if let Some(fault) = refusal {
            drop(state);
            return run.settle(&Reply::NotSent(fault));
        }
        state.queue.push_again(run);
    }

    /// Wakes connections with room for the waiting requests, or opens another one.
    pub(crate) fn nudge(self: &Arc<Self>) {
        let mut state = self.lock();
        if state.queue.waiting() > 0 {
            self.spread(&mut state);
        }
    }

    /// Returns true if requests wait for a stream.
    pub(crate) fn has_waiting(&self) -> bool {
        self.lock().queue.waiting() > 0
    }

    /// Returns true if requests wait for a stream, no more connections may be opened, and late requests hold more than half of the open
    /// streams of all connections.
    pub(crate) fn is_blocked(&self) -> bool {
        let state = self.lock();
        let (mut connections, mut open, mut late) = (0, 0, 0);
        for member in state.members.iter().filter(|member| !member.is_retired()) {
            connections += 1;
            open += member.open.load(Relaxed);
            late += member.late.load(Relaxed);
        }
        state.queue.waiting() > 0 && connections >= self.limits.max_connections && late > open / 2
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

    /// Removes a connection, after all its requests have ended.
    pub(crate) fn leave(self: &Arc<Self>, member: &Arc<PooledConnection>) {
        let mut state = self.lock();
        state.members.retain(|other| !Arc::ptr_eq(other, member));
        self.after_loss(state);
    }

    /// Stops taking requests and waits until every connection has ended.
    pub(crate) async fn close(self: &Arc<Self>) {
        // Enabled before the check, because the last connection may leave in between.
        let emptied = self.emptied.notified();
        let mut emptied = std::pin::pin!(emptied);
        emptied.as_mut().enable();
        if !self.stop() {
            emptied.await;
        }
    }

    /// Stops taking requests; returns true if no connection is left.
    pub(crate) fn stop(&self) -> bool {
        let mut state = self.lock();
        // Must precede the wake-up of the loops, which leave only if this flag is set.
        state.closed = true;
        let rest = state.queue.take_all();
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
            waiting: state.queue.waiting() as u64,
            connects: self.counters.connects.get(),
            connect_failures: self.counters.connect_failures.get(),
            goaways: self.counters.goaways.get(),
            resets: self.counters.resets.get(),
            timeouts: self.counters.timeouts.get(),
            resends: self.counters.resends.get(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, PoolState> {
        self.state.lock()
    }
}

impl PoolState {
    /// Returns the fault of the current halt, if there is one.
    fn halted(&mut self) -> Option<Fault> {
        if self.halt.as_ref().is_some_and(|(until, _)| *until <= Instant::now()) {
            self.halt = None;
        }
        self.halt.as_ref().map(|(_, fault)| fault.clone())
    }
}

#[cfg(test)]
mod tests;
