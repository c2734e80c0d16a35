//! The byte stream under HTTP/2: TCP, and TLS over the crate's own buffers, so that hundreds of requests leave with one system call and
//! thousands of responses arrive with one.

mod buffer;
mod session;

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use buffer::Buffer;
use session::Progress;
pub(crate) use session::Session;

/// Space offered to the socket at a time: several whole TLS records.
const READ_ROOM_BYTES: usize = 64 * 1_024;

/// One connected socket, with or without TLS.
pub(crate) struct Transport {
    tcp: TcpStream,
    session: Option<Session>,
    /// Bytes from the socket that are not decrypted yet.
    incoming: Buffer,
    /// Bytes for the socket.
    outgoing: Buffer,
    is_ended: bool,
}

impl Transport {
    /// Creates a transport without TLS.
    pub(crate) fn plain(tcp: TcpStream) -> Self {
        Self { tcp, session: None, incoming: Buffer::default(), outgoing: Buffer::default(), is_ended: false }
    }

    /// Performs the TLS handshake; `plain` receives the bytes that the peer sends with it.
    pub(crate) async fn secure(tcp: TcpStream, session: Session, plain: &mut Vec<u8>) -> io::Result<Self> {
        let mut transport = Self { session: Some(session), ..Self::plain(tcp) };
        loop {
            // Must precede the first read: it makes the session write its ClientHello.
            let decrypted = transport.decrypt(plain);
            // Also after a failure, so that the peer receives the alert.
            let flushed = std::future::poll_fn(|cx| transport.poll_flush(cx)).await;
            if decrypted? {
                flushed?;
                return Ok(transport);
            }
            if std::future::poll_fn(|cx| transport.poll_fill(cx)).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }

    /// Returns the application protocol negotiated by TLS.
    pub(crate) fn protocol(&self) -> Option<&[u8]> {
        self.session.as_ref().and_then(Session::protocol)
    }

    /// Appends received bytes to `plain`; returns false at the end of the stream.
    pub(crate) fn poll_read(&mut self, cx: &mut Context<'_>, plain: &mut Vec<u8>) -> Poll<io::Result<bool>> {
        if self.is_ended {
            return Poll::Ready(Ok(false));
        }
        // Set first: buffered bytes are still decrypted, and TLS may signal an end of its own.
        self.is_ended = ready!(self.poll_fill(cx))? == 0;
        self.decrypt(plain)?;
        Poll::Ready(Ok(!self.is_ended))
    }

    /// Takes all of `plain` for writing.
    pub(crate) fn offer(&mut self, plain: &mut Vec<u8>) -> io::Result<()> {
        match &mut self.session {
            Some(session) => session.encrypt(plain, &mut self.incoming, &mut self.outgoing)?,
            None => self.outgoing.extend(plain),
        }
        plain.clear();
        Ok(())
    }

    /// Writes the pending output to the socket.
    pub(crate) fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.outgoing.is_empty() {
            let count = ready!(Pin::new(&mut self.tcp).poll_write(cx, self.outgoing.filled()))?;
            if count == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.outgoing.consume(count);
        }
        Poll::Ready(Ok(()))
    }

    /// Returns the number of bytes that wait for the socket.
    pub(crate) const fn backlog_bytes(&self) -> usize {
        self.outgoing.len()
    }

    /// Returns empty buffers to the pool.
    pub(crate) fn release_buffers(&mut self) {
        self.incoming.release_buffers();
        self.outgoing.release_buffers();
    }

    /// Ends TLS and closes the writing side.
    pub(crate) async fn shut_down(&mut self) -> io::Result<()> {
        if let Some(session) = &mut self.session {
            // After the output already offered, which `poll_flush` writes first.
            session.say_goodbye(&mut self.incoming, &mut self.outgoing);
        }
        std::future::poll_fn(|cx| self.poll_flush(cx)).await?;
        std::future::poll_fn(|cx| Pin::new(&mut self.tcp).poll_shutdown(cx)).await
    }

    fn poll_fill(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let mut room = ReadBuf::new(self.incoming.room(READ_ROOM_BYTES));
        ready!(Pin::new(&mut self.tcp).poll_read(cx, &mut room))?;
        let count = room.filled().len();
        self.incoming.fill(count);
        Poll::Ready(Ok(count))
    }

    /// Decrypts the buffered bytes; returns true if requests may be written.
    fn decrypt(&mut self, plain: &mut Vec<u8>) -> io::Result<bool> {
        let Some(session) = &mut self.session else {
            plain.extend_from_slice(self.incoming.filled());
            self.incoming.consume(self.incoming.len());
            return Ok(true);
        };
        let progress = session.decrypt(&mut self.incoming, plain, &mut self.outgoing)?;
        self.is_ended |= progress == Progress::Ended;
        Ok(progress != Progress::Blocked)
    }
}
