//! One connection and its loop: reads and writes, and between them opens streams, collects answers and watches the clock.
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

/// Turns of the loop before other tasks get the thread.
const ROUNDS_MAX: usize = 16;
/// Bytes that may wait for the socket; only answers to a peer that does not read can be so many.
const BACKLOG_MAX_BYTES: usize = 4 * 1_024 * 1_024;
/// How long a connection that is no longer needed may take to say goodbye.
const GOODBYE_TIMEOUT: Duration = Duration::from_secs(1);

/// Serves the pool over one connection until either is done with the other.
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
    /// Bytes of the peer that make no whole frame yet.
    plain: Vec<u8>,
    ended: Vec<Ended>,
    plainly_ended: Vec<Plain>,
    /// Runs that count as in flight and have no streams yet.
    taken: VecDeque<Run>,
    /// Requests of the first of them that cannot be written.
    refused: Vec<(u32, Reply)>,
    pulse: Pulse,
    timer: Pin<Box<Sleep>>,
    /// Which of the two clocks the timer runs for.
    was_busy: bool,
    opened_at: Instant,
    now: Instant,
    phase: ConnectionPhase,
    /// Whether there was any answer: a connection without one makes the next wait.
    answered: bool,
    /// When the youngest request that was answered had been sent.
    last_answered_ms: u32,
    /// When the last answer came.
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

    /// Takes buffers from the pool for as long as the loop runs.
    fn acquire_buffers(&mut self) {
        buffer_pool::acquire(&mut self.plain);
        buffer_pool::acquire(&mut self.ended);
        buffer_pool::acquire(&mut self.plainly_ended);
        self.mux.acquire_buffers();
    }

    /// Puts into the pool what is not needed until something comes.
    fn release_buffers(&mut self) {
        buffer_pool::release(&mut self.plain);
        buffer_pool::release(&mut self.ended);
        buffer_pool::release(&mut self.plainly_ended);
        self.mux.release_buffers();
        self.transport.release_buffers();
    }

    /// Turns until there is nothing to do at once, or others must have the thread.
    fn turns(&mut self, cx: &mut Context<'_>) -> Poll<ErrorCode> {
        for _ in 0..ROUNDS_MAX {
            match self.turn(cx) {
                Turn::Again => {}
                Turn::Wait => return Poll::Pending,
                Turn::Over(code) => return Poll::Ready(code),
            }
        }
        // There may be more to do, and no socket or timer will say so.
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// One turn; returns whether there may be more to do at once.
    fn turn(&mut self, cx: &mut Context<'_>) -> Turn {
        self.now = Instant::now();
        let heard = match self.read(cx) {
            Ok(heard) => heard,
            Err((fault, code)) => return self.abort(fault, code),
        };
        // Before streams open: a connection found dead here would take new requests along.
        if let Some(fault) = self.watch_clock(cx) {
            return self.abort(fault, ErrorCode::NO_ERROR);
        }
        // After the reading, which makes room, and before the writing, so that all goes in one write.
        let opened = self.phase != ConnectionPhase::Retired && self.open_streams();
        let written = match self.write(cx) {
            Err(cause) => return self.abort(Fault::lost(&cause), ErrorCode::NO_ERROR),
            Ok(written) => written,
        };
        if self.mux.streams.is_empty() && (self.phase == ConnectionPhase::Retired || self.pool.is_closed()) {
            return self.leave(&Fault::Lost("the peer went away at once".into()), ErrorCode::NO_ERROR);
        }
        // What cannot be written now is written when the socket wakes this loop; until then it only reads.
        if heard || (opened && written) { Turn::Again } else { Turn::Wait }
    }

    /// Reads once and files what has ended; returns whether there may be more to read.
    fn read(&mut self, cx: &mut Context<'_>) -> Result<bool, (Fault, ErrorCode)> {
        let broken = |cause: io::Error| (Fault::lost(&cause), ErrorCode::NO_ERROR);
        let before = self.plain.len();
        let goes_on = match self.transport.poll_read(cx, &mut self.plain) {
            // Otherwise there is what came with the last message of the handshake.
            Poll::Pending if before == 0 => return Ok(false),
            Poll::Pending => None,
            Poll::Ready(read) => Some(read.map_err(broken)?),
        };
        if goes_on.is_some() {
            self.hear();
        }
        let received = self.receive();
        // Also after a violation or the end: the answers before it are answers.
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

    /// Encrypts and writes what is due; returns whether all of it is gone.
    fn write(&mut self, cx: &mut Context<'_>) -> io::Result<bool> {
        if !self.mux.out.is_empty() {
            // Before they are handed over: if that fails half way, some may be on the wire, and none was certainly not sent.
            self.mux.note_taken(self.mux.out.len());
            self.transport.offer(&mut self.mux.out)?;
            if self.transport.backlog_bytes() > BACKLOG_MAX_BYTES {
                return Err(io::Error::other("the peer asks more than it reads"));
            }
        }
        match self.transport.poll_flush(cx) {
            Poll::Ready(flushed) => flushed.map(|()| true),
            Poll::Pending => Ok(false),
        }
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
        // Before the loop looks at anything: a wake-up after this polls again, one before is answered by the look.
        self.member.waker.register(cx.waker());
        self.acquire_buffers();
        let code = self.turns(cx);
        self.release_buffers();
        code
    }
}
