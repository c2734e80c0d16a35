//! What the connections of one client share: the queue, the congestion, the counters, and the list of each other.

mod member;
mod openings;
mod queue;

use std::collections::VecDeque;
use std::sync::Arc;
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

/// How long nothing is taken over after an answer that asks to wait; by then the caller knows.
const HALT: Duration = Duration::from_millis(500);

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
    queue: RunQueue,
    members: Vec<Arc<PooledConnection>>,
    opening: usize,
    failures: u32,
    /// Why the last attempt to connect failed; `None` once a connection answered.
    trouble: Option<Fault>,
    not_before: Option<Instant>,
    /// Until when nothing is taken over, and why.
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

    /// Puts a whole batch in the queue and gets connections going.
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
        // Before `spread`, which goes by how many wait.
        state.queue.push(run);
        self.spread(&mut state);
    }

    /// Takes the requests of a batch that wait for a stream out of the queue and says that they were not sent.
    pub(crate) fn withdraw(&self, work: &Arc<Work>, fault: &Fault) {
        let withdrawn = self.lock().queue.remove(work);
        withdrawn.into_iter().for_each(|run| run.settle(&Reply::NotSent(fault.clone())));
    }

    /// Returns whether requests of a batch wait for a stream.
    pub(crate) fn has_queued(&self, work: &Arc<Work>) -> bool {
        self.lock().queue.holds(work)
    }

    /// Sends nothing more of what waits, nor of what comes within a moment: the peer asks to wait.
    pub(crate) fn halt(&self, fault: Fault) {
        let mut state = self.lock();
        // Under one lock with the emptying, so that nothing is queued in between and forgotten.
        state.halt = Some((Instant::now() + HALT, fault.clone()));
        let rest = state.queue.take_all();
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
            let small_first = left > most / 2 || !state.queue.has_large();
            let Some(run) = state.queue.pop(left, small_first) else { break };
            // Here, where it would go out: the queue itself forgets nobody, and a late one takes no room.
            if now < run.work.give_up_at && !run.work.is_abandoned() {
                left -= run.len();
                into.push_back(run);
            } else {
                late.push(run);
            }
        }
        // Counted before the lock is released, or the next connection would take the same room.
        self.congestion.started(most - left);
        drop(state);
        late.into_iter().for_each(|run| run.settle(&Reply::NotSent(Fault::QueueTimeout)));
    }

    /// Puts a request first in the queue that the peer has not processed; returns the fault back when it has been tried
    /// too often.
    pub(crate) fn again(&self, mut run: Run, fault: Fault) -> Option<Fault> {
        let mut state = self.lock();
        // Before all other reasons: only this fault tells the caller how long to wait.
        if let Some(halt) = state.halted() {
            return Some(halt);
        }
        let is_late = Instant::now() >= run.work.give_up_at;
        if state.closed || is_late || run.resends >= self.limits.max_resends {
            return Some(fault);
        }
        self.counters.resends.add(run.len() as u64);
        run.resends += 1;
        // Its time ran since it was handed over, so it goes before what came later.
        state.queue.push_again(run);
        None
    }

    /// Puts requests back that were taken and not tried.
    pub(crate) fn give_back(&self, run: Run) {
        let mut state = self.lock();
        // Under the lock, so that nobody takes their room before they are in the queue again, first of all.
        self.congestion.ended(run.len(), 0);
        // Whoever closed or halted the pool settled what waited then: nobody would settle what comes back later.
        let refusal = if state.closed { Some(Fault::Closed) } else { state.halted() };
        if let Some(fault) = refusal {
            drop(state);
            return run.settle(&Reply::NotSent(fault));
        }
        state.queue.push_again(run);
    }

    /// Wakes connections with room for what waits, or opens another.
    pub(crate) fn nudge(self: &Arc<Self>) {
        let mut state = self.lock();
        if state.queue.waiting() > 0 {
            self.spread(&mut state);
        }
    }

    /// Returns whether requests wait for a stream.
    pub(crate) fn has_waiting(&self) -> bool {
        self.lock().queue.waiting() > 0
    }

    /// Returns whether requests wait for a stream and no more connections may be opened.
    pub(crate) fn is_crowded(&self) -> bool {
        let state = self.lock();
        let live = state.members.iter().filter(|member| !member.is_retired()).count();
        state.queue.waiting() > 0 && live >= self.limits.max_connections
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

    /// Removes a connection; its requests are finished before.
    pub(crate) fn leave(self: &Arc<Self>, member: &Arc<PooledConnection>) {
        let mut state = self.lock();
        state.members.retain(|other| !Arc::ptr_eq(other, member));
        self.after_loss(state);
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

    /// Takes no more requests; returns whether no connection is left.
    pub(crate) fn stop(&self) -> bool {
        let mut state = self.lock();
        // Before loops are woken: each looks at it, and at nothing else, to know that it may leave.
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
    /// Returns the reason for which nothing is taken over now.
    fn halted(&mut self) -> Option<Fault> {
        if self.halt.as_ref().is_some_and(|(until, _)| *until <= Instant::now()) {
            self.halt = None;
        }
        self.halt.as_ref().map(|(_, fault)| fault.clone())
    }
}

#[cfg(test)]
mod tests;
