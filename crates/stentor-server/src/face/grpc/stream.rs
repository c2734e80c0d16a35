//! Streams of messages, in both directions.

use std::convert::Infallible;

use axum::body::Body;
use axum::response::Response;
use bytes::{Buf as _, Bytes, BytesMut};
use futures_util::StreamExt as _;
use futures_util::stream::{BoxStream, Fuse, unfold};
use http_body_util::BodyExt as _;
use tokio::sync::oneshot;

use super::encoding::MessageEncoding;
use super::frame::HEAD_BYTES;
use super::{reply, status};
use crate::contract::{ErrorCode, Problem, ServiceResult};

/// Responds with messages until the stream ends or one of them is a refusal. The trailers contain the final status.
pub(super) fn streamed(
    messages: BoxStream<'static, ServiceResult<Vec<u8>>>,
    encoding: MessageEncoding,
    request_id: String,
) -> Response {
    let (tell_ending, ending) = oneshot::channel();
    let message_stream =
        unfold((messages, Some((tell_ending, request_id))), async |(mut messages, teller)| {
            match messages.next().await? {
                Ok(message) => Some((message, (messages, teller))),
                Err(problem) => {
                    if let Some((tell_ending, request_id)) = teller {
                        let _nobody_may_listen = tell_ending.send(status::refused(&problem, &request_id));
                    }
                    None
                }
            }
        });
    let frames = message_stream.map(move |message| Ok::<_, Infallible>(encoding.framed(&message)));
    let trailers = async { Some(Ok(ending.await.unwrap_or_else(|_| status::served()))) };
    reply(Body::new(Body::from_stream(frames).with_trailers(trailers)), encoding)
}

/// The messages of a body. It buffers at most one message and one piece.
pub(super) struct Messages {
    pieces: Fuse<BoxStream<'static, ServiceResult<Bytes>>>,
    held: BytesMut,
    encoding: MessageEncoding,
    max_bytes: usize,
}

impl Messages {
    /// Reads messages of at most `max_bytes` after decompression.
    pub(super) fn of(
        pieces: BoxStream<'static, ServiceResult<Bytes>>,
        encoding: MessageEncoding,
        max_bytes: usize,
    ) -> Self {
        Self { pieces: pieces.fuse(), held: BytesMut::new(), encoding, max_bytes }
    }

    /// Returns the next message, or `None` at the end of the stream.
    pub(super) async fn next(&mut self) -> Option<ServiceResult<Bytes>> {
        loop {
            match self.take() {
                Ok(Some(message)) => return Some(Ok(message)),
                Ok(None) => {}
                Err(problem) => return Some(Err(problem)),
            }
            match self.pieces.next().await {
                Some(Ok(piece)) => self.held.extend_from_slice(&piece),
                Some(Err(problem)) => return Some(Err(problem)),
                None if self.held.is_empty() => return None,
                None => return Some(Err(broken_off())),
            }
        }
    }

    fn take(&mut self) -> ServiceResult<Option<Bytes>> {
        let Some(&[mark, ref length @ ..]) = self.held.first_chunk::<HEAD_BYTES>() else { return Ok(None) };
        let length = u32::from_be_bytes(*length) as usize;
        if length > self.max_bytes {
            let why = format!("a message may have at most {} bytes", self.max_bytes);
            return Err(Problem::new(ErrorCode::PayloadTooLarge, why));
        }
        if self.held.len() - HEAD_BYTES < length {
            return Ok(None);
        }
        self.held.advance(HEAD_BYTES);
        let message = self.held.split_to(length).freeze();
        self.encoding.read(mark, message, self.max_bytes, |_| Ok(())).map(Some)
    }
}

fn broken_off() -> Problem {
    Problem::new(ErrorCode::InvalidRequest, "the body ends within a message")
}

#[cfg(test)]
mod tests {
    use futures_util::stream::iter;

    use super::*;

    async fn all(pieces: &[&'static [u8]]) -> ServiceResult<Vec<Bytes>> {
        let pieces: Vec<_> = pieces.iter().map(|piece| Ok(Bytes::from_static(piece))).collect();
        let mut messages = Messages::of(iter(pieces).boxed(), MessageEncoding::Identity, 8);
        let mut found = Vec::new();
        while let Some(message) = messages.next().await {
            found.push(message?);
        }
        Ok(found)
    }

    #[tokio::test]
    async fn messages_are_found_wherever_the_pieces_are_cut() {
        let expected = Ok(vec![Bytes::from_static(b"ab"), Bytes::new(), Bytes::from_static(b"c")]);
        let whole = b"\0\0\0\0\x02ab\0\0\0\0\0\0\0\0\0\x01c";
        for cut in 0..whole.len() {
            let (first, second) = whole.split_at(cut);
            assert_eq!(all(&[first, second]).await, expected, "{cut}");
        }
        assert_eq!(all(&[]).await, Ok(Vec::new()));
        let nothing = futures_util::stream::unfold((), async |()| None);
        let mut messages = Messages::of(nothing.boxed(), MessageEncoding::Identity, 8);
        assert!(messages.next().await.is_none() && messages.next().await.is_none());
    }

    #[tokio::test]
    async fn a_length_that_lies_is_refused() {
        let code = async |bytes| all(&[bytes]).await.map_err(|problem| problem.code);
        assert_eq!(code(b"\0\xff\xff\xff\xffa").await, Err(ErrorCode::PayloadTooLarge));
        assert_eq!(code(b"\0\0\0\0\x03ab").await, Err(ErrorCode::InvalidRequest));
        assert_eq!(code(b"\0\0\0").await, Err(ErrorCode::InvalidRequest));
        assert_eq!(code(b"\x02\0\0\0\0").await, Err(ErrorCode::InvalidRequest));
    }
}
