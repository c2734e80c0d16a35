//! The seam between framing and meaning: what a connection asks of whoever answers its requests.

use super::answer::{EncodedAnswer, When};
use super::field::Field;
use std::task::{Context, Poll};
use stentor_http2_codec::frame::ErrorCode;
use tokio::time::Instant;

/// Answers the requests of one connection.
pub(crate) trait Host {
    /// What is gathered of a request while it is read; used again for later requests.
    type Draft: Default;

    /// What is kept of a request whose answer has to wait; dropped when the peer gives the stream up before.
    type Waiting;

    /// The largest body that is kept, in bytes; of a larger one nothing is.
    const MAX_BODY_BYTES: usize;

    /// Starts on what was read at one time.
    fn begin_batch(&mut self, _now: Instant) {}

    /// Decides about a stream that is opened while others are open; the draft is cleared for it.
    fn admit(&mut self, draft: &mut Self::Draft, in_excess: bool) -> Admission;

    /// Takes a header field.
    fn field(&mut self, draft: &mut Self::Draft, field: &Field<'_>);

    /// Answers a whole request.
    fn answer(&mut self, draft: &mut Self::Draft, body: RequestBody<'_>, answer: &mut EncodedAnswer) -> When;

    /// Notes that the answer just given has to wait, and that the draft is needed no more.
    fn waits(&mut self, draft: &mut Self::Draft) -> Self::Waiting;

    /// Notes that an answer that had to wait is about to leave.
    fn leaves(&mut self, waiting: Self::Waiting);

    /// Ends what was read at one time, before any of its answers is written.
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

/// What becomes of a stream that is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    Take,
    Reset(ErrorCode),
    /// It is above a GOAWAY's last stream id: nothing is said about it any more.
    Ignore,
}

/// What a host wants of its connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// Announces another stream limit.
    Announce(u32),
    /// Answers everything that waits to be released.
    Release,
    /// Sends GOAWAY.
    Leave { code: ErrorCode, debug: Vec<u8>, then: GoAwayEnd },
}

/// What follows a GOAWAY.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GoAwayEnd {
    /// Streams that are open are answered, then the connection is closed.
    Drain,
    /// The connection is closed at once.
    Close,
    /// Streams that are open are answered and the connection stays open.
    Linger,
}
