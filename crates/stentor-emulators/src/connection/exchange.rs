//! One request and its answer on an HTTP/2 stream.

use crate::faults::{Faults, Stalls};
use crate::policy::Wait;
use crate::service::{Answer, Reply};
use bytes::{Bytes, BytesMut};
use futures_util::future::BoxFuture;
use h2::RecvStream;
use h2::server::SendResponse;
use http::Request;
use http::request::Parts;
use std::future::Future;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, ready};
use tokio::sync::watch;

/// A request that has been read to its end.
pub(super) struct Whole {
    pub(super) head: Parts,
    pub(super) body: Bytes,
    pub(super) body_too_large: bool,
    pub(super) number: u64,
    pub(super) respond: SendResponse<Bytes>,
}

/// Reads a request's body; `None` when the peer gave the stream up.
pub(super) struct Body {
    unread: Option<Unread>,
}

struct Unread {
    head: Parts,
    stream: RecvStream,
    respond: SendResponse<Bytes>,
    number: u64,
    max_bytes: usize,
    first: Bytes,
    gathered: BytesMut,
    too_large: bool,
}

impl Body {
    pub(super) fn new(
        request: Request<RecvStream>,
        respond: SendResponse<Bytes>,
        number: u64,
        max_bytes: usize,
    ) -> Self {
        let (head, stream) = request.into_parts();
        let (first, gathered) = (Bytes::new(), BytesMut::new());
        let too_large = false;
        Self { unread: Some(Unread { head, stream, respond, number, max_bytes, first, gathered, too_large }) }
    }

    pub(super) fn stream_id(&self) -> u32 {
        self.unread.as_ref().map_or(0, |unread| unread.stream.stream_id().as_u32())
    }

    pub(super) fn reset(mut self, reason: h2::Reason) {
        if let Some(unread) = &mut self.unread {
            unread.respond.send_reset(reason);
        }
    }
}

impl Future for Body {
    type Output = Option<Whole>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(unread) = &mut self.unread else { return Poll::Ready(None) };
        let complete = ready!(unread.poll_read(cx));
        Poll::Ready(self.unread.take().filter(|_| complete).map(Unread::into_whole))
    }
}

impl Unread {
    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<bool> {
        while !self.stream.is_end_stream() {
            match ready!(self.stream.poll_data(cx)) {
                Some(Ok(chunk)) => self.take(chunk),
                Some(Err(_)) => return Poll::Ready(false),
                None => break,
            }
        }
        Poll::Ready(true)
    }

    fn take(&mut self, chunk: Bytes) {
        // An error here means that the stream is gone, which the next read reports.
        let _ = self.stream.flow_control().release_capacity(chunk.len());
        let held = self.first.len() + self.gathered.len();
        if held + chunk.len() > self.max_bytes {
            self.too_large = true;
        } else if held == 0 {
            self.first = chunk;
        } else {
            self.gathered.extend_from_slice(&std::mem::take(&mut self.first));
            self.gathered.extend_from_slice(&chunk);
        }
    }

    fn into_whole(self) -> Whole {
        let body = if self.gathered.is_empty() { self.first } else { self.gathered.freeze() };
        let (head, number, respond) = (self.head, self.number, self.respond);
        Whole { head, body, body_too_large: self.too_large, number, respond }
    }
}

/// An answer that is not due yet; `None` when the peer gave the stream up meanwhile.
pub(super) type Waiting = BoxFuture<'static, Option<(Reply, SendResponse<Bytes>)>>;

/// Holds an answer back until it is due.
pub(super) fn wait(
    reply: Reply,
    mut respond: SendResponse<Bytes>,
    stalls: watch::Receiver<Stalls>,
) -> Waiting {
    let due = until(reply.wait, stalls);
    Box::pin(async move {
        let mut due = pin!(due);
        let in_time = std::future::poll_fn(|cx| {
            if due.as_mut().poll(cx).is_ready() {
                return Poll::Ready(true);
            }
            respond.poll_reset(cx).map(|_| false)
        });
        in_time.await.then_some((reply, respond))
    })
}

/// Waits until an answer is due.
pub(crate) fn until(
    wait: Wait,
    stalls: watch::Receiver<Stalls>,
) -> impl Future<Output = ()> + Send + 'static {
    // Registered before the first poll, so that a release in between is not missed.
    let released = Faults::released(stalls);
    async move {
        match wait {
            Wait::None => {}
            Wait::For(delay) => tokio::time::sleep(delay).await,
            Wait::Released => released.await,
        }
    }
}

/// Writes an answer: a response without a body ends with its HEADERS, a body is one DATA frame that ends it.
pub(super) fn write_answer(answer: Answer, mut respond: SendResponse<Bytes>) {
    match answer {
        Answer::Reset(reason) => respond.send_reset(reason),
        Answer::Response(response, body) => {
            let Ok(mut stream) = respond.send_response(response, body.is_empty()) else { return };
            if !body.is_empty() {
                // The peer may have gone; then there is nobody to tell.
                let _ = stream.send_data(body, true);
            }
        }
    }
}
