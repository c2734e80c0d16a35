//! The byte stream below HTTP/2: gathers small writes, and lets faults slip frames of their own in between.
//!
//! The `h2` crate neither changes SETTINGS mid-flight nor sends a chosen last stream id. So its frames are
//! followed here: ours go in at frame boundaries, and the acknowledgements of ours are taken out again.

mod frame;
mod scheme;
#[cfg(test)]
mod tests;

use bytes::{Buf, BytesMut};
use frame::{FRAME_HEADER_BYTES, FrameFollower, KIND_HEADERS, is_settings_ack, patch_max_streams};
pub(crate) use frame::{goaway, settings_max_streams};
use scheme::mend_scheme;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_util::io::{poll_read_buf, poll_write_buf};

const GATHER_BYTES: usize = 64 * 1024;
const READ_BYTES: usize = 32 * 1024;
const PREFACE_BYTES: usize = 24;
/// The largest frame that a peer may send, as no other limit is announced (RFC 9113, section 4.2).
const MAX_FRAME_BYTES: usize = 16 * 1024;

/// A byte stream that gathers writes and knows where HTTP/2 frames begin.
pub(crate) struct Wire<IO> {
    io: IO,
    shared: Arc<Shared>,
    out: BytesMut,
    outbound: FrameFollower,
    first_limit: Option<u32>,
    inbox: BytesMut,
    deliverable: usize,
    inbound_rest: usize,
    mends_scheme: bool,
    shut: bool,
}

#[derive(Default)]
struct Shared {
    corked: AtomicBool,
    finishing: AtomicBool,
    has_injected: AtomicBool,
    acknowledged: AtomicU32,
    injected: Mutex<Vec<u8>>,
}

/// The driver's hand on a wire that the HTTP/2 connection owns.
#[derive(Clone)]
pub(crate) struct WireHandle(Arc<Shared>);

impl WireHandle {
    /// While corked nothing is read and nothing flushed; whoever corks polls once more after uncorking.
    pub(crate) fn cork(&self, corked: bool) {
        self.0.corked.store(corked, Ordering::Relaxed);
    }

    /// Queues a whole frame to be written at the next frame boundary.
    pub(crate) fn inject(&self, frame: &[u8]) {
        let mut injected = self.0.injected.lock().unwrap_or_else(PoisonError::into_inner);
        injected.extend_from_slice(frame);
        self.0.has_injected.store(true, Ordering::Relaxed);
    }

    /// Ends the stream in good order: flushes, closes the write half, reads the peer out, then reports EOF.
    pub(crate) fn finish(&self) {
        self.0.finishing.store(true, Ordering::Relaxed);
    }

    /// Returns how many SETTINGS frames the peer has acknowledged, the handshake's included.
    pub(crate) fn acknowledged(&self) -> u32 {
        self.0.acknowledged.load(Ordering::Relaxed)
    }
}

impl<IO: AsyncRead + AsyncWrite + Unpin> Wire<IO> {
    /// Wraps a stream; `first_limit` replaces the stream limit in the first SETTINGS frame.
    pub(crate) fn new(io: IO, first_limit: Option<u32>) -> (Self, WireHandle) {
        let shared = Arc::new(Shared::default());
        let wire = Self {
            io,
            shared: Arc::clone(&shared),
            out: BytesMut::with_capacity(READ_BYTES),
            outbound: FrameFollower::default(),
            first_limit,
            inbox: BytesMut::with_capacity(READ_BYTES),
            deliverable: 0,
            inbound_rest: PREFACE_BYTES,
            mends_scheme: false,
            shut: false,
        };
        (wire, WireHandle(shared))
    }

    /// Takes the colon out of a `:scheme` of "https:" before the HTTP/2 connection sees it.
    pub(crate) fn mending_scheme(self, mends_scheme: bool) -> Self {
        Self { mends_scheme, ..self }
    }

    fn take_injected(&mut self) {
        if !self.shared.has_injected.load(Ordering::Relaxed) || !self.outbound.at_boundary() {
            return;
        }
        let mut injected = self.shared.injected.lock().unwrap_or_else(PoisonError::into_inner);
        self.out.extend_from_slice(&injected);
        injected.clear();
        self.shared.has_injected.store(false, Ordering::Relaxed);
    }

    fn poll_drain(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if let Some(limit) = self.first_limit
            && patch_max_streams(&mut self.out, limit)
        {
            self.first_limit = None;
        }
        while self.out.has_remaining() {
            if ready!(poll_write_buf(Pin::new(&mut self.io), cx, &mut self.out))? == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
        }
        Poll::Ready(Ok(()))
    }

    fn poll_drain_and_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.take_injected();
        ready!(self.poll_drain(cx))?;
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_finish(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.shut {
            ready!(self.poll_drain_and_flush(cx))?;
            ready!(Pin::new(&mut self.io).poll_shutdown(cx))?;
            self.shut = true;
        }
        loop {
            self.inbox.clear();
            self.inbox.reserve(READ_BYTES);
            if ready!(poll_read_buf(Pin::new(&mut self.io), cx, &mut self.inbox))? == 0 {
                return Poll::Ready(Ok(()));
            }
        }
    }

    fn poll_fill(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.deliverable == 0 {
            self.inbox.reserve(READ_BYTES);
            if ready!(poll_read_buf(Pin::new(&mut self.io), cx, &mut self.inbox))? == 0 {
                self.deliverable = self.inbox.len();
                break;
            }
            self.follow_inbound();
        }
        Poll::Ready(Ok(()))
    }

    /// Finds frame boundaries in what was read; an incomplete frame header is held back, and so is an incomplete
    /// HEADERS frame that may have to be mended.
    fn follow_inbound(&mut self) {
        let mut position = self.deliverable;
        loop {
            let step = self.inbound_rest.min(self.inbox.len() - position);
            position += step;
            self.inbound_rest -= step;
            let Some(&header) = self.inbox[position..].first_chunk::<FRAME_HEADER_BYTES>() else { break };
            let payload_bytes = u32::from_be_bytes([0, header[0], header[1], header[2]]) as usize;
            if is_settings_ack(&header) && self.take_acknowledgement() {
                self.inbox.copy_within(position + FRAME_HEADER_BYTES.., position);
                self.inbox.truncate(self.inbox.len() - FRAME_HEADER_BYTES);
                continue;
            }
            let frame_bytes = FRAME_HEADER_BYTES + payload_bytes;
            if self.mends_scheme && header[3] == KIND_HEADERS && payload_bytes <= MAX_FRAME_BYTES {
                let Some(frame) = self.inbox[position..].get_mut(..frame_bytes) else { break };
                mend_scheme(header[4], &mut frame[FRAME_HEADER_BYTES..]);
            }
            self.inbound_rest = frame_bytes;
        }
        self.deliverable = position;
    }

    /// The first acknowledgement answers the handshake; all later ones answer injected frames.
    fn take_acknowledgement(&mut self) -> bool {
        self.shared.acknowledged.fetch_add(1, Ordering::Relaxed) > 0
    }
}

impl<IO: AsyncRead + AsyncWrite + Unpin> AsyncRead for Wire<IO> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if this.shared.corked.load(Ordering::Relaxed) {
            return Poll::Pending;
        }
        if this.shared.finishing.load(Ordering::Relaxed) {
            return this.poll_finish(cx);
        }
        ready!(this.poll_fill(cx))?;
        let step = this.deliverable.min(buffer.remaining());
        buffer.put_slice(&this.inbox[..step]);
        this.inbox.advance(step);
        this.deliverable -= step;
        Poll::Ready(Ok(()))
    }
}

impl<IO: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Wire<IO> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = &mut *self;
        if this.out.len() >= GATHER_BYTES {
            ready!(this.poll_drain(cx))?;
        }
        this.take_injected();
        this.outbound.follow(bytes);
        this.out.extend_from_slice(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.shared.corked.load(Ordering::Relaxed) {
            return Poll::Ready(Ok(()));
        }
        self.poll_drain_and_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_drain_and_flush(cx))?;
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}
