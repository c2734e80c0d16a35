//! A stream with watched reads; writes pass unchanged.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Watches the reads of a connection.
pub(crate) trait ReadWatch: Unpin {
    /// Receives the bytes and the result of a read. May change the bytes in place; returns the new result.
    fn look(
        &mut self,
        cx: &mut Context<'_>,
        brought: &mut [u8],
        read: Poll<io::Result<()>>,
    ) -> Poll<io::Result<()>>;
}

/// A stream and the watch of its reads.
pub(crate) struct WatchedStream<S, W> {
    stream: S,
    watch: W,
}

impl<S, W> WatchedStream<S, W> {
    /// Watches all reads of a stream from now on.
    pub(crate) const fn new(stream: S, watch: W) -> Self {
        Self { stream, watch }
    }
}

impl<S: AsyncRead + Unpin, W: ReadWatch> AsyncRead for WatchedStream<S, W> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(cx, buffer);
        self.watch.look(cx, &mut buffer.filled_mut()[before..], read)
    }
}

impl<S: AsyncWrite + Unpin, W: Unpin> AsyncWrite for WatchedStream<S, W> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, slices)
    }
}
