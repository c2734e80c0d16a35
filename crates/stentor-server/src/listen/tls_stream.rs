//! TLS of accepted connections that holds no memory for reading and writing while a connection is idle.
//!
//! rustls' own buffers stay with a connection once they were needed, 4 KiB of them for reading; of a server with many
//! silent devices that is a third. So rustls works without buffers here, and what it needs in between is freed when it is empty.

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

/// Bytes that are read at once.
const READ_BYTES: usize = 4 * 1_024;
/// Bytes that are sealed at once.
const WRITE_MAX_BYTES: usize = 64 * 1_024;
/// What a record adds to its content, and more.
const RECORD_EXTRA_BYTES: usize = 64;
/// Bytes that have come and are no whole message yet: the largest message of a handshake, and its records.
const INCOMPLETE_MAX_BYTES: usize = 96 * 1_024;

/// What the peer is to be told.
#[derive(Clone, Copy)]
enum TlsOutput<'a> {
    /// Only what TLS itself has to say.
    Nothing,
    /// Bytes of the application.
    Content(&'a [u8]),
    /// That no more comes.
    End,
}

/// The server's side of a connection over TLS.
pub(crate) struct TlsStream<S> {
    stream: S,
    connection: UnbufferedServerConnection,
    /// What has come and is no whole message yet.
    incoming: Vec<u8>,
    /// What was in messages, and was not asked for yet.
    opened: Vec<u8>,
    /// Records to be written.
    outgoing: Vec<u8>,
    /// Whether the peer has said that no more comes.
    is_read_over: bool,
    /// Whether the peer was told so.
    is_write_over: bool,
}

impl<S: AsyncRead + AsyncWrite + Unpin> TlsStream<S> {
    /// Does the handshake.
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
                // Both at once: a client may have to be read before it reads.
                accepted.drain_now(context)?;
                accepted.poll_fill(context)
            };
            poll_fn(go_on).await?;
        }
        // A peer may wait for the handshake's last message, and nothing else writes before it speaks.
        poll_fn(|context| accepted.poll_drain(context)).await?;
        Ok(accepted)
    }

    /// Reads what has come and opens what is whole of it.
    fn poll_fill(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        // On the stack: between two reads there is no buffer.
        let mut space = [MaybeUninit::<u8>::uninit(); READ_BYTES];
        let mut space = ReadBuf::uninit(&mut space);
        ready!(Pin::new(&mut self.stream).poll_read(context, &mut space))?;
        if space.filled().is_empty() {
            return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into()));
        }
        let taken = self.take(space.filled_mut());
        if taken.is_err() {
            // The peer is told why, if that finds room at once. What else TLS has to say goes before what is written next: only whoever
            // writes may wait for room, lest another who reads be woken for it.
            let _it_may_be_lost = self.drain_now(context);
        }
        Poll::Ready(taken)
    }

    /// Takes what has come; what is no whole message stays.
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

    /// Seals what the peer is to be told.
    fn seal(&mut self, output: TlsOutput<'_>) -> io::Result<()> {
        let mut incoming = mem::take(&mut self.incoming);
        let used = self.advance(&mut incoming, output)?;
        incoming.drain(..used);
        self.incoming = incoming;
        Ok(())
    }

    /// Has TLS go on with these records until it needs more; returns how many bytes of them are used up.
    fn advance(&mut self, records: &mut [u8], told: TlsOutput<'_>) -> io::Result<usize> {
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
                // They are gathered in `outgoing`, which is written before anything that comes later.
                Ok(ConnectionState::TransmitTlsData(gathered)) => gathered.done(),
                Ok(ConnectionState::PeerClosed) => self.is_read_over = true,
                Ok(ConnectionState::WriteTraffic(mut traffic)) => {
                    seal(&mut traffic, told, &mut self.outgoing)?;
                    return Ok(used + discard);
                }
                Ok(ConnectionState::BlockedHandshake | ConnectionState::Closed) => {
                    return match told {
                        TlsOutput::Nothing => Ok(used + discard),
                        TlsOutput::Content(_) | TlsOutput::End => Err(io::ErrorKind::BrokenPipe.into()),
                    };
                }
                // Nothing early is ever offered.
                Ok(_) => return Err(io::ErrorKind::InvalidData.into()),
                Err(error) => {
                    self.gather_alert(&mut records[used + discard..]);
                    return Err(invalid(error));
                }
            }
            used += discard;
        }
    }

    /// Gathers what the peer is told of an error, if anything.
    fn gather_alert(&mut self, records: &mut [u8]) {
        let state = self.connection.process_tls_records(records).state;
        if let Ok(ConnectionState::EncodeTlsData(mut alert)) = state {
            let _it_is_lost_with_the_connection = encode(&mut alert, &mut self.outgoing);
        }
    }

    /// Writes what of it finds room at once.
    fn drain_now(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        match self.poll_drain(context) {
            Poll::Ready(drained) => drained,
            Poll::Pending => Ok(()),
        }
    }

    /// Writes what was gathered.
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
        // What was sealed before must be out: a peer that does not read costs no more than that.
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
            // Once, however often it is polled: a second `close_notify` would be an error.
            this.is_write_over = true;
            this.seal(TlsOutput::End)?;
        }
        ready!(this.poll_drain(context))?;
        match ready!(Pin::new(&mut this.stream).poll_shutdown(context)) {
            // Then the peer has gone before.
            Err(error) if error.kind() == io::ErrorKind::NotConnected => Poll::Ready(Ok(())),
            ended => Poll::Ready(ended),
        }
    }
}

/// Adds a message of TLS itself to what is to be written.
fn encode(message: &mut EncodeTlsData<'_, ServerConnectionData>, outgoing: &mut Vec<u8>) -> io::Result<()> {
    append(outgoing, 0, |space| match message.encode(space) {
        Err(EncodeError::InsufficientSize(short)) => Ok(Err(short.required_size)),
        encoded => encoded.map(Ok).map_err(io::Error::other),
    })
}

/// Adds what the peer is told to what is to be written.
fn seal(
    traffic: &mut WriteTraffic<'_, ServerConnectionData>,
    told: TlsOutput<'_>,
    outgoing: &mut Vec<u8>,
) -> io::Result<()> {
    let expected_bytes = match told {
        TlsOutput::Nothing => return Ok(()),
        TlsOutput::Content(content) => content.len() + RECORD_EXTRA_BYTES * (1 + content.len() / READ_BYTES),
        TlsOutput::End => RECORD_EXTRA_BYTES,
    };
    append(outgoing, expected_bytes, |space| {
        let sealed = match told {
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

/// Appends what `write` puts into a space of `expected_bytes`, or of as many as it says that it needs.
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
