//! The bytes of a connection, what both sides have counted, and how it ends.

use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use stentor_core::ports::store::StoreError;
use stentor_wire::mcs::{McsStanza, McsStreamError, VERSION};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::time::timeout;

use super::frames::{McsReadError, McsReader};
use super::limits::McsLimits;

/// How long the last words may take.
const LAST_WORDS_MAX: Duration = Duration::from_secs(1);
/// Bytes that are read at once while something is written.
const READ_BESIDE_BYTES: usize = 1 << 10;

/// Which way bytes went, and how many.
enum Moved {
    Written(usize),
    Read(usize),
}

/// Why a connection ends.
#[derive(Debug, thiserror::Error)]
pub(super) enum McsEnd {
    #[error("the device is gone")]
    Gone,
    #[error("another connection has taken its place")]
    TakenOver,
    #[error("the server stops")]
    Stopping,
    #[error("the device does not answer")]
    Silent,
    #[error("the app has as many devices connected as it may have")]
    Crowded,
    #[error("the program has no registration")]
    Lonely,
    #[error("the device may not connect")]
    Refused,
    #[error("what it says is not in order: {0}")]
    Malformed(String),
    #[error("the store cannot serve it now: {0}")]
    Store(#[from] StoreError),
}

impl From<McsReadError> for McsEnd {
    fn from(error: McsReadError) -> Self {
        match error {
            McsReadError::Ended | McsReadError::Io(_) => Self::Gone,
            McsReadError::Wire(error) => Self::Malformed(error.to_string()),
        }
    }
}

impl McsEnd {
    /// Returns what the device is told last.
    fn last_words(&self) -> Vec<McsStanza> {
        let error = |kind: &str| {
            let (kind, text) = (kind.to_owned(), Some(self.to_string()));
            McsStanza::StreamError(McsStreamError { kind, text })
        };
        match self {
            Self::Gone | Self::Refused => Vec::new(),
            Self::Stopping | Self::Silent | Self::Lonely | Self::Crowded => vec![McsStanza::Close],
            Self::TakenOver => vec![error("conflict"), McsStanza::Close],
            Self::Malformed(_) => vec![error("bad-format"), McsStanza::Close],
            Self::Store(_) => vec![error("internal-server-error"), McsStanza::Close],
        }
    }
}

/// The bytes of a connection, and what both sides have counted.
pub(super) struct McsLink<S> {
    stream: S,
    reader: McsReader,
    limits: McsLimits,
    /// What is written with the next flush.
    out: Vec<u8>,
    /// Stanzas that were received, each of which has the next number.
    received: u32,
    /// The last number that the device was told.
    acknowledged: u32,
    /// Stanzas that were written.
    sent: u32,
}

impl<S: AsyncRead + AsyncWrite + Unpin> McsLink<S> {
    pub(super) const fn new(stream: S, limits: McsLimits) -> Self {
        let reader = McsReader::new(limits.stanza_max_bytes);
        Self { stream, reader, limits, out: Vec::new(), received: 0, acknowledged: 0, sent: 0 }
    }

    pub(super) const fn limits(&self) -> &McsLimits {
        &self.limits
    }

    /// Returns whether nothing has come that was not given.
    pub(super) const fn has_read_all(&self) -> bool {
        self.reader.is_empty()
    }

    /// Counts the bytes that are written with the next flush.
    pub(super) const fn waiting_bytes(&self) -> usize {
        self.out.len()
    }

    /// Waits for a stanza; it may be cut off and called again.
    pub(super) async fn next(&mut self) -> Result<McsStanza, McsReadError> {
        let stanza = self.reader.next(&mut self.stream).await?;
        self.received = self.received.saturating_add(1);
        Ok(stanza)
    }

    /// Puts a stanza behind those that are to be written; returns its number.
    pub(super) fn put(&mut self, mut stanza: McsStanza) -> u32 {
        // The version stands once, before the first stanza of a side.
        if self.sent == 0 {
            self.out.push(VERSION);
        }
        // What was received is told by whatever is sent next and has room for it.
        if self.acknowledged < self.received && stanza.say_received(self.received) {
            self.acknowledged = self.received;
        }
        stanza.write(&mut self.out);
        self.sent = self.sent.saturating_add(1);
        self.sent
    }

    /// Writes what was put. Who does not read for long is cut off: what it has not acknowledged waits in the ledger.
    pub(super) async fn flush(&mut self) -> Result<(), McsEnd> {
        if self.out.is_empty() {
            return Ok(());
        }
        // Taken, not cleared: an idle connection holds no buffer.
        let out = std::mem::take(&mut self.out);
        timeout(self.limits.write_timeout, self.write(&out)).await.unwrap_or(Err(McsEnd::Silent))
    }

    /// Writes bytes, and reads meanwhile: a device that writes as well must not wait for us while we wait for it.
    async fn write(&mut self, mut bytes: &[u8]) -> Result<(), McsEnd> {
        while !bytes.is_empty() {
            match poll_fn(|context| self.poll_either(context, bytes)).await.map_err(|_| McsEnd::Gone)? {
                Moved::Written(0) | Moved::Read(0) => return Err(McsEnd::Gone),
                Moved::Written(count) => bytes = bytes.get(count..).unwrap_or_default(),
                Moved::Read(_) => {}
            }
        }
        self.stream.flush().await.map_err(|_| McsEnd::Gone)
    }

    fn poll_either(&mut self, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<Moved>> {
        // Writing goes first: what a device sends meanwhile must not keep it from being served.
        if let Poll::Ready(written) = Pin::new(&mut self.stream).poll_write(context, bytes) {
            return Poll::Ready(written.map(Moved::Written));
        }
        // Whoever floods us while it does not read is not read any further.
        if self.reader.waiting_bytes() >= self.limits.stanza_max_bytes {
            return Poll::Pending;
        }
        // Here and not in the caller: what lives across an await is memory of every connection.
        let mut read = [0; READ_BESIDE_BYTES];
        let mut buffer = ReadBuf::new(&mut read);
        match Pin::new(&mut self.stream).poll_read(context, &mut buffer) {
            Poll::Ready(Ok(())) => {
                self.reader.feed(buffer.filled());
                Poll::Ready(Ok(Moved::Read(buffer.filled().len())))
            }
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Pending => Poll::Pending,
        }
    }

    /// Sends what ends the connection, as far as the device still reads.
    pub(super) async fn finish(mut self, end: &McsEnd) {
        end.last_words().into_iter().for_each(|stanza| {
            self.put(stanza);
        });
        self.limits.write_timeout = self.limits.write_timeout.min(LAST_WORDS_MAX);
        if self.flush().await.is_ok() {
            let _gone = timeout(self.limits.write_timeout, self.stream.shutdown()).await;
        }
    }
}
