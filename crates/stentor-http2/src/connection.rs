//! One connection and its loop: reads and writes, opens streams, collects answers, watches the clock.
//!
//! Everything happens in one task, so that a batch costs one wake-up and one write for many requests.

mod exchange;
mod pulse;
mod streams;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use h2::client::{Connection, SendRequest};
use http::{Method, Uri};
use tokio::time::{Instant, Sleep};

use self::exchange::{End, Exchange};
use self::pulse::{Pulse, Sign};
use self::streams::{Open, Streams};
use crate::batch::Reply;
use crate::dial::{Opened, Transport};
use crate::fault::Fault;
use crate::pool::{Member, Pool};
use crate::wire::{Gauge, Wire};
use crate::work::Ticket;

/// Turns of the loop before other tasks get the thread.
const ROUNDS_MAX: usize = 32;
/// How long a connection that is no longer needed may take to say goodbye.
const GOODBYE_TIMEOUT: Duration = Duration::from_secs(1);

/// Serves the pool over one connection until either is done with the other.
pub(crate) async fn run(pool: Arc<Pool>, opened: Opened, settle_by: Instant) {
    let mut driver = Driver::new(pool, opened, settle_by);
    (&mut driver).await;
    let Driver { connection, requests, .. } = driver;
    drop(requests);
    let _ = tokio::time::timeout(GOODBYE_TIMEOUT, connection).await;
}

struct Driver {
    pool: Arc<Pool>,
    member: Arc<Member>,
    requests: SendRequest<Bytes>,
    connection: Connection<Wire<Transport>, Bytes>,
    gauge: Arc<Gauge>,
    exchanges: FuturesUnordered<Exchange>,
    streams: Streams,
    taken: Vec<Ticket>,
    pulse: Pulse,
    timer: Pin<Box<Sleep>>,
    was_busy: bool,
    now: Instant,
    settle_by: Instant,
    settled: bool,
    answered: bool,
    retired: bool,
    /// Why the connection is over, when that was found while writing.
    lost: Option<Fault>,
}

impl Driver {
    fn new(pool: Arc<Pool>, opened: Opened, settle_by: Instant) -> Self {
        let Opened { requests, mut connection, gauge } = opened;
        let now = Instant::now();
        let pulse = Pulse::new(connection.ping_pong(), &pool.limits, now);
        Self {
            member: pool.join(),
            requests,
            connection,
            gauge,
            exchanges: FuturesUnordered::new(),
            streams: Streams::default(),
            taken: Vec::new(),
            pulse,
            timer: Box::pin(tokio::time::sleep(pool.limits.tick())),
            was_busy: true,
            now,
            settle_by,
            settled: false,
            answered: false,
            retired: false,
            lost: None,
            pool,
        }
    }

    /// One turn; tells whether there may be more to do at once.
    fn turn(&mut self, cx: &mut Context<'_>) -> Turn {
        let lost = self.read_and_write(cx);
        self.collect(cx);
        if let Some(fault) = lost {
            return self.abort(fault);
        }
        if let Some(fault) = self.watch_clock(cx) {
            return self.abort(fault);
        }
        if self.streams.is_empty() && (self.retired || self.pool.is_closed()) {
            return self.leave(&Fault::Lost("the peer went away at once".into()));
        }
        if self.retired {
            return Turn::Wait;
        }
        self.open_streams(cx)
    }

    /// Drives HTTP/2 itself; gives the reason when the connection is over.
    fn read_and_write(&mut self, cx: &mut Context<'_>) -> Option<Fault> {
        let lost = self.lost.take().or_else(|| self.drive(cx));
        self.now = Instant::now();
        self.pulse.listen(self.gauge.read(), self.now, cx);
        if !self.settled && self.requests.current_max_send_streams() > 0 {
            self.settled = true;
            self.pool.settled();
        }
        if let Poll::Ready(Err(cause)) = self.requests.poll_ready(cx) {
            self.retire(cause.is_go_away() && cause.is_remote());
        }
        lost
    }

    fn drive(&mut self, cx: &mut Context<'_>) -> Option<Fault> {
        match Pin::new(&mut self.connection).poll(cx) {
            Poll::Ready(Ok(())) => Some(Fault::Lost("closed by the peer".into())),
            Poll::Ready(Err(cause)) => Some(Fault::lost(&cause)),
            Poll::Pending => None,
        }
    }

    /// Writes the streams just opened before reading on: `h2` would read first, acknowledge a lowered stream limit,
    /// and then write streams that exceed it.
    fn write_before_reading(&mut self, cx: &mut Context<'_>) {
        self.gauge.set_deaf(true);
        self.lost = self.drive(cx);
        self.gauge.set_deaf(false);
    }

    /// Takes no more requests; what waits goes to other connections.
    fn retire(&mut self, by_goaway: bool) {
        if self.retired {
            return;
        }
        self.retired = true;
        self.publish(0);
        self.member.retired.store(1, Relaxed);
        if by_goaway {
            self.pool.counters.goaways.add_one();
        }
        if !self.answered {
            self.pool.back_off();
        }
        self.pool.nudge();
    }

    /// Files the answers that have come.
    fn collect(&mut self, cx: &mut Context<'_>) {
        let mut again = false;
        while let Poll::Ready(Some((key, end))) = self.exchanges.poll_next_unpin(cx) {
            let Some(open) = self.streams.remove(key) else { continue };
            let reply = match end {
                End::Answered(response) => Reply::Answered(response),
                End::Failed(cause) => self.failure(&open, &cause),
            };
            if matches!(reply, Reply::Answered(_)) && !std::mem::replace(&mut self.answered, true) {
                self.pool.usable();
            }
            again |= matches!(reply, Reply::NotSent(_));
            self.pool.finish(open.ticket, reply);
        }
        if again || self.retired {
            self.pool.nudge();
        }
    }

    /// Says what a stream's error means for its request.
    fn failure(&self, open: &Open, cause: &h2::Error) -> Reply {
        if open.timed_out {
            return self.unsettled(open, Fault::Timeout);
        }
        let reason = || cause.reason().map_or_else(String::new, |reason| reason.to_string());
        if cause.is_remote() && cause.is_go_away() {
            return Reply::NotSent(Fault::GoAway(reason().into()));
        }
        if !(cause.is_remote() && cause.is_reset()) {
            return self.unsettled(open, Fault::lost(cause));
        }
        self.pool.counters.resets.add_one();
        self.pool.pace.slow_down();
        if cause.reason() == Some(h2::Reason::REFUSED_STREAM) {
            return Reply::NotSent(Fault::Refused);
        }
        Reply::Unanswered(Fault::Reset(reason().into()))
    }

    /// Tells whether any byte of the request may have left.
    fn unsettled(&self, open: &Open, fault: Fault) -> Reply {
        let written = open.offset < self.gauge.offered();
        if written { Reply::Unanswered(fault) } else { Reply::NotSent(fault) }
    }

    /// Looks at the clock once a tick; gives the reason when the connection is dead.
    fn watch_clock(&mut self, cx: &mut Context<'_>) -> Option<Fault> {
        let busy = !self.settled || self.pulse.is_asking() || !self.streams.is_empty();
        let elapsed = self.timer.as_mut().poll(cx).is_ready();
        if elapsed || busy != self.was_busy {
            self.was_busy = busy;
            let limits = &self.pool.limits;
            let span = if busy { limits.tick() } else { limits.idle_close() };
            self.timer.as_mut().reset(self.now + span);
            let _ = self.timer.as_mut().poll(cx);
        }
        if elapsed { self.tick(busy, cx) } else { None }
    }

    fn tick(&mut self, busy: bool, cx: &mut Context<'_>) -> Option<Fault> {
        if !self.settled && self.now >= self.settle_by {
            return Some(Fault::ConnectTimeout);
        }
        if !busy {
            self.retire_idle();
            return None;
        }
        self.expire();
        let silent =
            !self.streams.is_empty() && self.pulse.silence(self.now) >= self.pool.limits.ping_interval();
        match self.pulse.check(silent, self.now) {
            Sign::Dead => Some(Fault::DeadConnection),
            Sign::Asked => {
                cx.waker().wake_by_ref();
                None
            }
            Sign::Fine => None,
        }
    }

    fn retire_idle(&mut self) {
        self.retired = true;
        self.publish(0);
        self.member.retired.store(1, Relaxed);
    }

    /// Resets the streams whose time is over; their ends are collected like all others.
    fn expire(&mut self) {
        let counters = &self.pool.counters;
        self.streams.expire(self.now, || {
            counters.timeouts.add_one();
            self.pool.pace.slow_down();
        });
    }

    /// Opens streams for what waits, as many as the peer and the pace allow.
    fn open_streams(&mut self, cx: &mut Context<'_>) -> Turn {
        let room = self.room();
        // Before looking at the queue: who adds to it after the look sees the room and wakes this loop.
        self.publish(room);
        if !self.pool.has_waiting() {
            return Turn::Wait;
        }
        if room == 0 {
            if self.settled {
                self.pool.nudge();
            }
            return Turn::Wait;
        }
        if self.must_probe() {
            self.publish(0);
            self.pool.nudge();
            return Turn::Again;
        }
        let mut taken = std::mem::take(&mut self.taken);
        self.pool.take(room, &mut taken);
        let count = taken.len();
        let mut tickets = taken.drain(..);
        while let Some(ticket) = tickets.next() {
            if !matches!(self.requests.poll_ready(cx), Poll::Ready(Ok(()))) {
                self.pool.give_back(std::iter::once(ticket).chain(tickets.by_ref()));
                break;
            }
            self.open_stream(ticket);
        }
        drop(tickets);
        self.taken = taken;
        let room = self.room();
        self.publish(room);
        if room == 0 {
            self.pool.nudge();
        }
        if count == 0 {
            return Turn::Wait;
        }
        self.write_before_reading(cx);
        Turn::Again
    }

    /// Asks an unused connection whether it lives before anything is entrusted to it.
    fn must_probe(&mut self) -> bool {
        let quiet = self.pulse.silence(self.now) >= self.pool.limits.probe_after_idle();
        self.streams.is_empty() && quiet && self.pulse.check(true, self.now) == Sign::Asked
    }

    fn open_stream(&mut self, ticket: Ticket) {
        let offset = self.gauge.taken();
        let body = ticket.work.requests[ticket.index].body.clone();
        let opened = self.head(&ticket).and_then(|head| {
            let sent = self.requests.send_request(head, body.is_empty());
            sent.map_err(|cause| Fault::Request(cause.to_string().into()))
        });
        let (answer, mut sender) = match opened {
            Ok(opened) => opened,
            Err(fault) => return self.pool.refuse(ticket, fault),
        };
        if !body.is_empty() {
            // An error here is the stream's own, and its answer tells it.
            let _ = sender.send_data(body, true);
        }
        let due = self.now + self.pool.limits.request_timeout();
        let key = self.streams.insert(Open { ticket, sender, offset, timed_out: false }, due);
        self.exchanges.push(Exchange::new(key, answer, &self.pool.limits));
    }

    fn head(&self, ticket: &Ticket) -> Result<http::Request<()>, Fault> {
        let request = &ticket.work.requests[ticket.index];
        let mut uri = http::uri::Parts::default();
        uri.scheme = Some(self.pool.scheme.clone());
        uri.authority = Some(self.pool.authority.clone());
        uri.path_and_query = Some(request.path.clone());
        let mut head = http::Request::new(());
        *head.method_mut() = Method::POST;
        *head.uri_mut() = Uri::from_parts(uri).map_err(|cause| Fault::Request(cause.to_string().into()))?;
        *head.version_mut() = http::Version::HTTP_2;
        let mut headers = ticket.work.constant.clone();
        for (name, value) in &request.headers {
            headers.insert(name.clone(), value.clone());
        }
        *head.headers_mut() = headers;
        Ok(head)
    }

    fn room(&self) -> usize {
        let usable = self.settled && !self.retired && !self.pulse.is_asking_unused(self.streams.is_empty());
        let most = self.requests.current_max_send_streams().min(self.pool.limits.max_streams_per_connection);
        if usable { most.saturating_sub(self.streams.len()) } else { 0 }
    }

    fn publish(&self, room: usize) {
        self.member.room.store(room, Relaxed);
        self.member.open.store(self.streams.len(), Relaxed);
    }

    /// Ends a lost connection: every open stream gets its reply.
    fn abort(&mut self, fault: Fault) -> Turn {
        tracing::debug!(%fault, streams = self.streams.len(), "connection over");
        self.publish(0);
        self.member.retired.store(1, Relaxed);
        self.exchanges.clear();
        for open in self.streams.drain() {
            let reply = self.unsettled(&open, fault.clone());
            self.pool.finish(open.ticket, reply);
        }
        if self.settled {
            self.retire(false);
        }
        self.leave(&fault)
    }

    fn leave(&mut self, fault: &Fault) -> Turn {
        if self.settled {
            self.pool.leave(&self.member);
        } else {
            self.pool.failed_to_settle(&self.member, fault);
        }
        Turn::Over
    }
}

enum Turn {
    Again,
    Wait,
    Over,
}

impl Future for Driver {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        self.member.waker.register(cx.waker());
        for _ in 0..ROUNDS_MAX {
            match self.turn(cx) {
                Turn::Again => {}
                Turn::Wait => return Poll::Pending,
                Turn::Over => return Poll::Ready(()),
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}
