//! A stream whose peer must speak up soon: without this a silent connection would keep its place for ever.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

/// Bytes after which a peer has shown what it speaks: the length of HTTP/2's preface (RFC 9113, 3.4).
const OPENING_BYTES: usize = 24;

/// Fails to read when the first bytes do not come in time.
pub(crate) struct PrefaceTimeout<S> {
    stream: S,
    missing_bytes: usize,
    deadline: Pin<Box<Sleep>>,
}

impl<S> PrefaceTimeout<S> {
    /// Returns the peer `deadline` from now on.
    pub(crate) fn new(stream: S, deadline: Duration) -> Self {
        Self { stream, missing_bytes: OPENING_BYTES, deadline: Box::pin(sleep(deadline)) }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for PrefaceTimeout<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(cx, buffer);
        if self.missing_bytes == 0 {
            return read;
        }
        self.missing_bytes = self.missing_bytes.saturating_sub(buffer.filled().len() - before);
        if read.is_pending() && self.deadline.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for PrefaceTimeout<S> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    const TIMEOUT: Duration = Duration::from_secs(10);

    #[tokio::test(start_paused = true)]
    async fn a_peer_that_stops_within_the_preface_is_given_up() {
        let (mut peer, stream) = duplex(64);
        peer.write_all(b"PRI * HTTP").await.unwrap();
        let mut stream = PrefaceTimeout::new(stream, TIMEOUT);
        let mut bytes = [0; OPENING_BYTES];
        let error = stream.read_exact(&mut bytes).await.expect_err("never complete");
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }

    #[tokio::test(start_paused = true)]
    async fn a_peer_that_has_spoken_up_may_be_silent_later() {
        let (mut peer, stream) = duplex(64);
        let mut stream = PrefaceTimeout::new(stream, TIMEOUT);
        peer.write_all(&[b'x'; OPENING_BYTES]).await.unwrap();
        stream.read_exact(&mut [0; OPENING_BYTES]).await.unwrap();
        let late = async {
            tokio::time::sleep(TIMEOUT * 2).await;
            peer.write_all(b"y").await.unwrap();
        };
        let (byte, ()) = tokio::join!(stream.read_u8(), late);
        assert_eq!(byte.unwrap(), b'y');
    }
}
