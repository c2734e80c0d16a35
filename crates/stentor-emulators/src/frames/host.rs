//! The interface between framing and meaning: the calls of a connection to the host that answers its requests.

use super::answer::{EncodedAnswer, When};
use super::field::Field;
use std::task::{Context, Poll};
use stentor_http2_codec::frame::ErrorCode;
use tokio::time::Instant;

/// Answers the requests of one connection.
pub(crate) trait Host {
    /// The state of a request while it is read; reused for later requests.
    type Draft: Default;

    /// The state kept for a request with a delayed response. Dropped if the peer gives up the stream before.
    type Waiting;

    /// The largest body that is kept, in bytes. Nothing is kept of a larger one.
    const MAX_BODY_BYTES: usize;

    /// Begins a batch of requests that were read together.
    fn begin_batch(&mut self, _now: Instant) {}

    /// Decides on a stream that is opened while others are open. The draft is cleared for it.
    fn admit(&mut self, draft: &mut Self::Draft, in_excess: bool) -> Admission;

    /// Receives a header field.
    fn field(&mut self, draft: &mut Self::Draft, field: &Field<'_>);

    /// Answers a whole request.
    fn answer(&mut self, draft: &mut Self::Draft, body: RequestBody<'_>, answer: &mut EncodedAnswer) -> When;

    /// Called when the response just given must wait. The draft is needed no longer.
    fn waits(&mut self, draft: &mut Self::Draft) -> Self::Waiting;

    /// Called when a delayed response is about to be sent.
    fn leaves(&mut self, waiting: Self::Waiting);

    /// Ends a batch of requests that were read together, before any of their responses is written.
    fn end_batch(&mut self) {}

    /// Returns the next order for the connection.
    fn poll_order(&mut self, _cx: &mut Context<'_>) -> Poll<Order> {
        Poll::Pending
    }
}

/// A request's body.
#[derive(Clone, Copy)]
pub(crate) enum RequestBody<'a> {
    Whole(&'a [u8]),
    TooLarge,
}

/// The decision on a stream that is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    Take,
    Reset(ErrorCode),
    /// The stream is above a GOAWAY's last stream id and gets no response.
    Ignore,
}

/// An order from a host to its connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// Announces another stream limit.
    Announce(u32),
    /// Answers everything that waits to be released.
    Release,
    /// Sends GOAWAY.
    Leave { code: ErrorCode, debug: Vec<u8>, then: GoAwayEnd },
}

/// The behaviour after a GOAWAY.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GoAwayEnd {
    /// Streams that are open are answered, then the connection is closed.
    Drain,
    /// The connection is closed at once.
    Close,
    /// Streams that are open are answered and the connection stays open.
    Linger,
}
