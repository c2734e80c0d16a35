//! Reads frames with a maximum length and a deadline, within the memory budget of all bodies.

use std::sync::Arc;
use std::time::Duration;

use stentor_wire::DocumentLimits;
use stentor_wire::frame::Frames;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::time::{Instant, timeout_at};

use crate::contract::{ErrorCode, Problem, ServiceResult};
use crate::face::http::no_room;
use crate::owner::Owner;
use crate::shares::{SharePart, Shares};

/// Size of the read buffer.
const READ_BYTES: usize = 8 << 10;
/// Maximum size of the buffer that a connection keeps for its next frame.
const KEPT_BYTES: usize = 64 << 10;

/// Limits of a frame.
#[derive(Debug, Clone)]
pub(super) struct FrameLimits {
    /// Maximum length of a payload.
    pub(super) max_bytes: usize,
    /// Maximum time from the first byte to the last.
    pub(super) timeout: Duration,
    /// Memory budget of all bodies.
    pub(super) bodies: Arc<Shares>,
    /// Owner that the memory is charged to.
    pub(super) owner: Owner,
}

/// A payload with its reserved memory.
pub(super) struct Framed {
    pub(super) payload: Vec<u8>,
    pub(super) room: SharePart,
}

/// Reads frames from a stream.
pub(super) struct FrameReader<R> {
    stream: R,
    limits: FrameLimits,
    frames: Frames,
    room: SharePart,
    /// Buffered bytes with reserved memory.
    counted_bytes: usize,
    /// Deadline of an incomplete frame.
    deadline: Option<Instant>,
    piece: Box<[u8]>,
}

impl<R: AsyncRead + Unpin> FrameReader<R> {
    /// Creates a reader for the frames after the hello.
    pub(super) fn new(stream: R, limits: FrameLimits) -> Self {
        let (frames, room) = (frames(&limits), limits.bodies.part(limits.owner));
        let piece = vec![0; READ_BYTES].into_boxed_slice();
        Self { stream, limits, frames, room, counted_bytes: 0, deadline: None, piece }
    }

    /// Returns the next frame; `None` if the peer has closed or lost the connection.
    pub(super) async fn next(&mut self) -> ServiceResult<Option<Framed>> {
        loop {
            if let Some(payload) = self.frames.frame().map_err(|_| self.too_large())? {
                return Ok(Some(self.framed(payload)));
            }
            if !self.receive().await? {
                return Ok(None);
            }
            self.take_room()?;
        }
    }

    /// Discards further input, so that closing does not destroy the last reply for a peer that is still writing.
    pub(super) async fn drain(&mut self) {
        while matches!(self.stream.read(&mut self.piece).await, Ok(1..)) {}
    }

    async fn receive(&mut self) -> ServiceResult<bool> {
        let reading = self.stream.read(&mut self.piece);
        let read = if self.frames.waiting_bytes() == 0 {
            reading.await
        } else {
            let deadline = *self.deadline.get_or_insert_with(|| Instant::now() + self.limits.timeout);
            timeout_at(deadline, reading).await.map_err(|_| too_slow(self.limits.timeout))?
        };
        let count = read.unwrap_or_default();
        self.frames.feed(&self.piece[..count]);
        Ok(count > 0)
    }

    fn take_room(&mut self) -> ServiceResult<()> {
        let more = self.frames.waiting_bytes().saturating_sub(self.counted_bytes);
        self.room.grow(more).map_err(no_room)?;
        self.counted_bytes += more;
        Ok(())
    }

    fn framed(&mut self, payload: Vec<u8>) -> Framed {
        let room = std::mem::replace(&mut self.room, self.limits.bodies.part(self.limits.owner));
        (self.counted_bytes, self.deadline) = (0, None);
        if payload.len() > KEPT_BYTES && self.frames.waiting_bytes() == 0 {
            self.frames = frames(&self.limits);
        }
        Framed { payload, room }
    }

    fn too_large(&self) -> Problem {
        let max_bytes = self.limits.max_bytes;
        Problem::new(ErrorCode::PayloadTooLarge, format!("a frame may have at most {max_bytes} bytes here"))
    }
}

fn frames(limits: &FrameLimits) -> Frames {
    Frames::new(DocumentLimits { document_max_bytes: limits.max_bytes, ..DocumentLimits::default() })
}

fn too_slow(timeout: Duration) -> Problem {
    let seconds = timeout.as_secs();
    Problem::new(ErrorCode::RequestTimeout, format!("the frame did not come within {seconds} seconds"))
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncWriteExt, duplex};

    use super::*;

    fn limits(bodies: usize) -> FrameLimits {
        let bodies = Shares::new(bodies, 100, 1);
        FrameLimits { max_bytes: 100_000, timeout: Duration::from_secs(10), bodies, owner: Owner::Operator }
    }

    #[tokio::test(start_paused = true)]
    async fn a_frame_that_comes_byte_by_byte_must_be_whole_in_time() {
        let (mut peer, stream) = duplex(64);
        let mut reader = FrameReader::new(stream, limits(1_000_000));
        let slow = async {
            loop {
                peer.write_all(&[0]).await.expect("written");
                tokio::time::sleep(Duration::from_secs(4)).await;
                if peer.write_all(&[0, 0, 9]).await.is_err() {
                    return;
                }
                tokio::time::sleep(Duration::from_secs(20)).await;
            }
        };
        let read = tokio::select! { read = reader.next() => read, () = slow => panic!("ended") };
        assert_eq!(read.err().expect("refused").code, ErrorCode::RequestTimeout);
    }

    #[tokio::test]
    async fn bytes_of_a_frame_are_taken_from_what_all_share_and_given_back() {
        let (mut peer, stream) = duplex(1 << 20);
        let limits = limits(50_000);
        let mut reader = FrameReader::new(stream, limits.clone());
        let frame = stentor_wire::frame::write(&[7; 40_000]).expect("a frame");
        peer.write_all(&frame).await.expect("written");
        let framed = reader.next().await.expect("room").expect("a frame");
        assert_eq!((framed.payload.len(), limits.bodies.taken()), (40_000, 40_004));
        peer.write_all(&frame).await.expect("written");
        let refused = reader.next().await.err().expect("no room");
        assert_eq!(refused.code, ErrorCode::Unavailable);
        drop((framed, reader));
        assert_eq!(limits.bodies.taken(), 0);
    }

    #[tokio::test]
    async fn a_length_above_the_limit_is_refused_before_its_bytes_come() {
        let (mut peer, stream) = duplex(64);
        let mut reader = FrameReader::new(stream, limits(1_000_000));
        peer.write_all(&u32::MAX.to_be_bytes()).await.expect("written");
        assert_eq!(reader.next().await.err().expect("refused").code, ErrorCode::PayloadTooLarge);
    }
}
