//! A service behind frames: policies, counts, and the faults that belong to connections.

use super::{EmulatedService, ServiceCall, ServiceReply, WireAnswer, WireTotals};
use crate::faults::{Faults, InjectedFault};
use crate::frames::{self, Admission, Field, GoAwayEnd, HeaderKind, Host, Order, RequestBody, When};
use crate::policy::{AfterGoAway, GoAway, Judge, OnExcess, StreamLimitPolicy, Wait};
use futures_util::future::BoxFuture;
use http::header::HOST;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use stentor_http2_codec::frame::ErrorCode;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::Instant;

const APNS_TOO_MANY_STREAMS: (u32, &str) = (7, "Maximum active streams violated for this endpoint.");

/// One connection's face of a service.
pub(super) struct ServiceHost<S: EmulatedService> {
    service: Arc<S>,
    session: S::Session,
    judge: Arc<Judge>,
    judge_version: u64,
    connection_number: u64,
    faults: UnboundedReceiver<InjectedFault>,
    released: BoxFuture<'static, ()>,
    orders: VecDeque<Order>,
    seen: u64,
    counted: u64,
    leaving: bool,
    now: Instant,
}

/// A request while it is read, and the decision about it while its response waits.
#[derive(Default)]
pub(super) struct ServiceDraft {
    number: u64,
    malformed: bool,
    method: Vec<u8>,
    path: Vec<u8>,
    headers: HeaderMap,
    reply: Option<Box<ServiceReply>>,
}

/// Starts a connection to a service.
pub(super) fn connection<S: EmulatedService>(service: Arc<S>) -> frames::Connection<ServiceHost<S>> {
    let host = ServiceHost::new(service);
    let mut limits = host.service.context().limits;
    if let Some(first) = host.streams().and_then(|streams| streams.initial) {
        limits.max_concurrent_streams = first;
    }
    frames::Connection::new(host, limits)
}

impl<S: EmulatedService> ServiceHost<S> {
    fn new(service: Arc<S>) -> Self {
        let context = service.context();
        // Read before the judge: a policy that is set in between is fetched with the first request.
        let judge_version = context.policy.version();
        Self {
            session: service.session(),
            judge: context.policy.judge(),
            judge_version,
            connection_number: WireTotals::add(&context.wire.connections),
            faults: context.faults.connect(),
            released: Box::pin(Faults::released(context.faults.watch())),
            orders: VecDeque::new(),
            seen: 0,
            counted: 0,
            leaving: false,
            now: Instant::now(),
            service,
        }
    }

    fn streams(&self) -> Option<&StreamLimitPolicy> {
        self.judge.policy.streams.as_ref()
    }

    fn refresh_judge(&mut self) {
        let policy = &self.service.context().policy;
        let version = policy.version();
        if version != self.judge_version {
            self.judge_version = version;
            self.judge = policy.judge();
        }
    }

    /// Announces the limits that the policy has for this request.
    fn follow_steps(&mut self) {
        let Some(streams) = &self.judge.policy.streams else { return };
        let due = streams.steps.iter().filter(|step| step.after_requests == self.seen);
        self.orders.extend(due.map(|step| Order::Announce(step.limit)));
    }

    /// Announces the limit that follows an outcome.
    fn follow_outcome(&mut self, accepted: bool) {
        let usual = self.service.context().limits.max_concurrent_streams;
        let Some(streams) = self.streams() else { return };
        let limit = match (accepted, streams.after_reject) {
            (false, limit) => limit,
            (true, after_reject) => (streams.initial.is_some() || after_reject.is_some()).then_some(usual),
        };
        self.orders.extend(limit.map(Order::Announce));
    }

    fn planned_goaway(&self) -> Option<&GoAway> {
        let goaway = self.judge.policy.goaway.as_ref()?;
        goaway.connections.is_none_or(|limit| self.connection_number <= limit).then_some(goaway)
    }

    fn leave(&mut self, goaway: &GoAway) {
        if self.leaving {
            return;
        }
        self.leaving = true;
        WireTotals::add(&self.service.context().wire.goaways);
        let then = match goaway.then {
            AfterGoAway::Drain => GoAwayEnd::Drain,
            AfterGoAway::Close => GoAwayEnd::Close,
            AfterGoAway::Linger => GoAwayEnd::Linger,
        };
        let debug = goaway.debug.clone().into_bytes();
        self.orders.push_back(Order::Leave { code: ErrorCode(goaway.code), debug, then });
    }

    /// Queues a planned GOAWAY if `due` holds for it and the number of requests seen so far.
    fn leave_as_planned(&mut self, due: impl FnOnce(&GoAway, u64) -> bool) {
        let seen = self.seen;
        if let Some(goaway) = self.planned_goaway().filter(|goaway| due(goaway, seen)).cloned() {
            self.leave(&goaway);
        }
    }

    /// Turns a stream away before it is looked at.
    fn turn_away(&mut self, in_excess: bool) -> Option<Admission> {
        // The requests that stay unprocessed come behind the GOAWAY: it leaves before the first of them.
        self.leave_as_planned(|goaway, seen| seen > goaway.after_requests.saturating_sub(goaway.unprocessed));
        let service = Arc::clone(&self.service);
        let context = service.context();
        if self.leaving {
            WireTotals::add(&context.wire.unprocessed);
            return Some(Admission::Ignore);
        }
        if in_excess {
            WireTotals::add(&context.wire.refused);
            if self.streams().is_some_and(|streams| streams.on_excess == OnExcess::GoAway) {
                let (code, debug) = APNS_TOO_MANY_STREAMS;
                self.leave(&GoAway { code, debug: debug.to_owned(), ..GoAway::default() });
            }
            return Some(Admission::Reset(ErrorCode::REFUSED_STREAM));
        }
        let code = context.faults.take_reset()?;
        WireTotals::add(&context.wire.resets);
        Some(Admission::Reset(code))
    }

    /// Answers and counts a request; `None` if it is not a valid request.
    fn decide(&mut self, draft: &mut ServiceDraft, body: RequestBody<'_>) -> Option<ServiceReply> {
        let head = draft.take_head()?;
        // A body may arrive long after its head. Under a policy that is no longer in force it could stall without a later release.
        self.refresh_judge();
        let (body, body_too_large) = match body {
            RequestBody::Whole(body) => (body, false),
            RequestBody::TooLarge => (&[][..], true),
        };
        let call =
            ServiceCall { head: &head, body, body_too_large, number: draft.number, judge: &self.judge };
        let mut reply = self.service.answer(&mut self.session, call);
        if self.service.context().faults.is_stalled() {
            reply.wait = Wait::Released;
        }
        reply.settle_on_arrival(&*self.service, &self.judge);
        Some(reply)
    }

    fn finish(&mut self, mut reply: ServiceReply) {
        reply.settle(&*self.service);
        if let Some(accepted) = reply.accepts {
            self.follow_outcome(accepted);
        }
        if matches!(reply.answer, WireAnswer::Reset(_)) {
            WireTotals::add(&self.service.context().wire.resets);
        }
    }
}

impl<S: EmulatedService> Host for ServiceHost<S> {
    type Draft = ServiceDraft;
    type Waiting = Option<Box<ServiceReply>>;

    const MAX_BODY_BYTES: usize = S::MAX_BODY_BYTES;

    fn begin_batch(&mut self, now: Instant) {
        self.now = now;
    }

    fn admit(&mut self, draft: &mut ServiceDraft, in_excess: bool) -> Admission {
        self.seen += 1;
        self.refresh_judge();
        self.follow_steps();
        if let Some(turned_away) = self.turn_away(in_excess) {
            return turned_away;
        }
        // With none unprocessed, the GOAWAY is sent after the last accepted request.
        self.leave_as_planned(|goaway, seen| goaway.unprocessed == 0 && seen >= goaway.after_requests);
        draft.clear(self.seen);
        Admission::Take
    }

    fn field(&mut self, draft: &mut ServiceDraft, field: &Field<'_>) {
        let mended = S::TAKES_SCHEME_WITH_COLON && field.value == b"https:";
        if field.kind == HeaderKind::Scheme && !mended && !is_scheme(field.value) {
            draft.malformed = true;
        }
        if S::KEEPS_AUTHORITY && field.kind == HeaderKind::Authority {
            draft.take_authority(field);
        }
        draft.take_field(field);
    }

    fn answer(
        &mut self,
        draft: &mut ServiceDraft,
        body: RequestBody<'_>,
        answer: &mut frames::EncodedAnswer,
    ) -> When {
        let Some(reply) = self.decide(draft, body) else {
            answer.reset(ErrorCode::PROTOCOL_ERROR);
            return When::Now;
        };
        write(&reply.answer, answer);
        let when = match reply.wait {
            Wait::None => When::Now,
            // Counted from the read, not from now: requests that arrived together are due together.
            Wait::For(delay) => When::At(self.now + delay),
            Wait::Released => When::Released,
        };
        if when == When::Now {
            self.finish(reply);
        } else {
            // In a box, because nearly no draft ever holds one.
            draft.reply = Some(Box::new(reply));
        }
        when
    }

    fn waits(&mut self, draft: &mut ServiceDraft) -> Option<Box<ServiceReply>> {
        draft.reply.take()
    }

    fn leaves(&mut self, waiting: Option<Box<ServiceReply>>) {
        if let Some(reply) = waiting {
            self.finish(*reply);
        }
    }

    fn end_batch(&mut self) {
        // Once for each read: all connections share the counter.
        let new = self.seen - self.counted;
        self.service.context().wire.requests.fetch_add(new, Ordering::Relaxed);
        self.counted = self.seen;
    }

    fn poll_order(&mut self, cx: &mut Context<'_>) -> Poll<Order> {
        while let Poll::Ready(Some(fault)) = self.faults.poll_recv(cx) {
            match fault {
                InjectedFault::Streams { limit } => self.orders.push_back(Order::Announce(limit)),
                InjectedFault::Goaway { then, code } => {
                    self.leave(&GoAway { then, code, ..GoAway::default() })
                }
                InjectedFault::Stall { .. } | InjectedFault::ResetNext { .. } => {}
            }
        }
        if self.released.as_mut().poll(cx).is_ready() {
            self.released = Box::pin(Faults::released(self.service.context().faults.watch()));
            self.orders.push_back(Order::Release);
            // The next release is waited for by the poll that takes this order.
            cx.waker().wake_by_ref();
        }
        self.orders.pop_front().map_or(Poll::Pending, Poll::Ready)
    }
}

impl ServiceDraft {
    fn clear(&mut self, number: u64) {
        self.number = number;
        self.malformed = false;
        self.method.clear();
        self.path.clear();
        self.headers.clear();
        self.reply = None;
    }

    fn take_field(&mut self, field: &Field<'_>) {
        match field.kind {
            HeaderKind::Method => self.method.extend_from_slice(field.value),
            HeaderKind::Path => self.path.extend_from_slice(field.value),
            _ if field.name.starts_with(b":") => {}
            _ => {
                // Names and values that do not pass have made the request malformed already.
                let name = HeaderName::from_lowercase(field.name);
                if let (Ok(name), Ok(value)) = (name, HeaderValue::from_bytes(field.value)) {
                    self.headers.append(name, value);
                }
            }
        }
    }

    fn take_authority(&mut self, field: &Field<'_>) {
        if let Ok(authority) = HeaderValue::from_bytes(field.value) {
            self.headers.insert(HOST, authority);
        }
    }

    /// Builds the head of a request; `None` when scheme, method or path is invalid.
    fn take_head(&mut self) -> Option<http::request::Parts> {
        if self.malformed {
            return None;
        }
        let method = Method::from_bytes(&self.method).ok()?;
        let request = Request::builder().method(method).uri(self.path.as_slice());
        let (mut head, ()) = request.body(()).ok()?.into_parts();
        std::mem::swap(&mut head.headers, &mut self.headers);
        Some(head)
    }
}

/// Returns true if this is a scheme (RFC 3986, section 3.1).
fn is_scheme(text: &[u8]) -> bool {
    let allowed = |byte: &u8| byte.is_ascii_alphanumeric() || b"+-.".contains(byte);
    text.first().is_some_and(u8::is_ascii_alphabetic) && text.iter().all(allowed)
}

fn write(from: &WireAnswer, to: &mut frames::EncodedAnswer) {
    match from {
        WireAnswer::Reset(code) => to.reset(*code),
        WireAnswer::Response(response, body) => {
            to.status(response.status().as_u16());
            for (name, value) in response.headers() {
                to.field(name.as_str().as_bytes(), value.as_bytes());
            }
            to.body().extend_from_slice(body);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::apns::{self, ApnsConfig, ApnsOptions};
    use crate::policy::{Policy, Stall};
    use stentor_http2_codec::frame::PREFACE;

    fn frame(kind: u8, flags: u8, stream: u8, payload: &[u8]) -> Vec<u8> {
        [&[0, 0, payload.len() as u8, kind, flags, 0, 0, 0, stream], payload].concat()
    }

    /// A POST for a device; the token is a literal that no table keeps.
    fn head() -> Vec<u8> {
        let path = format!("/3/device/{}", "a".repeat(64));
        let topic = [&[0x00, 10][..], b"apns-topic", &[1], b"a"].concat();
        [&[0x83, 0x87, 0x04, path.len() as u8], path.as_bytes(), &topic].concat()
    }

    #[tokio::test]
    async fn a_body_that_comes_after_another_policy_is_answered_by_that() {
        let vendor = ApnsOptions { require_token: false, ..ApnsOptions::default() };
        let stall = Some(Stall { all: true, ..Stall::default() });
        let policy = Policy { stall, ..Policy::default() };
        let (_control, service) =
            apns::build(ApnsConfig { vendor, policy, ..ApnsConfig::default() }).expect("built");
        let mut connection = connection(Arc::clone(&service));
        let opened = [PREFACE.as_slice(), &frame(4, 0, 0, &[]), &frame(1, 4, 1, &head())].concat();
        connection.receive(&opened, Instant::now());
        connection.sent();
        service.context().policy.set(Policy::default()).expect("another policy");
        service.context().faults.release();
        connection.receive(&frame(0, 1, 1, b"{}"), Instant::now());
        let said = connection.out();
        assert_eq!((said.get(3), said.get(8)), (Some(&1), Some(&1)), "the answer's head: {said:?}");
    }
}
