//! The byte stream under HTTP/2: gathers small writes, and knows how far they went.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Bytes gathered before they are handed to TLS in one piece.
const WRITE_BUFFER_MAX_BYTES: usize = 64 * 1_024;

/// How many bytes went where, and a tap; shared with the connection's loop.
#[derive(Debug, Default)]
pub(crate) struct Gauge {
    taken: AtomicU64,
    offered: AtomicU64,
    read: AtomicU64,
    deaf: AtomicBool,
}

impl Gauge {
    /// Makes reading wait (without a wake-up), so that what is due is written before anything is heard.
    pub(crate) fn set_deaf(&self, deaf: bool) {
        self.deaf.store(deaf, Relaxed);
    }

    /// Counts bytes taken from HTTP/2 so far: a stream opened now begins at or after this offset.
    pub(crate) fn taken(&self) -> u64 {
        self.taken.load(Relaxed)
    }

    /// Counts bytes that may have left so far: a stream that begins at or after this offset certainly has not.
    pub(crate) fn offered(&self) -> u64 {
        self.offered.load(Relaxed)
    }

    /// Counts bytes read so far.
    pub(crate) fn read(&self) -> u64 {
        self.read.load(Relaxed)
    }
}

/// A byte stream that denies vectored writes and gathers the others until they are flushed.
///
/// The `h2` crate writes a DATA frame apart from its neighbours when it may write vectors, which costs one TLS record
/// and one system call per request.
#[derive(Debug)]
pub(crate) struct Wire<T> {
    inner: T,
    buffer: Vec<u8>,
    start: usize,
    gauge: Arc<Gauge>,
}

impl<T> Wire<T> {
    pub(crate) fn new(inner: T) -> Self {
        let buffer = Vec::with_capacity(WRITE_BUFFER_MAX_BYTES);
        Self { inner, buffer, start: 0, gauge: Arc::default() }
    }

    pub(crate) fn gauge(&self) -> Arc<Gauge> {
        Arc::clone(&self.gauge)
    }
}

impl<T: AsyncWrite + Unpin> Wire<T> {
    fn poll_drain(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.gauge.offered.store(self.gauge.taken(), Relaxed);
        while self.start < self.buffer.len() {
            let written = ready!(Pin::new(&mut self.inner).poll_write(cx, &self.buffer[self.start..]))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.start += written;
        }
        self.buffer.clear();
        self.start = 0;
        Poll::Ready(Ok(()))
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Wire<T> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        if this.buffer.len() + bytes.len() > WRITE_BUFFER_MAX_BYTES {
            ready!(this.poll_drain(cx))?;
        }
        let fits = bytes.len().min(WRITE_BUFFER_MAX_BYTES);
        this.buffer.extend_from_slice(&bytes[..fits]);
        this.gauge.taken.fetch_add(fits as u64, Relaxed);
        Poll::Ready(Ok(fits))
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        ready!(this.poll_drain(cx))?;
        Pin::new(&mut this.inner).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        ready!(this.poll_drain(cx))?;
        Pin::new(&mut this.inner).poll_shutdown(cx)
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Wire<T> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if this.gauge.deaf.load(Relaxed) {
            return Poll::Pending;
        }
        let before = into.filled().len();
        ready!(Pin::new(&mut this.inner).poll_read(cx, into))?;
        this.gauge.read.fetch_add((into.filled().len() - before) as u64, Relaxed);
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests;
