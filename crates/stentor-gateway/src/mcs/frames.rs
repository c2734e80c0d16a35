//! Stanzas from the bytes of a connection. Between two stanzas no memory is held.

use std::io;

use stentor_wire::WireError;
use stentor_wire::mcs::{McsStanza, VERSION, find_frame};
use tokio::io::{AsyncRead, AsyncReadExt};

/// Bytes that are read at once.
const READ_BYTES: usize = 4 << 10;

/// Why no more stanzas come.
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

/// Finds stanzas in bytes that arrive in pieces of any size.
#[derive(Debug)]
pub struct McsReader {
    buffer: Vec<u8>,
    /// Bytes of the buffer that belong to stanzas already given.
    read: usize,
    /// Whether the version was seen, which comes once, before the first stanza.
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

    /// Returns the next stanza; `None` until it is whole. After an error no stanza can be found any more.
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

    /// Waits for the next stanza. It may be cut off at any moment and called again: nothing is lost by that.
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

    /// Returns whether nothing has come that was not given.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.read == self.buffer.len()
    }

    /// Counts the bytes that were not given yet.
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
