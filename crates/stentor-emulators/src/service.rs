//! The interface between framing and meaning: the reply of a protocol to one request.

mod host;
pub(crate) mod http1;

use crate::device::{Delivery, Devices};
use crate::faults::Faults;
use crate::frames::{self, ConnectionLimits};
use crate::listener::{ConnectionHandler, HttpIo};
use crate::observer::{AnswerTally, Observer};
use crate::policy::{Judge, LivePolicy, Wait};
use bytes::Bytes;
use http::Response;
use http::request::Parts;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use stentor_http2_codec::frame::ErrorCode;
use tokio_util::sync::CancellationToken;

/// One push service, as the connections see it.
pub(crate) trait EmulatedService: Send + Sync + 'static {
    /// The state of a connection between its requests.
    type Session: Send + Unpin;

    /// The largest request body that is read; more is cut off and reported as too large.
    const MAX_BODY_BYTES: usize;

    /// Accepts a `:scheme` of "https:", with a colon, as "https".
    const TAKES_SCHEME_WITH_COLON: bool = false;

    /// Passes the `:authority` of HTTP/2 on as the field `host`, as HTTP/1.1 names it.
    const KEEPS_AUTHORITY: bool = false;

    /// Starts a connection.
    fn session(&self) -> Self::Session;

    /// Decides the response to one request. Counts no outcome yet.
    fn answer(&self, session: &mut Self::Session, call: ServiceCall<'_>) -> ServiceReply;

    /// Counts and delivers.
    fn settle(&self, ticket: PendingCount);

    /// The state shared by all rooms.
    fn context(&self) -> &EmulatorContext;
}

/// A service as a port's connections reach it.
pub(crate) struct Served<S>(pub(crate) Arc<S>);

impl<S: EmulatedService> ConnectionHandler for Served<S> {
    async fn http2(self: Arc<Self>, io: impl HttpIo, stop: CancellationToken) {
        frames::serve(host::connection(Arc::clone(&self.0)), io, stop).await;
    }

    async fn http1(self: Arc<Self>, io: impl HttpIo) {
        http1::serve(Arc::clone(&self.0), io).await;
    }
}

/// One whole request.
pub(crate) struct ServiceCall<'a> {
    pub(crate) head: &'a Parts,
    pub(crate) body: &'a [u8],
    pub(crate) body_too_large: bool,
    /// The number of this request on its connection, from 1.
    pub(crate) number: u64,
    pub(crate) judge: &'a Judge,
}

/// The reply to a request, with its delay and its counts.
pub(crate) struct ServiceReply {
    pub(crate) answer: WireAnswer,
    pub(crate) wait: Wait,
    /// True if the reply accepts a message, false if it rejects one; `None` for other replies.
    pub(crate) accepts: Option<bool>,
    ticket: Option<PendingCount>,
    /// Further messages of the same request.
    others: Vec<PendingCount>,
}

/// The response on the wire.
pub(crate) enum WireAnswer {
    /// A response; an empty body means headers only.
    Response(Response<()>, Bytes),
    /// The stream ends with RST_STREAM.
    Reset(ErrorCode),
}

/// A count that is due when the message is accepted or rejected.
pub(crate) struct PendingCount {
    pub(crate) token_hash: u64,
    /// True if the attempt is counted already; otherwise it is counted with its outcome.
    pub(crate) attempt_counted: bool,
    pub(crate) tally: AnswerTally,
    pub(crate) delivery: Option<Box<Delivery>>,
}

impl PendingCount {
    /// Returns the same count for a message that is refused after all, and delivered nowhere.
    pub(crate) fn rejected(self) -> Self {
        Self { tally: AnswerTally::Rejected, delivery: None, ..self }
    }

    /// Counts the message, and delivers it if it was accepted.
    pub(crate) fn settle(self, context: &EmulatorContext, devices: &Devices) {
        context.count(&self);
        if let Some(delivery) = self.delivery {
            devices.deliver(*delivery);
        }
    }
}

impl ServiceReply {
    pub(crate) fn now(answer: WireAnswer) -> Self {
        Self::new(answer, Wait::None, None)
    }

    pub(crate) fn new(answer: WireAnswer, wait: Wait, ticket: Option<PendingCount>) -> Self {
        let accepts = ticket.as_ref().map(|ticket| ticket.tally != AnswerTally::Rejected);
        Self { answer, wait, accepts, ticket, others: Vec::new() }
    }

    /// Creates the reply to a request with any number of messages.
    pub(crate) fn counting(answer: WireAnswer, wait: Wait, others: Vec<PendingCount>) -> Self {
        Self { answer, wait, accepts: None, ticket: None, others }
    }

    /// Counts and delivers on arrival, even if the client disappears before the response: a push service does not forget a message that it
    /// has received. Only a stalled message may wait for its release.
    pub(crate) fn settle_on_arrival<S: EmulatedService>(&mut self, service: &S, judge: &Judge) {
        if self.wait != Wait::Released || judge.takes_over_stalled() {
            self.settle(service);
        }
    }

    /// Counts and delivers, unless that is done already.
    pub(crate) fn settle<S: EmulatedService>(&mut self, service: &S) {
        if let Some(ticket) = self.ticket.take() {
            service.settle(ticket);
        }
        for count in self.others.drain(..) {
            service.settle(count);
        }
    }
}

/// The state common to all emulators.
pub(crate) struct EmulatorContext {
    pub(crate) policy: LivePolicy,
    pub(crate) faults: Faults,
    pub(crate) observer: Option<Arc<Observer>>,
    pub(crate) wire: WireTotals,
    pub(crate) content: ContentTotals,
    pub(crate) limits: ConnectionLimits,
}

/// The number of an attempt at a token, from 1, or 0 if it is yet to be counted.
#[derive(Clone, Copy)]
pub(crate) struct TokenAttempt(pub(crate) u32);

impl TokenAttempt {
    pub(crate) fn ticket(
        self,
        token_hash: u64,
        tally: AnswerTally,
        delivery: Option<Box<Delivery>>,
    ) -> PendingCount {
        PendingCount { token_hash, attempt_counted: self.0 > 0, tally, delivery }
    }
}

impl EmulatorContext {
    pub(crate) fn new(policy: LivePolicy, observer: Option<Observer>, limits: ConnectionLimits) -> Arc<Self> {
        let (faults, observer) = (Faults::default(), observer.map(Arc::new));
        let (wire, content) = (WireTotals::default(), ContentTotals::default());
        Arc::new(Self { policy, faults, observer, wire, content, limits })
    }

    /// Counts an attempt at its arrival. If it is certain to be answered at once, it is counted with its outcome instead, which saves a
    /// table lookup for every request of a campaign.
    pub(crate) fn attempt(&self, judge: &Judge, token_hash: u64, may_wait: bool) -> TokenAttempt {
        let at_once = judge.is_trivial() && !may_wait && !self.faults.is_stalled();
        match &self.observer {
            Some(observer) if !at_once => TokenAttempt(observer.attempt(token_hash)),
            _ => TokenAttempt(0),
        }
    }

    /// Counts an outcome.
    pub(crate) fn count(&self, ticket: &PendingCount) {
        match &self.observer {
            Some(observer) if ticket.attempt_counted => observer.settle(ticket.token_hash, ticket.tally),
            Some(observer) => observer.attempt_and_settle(ticket.token_hash, ticket.tally),
            None => {}
        }
    }
}

/// Counts of events below the requests.
#[derive(Default)]
pub(crate) struct WireTotals {
    pub(crate) connections: AtomicU64,
    pub(crate) requests: AtomicU64,
    pub(crate) resets: AtomicU64,
    pub(crate) goaways: AtomicU64,
    pub(crate) unprocessed: AtomicU64,
    pub(crate) refused: AtomicU64,
}

/// Counts of the accepted messages whose content the emulator has tried to decrypt.
#[derive(Default)]
pub(crate) struct ContentTotals {
    pub(crate) decrypted: AtomicU64,
    pub(crate) undecryptable: AtomicU64,
}

impl WireTotals {
    pub(crate) fn add(counter: &AtomicU64) -> u64 {
        counter.fetch_add(1, Ordering::Relaxed) + 1
    }
}
