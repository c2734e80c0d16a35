//! Messages that come one after the other.

use axum::body::{Body, BodyDataStream};
use bytes::{Buf as _, Bytes, BytesMut};
use futures_util::StreamExt as _;

use super::frame::{HEAD_BYTES, check_mark};
use crate::contract::{ErrorCode, Problem, ServiceResult};

/// The messages of a body, of which no more is held than one message and a piece.
pub(super) struct Messages {
    pieces: BodyDataStream,
    held: BytesMut,
    max_bytes: usize,
}

impl Messages {
    /// Reads messages of so many bytes at most.
    pub(super) fn of(body: Body, max_bytes: usize) -> Self {
        Self { pieces: body.into_data_stream(), held: BytesMut::new(), max_bytes }
    }

    /// Returns the next message; `None` when the caller has sent all.
    pub(super) async fn next(&mut self) -> Option<ServiceResult<Bytes>> {
        loop {
            match self.take() {
                Ok(Some(message)) => return Some(Ok(message)),
                Ok(None) => {}
                Err(problem) => return Some(Err(problem)),
            }
            match self.pieces.next().await {
                Some(Ok(piece)) => self.held.extend_from_slice(&piece),
                Some(Err(_)) => return Some(Err(broken_off())),
                None if self.held.is_empty() => return None,
                None => return Some(Err(broken_off())),
            }
        }
    }

    fn take(&mut self) -> ServiceResult<Option<Bytes>> {
        let Some(&[mark, ref length @ ..]) = self.held.first_chunk::<HEAD_BYTES>() else { return Ok(None) };
        check_mark(mark)?;
        let length = u32::from_be_bytes(*length) as usize;
        if length > self.max_bytes {
            let why = format!("a message may have at most {} bytes", self.max_bytes);
            return Err(Problem::new(ErrorCode::PayloadTooLarge, why));
        }
        if self.held.len() - HEAD_BYTES < length {
            return Ok(None);
        }
        self.held.advance(HEAD_BYTES);
        Ok(Some(self.held.split_to(length).freeze()))
    }
}

fn broken_off() -> Problem {
    Problem::new(ErrorCode::InvalidRequest, "the body broke off")
}
