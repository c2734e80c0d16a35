//! The body of a request as seen by all routes: it arrives within the deadline or ends with a refusal, and each byte is charged to an owner
//! as it arrives.

use std::error::Error;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::{Body, HttpBody as _};
use axum::http::request::Parts;
use bytes::Bytes;
use futures_util::{Stream, StreamExt as _};
use tokio::time::{Instant, Sleep, sleep_until};

use super::request_permit::RequestPermit;
use super::unread_body::UnreadBody;
use crate::contract::{ErrorCode, Problem};
use crate::face::request_limits::RequestLimits;

/// The way in which a body is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BodyRule {
    /// As a whole, within the deadline, and kept until the response.
    Whole,
    /// Piece by piece, by an authenticated caller and without keeping the pieces.
    Streamed,
}

/// A body that is being received.
struct LimitedBody {
    pieces: UnreadBody,
    permit: RequestPermit,
    rule: BodyRule,
    deadline: Instant,
    seconds: u64,
    /// Deadline timer, set while the server waits for a piece.
    too_late: Option<Pin<Box<Sleep>>>,
    is_over: bool,
}

/// Applies the limits to a body. An empty body needs none.
pub(super) fn limited(
    parts: &Parts,
    body: Body,
    permit: &RequestPermit,
    rule: BodyRule,
    limits: &RequestLimits,
) -> Body {
    if body.is_end_stream() {
        return body;
    }
    Body::from_stream(LimitedBody {
        pieces: UnreadBody::new(body, parts.version, &parts.headers),
        permit: permit.clone(),
        rule,
        deadline: Instant::now() + limits.body_timeout,
        seconds: limits.body_timeout.as_secs(),
        too_late: None,
        is_over: false,
    })
}

/// Returns the reason for the early end of a body: the exceeded limit, or a broken connection.
pub(in crate::face) fn problem_of(error: axum::Error) -> Problem {
    // Each layer around a body wraps its errors once more.
    let mut cause: Option<&(dyn Error + 'static)> = Some(&error);
    while let Some(one) = cause {
        if let Some(problem) = one.downcast_ref::<Problem>() {
            return problem.clone();
        }
        cause = one.source();
    }
    Problem::new(ErrorCode::InvalidRequest, "the body broke off")
}

impl LimitedBody {
    fn came(&mut self, piece: &Bytes) -> Result<(), Problem> {
        match self.rule {
            BodyRule::Whole => self.permit.came(piece.len()),
            BodyRule::Streamed if self.permit.has_name() => Ok(()),
            BodyRule::Streamed => Err(Problem::new(ErrorCode::Unauthorized, "the request has no API key")),
        }
    }

    fn awaited(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Problem>> {
        if self.rule == BodyRule::Streamed {
            return Poll::Pending;
        }
        self.permit.await_body()?;
        let deadline = self.deadline;
        let too_late = self.too_late.get_or_insert_with(|| Box::pin(sleep_until(deadline)));
        too_late.as_mut().poll(context).map(|()| {
            let detail = format!("the body did not come within {} seconds", self.seconds);
            Err(Problem::new(ErrorCode::RequestTimeout, detail))
        })
    }
}

impl Stream for LimitedBody {
    type Item = Result<Bytes, axum::Error>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.is_over {
            return Poll::Ready(None);
        }
        let found = match self.pieces.poll_next_unpin(context) {
            Poll::Ready(None) => None,
            Poll::Ready(Some(Err(error))) => Some(Err(error)),
            Poll::Ready(Some(Ok(piece))) => match self.came(&piece) {
                Ok(()) => return Poll::Ready(Some(Ok(piece))),
                Err(problem) => Some(Err(axum::Error::new(problem))),
            },
            Poll::Pending => match self.awaited(context) {
                Poll::Pending | Poll::Ready(Ok(())) => return Poll::Pending,
                Poll::Ready(Err(problem)) => Some(Err(axum::Error::new(problem))),
            },
        };
        self.is_over = true;
        self.permit.body_came();
        Poll::Ready(found)
    }
}
