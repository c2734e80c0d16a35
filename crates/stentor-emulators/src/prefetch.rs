//! Large reads below TLS, into buffers shared by the connections of a thread. TLS consumes the bytes before the next connection has its
//! turn, so one buffer mostly suffices and stays in the cache.

use std::cell::RefCell;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// The number of spare buffers that a thread keeps.
const BUFFERS_MAX_COUNT: usize = 4;

thread_local! {
    static BUFFERS: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
}

/// A stream that reads more than its caller requested.
pub(crate) struct Prefetch<IO> {
    io: IO,
    most_bytes: usize,
    /// Empty while nothing is buffered.
    bytes: Vec<u8>,
    start: usize,
    end: usize,
}

impl<IO> Prefetch<IO> {
    /// Reads up to `most_bytes` at a time. A read of that size or more bypasses the buffer.
    pub(crate) fn new(io: IO, most_bytes: usize) -> Self {
        Self { io, most_bytes, bytes: Vec::new(), start: 0, end: 0 }
    }

    fn take(&mut self, buffer: &mut ReadBuf<'_>) {
        let count = buffer.remaining().min(self.end - self.start);
        buffer.put_slice(&self.bytes[self.start..self.start + count]);
        self.start += count;
        if self.start == self.end {
            return_buffer(std::mem::take(&mut self.bytes));
        }
    }
}

impl<IO: AsyncRead + Unpin> AsyncRead for Prefetch<IO> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.bytes.is_empty() {
            if buffer.remaining() >= self.most_bytes {
                return Pin::new(&mut self.io).poll_read(cx, buffer);
            }
            let mut bytes = take_buffer(self.most_bytes);
            let mut room = ReadBuf::new(&mut bytes);
            let read = Pin::new(&mut self.io).poll_read(cx, &mut room);
            let end = room.filled().len();
            // The memory goes back at once: connections that are idle must keep none.
            if end == 0 {
                return_buffer(bytes);
                return read;
            }
            ready!(read)?;
            (self.bytes, self.start, self.end) = (bytes, 0, end);
        }
        self.take(buffer);
        Poll::Ready(Ok(()))
    }
}

impl<IO: AsyncWrite + Unpin> AsyncWrite for Prefetch<IO> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write_vectored(cx, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }
}

fn take_buffer(bytes: usize) -> Vec<u8> {
    let buffer = BUFFERS.with_borrow_mut(Vec::pop);
    buffer.filter(|buffer| buffer.len() == bytes).unwrap_or_else(|| vec![0; bytes])
}

fn return_buffer(bytes: Vec<u8>) {
    BUFFERS.with_borrow_mut(|buffers| {
        if buffers.len() < BUFFERS_MAX_COUNT {
            buffers.push(bytes);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    /// Reads a stream to its end in pieces of this size.
    async fn read_all(io: &mut (impl AsyncRead + Unpin), piece: usize) -> Vec<u8> {
        let (mut all, mut bytes) = (Vec::new(), vec![0; piece]);
        loop {
            let count = io.read(&mut bytes).await.expect("a read");
            if count == 0 {
                return all;
            }
            all.extend_from_slice(&bytes[..count]);
        }
    }

    #[tokio::test]
    async fn two_streams_in_turns_each_get_their_own_bytes() {
        let (mut one, from_one) = tokio::io::duplex(1 << 16);
        let (mut other, from_other) = tokio::io::duplex(1 << 16);
        let (mut from_one, mut from_other) = (Prefetch::new(from_one, 64), Prefetch::new(from_other, 64));
        one.write_all(&[1; 1000]).await.expect("room");
        other.write_all(&[2; 1000]).await.expect("room");
        let (mut first, mut second) = ([0; 10], [0; 7]);
        for _ in 0..90 {
            from_one.read_exact(&mut first).await.expect("bytes");
            from_other.read_exact(&mut second).await.expect("bytes");
            assert_eq!((first, second), ([1; 10], [2; 7]));
        }
        drop((one, other));
        assert_eq!(read_all(&mut from_one, 9).await, [1; 100]);
        assert_eq!(read_all(&mut from_other, 100).await, [2; 370]);
        assert_eq!(
            BUFFERS.with_borrow(Vec::len),
            2,
            "as much as both needed together, for whoever reads next"
        );
    }

    #[tokio::test]
    async fn nothing_is_prefetched_beyond_one_byte_and_writing_goes_through() {
        let (mut peer, io) = tokio::io::duplex(64);
        let mut io = Prefetch::new(io, 1);
        io.write_all(b"out").await.expect("room");
        peer.write_all(b"in").await.expect("room");
        let mut bytes = [0; 3];
        peer.read_exact(&mut bytes).await.expect("bytes");
        assert_eq!((&bytes, io.read_u8().await.expect("a byte"), io.bytes.len()), (b"out", b'i', 0));
        io.shutdown().await.expect("an end");
        assert_eq!(read_all(&mut peer, 8).await, b"");
    }
}
