//! Memory of outgoing replies, charged to the owner until the last byte is sent, in any buffer.

use axum::body::{Body, HttpBody as _};
use axum::response::Response;
use bytes::Bytes;
use futures_util::FutureExt as _;
use http_body_util::{BodyExt as _, Full};

use super::request_permit::RequestPermit;
use crate::shares::SharePart;

/// Minimum size of a counted reply. Shorter ones take less memory than their request.
const COUNTED_MIN_BYTES: u64 = 1_024;

/// Marks a reply with bytes that are part of the program and take no memory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StaticReply;

/// The bytes of a reply and their reserved room.
struct HeldBytes {
    bytes: Bytes,
    _room: SharePart,
}

/// Ties the room of a reply to its bytes. A reply that is produced while it is sent has no length, and holds at most a piece.
pub(super) fn held(permit: &RequestPermit, answer: Response) -> Response {
    let length = answer.body().size_hint().exact().filter(|bytes| *bytes >= COUNTED_MIN_BYTES);
    if length.is_none() || answer.extensions().get::<StaticReply>().is_some() {
        return answer;
    }
    let (head, body) = answer.into_parts();
    // A body with a length is complete, so this never waits.
    let Some(Ok(whole)) = body.collect().now_or_never() else {
        tracing::error!("a reply has a length and is not there");
        return Response::from_parts(head, Body::empty());
    };
    let trailers = whole.trailers().cloned();
    let bytes = whole.to_bytes();
    let room = permit.room_of_reply(bytes.len());
    let bytes = Bytes::from_owner(HeldBytes { bytes, _room: room });
    let body = match trailers {
        None => Body::from(bytes),
        Some(trailers) => Body::new(Full::new(bytes).with_trailers(async { Some(Ok(trailers)) })),
    };
    Response::from_parts(head, body)
}

impl AsRef<[u8]> for HeldBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}
