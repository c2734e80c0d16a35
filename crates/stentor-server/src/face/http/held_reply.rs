//! A reply on its way out: the room that it takes is its owner's until the last of its bytes is gone, whichever buffer has them.

use axum::body::{Body, HttpBody as _};
use axum::response::Response;
use bytes::Bytes;
use futures_util::FutureExt as _;
use http_body_util::{BodyExt as _, Full};

use super::request_permit::RequestPermit;
use crate::shares::SharePart;

/// Shorter replies are not counted: they take less than the request around them.
const COUNTED_MIN_BYTES: u64 = 1_024;

/// Marks a reply whose bytes are the program's own, and take nothing.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StaticReply;

/// Bytes of a reply, and the room for them.
struct HeldBytes {
    bytes: Bytes,
    _room: SharePart,
}

/// Has a reply hold its room. One that is made while it is sent has no length yet, and holds no more than a piece.
pub(super) fn held(permit: &RequestPermit, answer: Response) -> Response {
    let length = answer.body().size_hint().exact().filter(|bytes| *bytes >= COUNTED_MIN_BYTES);
    if length.is_none() || answer.extensions().get::<StaticReply>().is_some() {
        return answer;
    }
    let (head, body) = answer.into_parts();
    // What has a length is there: nothing is waited for.
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
