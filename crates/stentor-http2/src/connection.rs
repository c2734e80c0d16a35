//! One connection and its loop. The loop reads and writes, opens streams, collects responses and checks the clock.
//!
//! Everything happens in one task, so that hundreds of requests cost one wake-up, one TLS record chain and one write.

mod answers;
mod blocked;
mod clock;
mod end;
pub(crate) mod mux;
mod peer;
mod phase;
mod pulse;
mod requests;
pub(crate) mod streams;
pub(crate) mod violation;

use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::FutureExt as _;
use stentor_http2_codec::frame::ErrorCode;
use tokio::time::{Instant, Sleep};

use self::mux::{Ended, Mux, Plain};
use self::phase::ConnectionPhase;
use self::pulse::Pulse;
use self::violation::Violation;

use crate::batch::Reply;
use crate::buffer_pool;
use crate::dial::Opened;
use crate::fault::Fault;
use crate::pool::{Pool, PooledConnection};
use crate::transport::Transport;
use crate::work::Run;

/// Time after which the loop yields the thread to other tasks. A request may take long to write, because some callers encrypt each.
const HELD_MAX: Duration = Duration::from_millis(2);
/// Bytes that may wait for the socket. Only replies to a peer that does not read can reach this size.
const BACKLOG_MAX_BYTES: usize = 4 * 1_024 * 1_024;
/// Time limit for the orderly shutdown of a connection.
const GOODBYE_TIMEOUT: Duration = Duration::from_secs(1);

/// Serves the pool over one connection until the connection or the pool ends it.
pub(crate) async fn run(pool: Arc<Pool>, opened: Opened, settle_by: Instant) {
    let mut driver = Driver::new(pool, opened, settle_by);
    let Ok(code) = AssertUnwindSafe(&mut driver).catch_unwind().await else {
        return driver.rescue();
    };
    let Driver { mut transport, mut mux, .. } = driver;
    mux.say_goodbye(code);
    let goodbye = async {
        transport.offer(&mut mux.out)?;
        transport.shut_down().await
    };
    let _ = tokio::time::timeout(GOODBYE_TIMEOUT, goodbye).await;
}

struct Driver {
    pool: Arc<Pool>,
    member: Arc<PooledConnection>,
    transport: Transport,
    mux: Mux,
    /// Bytes received that do not form a whole frame yet.
    plain: Vec<u8>,
    ended: Vec<Ended>,
    plainly_ended: Vec<Plain>,
    /// Runs that count as in flight and have no streams yet.
    taken: VecDeque<Run>,
    /// Requests of the first of these runs that cannot be written.
    refused: Vec<(u32, Reply)>,
    pulse: Pulse,
    timer: Pin<Box<Sleep>>,
    /// The interval of the running timer: true for the tick of a busy connection, false for the idle timeout.
    was_busy: bool,
    opened_at: Instant,
    now: Instant,
    phase: ConnectionPhase,
    /// True once a response has come. A connection that ends without one delays the next attempt.
    answered: bool,
    /// Opening time of the youngest request with a response.
    last_answered_ms: u32,
    /// Time of the last response.
    last_answer_ms: u32,
}

impl Driver {
    fn new(pool: Arc<Pool>, opened: Opened, settle_by: Instant) -> Self {
        let Opened { transport, plain } = opened;
        let now = Instant::now();
        Self {
            member: pool.join(),
            transport,
            mux: Mux::new(&pool.limits),
            plain,
            ended: Vec::new(),
            plainly_ended: Vec::new(),
            taken: VecDeque::new(),
            refused: Vec::new(),
            pulse: Pulse::new(pool.limits.ping_timeout(), now),
            timer: Box::pin(tokio::time::sleep(pool.limits.tick())),
            was_busy: true,
            opened_at: now,
            now,
            phase: ConnectionPhase::Settling { until: settle_by },
            answered: false,
            last_answered_ms: 0,
            last_answer_ms: 0,
            pool,
        }
    }

    /// Takes buffers from the pool for the run of the loop.
    fn acquire_buffers(&mut self) {
        buffer_pool::acquire(&mut self.plain);
        buffer_pool::acquire(&mut self.ended);
        buffer_pool::acquire(&mut self.plainly_ended);
        self.mux.acquire_buffers();
    }

    /// Returns to the pool the buffers that are unused until the next wake-up.
    fn release_buffers(&mut self) {
        buffer_pool::release(&mut self.plain);
        buffer_pool::release(&mut self.ended);
        buffer_pool::release(&mut self.plainly_ended);
        self.mux.release_buffers();
        self.transport.release_buffers();
    }

    /// Iterates until there is nothing to do at once, or other tasks must get the thread.
    fn turns(&mut self, cx: &mut Context<'_>) -> Poll<ErrorCode> {
        let began = Instant::now();
        while began.elapsed() < HELD_MAX {
            match self.turn(cx) {
                Turn::Again => {}
                Turn::Wait => return Poll::Pending,
                Turn::Over(code) => return Poll::Ready(code),
            }
        }
        // There may be more to do, and no socket or timer will wake this loop for it.
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// Runs one iteration; returns [`Turn::Again`] if there may be more to do at once.
    fn turn(&mut self, cx: &mut Context<'_>) -> Turn {
        self.now = Instant::now();
        let heard = match self.read(cx) {
            Ok(heard) => heard,
            Err((fault, code)) => return self.abort(fault, code),
        };
        // Must precede the opening of streams: a connection found dead here would lose new requests.
        if let Some(fault) = self.watch_clock(cx) {
            return self.abort(fault, ErrorCode::NO_ERROR);
        }
        // After reading, which makes room, and before writing, so that everything goes in one write.
        let opened = self.phase != ConnectionPhase::Retired && self.open_streams();
        let written = match self.write(cx) {
            Err(cause) => return self.abort(Fault::lost(&cause), ErrorCode::NO_ERROR),
            Ok(written) => written,
        };
        if self.mux.streams.is_empty() && (self.phase == ConnectionPhase::Retired || self.pool.is_closed()) {
            return self.leave(&Fault::Lost("the peer went away at once".into()), ErrorCode::NO_ERROR);
        }
        // Data that cannot be written now is written when the socket wakes this loop; until then the loop only reads.
        if heard || (opened && written) { Turn::Again } else { Turn::Wait }
    }

    /// Reads once and files the streams that have ended; returns true if there may be more to read.
    fn read(&mut self, cx: &mut Context<'_>) -> Result<bool, (Fault, ErrorCode)> {
        let broken = |cause: io::Error| (Fault::lost(&cause), ErrorCode::NO_ERROR);
        let before = self.plain.len();
        let goes_on = match self.transport.poll_read(cx, &mut self.plain) {
            // Otherwise `plain` holds data received with the last handshake message.
            Poll::Pending if before == 0 => return Ok(false),
            Poll::Pending => None,
            Poll::Ready(read) => Some(read.map_err(broken)?),
        };
        if goes_on.is_some() {
            self.hear();
        }
        let received = self.receive();
        // Also after a violation or the end of the stream: responses received before it are valid.
        self.collect();
        if let Err(Violation(code, what)) = received {
            return Err((Fault::Lost(format!("{code}: {what}").into()), code));
        }
        match goes_on {
            Some(false) => Err((Fault::Lost("closed by the peer".into()), ErrorCode::NO_ERROR)),
            goes_on => Ok(goes_on.is_some()),
        }
    }

    fn receive(&mut self) -> Result<(), Violation> {
        let used = self.mux.receive(&self.plain)?;
        if used == self.plain.len() {
            self.plain.clear();
        } else {
            self.plain.drain(..used);
        }
        if self.mux.peer.is_known && !self.phase.has_settled() {
            self.phase = ConnectionPhase::Serving;
            self.pool.settled();
        }
        if self.mux.peer.goes_after.is_some() || self.mux.is_spent() {
            self.retire();
        }
        Ok(())
    }

    /// Encrypts and writes the pending output; returns true if all of it was written.
    fn write(&mut self, cx: &mut Context<'_>) -> io::Result<bool> {
        if !self.mux.out.is_empty() {
            // Must precede the handover: if that fails half way, some bytes may be on the wire, and no request was certainly unsent.
            self.mux.note_taken(self.mux.out.len());
            self.transport.offer(&mut self.mux.out)?;
            if self.transport.backlog_bytes() > BACKLOG_MAX_BYTES {
                return Err(io::Error::other("the peer reads too slowly: too much output waits"));
            }
        }
        match self.transport.poll_flush(cx) {
            Poll::Ready(flushed) => flushed.map(|()| true),
            Poll::Pending => Ok(false),
        }
    }

    /// Returns true if this iteration must end soon, so that other tasks get the thread.
    fn is_long(&self) -> bool {
        self.now.elapsed() >= HELD_MAX
    }

    fn now_ms(&self) -> u32 {
        self.now.duration_since(self.opened_at).as_millis() as u32
    }
}

enum Turn {
    Again,
    Wait,
    Over(ErrorCode),
}

impl Future for Driver {
    type Output = ErrorCode;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<ErrorCode> {
        // Registered before the loop checks any state: a later wake-up polls again, the state behind an earlier one is seen by the check.
        self.member.waker.register(cx.waker());
        self.acquire_buffers();
        let code = self.turns(cx);
        self.release_buffers();
        code
    }
}
