//! What the connections of one client share: the queue, the pace, the counters, and the list of each other.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::task::AtomicWaker;
use http::uri::{Authority, Scheme};
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::batch::Reply;
use crate::dial::{self, Dialer};
use crate::fault::Fault;
use crate::limits::Limits;
use crate::pace::Pace;
use crate::stats::{Counters, Stats};
use crate::work::{Ticket, Work};

/// Most requests one connection takes before others get a turn.
const TAKE_MAX_REQUESTS: usize = 256;
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(crate) struct Pool {
    pub(crate) limits: Limits,
    pub(crate) pace: Pace,
    pub(crate) counters: Counters,
    pub(crate) scheme: Scheme,
    pub(crate) authority: Authority,
    dialer: Dialer,
    state: Mutex<State>,
    emptied: Notify,
    closing: Notify,
}

#[derive(Debug, Default)]
struct State {
    /// Requests to send again, before all others.
    again: VecDeque<Ticket>,
    fresh: VecDeque<Span>,
    waiting: usize,
    members: Vec<Arc<Member>>,
    opening: usize,
    failures: u32,
    not_before: Option<Instant>,
    closed: bool,
}

/// Requests of one batch that wait for their first stream.
#[derive(Debug)]
struct Span {
    work: Arc<Work>,
    next: usize,
}

/// One open connection as the others see it.
#[derive(Debug, Default)]
pub(crate) struct Member {
    /// Wakes the connection's loop.
    pub(crate) waker: AtomicWaker,
    /// Streams it could open now.
    pub(crate) room: AtomicUsize,
    /// Streams it has open.
    pub(crate) open: AtomicUsize,
    /// One once it takes no more requests.
    pub(crate) retired: AtomicUsize,
}

impl Member {
    pub(crate) fn is_retired(&self) -> bool {
        self.retired.load(Relaxed) != 0
    }
}

impl Pool {
    pub(crate) fn new(dialer: Dialer, scheme: Scheme, authority: Authority, limits: Limits) -> Arc<Self> {
        Arc::new(Self {
            pace: Pace::new(&limits),
            counters: Counters::default(),
            scheme,
            authority,
            dialer,
            state: Mutex::default(),
            emptied: Notify::new(),
            closing: Notify::new(),
            limits,
        })
    }

    /// Puts a whole batch in the queue and gets connections going.
    pub(crate) fn submit(self: &Arc<Self>, work: &Arc<Work>) {
        let mut state = self.lock();
        if state.closed {
            drop(state);
            (0..work.requests.len()).for_each(|index| work.settle(index, Reply::NotSent(Fault::Closed)));
            return;
        }
        state.waiting += work.requests.len();
        state.fresh.push_back(Span { work: Arc::clone(work), next: 0 });
        self.spread(&mut state);
    }

    /// Hands out up to `most` requests; they count as in flight from here on.
    pub(crate) fn take(&self, most: usize, into: &mut Vec<Ticket>) {
        let now = Instant::now();
        let mut late = Vec::new();
        let mut state = self.lock();
        let most = most.min(TAKE_MAX_REQUESTS).min(self.pace.room());
        let before = into.len();
        while into.len() - before < most {
            let Some(ticket) = state.pop() else { break };
            let in_time = now < ticket.work.give_up_at && !ticket.work.is_abandoned();
            if in_time { into.push(ticket) } else { late.push(ticket) }
        }
        self.pace.started(into.len() - before);
        drop(state);
        late.into_iter().for_each(|ticket| ticket.settle(Reply::NotSent(Fault::QueueTimeout)));
    }

    /// Ends a request in flight with its reply, or puts it first in the queue if the peer has not processed it.
    pub(crate) fn finish(&self, ticket: Ticket, reply: Reply) {
        self.pace.ended(matches!(reply, Reply::Answered(_)));
        match reply {
            Reply::NotSent(fault) => self.again(ticket, fault),
            reply => ticket.settle(reply),
        }
    }

    fn again(&self, mut ticket: Ticket, fault: Fault) {
        let mut state = self.lock();
        if state.closed || ticket.resends >= self.limits.max_resends {
            drop(state);
            return ticket.settle(Reply::NotSent(fault));
        }
        self.counters.resends.add_one();
        ticket.resends += 1;
        state.waiting += 1;
        state.again.push_back(ticket);
    }

    /// Ends a request in flight that can never be written.
    pub(crate) fn refuse(&self, ticket: Ticket, fault: Fault) {
        self.pace.ended(false);
        ticket.settle(Reply::NotSent(fault));
    }

    /// Puts requests back that were taken and not tried.
    pub(crate) fn give_back(&self, tickets: impl Iterator<Item = Ticket>) {
        let mut state = self.lock();
        for ticket in tickets {
            self.pace.ended(false);
            state.waiting += 1;
            state.again.push_back(ticket);
        }
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

    /// Tells whether requests wait for a stream.
    pub(crate) fn has_waiting(&self) -> bool {
        self.lock().waiting > 0
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.lock().closed
    }

    /// Adds a connection that has just opened; it counts as opening until it has settled.
    pub(crate) fn join(&self) -> Arc<Member> {
        let member = Arc::new(Member::default());
        self.lock().members.push(Arc::clone(&member));
        self.counters.connects.add_one();
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
    pub(crate) fn leave(self: &Arc<Self>, member: &Arc<Member>) {
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
    pub(crate) fn failed_to_settle(self: &Arc<Self>, member: &Arc<Member>, fault: &Fault) {
        let mut state = self.lock();
        state.opening = state.opening.saturating_sub(1);
        state.members.retain(|other| !Arc::ptr_eq(other, member));
        self.failed(state, fault);
    }

    fn failed(self: &Arc<Self>, mut state: MutexGuard<'_, State>, fault: &Fault) {
        self.counters.connect_failures.add_one();
        state.pause();
        let alone = state.opening == 0 && !state.members.iter().any(|member| !member.is_retired());
        let hopeless = if alone { state.take_all() } else { Vec::new() };
        self.after_loss(state);
        hopeless.into_iter().for_each(|ticket| ticket.settle(Reply::NotSent(fault.clone())));
    }

    fn after_loss(self: &Arc<Self>, mut state: MutexGuard<'_, State>) {
        if state.members.is_empty() && state.opening == 0 {
            self.emptied.notify_waiters();
        }
        if state.waiting > 0 && !state.closed {
            self.spread(&mut state);
        }
    }

    /// Takes no more requests and waits until every connection has ended.
    pub(crate) async fn close(self: &Arc<Self>) {
        let emptied = self.emptied.notified();
        let mut emptied = std::pin::pin!(emptied);
        emptied.as_mut().enable();
        if !self.stop() {
            emptied.await;
        }
    }

    /// Waits until the instant, or until the pool is closed.
    pub(crate) async fn pause_until(&self, instant: Instant) {
        let closing = self.closing.notified();
        if !self.is_closed() {
            let _ = tokio::time::timeout_at(instant, closing).await;
        }
    }

    /// Takes no more requests; tells whether no connection is left.
    pub(crate) fn stop(&self) -> bool {
        let mut state = self.lock();
        state.closed = true;
        let rest = state.take_all();
        state.members.iter().for_each(|member| member.waker.wake());
        self.closing.notify_waiters();
        let empty = state.members.is_empty() && state.opening == 0;
        drop(state);
        rest.into_iter().for_each(|ticket| ticket.settle(Reply::NotSent(Fault::Closed)));
        empty
    }

    pub(crate) fn stats(&self) -> Stats {
        let state = self.lock();
        Stats {
            connections: state.members.len() as u64,
            inflight: self.pace.inflight() as u64,
            inflight_limit: self.pace.limit() as u64,
            waiting: state.waiting as u64,
            connects: self.counters.connects.get(),
            connect_failures: self.counters.connect_failures.get(),
            goaways: self.counters.goaways.get(),
            resets: self.counters.resets.get(),
            timeouts: self.counters.timeouts.get(),
            resends: self.counters.resends.get(),
        }
    }

    pub(crate) fn dialer(&self) -> &Dialer {
        &self.dialer
    }

    /// Wakes the least loaded connections until their room covers what waits; opens another if it does not.
    fn spread(self: &Arc<Self>, state: &mut State) {
        let mut ready: Vec<_> = state.members.iter().filter(|member| member.room.load(Relaxed) > 0).collect();
        ready.sort_by_key(|member| member.open.load(Relaxed));
        let mut missing = state.waiting;
        for member in ready {
            if missing == 0 {
                return;
            }
            missing = missing.saturating_sub(member.room.load(Relaxed));
            member.waker.wake();
        }
        let live = state.members.iter().filter(|member| !member.is_retired()).count();
        let wanted = missing > 0 && (live == 0 || self.pace.room() > 0);
        let allowed = state.opening == 0 && live < self.limits.max_connections;
        if wanted && allowed && !state.closed {
            self.open_one(state);
        }
    }

    fn open_one(self: &Arc<Self>, state: &mut State) {
        state.opening += 1;
        tokio::spawn(dial::open(Arc::clone(self), state.not_before));
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn pause(&mut self) {
        let pause = FIRST_PAUSE.saturating_mul(1 << self.failures.min(16)).min(LONGEST_PAUSE);
        self.failures = self.failures.saturating_add(1);
        self.not_before = Some(Instant::now() + pause);
    }

    fn pop(&mut self) -> Option<Ticket> {
        let ticket = self.again.pop_front().or_else(|| self.pop_fresh())?;
        self.waiting -= 1;
        Some(ticket)
    }

    /// Takes one request of each batch in turn, so that a small batch is not stuck behind a large one.
    fn pop_fresh(&mut self) -> Option<Ticket> {
        let mut span = self.fresh.pop_front()?;
        let ticket = Ticket { work: Arc::clone(&span.work), index: span.next, resends: 0 };
        span.next += 1;
        if span.next < span.work.requests.len() {
            self.fresh.push_back(span);
        }
        Some(ticket)
    }

    fn take_all(&mut self) -> Vec<Ticket> {
        std::iter::from_fn(|| self.pop()).collect()
    }
}
