//! One connection and its loop: reads and writes, opens streams, collects answers, watches the clock.
//!
//! Everything happens in one task, so that hundreds of requests cost one wake-up, one TLS record chain and one write.

mod blocked;
mod clock;
pub(crate) mod mux;
mod peer;
mod phase;
mod pulse;
pub(crate) mod streams;
pub(crate) mod violation;

use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
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
use crate::response::HaltResponse;
use crate::transport::Transport;
use crate::work::Run;

/// Turns of the loop before other tasks get the thread.
const ROUNDS_MAX: usize = 16;
/// Bytes of requests gathered for one write: about 180 pushes (beyond it, a write costs no less for each).
const WRITE_MAX_BYTES: usize = 64 * 1_024;
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
        if let Some(fault) = self.watch_clock(cx) {
            return self.abort(fault, ErrorCode::NO_ERROR);
        }
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

    /// Takes no more requests; what waits goes to other connections.
    fn retire(&mut self) {
        if self.phase == ConnectionPhase::Retired {
            return;
        }
        self.phase = ConnectionPhase::Retired;
        // Before `nudge`, which counts connections and their room under the pool's lock.
        self.publish(0);
        self.member.retired.store(1, Relaxed);
        // A connection that has done all it may is no failure, answered or not.
        if !self.answered && !self.mux.is_spent() {
            self.pool.back_off();
        }
        self.pool.nudge();
    }

    /// Files the streams that have ended: neighbours of one batch in one go.
    fn collect(&mut self) {
        self.note_counts();
        self.mux.take_ended(&mut self.ended, &mut self.plainly_ended);
        if self.ended.is_empty() && self.plainly_ended.is_empty() {
            return;
        }
        let answered = self.ended.iter().filter(|ended| matches!(ended.reply, Reply::Answered(_))).count();
        let answers = self.plainly_ended.len() + answered;
        // Before anything makes room: another connection would take what waits, though the peer asks to wait.
        self.obey(answers);
        // Those that were late are counted out already. Before replies are filed: who is woken by one may send the next batch
        // at once, and needs the room.
        let late = self.mux.streams.take_late_ended();
        let ended = self.plainly_ended.len() + self.ended.len();
        self.pool.congestion.ended(ended.saturating_sub(late), answers);
        self.note_latency(answers);
        if answers > 0 && !std::mem::replace(&mut self.answered, true) {
            self.pool.usable();
        }
        self.file_plain();
        let again = self.file_others();
        if again || self.phase == ConnectionPhase::Retired {
            self.pool.nudge();
        }
    }

    /// Halts when most answers ask to wait; those to requests that failed before say nothing, for they ask again and again.
    fn obey(&self, answers: usize) {
        let is_first = |ended: &&Ended| self.mux.work(ended.open.batch).is_none_or(|work| !work.repeated);
        let first = self.ended.iter().filter(is_first).map(|ended| &ended.reply);
        let (halting, last) = Reply::halting(first, self.pool.halts);
        if self.pool.waits.note(answers, halting)
            && let Some(response) = last
        {
            self.pool.halt(Fault::Halted(HaltResponse::of(response)));
        }
    }

    fn file_plain(&mut self) {
        for group in self.plainly_ended.chunk_by(|one, next| one.batch == next.batch) {
            let batch = group[0].batch;
            if let Some(work) = self.mux.work(batch) {
                work.settle_plain(group.iter().map(|plain| plain.index));
            }
            self.mux.let_go(batch, group.len() as u32);
        }
        self.plainly_ended.clear();
    }

    /// Files what ended otherwise; returns whether some of it goes again.
    fn file_others(&mut self) -> bool {
        let mut ended = std::mem::take(&mut self.ended);
        let mut again = false;
        let mut rest = ended.drain(..).peekable();
        while let Some(batch) = rest.peek().map(|ended| ended.open.batch) {
            again |= self.file(batch, std::iter::from_fn(|| rest.next_if(|ended| ended.open.batch == batch)));
        }
        drop(rest);
        self.ended = ended;
        again
    }

    /// Notes how long the youngest of the answered streams took, and how many they are.
    fn note_latency(&mut self, answers: usize) {
        let answered = self.ended.iter().filter(|ended| matches!(ended.reply, Reply::Answered(_)));
        let opened = answered.map(|ended| ended.open.opened_ms);
        let Some(opened_ms) = opened.chain(self.plainly_ended.iter().map(|plain| plain.opened_ms)).max()
        else {
            return;
        };
        self.last_answered_ms = self.last_answered_ms.max(opened_ms);
        self.last_answer_ms = self.now_ms();
        let took = Duration::from_millis(self.now_ms().saturating_sub(opened_ms).into());
        let now = self.now.duration_since(self.pool.began);
        self.pool.latency.note(took, now);
        self.pool.congestion.observe(now, answers, took, self.pool.latency.min_rtt());
    }

    /// Files streams of one batch; returns whether some of them go again.
    fn file(&mut self, batch: u32, group: impl Iterator<Item = Ended>) -> bool {
        let Some(work) = self.mux.work(batch).cloned() else { return false };
        let (mut count, mut again) = (0, false);
        work.settle(group.filter_map(|Ended { open, reply }| {
            count += 1;
            let Reply::NotSent(fault) = reply else { return Some((open.index, reply)) };
            let run =
                Run { work: Arc::clone(&work), from: open.index, to: open.index + 1, resends: open.resends };
            let given_up = self.pool.again(run, fault);
            again |= given_up.is_none();
            given_up.map(|fault| (open.index, Reply::NotSent(fault)))
        }));
        self.mux.let_go(batch, count);
        again
    }

    fn note_counts(&mut self) {
        let counts = std::mem::take(&mut self.mux.counts);
        self.pool.counters.goaways.add(counts.goaways);
        self.pool.counters.resets.add(counts.resets);
        self.pool.congestion.failed(counts.resets as usize);
    }

    /// Opens streams for what waits, as many as the peer, congestion control and one write allow; returns whether it did.
    fn open_streams(&mut self) -> bool {
        if self.transport.backlog_bytes() > 0 {
            self.publish(0);
            return false;
        }
        let room = self.room();
        // Before looking at the queue, which takes the pool's lock: who adds to it later holds that lock after us, sees the
        // room, `Relaxed` as it is, and wakes this loop; what was added earlier is seen here. The other way round requests
        // added in between would wake nobody.
        self.publish(room);
        if !self.pool.has_waiting() {
            return false;
        }
        if room == 0 {
            if self.phase.has_settled() {
                self.pool.nudge();
            }
            return false;
        }
        if self.must_probe() {
            self.probe();
            return true;
        }
        let opened = self.fill(room);
        let room = self.room();
        // Before `nudge`, which would wake this loop for room that it has used.
        self.publish(room);
        if room == 0 {
            self.pool.nudge();
        }
        opened
    }

    /// Takes requests from the pool until there is no room or the buffer is full; returns whether there were any.
    fn fill(&mut self, mut room: usize) -> bool {
        let mut any = false;
        while room > 0 && self.mux.out.len() < WRITE_MAX_BYTES {
            self.pool.take(room, &mut self.taken);
            if self.taken.is_empty() {
                break;
            }
            any = true;
            room -= self.taken.iter().map(Run::len).sum::<usize>();
            while self.open_first() {}
        }
        any
    }

    /// Opens streams for the first run taken; what does not fit into the buffer goes back. Returns whether there was one.
    fn open_first(&mut self) -> bool {
        let now_ms = self.now_ms();
        let Some(run) = self.taken.front_mut() else { return false };
        let batch = self.mux.enlist(&run.work, run.len() as u32);
        let refused = &mut self.refused;
        self.mux.open(batch, run, now_ms, WRITE_MAX_BYTES, |index, fault| {
            refused.push((index, Reply::NotSent(fault)));
        });
        let (left, lost) = (run.len(), self.refused.len());
        self.mux.let_go(batch, (left + lost) as u32);
        // Room first, replies then, as in `collect`.
        if lost > 0 {
            self.pool.congestion.ended(lost, 0);
            run.work.settle(self.refused.drain(..));
        }
        if let Some(run) = self.taken.pop_front().filter(|run| run.len() > 0) {
            self.pool.give_back(run);
        }
        true
    }

    fn room(&self) -> usize {
        let is_probing = self.mux.streams.is_empty() && self.pulse.is_probing();
        let usable = self.phase == ConnectionPhase::Serving && !is_probing;
        if usable { self.mux.room(self.pool.limits.max_streams_per_connection) } else { 0 }
    }

    fn publish(&self, room: usize) {
        self.member.room.store(room, Relaxed);
        self.member.open.store(self.mux.streams.len(), Relaxed);
    }

    fn now_ms(&self) -> u32 {
        self.now.duration_since(self.opened_at).as_millis() as u32
    }

    /// Ends a connection whose loop has panicked: what it had in hand gets its reply, for somebody waits for it.
    ///
    /// Nothing more is written, for the buffer may end in half a frame.
    fn rescue(&mut self) {
        let fault = Fault::Lost("an error in this program ended the connection".into());
        tracing::error!(streams = self.mux.streams.len(), "a connection's loop panicked");
        if let Some(run) = self.taken.front() {
            self.pool.congestion.ended(self.refused.len(), 0);
            run.work.settle(self.refused.drain(..));
        }
        for run in self.taken.drain(..) {
            self.pool.congestion.ended(run.len(), 0);
            run.settle(&Reply::NotSent(fault.clone()));
        }
        // A second panic must not keep the pool from forgetting the connection.
        let ended = catch_unwind(AssertUnwindSafe(|| self.abort(fault.clone(), ErrorCode::NO_ERROR)));
        if ended.is_err() {
            self.leave(&fault, ErrorCode::NO_ERROR);
        }
    }

    /// Ends a lost connection: every open stream gets its reply.
    fn abort(&mut self, fault: Fault, code: ErrorCode) -> Turn {
        tracing::debug!(%fault, streams = self.mux.streams.len(), "connection over");
        // Out of the others' sight before its requests go back to the queue: nobody may count on it for them.
        self.publish(0);
        self.pool.congestion.hear();
        self.member.retired.store(1, Relaxed);
        self.mux.end_all(&fault);
        self.collect();
        // Only then: whoever waits for the last connection to leave finds every reply.
        if self.phase.has_settled() {
            self.retire();
        }
        self.leave(&fault, code)
    }

    fn leave(&mut self, fault: &Fault, code: ErrorCode) -> Turn {
        if self.phase.has_settled() {
            self.pool.leave(&self.member);
        } else {
            self.pool.failed_to_settle(&self.member, fault);
        }
        Turn::Over(code)
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
