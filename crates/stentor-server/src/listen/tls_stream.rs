//! A TLS stream for accepted connections that holds no buffers while a connection is idle.
//!
//! The buffers of rustls stay with a connection once they were needed, 4 KiB of them for reading; on a server with many silent devices that
//! is a third of its memory. Here rustls therefore works unbuffered, and the buffers of this type are freed when they are empty.

#[cfg(test)]
mod tests;

use std::future::poll_fn;
use std::io;
use std::mem::{self, MaybeUninit};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use rustls::ServerConfig;
use rustls::server::{ServerConnectionData, UnbufferedServerConnection};
use rustls::unbuffered::{
    ConnectionState, EncodeError, EncodeTlsData, EncryptError, UnbufferedStatus, WriteTraffic,
};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Bytes read at once.
const READ_BYTES: usize = 4 * 1_024;
/// Bytes encrypted at once.
const WRITE_MAX_BYTES: usize = 64 * 1_024;
/// Upper bound of the overhead of a record.
const RECORD_EXTRA_BYTES: usize = 64;
/// Most received bytes without a complete message: the largest handshake message and its records.
const INCOMPLETE_MAX_BYTES: usize = 96 * 1_024;

/// Output for the peer.
#[derive(Clone, Copy)]
enum TlsOutput<'a> {
    /// Only messages of TLS itself.
    Nothing,
    /// Bytes of the application.
    Content(&'a [u8]),
    /// The end of the stream.
    End,
}

/// The server's side of a connection over TLS.
pub(crate) struct TlsStream<S> {
    stream: S,
    connection: UnbufferedServerConnection,
    /// Received bytes that are no complete message yet.
    incoming: Vec<u8>,
    /// Decrypted bytes that were not read yet.
    opened: Vec<u8>,
    /// Records to be written.
    outgoing: Vec<u8>,
    /// True after the peer has ended its stream.
    is_read_over: bool,
    /// True after this side has ended its stream.
    is_write_over: bool,
}

impl<S: AsyncRead + AsyncWrite + Unpin> TlsStream<S> {
    /// Performs the handshake.
    pub(crate) async fn accept(config: Arc<ServerConfig>, stream: S) -> io::Result<Box<Self>> {
        let connection = UnbufferedServerConnection::new(config).map_err(io::Error::other)?;
        let mut accepted = Box::new(Self {
            stream,
            connection,
            incoming: Vec::new(),
            opened: Vec::new(),
            outgoing: Vec::new(),
            is_read_over: false,
            is_write_over: false,
        });
        while accepted.connection.is_handshaking() {
            let go_on = |context: &mut Context<'_>| {
                // Both at once, because a client may have to be read before it reads.
                accepted.drain_now(context)?;
                accepted.poll_fill(context)
            };
            poll_fn(go_on).await?;
        }
        // A peer may wait for the last handshake message, and nothing else writes before the peer sends.
        poll_fn(|context| accepted.poll_drain(context)).await?;
        Ok(accepted)
    }

    /// Reads from the socket and decrypts complete records.
    fn poll_fill(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        // On the stack, so that there is no buffer between two reads.
        let mut space = [MaybeUninit::<u8>::uninit(); READ_BYTES];
        let mut space = ReadBuf::uninit(&mut space);
        ready!(Pin::new(&mut self.stream).poll_read(context, &mut space))?;
        if space.filled().is_empty() {
            return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into()));
        }
        let taken = self.take(space.filled_mut());
        if taken.is_err() {
            // Sends the alert if the socket has room at once. Other messages of TLS precede the next write: only the writing task may wait
            // for room, so that no reading task is woken for it.
            let _it_may_be_lost = self.drain_now(context);
        }
        Poll::Ready(taken)
    }

    /// Processes received bytes and keeps an incomplete message.
    fn take(&mut self, arrived: &mut [u8]) -> io::Result<()> {
        if self.incoming.is_empty() {
            let used = self.advance(arrived, TlsOutput::Nothing)?;
            self.incoming.extend_from_slice(&arrived[used..]);
        } else {
            let mut incoming = mem::take(&mut self.incoming);
            incoming.extend_from_slice(arrived);
            let used = self.advance(&mut incoming, TlsOutput::Nothing)?;
            self.incoming.extend_from_slice(&incoming[used..]);
        }
        match self.incoming.len() > INCOMPLETE_MAX_BYTES {
            true => Err(io::ErrorKind::InvalidData.into()),
            false => Ok(()),
        }
    }

    /// Encrypts output for the peer.
    fn seal(&mut self, output: TlsOutput<'_>) -> io::Result<()> {
        let mut incoming = mem::take(&mut self.incoming);
        let used = self.advance(&mut incoming, output)?;
        incoming.drain(..used);
        self.incoming = incoming;
        Ok(())
    }

    /// Lets TLS process these records until it needs more. Returns the number of bytes used.
    fn advance(&mut self, records: &mut [u8], output: TlsOutput<'_>) -> io::Result<usize> {
        let mut used = 0;
        loop {
            let UnbufferedStatus { mut discard, state } =
                self.connection.process_tls_records(&mut records[used..]);
            match state {
                Ok(ConnectionState::ReadTraffic(mut traffic)) => {
                    while let Some(record) = traffic.next_record() {
                        let record = record.map_err(invalid)?;
                        discard += record.discard;
                        self.opened.extend_from_slice(record.payload);
                    }
                }
                Ok(ConnectionState::EncodeTlsData(mut message)) => encode(&mut message, &mut self.outgoing)?,
                // They are collected in `outgoing`, which is written before anything later.
                Ok(ConnectionState::TransmitTlsData(gathered)) => gathered.done(),
                Ok(ConnectionState::PeerClosed) => self.is_read_over = true,
                Ok(ConnectionState::WriteTraffic(mut traffic)) => {
                    seal(&mut traffic, output, &mut self.outgoing)?;
                    return Ok(used + discard);
                }
                Ok(ConnectionState::BlockedHandshake | ConnectionState::Closed) => {
                    return match output {
                        TlsOutput::Nothing => Ok(used + discard),
                        TlsOutput::Content(_) | TlsOutput::End => Err(io::ErrorKind::BrokenPipe.into()),
                    };
                }
                // Early data is never offered.
                Ok(_) => return Err(io::ErrorKind::InvalidData.into()),
                Err(error) => {
                    self.gather_alert(&mut records[used + discard..]);
                    return Err(invalid(error));
                }
            }
            used += discard;
        }
    }

    /// Collects the alert for an error, if there is one.
    fn gather_alert(&mut self, records: &mut [u8]) {
        let state = self.connection.process_tls_records(records).state;
        if let Ok(ConnectionState::EncodeTlsData(mut alert)) = state {
            let _it_is_lost_with_the_connection = encode(&mut alert, &mut self.outgoing);
        }
    }

    /// Writes as much of `outgoing` as the socket takes at once.
    fn drain_now(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        match self.poll_drain(context) {
            Poll::Ready(drained) => drained,
            Poll::Pending => Ok(()),
        }
    }

    /// Writes `outgoing` completely.
    fn poll_drain(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while !self.outgoing.is_empty() {
            let count = ready!(Pin::new(&mut self.stream).poll_write(context, &self.outgoing))?;
            if count == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.outgoing.drain(..count);
        }
        self.outgoing = Vec::new();
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for TlsStream<S> {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        space: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        while this.opened.is_empty() {
            if this.is_read_over {
                return Poll::Ready(Ok(()));
            }
            ready!(this.poll_fill(context))?;
        }
        let count = space.remaining().min(this.opened.len());
        space.put_slice(&this.opened[..count]);
        this.opened.drain(..count);
        if this.opened.is_empty() {
            this.opened = Vec::new();
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for TlsStream<S> {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        if this.is_write_over {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        // Earlier records must be written first, so that a peer that does not read costs no more memory than these.
        ready!(this.poll_drain(context))?;
        let content = &bytes[..bytes.len().min(WRITE_MAX_BYTES)];
        this.seal(TlsOutput::Content(content))?;
        this.drain_now(context)?;
        Poll::Ready(Ok(content.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        ready!(this.poll_drain(context))?;
        Pin::new(&mut this.stream).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if !this.is_write_over {
            // Only once, even if it is polled repeatedly: a second `close_notify` would be an error.
            this.is_write_over = true;
            this.seal(TlsOutput::End)?;
        }
        ready!(this.poll_drain(context))?;
        match ready!(Pin::new(&mut this.stream).poll_shutdown(context)) {
            // The peer has already disconnected.
            Err(error) if error.kind() == io::ErrorKind::NotConnected => Poll::Ready(Ok(())),
            ended => Poll::Ready(ended),
        }
    }
}

/// Appends a message of TLS itself to `outgoing`.
fn encode(message: &mut EncodeTlsData<'_, ServerConnectionData>, outgoing: &mut Vec<u8>) -> io::Result<()> {
    append(outgoing, 0, |space| match message.encode(space) {
        Err(EncodeError::InsufficientSize(short)) => Ok(Err(short.required_size)),
        encoded => encoded.map(Ok).map_err(io::Error::other),
    })
}

/// Appends encrypted output to `outgoing`.
fn seal(
    traffic: &mut WriteTraffic<'_, ServerConnectionData>,
    output: TlsOutput<'_>,
    outgoing: &mut Vec<u8>,
) -> io::Result<()> {
    let expected_bytes = match output {
        TlsOutput::Nothing => return Ok(()),
        TlsOutput::Content(content) => content.len() + RECORD_EXTRA_BYTES * (1 + content.len() / READ_BYTES),
        TlsOutput::End => RECORD_EXTRA_BYTES,
    };
    append(outgoing, expected_bytes, |space| {
        let sealed = match output {
            TlsOutput::Nothing => Ok(0),
            TlsOutput::Content(content) => traffic.encrypt(content, space),
            TlsOutput::End => traffic.queue_close_notify(space),
        };
        match sealed {
            Err(EncryptError::InsufficientSize(short)) => Ok(Err(short.required_size)),
            sealed => sealed.map(Ok).map_err(io::Error::other),
        }
    })
}

/// Appends the output of `write`, in a space of `expected_bytes` or of the size that it requires.
fn append(
    outgoing: &mut Vec<u8>,
    expected_bytes: usize,
    mut write: impl FnMut(&mut [u8]) -> io::Result<Result<usize, usize>>,
) -> io::Result<()> {
    let (before, mut space_bytes) = (outgoing.len(), expected_bytes);
    loop {
        outgoing.resize(before + space_bytes, 0);
        match write(&mut outgoing[before..])? {
            Ok(count) => {
                outgoing.truncate(before + count);
                return Ok(());
            }
            Err(needed_bytes) => space_bytes = needed_bytes,
        }
    }
}

fn invalid(error: rustls::Error) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}
