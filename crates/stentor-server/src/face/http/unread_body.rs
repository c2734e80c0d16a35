//! The rest of a body that no reader wanted. A server that closes a connection with unread bytes can destroy the response for a client that
//! is still writing (RFC 9112, section 9.6), so the rest is received and discarded while the response is on its way.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Error;
use axum::body::{Body, BodyDataStream};
use axum::http::{HeaderMap, Version, header};
use bytes::Bytes;
use futures_util::{Stream, StreamExt as _};
use tokio::runtime::Handle;
use tokio::time::timeout;

/// Maximum duration and size of a discarded rest. The connection closes at either.
const DISCARD_MAX: Duration = Duration::from_secs(1);
const DISCARDED_MAX_BYTES: usize = 4 * 1_024 * 1_024;

/// The pieces of a body. The rest is discarded when it is dropped.
pub(super) struct UnreadBody {
    /// Empty once the body has ended.
    pieces: Option<BodyDataStream>,
    /// True if the client sends the rest without being asked for it.
    is_sent: bool,
}

impl UnreadBody {
    /// Wraps the body of a request with these headers. HTTP/2 ends a single stream and needs none of this.
    pub(super) fn new(body: Body, version: Version, headers: &HeaderMap) -> Self {
        let is_sent = version < Version::HTTP_2 && !headers.contains_key(header::EXPECT);
        Self { pieces: Some(body.into_data_stream()), is_sent }
    }
}

impl Stream for UnreadBody {
    type Item = Result<Bytes, Error>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let Some(pieces) = &mut self.pieces else { return Poll::Ready(None) };
        let polled = pieces.poll_next_unpin(context);
        if matches!(polled, Poll::Ready(None | Some(Err(_)))) {
            self.pieces = None;
        }
        polled
    }
}

impl Drop for UnreadBody {
    fn drop(&mut self) {
        if self.is_sent
            && let Some(pieces) = self.pieces.take()
            && let Ok(runtime) = Handle::try_current()
        {
            runtime.spawn(timeout(DISCARD_MAX, discard(pieces)));
        }
    }
}

async fn discard(mut pieces: BodyDataStream) {
    let mut left = DISCARDED_MAX_BYTES;
    while let Some(Ok(piece)) = pieces.next().await {
        let Some(rest) = left.checked_sub(piece.len()) else { return };
        left = rest;
    }
}
