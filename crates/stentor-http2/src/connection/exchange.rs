//! One open stream until its answer is complete.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use h2::RecvStream;
use h2::client::ResponseFuture;
use http::response::Parts;

use super::streams::Key;
use crate::batch::Response;
use crate::limits::Limits;

/// How an exchange ended.
pub(super) enum End {
    Answered(Response),
    Failed(h2::Error),
}

/// Waits for the head of an answer, then reads its body to the end.
pub(super) struct Exchange {
    key: Key,
    phase: Phase,
    keep_max_bytes: usize,
    drain_max_bytes: usize,
}

enum Phase {
    Head(ResponseFuture),
    Body(Box<Body>),
    Over,
}

struct Body {
    head: Parts,
    stream: RecvStream,
    kept: BytesMut,
    read: usize,
}

impl Exchange {
    pub(super) fn new(key: Key, answer: ResponseFuture, limits: &Limits) -> Self {
        let (keep_max_bytes, drain_max_bytes) = (limits.max_reply_body_bytes, limits.max_reply_drain_bytes);
        Self { key, phase: Phase::Head(answer), keep_max_bytes, drain_max_bytes }
    }

    fn poll_end(&mut self, cx: &mut Context<'_>) -> Poll<End> {
        if let Phase::Head(answer) = &mut self.phase {
            let (head, stream) = match ready!(Pin::new(answer).poll(cx)) {
                Ok(response) => response.into_parts(),
                Err(cause) => return Poll::Ready(End::Failed(cause)),
            };
            if stream.is_end_stream() {
                return Poll::Ready(End::Answered(response(head, Bytes::new(), false)));
            }
            let body = Body { head, stream, kept: BytesMut::new(), read: 0 };
            self.phase = Phase::Body(Box::new(body));
        }
        let Phase::Body(body) = &mut self.phase else { return Poll::Pending };
        let complete = ready!(body.poll_read(cx, self.keep_max_bytes, self.drain_max_bytes));
        let Phase::Body(body) = std::mem::replace(&mut self.phase, Phase::Over) else { return Poll::Pending };
        Poll::Ready(End::Answered(response(body.head, body.kept.freeze(), !complete)))
    }
}

impl Future for Exchange {
    type Output = (Key, End);

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let end = ready!(self.poll_end(cx));
        Poll::Ready((self.key, end))
    }
}

impl Body {
    /// Reads on; tells at the end whether all of the body was kept.
    fn poll_read(&mut self, cx: &mut Context<'_>, keep: usize, drain: usize) -> Poll<bool> {
        loop {
            let data = match ready!(self.stream.poll_data(cx)) {
                Some(Ok(data)) => data,
                // The status has come: broken off or not, this is an answer.
                Some(Err(_)) => return Poll::Ready(false),
                None => return Poll::Ready(self.read <= keep),
            };
            let _ = self.stream.flow_control().release_capacity(data.len());
            self.read += data.len();
            let wanted = data.len().min(keep - self.kept.len());
            self.kept.extend_from_slice(&data[..wanted]);
            if self.read > drain {
                return Poll::Ready(false);
            }
        }
    }
}

fn response(head: Parts, body: Bytes, truncated: bool) -> Response {
    Response { status: head.status.as_u16(), headers: head.headers, body, truncated }
}
