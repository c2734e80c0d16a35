//! One HTTP/2 connection: takes requests, has them answered, and plays the faults that belong to connections.

mod exchange;
mod leaving;
mod limits;

use crate::faults::Fault;
use crate::policy::{GoAway, Judge, OnExcess, Wait};
use crate::service::{Answer, Call, Reply, Service, WireTotals};
use crate::wire::{Wire, WireHandle};
use bytes::Bytes;
pub(crate) use exchange::until;
use exchange::{Body, Waiting, Whole, write_answer};
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt, StreamExt};
use h2::server::{Connection, SendResponse};
use h2::{Reason, RecvStream};
use http::Request;
use leaving::{Leave, Leaving};
use limits::StreamLimit;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::mpsc::UnboundedReceiver;

const STREAM_WINDOW_BYTES: u32 = 65_535;
const CONNECTION_WINDOW_BYTES: u32 = 4 * 1024 * 1024;
const HANDSHAKE_LIMIT: Duration = Duration::from_secs(10);
const MAX_RESET_STREAMS: usize = 10_000;
const APNS_TOO_MANY_STREAMS: (u32, &str) = (7, "Maximum active streams violated for this endpoint.");

/// Serves one connection to its end.
pub(crate) async fn serve<S: Service, IO>(service: Arc<S>, io: IO)
where
    IO: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let connection_number = WireTotals::add(&service.desk().wire.connections);
    let judge = service.desk().policy.judge();
    let first_limit = judge.policy.streams.as_ref().and_then(|streams| streams.initial);
    let (wire, handle) = Wire::new(io, first_limit);
    let wire = wire.mending_scheme(S::TAKES_SCHEME_WITH_COLON);
    let handshake = settings(&*service).handshake::<_, Bytes>(wire);
    let Ok(Ok(connection)) = tokio::time::timeout(HANDSHAKE_LIMIT, handshake).await else { return };
    let mut driver = Driver::new(service, connection, handle, judge, connection_number);
    std::future::poll_fn(|cx| driver.poll(cx)).await;
    driver.end_batch();
}

fn settings<S: Service>(service: &S) -> h2::server::Builder {
    let mut builder = h2::server::Builder::new();
    builder
        .initial_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .max_concurrent_streams(service.desk().max_concurrent_streams)
        .max_header_list_size(service.desk().max_header_list_bytes)
        .max_concurrent_reset_streams(MAX_RESET_STREAMS)
        .max_pending_accept_reset_streams(MAX_RESET_STREAMS);
    builder
}

struct Driver<S: Service, IO> {
    service: Arc<S>,
    connection: Connection<Wire<IO>, Bytes>,
    wire: WireHandle,
    session: S::Session,
    judge: Arc<Judge>,
    judge_version: u64,
    connection_number: u64,
    faults: UnboundedReceiver<Fault>,
    bodies: FuturesUnordered<Body>,
    waiting: FuturesUnordered<Waiting>,
    limit: StreamLimit,
    seen: u64,
    counted: u64,
    // Requests of the current run that are answered but still open for the peer: nothing is flushed while corked.
    answered: usize,
    last_processed_id: u32,
    leaving: Option<Leaving>,
    unprocessed: Vec<Body>,
    // Answers that a closed connection will never write; kept, because dropping them would reset their streams.
    lost: Vec<FuturesUnordered<Waiting>>,
}

impl<S: Service, IO: AsyncRead + AsyncWrite + Unpin> Driver<S, IO> {
    fn new(
        service: Arc<S>,
        connection: Connection<Wire<IO>, Bytes>,
        wire: WireHandle,
        judge: Arc<Judge>,
        connection_number: u64,
    ) -> Self {
        let desk = service.desk();
        Self {
            session: service.session(),
            judge_version: desk.policy.version(),
            faults: desk.faults.connect(),
            limit: StreamLimit::new(desk.max_concurrent_streams, judge.policy.streams.clone()),
            connection,
            wire,
            judge,
            connection_number,
            bodies: FuturesUnordered::new(),
            waiting: FuturesUnordered::new(),
            seen: 0,
            counted: 0,
            answered: 0,
            last_processed_id: 0,
            leaving: None,
            unprocessed: Vec::new(),
            lost: Vec::new(),
            service,
        }
    }

    /// Drives the connection; ready when it has ended.
    ///
    /// Requests that arrived together are taken with the wire corked, so that their answers leave together.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            self.wire.cork(false);
            self.poll_faults(cx);
            self.poll_answers(cx);
            match self.connection.poll_accept(cx) {
                Poll::Ready(Some(Ok((request, respond)))) => {
                    self.answered = 0;
                    self.take(cx, request, respond);
                }
                Poll::Ready(_) => return Poll::Ready(()),
                Poll::Pending => {
                    self.end_batch();
                    match self.poll_leaving(cx) {
                        Leave::Stay => return Poll::Pending,
                        Leave::PollAgain => continue,
                        Leave::Now => return Poll::Ready(()),
                    }
                }
            }
            self.wire.cork(true);
            while let Poll::Ready(Some(Ok((request, respond)))) = self.connection.poll_accept(cx) {
                self.take(cx, request, respond);
            }
        }
    }

    fn poll_faults(&mut self, cx: &mut Context<'_>) {
        while let Poll::Ready(Some(fault)) = self.faults.poll_recv(cx) {
            match fault {
                Fault::Streams { limit } => self.limit.announce(limit, &self.wire),
                Fault::Goaway { then, code } => self.leave(GoAway { then, code, ..GoAway::default() }),
                Fault::Stall { .. } | Fault::ResetNext { .. } => {}
            }
        }
    }

    fn poll_answers(&mut self, cx: &mut Context<'_>) {
        while let Poll::Ready(Some(body)) = self.bodies.poll_next_unpin(cx) {
            if let Some(whole) = body {
                self.answer(whole);
            }
        }
        while let Poll::Ready(Some(waited)) = self.waiting.poll_next_unpin(cx) {
            if let Some((reply, respond)) = waited {
                self.finish(reply, respond);
            }
        }
    }

    /// Takes a request that has just arrived.
    fn take(&mut self, cx: &mut Context<'_>, request: Request<RecvStream>, respond: SendResponse<Bytes>) {
        self.seen += 1;
        self.refresh_judge();
        self.limit.on_request(self.seen, &self.wire);
        let mut body = Body::new(request, respond, self.seen, S::MAX_BODY_BYTES);
        if self.is_above_goaway() {
            WireTotals::add(&self.service.desk().wire.unprocessed);
            self.unprocessed.push(body);
            return;
        }
        if let Some(reason) = self.reset_reason() {
            body.reset(reason);
            return;
        }
        self.last_processed_id = body.stream_id();
        match body.poll_unpin(cx) {
            Poll::Ready(Some(whole)) => self.answer(whole),
            Poll::Ready(None) => {}
            Poll::Pending => self.bodies.push(body),
        }
        self.leave_after_requests();
    }

    fn refresh_judge(&mut self) {
        let policy = &self.service.desk().policy;
        let version = policy.version();
        if version != self.judge_version {
            self.judge_version = version;
            self.judge = policy.judge();
            self.limit.set_policy(self.judge.policy.streams.clone());
        }
    }

    /// Decides whether this stream is reset before it is looked at.
    fn reset_reason(&mut self) -> Option<Reason> {
        let desk = self.service.desk();
        let open = self.bodies.len() + self.waiting.len() + self.answered;
        if self.limit.is_exceeded_by(open + 1) {
            WireTotals::add(&desk.wire.refused);
            if self.limit.on_excess() == OnExcess::GoAway {
                let (code, debug) = APNS_TOO_MANY_STREAMS;
                self.leave(GoAway { code, debug: debug.to_owned(), ..GoAway::default() });
            }
            return Some(Reason::REFUSED_STREAM);
        }
        let reason = desk.faults.take_reset()?;
        WireTotals::add(&desk.wire.resets);
        Some(reason)
    }

    fn answer(&mut self, whole: Whole) {
        let Whole { head, body, body_too_large, number, respond } = whole;
        let call = Call { head: &head, body: &body, body_too_large, number, judge: &self.judge };
        let mut reply = self.service.answer(&mut self.session, call);
        let faults = &self.service.desk().faults;
        if faults.is_stalled() {
            reply.wait = Wait::Released;
        }
        reply.settle_on_arrival(&*self.service, &self.judge);
        if reply.wait == Wait::None {
            self.finish(reply, respond);
        } else {
            self.waiting.push(exchange::wait(reply, respond, faults.watch()));
        }
    }

    fn finish(&mut self, mut reply: Reply, respond: SendResponse<Bytes>) {
        reply.settle(&*self.service);
        if let Some(accepted) = reply.accepts {
            self.limit.on_outcome(accepted, &self.wire);
        }
        if matches!(reply.answer, Answer::Reset(_)) {
            WireTotals::add(&self.service.desk().wire.resets);
        }
        self.answered += 1;
        write_answer(reply.answer, respond);
    }

    /// Closes the books on the requests that have arrived so far.
    fn end_batch(&mut self) {
        let new = self.seen - self.counted;
        self.service.desk().wire.requests.fetch_add(new, Ordering::Relaxed);
        self.counted = self.seen;
        self.limit.acknowledge(self.wire.acknowledged());
    }
}
