//! Limits on data received before a login. A small amount is free; more counts for the peer's address until the login.

use std::io;
use std::sync::Arc;
use std::task::{Context, Poll};

use parking_lot::Mutex;

use super::watched::ReadWatch;
use crate::shares::SharePart;

/// Room for data that a connection sends before its login. Clones share it.
#[derive(Clone)]
pub(crate) struct LoginRoom(Arc<Mutex<Option<SharePart>>>);

/// Counts received bytes until the room is freed, and ends a connection without room.
pub(crate) struct LoginWatch {
    /// `None` once the room is freed: most connections are idle then, and should hold no memory for it.
    room: Option<LoginRoom>,
    free_bytes: usize,
}

impl LoginRoom {
    /// Creates it from an unused part.
    pub(super) fn of(part: SharePart) -> Self {
        Self(Arc::new(Mutex::new(Some(part))))
    }

    /// Returns a watch that counts the bytes read beyond the first `free_bytes`.
    pub(crate) fn watch(&self, free_bytes: usize) -> LoginWatch {
        LoginWatch { room: Some(self.clone()), free_bytes }
    }

    /// Frees the room, after the login.
    pub(crate) fn free(&self) {
        drop(self.0.lock().take());
    }

    /// Takes room for `bytes` more; `None` if it was freed.
    fn grow(&self, bytes: usize) -> Option<io::Result<()>> {
        let mut part = self.0.lock();
        let grown = part.as_mut()?.grow(bytes);
        Some(
            grown.map_err(|_| {
                io::Error::new(io::ErrorKind::OutOfMemory, "too many bytes arrive before logins")
            }),
        )
    }
}

impl ReadWatch for LoginWatch {
    fn look(
        &mut self,
        _: &mut Context<'_>,
        brought: &mut [u8],
        read: Poll<io::Result<()>>,
    ) -> Poll<io::Result<()>> {
        let Some(room) = &self.room else { return read };
        let counted = brought.len().saturating_sub(self.free_bytes);
        self.free_bytes = self.free_bytes.saturating_sub(brought.len());
        match room.grow(counted) {
            Some(Ok(())) => read,
            Some(Err(error)) => Poll::Ready(Err(error)),
            None => {
                self.room = None;
                read
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, duplex};

    use super::super::watched::WatchedStream;
    use super::*;
    use crate::owner::{Owner, SourceNetwork};
    use crate::shares::Shares;

    const FREE_BYTES: usize = 100;

    #[tokio::test]
    async fn what_comes_before_a_login_counts_for_its_address_until_the_login() {
        let shares = Shares::of_nameless(4_000);
        let room = LoginRoom::of(shares.part(Owner::Address(SourceNetwork::UNKNOWN)));
        let (mut peer, stream) = duplex(10_000);
        let mut stream = WatchedStream::new(stream, room.watch(FREE_BYTES));
        peer.write_all(&[0; 500]).await.unwrap();
        stream.read_exact(&mut [0; 500]).await.unwrap();
        assert_eq!(shares.taken(), 400);
        peer.write_all(&[0; 700]).await.unwrap();
        let error = stream.read_exact(&mut [0; 700]).await.expect_err("one address has a quarter");
        assert_eq!(error.kind(), io::ErrorKind::OutOfMemory);
        room.free();
        assert_eq!(shares.taken(), 0);
        peer.write_all(&[0; 5_000]).await.unwrap();
        stream.read_exact(&mut [0; 5_000]).await.unwrap();
        assert_eq!(shares.taken(), 0);
    }
}
