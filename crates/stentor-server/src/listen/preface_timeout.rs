//! A timeout for the first bytes of a peer; without it a silent connection would keep its place forever.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::time::{Sleep, sleep};

use super::watched::ReadWatch;

/// Bytes by which a peer has shown its protocol: the length of HTTP/2's preface (RFC 9113, 3.4).
const OPENING_BYTES: usize = 24;

/// Fails a read if the first bytes do not arrive in time.
pub(super) struct PrefaceTimeout {
    missing_bytes: usize,
    deadline: Pin<Box<Sleep>>,
}

impl PrefaceTimeout {
    /// Starts the timeout; `deadline` counts from now.
    pub(super) fn new(deadline: Duration) -> Self {
        Self { missing_bytes: OPENING_BYTES, deadline: Box::pin(sleep(deadline)) }
    }
}

impl ReadWatch for PrefaceTimeout {
    fn look(
        &mut self,
        cx: &mut Context<'_>,
        brought: &mut [u8],
        read: Poll<io::Result<()>>,
    ) -> Poll<io::Result<()>> {
        if self.missing_bytes == 0 {
            return read;
        }
        self.missing_bytes = self.missing_bytes.saturating_sub(brought.len());
        if read.is_pending() && self.deadline.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        read
    }
}

#[cfg(test)]
mod tests {
    use super::super::watched::WatchedStream;
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    const TIMEOUT: Duration = Duration::from_secs(10);

    #[tokio::test(start_paused = true)]
    async fn a_peer_that_stops_within_the_preface_is_given_up() {
        let (mut peer, stream) = duplex(64);
        peer.write_all(b"PRI * HTTP").await.unwrap();
        let mut stream = WatchedStream::new(stream, PrefaceTimeout::new(TIMEOUT));
        let mut bytes = [0; OPENING_BYTES];
        let error = stream.read_exact(&mut bytes).await.expect_err("never complete");
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }

    #[tokio::test(start_paused = true)]
    async fn a_peer_that_has_spoken_up_may_be_silent_later() {
        let (mut peer, stream) = duplex(64);
        let mut stream = WatchedStream::new(stream, PrefaceTimeout::new(TIMEOUT));
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
