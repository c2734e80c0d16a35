//! One XMPP stream over a connection: reads events, writes text.

use std::collections::VecDeque;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::time::timeout;

use super::reader::{XmppEvent, XmppLimits, XmppReadError, XmppReader};
use crate::limits::{CCS_READ_BUFFER_BYTES, CCS_WRITE_TIMEOUT};

const STREAMS: &str = "http://etherx.jabber.org/streams";
const STREAM_ERRORS: &str = "urn:ietf:params:xml:ns:xmpp-streams";

/// The reason for the end of a connection.
#[derive(Debug, thiserror::Error)]
pub(super) enum CcsEnd {
    /// The peer closed the connection, or it broke.
    #[error("the connection is closed")]
    Gone,
    /// Rejected with a stream error (RFC 6120, 4.9.3).
    #[error("stream error {0}")]
    Refused(&'static str),
}

impl From<XmppReadError> for CcsEnd {
    fn from(error: XmppReadError) -> Self {
        match error {
            XmppReadError::Malformed => Self::Refused("not-well-formed"),
            XmppReadError::TooLarge => Self::Refused("policy-violation"),
        }
    }
}

/// An XMPP stream over a connection.
pub(super) struct XmppStream<S> {
    connection: S,
    reader: XmppReader,
    events: VecDeque<XmppEvent>,
    buffer: Vec<u8>,
}

impl<S: AsyncRead + AsyncWrite + Unpin> XmppStream<S> {
    /// Creates a stream with the limits before a login.
    pub(super) fn new(connection: S) -> Self {
        let buffer = vec![0; CCS_READ_BUFFER_BYTES];
        Self {
            connection,
            reader: XmppReader::new(XmppLimits::BEFORE_LOGIN),
            events: VecDeque::new(),
            buffer,
        }
    }

    /// Waits for the peer's next event. The call may be dropped without losing any.
    pub(super) async fn next(&mut self) -> Result<XmppEvent, CcsEnd> {
        loop {
            if let Some(event) = self.events.pop_front() {
                return Ok(event);
            }
            let count = self.connection.read(&mut self.buffer).await.map_err(|_| CcsEnd::Gone)?;
            if count == 0 {
                return Err(CcsEnd::Gone);
            }
            self.events.extend(self.reader.read(&self.buffer[..count])?);
        }
    }

    /// Writes text; fails if the peer does not read for too long.
    pub(super) async fn write(&mut self, text: &str) -> Result<(), CcsEnd> {
        let written = async {
            self.connection.write_all(text.as_bytes()).await?;
            self.connection.flush().await
        };
        match timeout(CCS_WRITE_TIMEOUT, written).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) | Err(_) => Err(CcsEnd::Gone),
        }
    }

    /// Starts this side of a stream.
    pub(super) async fn open(&mut self, domain: &str, features: &str) -> Result<(), CcsEnd> {
        let id = rand::random::<u64>();
        let head = format!(
            "<?xml version='1.0'?><stream:stream xmlns='jabber:client' xmlns:stream='{STREAMS}' from='{domain}' \
             id='{id:016x}' version='1.0'><stream:features>{features}</stream:features>"
        );
        self.write(&head).await
    }

    /// Prepares for a new stream of the peer, as after a login.
    pub(super) fn restart(&mut self) {
        self.reader = XmppReader::new(XmppLimits::AFTER_LOGIN);
        // Stanzas sent before the login must not count as sent after it.
        self.events.clear();
    }

    /// Sends the reason, if there is one, and ends this side of the stream.
    pub(super) async fn close(mut self, end: &CcsEnd) {
        let text = match end {
            CcsEnd::Gone => "</stream:stream>".to_owned(),
            CcsEnd::Refused(condition) => {
                format!("<stream:error><{condition} xmlns='{STREAM_ERRORS}'/></stream:error></stream:stream>")
            }
        };
        // The peer may be gone.
        let _unwritten = self.write(&text).await;
        let _unclosed = timeout(CCS_WRITE_TIMEOUT, self.connection.shutdown()).await;
    }
}
