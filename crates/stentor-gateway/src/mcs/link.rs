//! The byte stream of a connection, the stanza counters of both sides, and the end of the connection.

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

/// Timeout of the final stanzas.
const LAST_WORDS_MAX: Duration = Duration::from_secs(1);
/// Bytes read at once during a write.
const READ_BESIDE_BYTES: usize = 1 << 10;

/// The direction and number of transferred bytes.
enum Moved {
    Written(usize),
    Read(usize),
}

/// The reason for the end of a connection.
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
    #[error("the device sent malformed data: {0}")]
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
    /// Returns the final stanzas for the device.
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

/// The byte stream of a connection, with the stanza counters of both sides.
pub(super) struct McsLink<S> {
    stream: S,
    reader: McsReader,
    limits: McsLimits,
    /// Bytes for the next flush.
    out: Vec<u8>,
    /// Number of received stanzas.
    received: u32,
    /// The last received number that was reported to the device.
    acknowledged: u32,
    /// Number of written stanzas.
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

    /// Returns true if all received bytes belong to returned stanzas.
    pub(super) const fn has_read_all(&self) -> bool {
        self.reader.is_empty()
    }

    /// Returns the number of bytes for the next flush.
    pub(super) const fn waiting_bytes(&self) -> usize {
        self.out.len()
    }

    /// Waits for a stanza. The call may be cancelled and repeated.
    pub(super) async fn next(&mut self) -> Result<McsStanza, McsReadError> {
        let stanza = self.reader.next(&mut self.stream).await?;
        self.received = self.received.saturating_add(1);
        Ok(stanza)
    }

    /// Appends a stanza to the output; returns its number.
    pub(super) fn put(&mut self, mut stanza: McsStanza) -> u32 {
        // The version precedes the first stanza of each side.
        if self.sent == 0 {
            self.out.push(VERSION);
        }
        // The receive counter is reported by the next stanza that has a field for it.
        if self.acknowledged < self.received && stanza.say_received(self.received) {
            self.acknowledged = self.received;
        }
        stanza.write(&mut self.out);
        self.sent = self.sent.saturating_add(1);
        self.sent
    }

    /// Writes the output. A device that does not read for too long is disconnected; its unacknowledged messages wait in the ledger.
    pub(super) async fn flush(&mut self) -> Result<(), McsEnd> {
        if self.out.is_empty() {
            return Ok(());
        }
        // Taken, not cleared: an idle connection holds no buffer.
        let out = std::mem::take(&mut self.out);
        timeout(self.limits.write_timeout, self.write(&out)).await.unwrap_or(Err(McsEnd::Silent))
    }

    /// Writes bytes, and reads at the same time, because two sides that only write would wait for each other.
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
        // Writing goes first, so that a device that keeps sending is still served.
        if let Poll::Ready(written) = Pin::new(&mut self.stream).poll_write(context, bytes) {
            return Poll::Ready(written.map(Moved::Written));
        }
        // A device that sends without reading is not read beyond this limit.
        if self.reader.waiting_bytes() >= self.limits.stanza_max_bytes {
            return Poll::Pending;
        }
        // Here and not in the caller, because values that live across an await take memory in every connection.
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

    /// Sends the final stanzas, as far as the device still reads.
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
