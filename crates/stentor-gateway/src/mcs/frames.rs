//! Parsing of stanzas from a connection. Between two stanzas it holds no memory.

use std::io;

use stentor_wire::WireError;
use stentor_wire::mcs::{McsStanza, VERSION, find_frame};
use tokio::io::{AsyncRead, AsyncReadExt};

/// Bytes read at once.
const READ_BYTES: usize = 4 << 10;

/// The reason for which no more stanzas can be read.
#[derive(Debug, thiserror::Error)]
pub enum McsReadError {
    /// The other side has ended the connection.
    #[error("the connection has ended")]
    Ended,
    /// The connection broke.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The bytes are no stanzas.
    #[error(transparent)]
    Wire(#[from] WireError),
}

/// An incremental parser of stanzas.
#[derive(Debug)]
pub struct McsReader {
    buffer: Vec<u8>,
    /// Bytes of the buffer that belong to stanzas already returned.
    read: usize,
    /// True if the version has been read, which precedes the first stanza.
    has_version: bool,
    stanza_max_bytes: usize,
}

impl McsReader {
    /// Starts before the version.
    #[must_use]
    pub const fn new(stanza_max_bytes: usize) -> Self {
        Self { buffer: Vec::new(), read: 0, has_version: false, stanza_max_bytes }
    }

    /// Takes bytes as they arrive.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.compact();
        self.buffer.extend_from_slice(bytes);
    }

    /// Returns the next stanza; `None` if it is incomplete. No further stanza can be found after an error.
    pub fn stanza(&mut self) -> Result<Option<McsStanza>, WireError> {
        if !self.has_version {
            let Some(version) = self.buffer.get(self.read) else { return Ok(None) };
            if *version != VERSION {
                return Err(WireError::Unexpected(format!("version {version} where {VERSION} was expected")));
            }
            (self.has_version, self.read) = (true, self.read + 1);
        }
        let waiting = self.buffer.get(self.read..).unwrap_or_default();
        let Some(frame) = find_frame(waiting, self.stanza_max_bytes)? else { return Ok(None) };
        let message = waiting.get(frame.begin..frame.end).unwrap_or_default();
        let stanza = McsStanza::read(frame.tag, message)?;
        self.read += frame.end;
        Ok(Some(stanza))
    }

    /// Waits for the next stanza. The call may be cancelled without losing data.
    pub async fn next(&mut self, stream: &mut (impl AsyncRead + Unpin)) -> Result<McsStanza, McsReadError> {
        loop {
            if let Some(stanza) = self.stanza()? {
                return Ok(stanza);
            }
            self.compact();
            let count = if self.buffer.is_empty() {
                // One byte first: thousands of connections wait here, and none of them needs a buffer for that.
                self.buffer = Vec::new();
                let mut first = [0];
                let count = stream.read(&mut first).await?;
                self.buffer.extend_from_slice(first.get(..count).unwrap_or_default());
                count
            } else {
                self.buffer.reserve(READ_BYTES);
                stream.read_buf(&mut self.buffer).await?
            };
            if count == 0 {
                return Err(McsReadError::Ended);
            }
        }
    }

    /// Returns true if all received bytes belong to returned stanzas.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.read == self.buffer.len()
    }

    /// Returns the number of bytes not yet returned as stanzas.
    #[must_use]
    pub const fn waiting_bytes(&self) -> usize {
        self.buffer.len() - self.read
    }

    fn compact(&mut self) {
        self.buffer.drain(..self.read);
        self.read = 0;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use stentor_wire::mcs::McsIq;

    use super::*;

    fn spoken(ids: &[String]) -> Vec<u8> {
        let mut out = vec![VERSION];
        for id in ids {
            McsStanza::Iq(McsIq::acknowledging(vec![id.clone()])).write(&mut out);
        }
        out
    }

    fn drain(reader: &mut McsReader) -> Result<Vec<McsStanza>, WireError> {
        std::iter::from_fn(|| reader.stanza().transpose()).collect()
    }

    proptest! {
        #[test]
        fn stanzas_are_found_however_their_bytes_are_cut(
            ids in prop::collection::vec("[a-z]{0,20}", 1..20), piece in 1_usize..50,
        ) {
            let bytes = spoken(&ids);
            let mut reader = McsReader::new(64);
            let mut found = Vec::new();
            for piece in bytes.chunks(piece) {
                reader.feed(piece);
                found.extend(drain(&mut reader).expect("in order"));
            }
            let expected = ids.into_iter().map(|id| McsStanza::Iq(McsIq::acknowledging(vec![id])));
            prop_assert_eq!(found, expected.collect::<Vec<_>>());
            prop_assert!(reader.is_empty());
        }

        #[test]
        fn no_bytes_make_the_reader_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let mut reader = McsReader::new(64);
            reader.feed(&[VERSION]);
            reader.feed(&bytes);
            let _ = drain(&mut reader);
        }
    }

    #[test]
    fn another_version_is_refused() {
        let mut reader = McsReader::new(64);
        reader.feed(&[40, 0, 0]);
        assert!(reader.stanza().is_err());
    }

    #[tokio::test]
    async fn a_connection_that_ends_within_a_stanza_gives_none() {
        let bytes = spoken(&["abc".to_owned()]);
        let mut reader = McsReader::new(64);
        let mut stream = &bytes[..bytes.len() - 1];
        assert!(matches!(reader.next(&mut stream).await, Err(McsReadError::Ended)));
    }
}
