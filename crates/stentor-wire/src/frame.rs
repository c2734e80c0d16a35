//! Frames: a length of four bytes, the most significant first, and a payload of that length.

use crate::{DocumentLimits, WireError};

/// Size of the length in front.
pub const HEADER_BYTES: usize = 4;
/// Size of the consumed part from which the rest of a buffer is moved to its beginning.
const COMPACT_BYTES: usize = 64 << 10;

/// Prepends the length to a payload.
pub fn write(payload: &[u8]) -> Result<Vec<u8>, WireError> {
    let length =
        u32::try_from(payload.len()).map_err(|_| WireError::TooLarge { max_bytes: u32::MAX as usize })?;
    let mut frame = Vec::with_capacity(HEADER_BYTES + payload.len());
    frame.extend_from_slice(&length.to_be_bytes());
    frame.extend_from_slice(payload);
    Ok(frame)
}

/// Finds frames in bytes that arrive in pieces of any size.
#[derive(Debug)]
pub struct Frames {
    limits: DocumentLimits,
    buffer: Vec<u8>,
    /// Bytes of the buffer that belong to frames already returned.
    read: usize,
}

impl Frames {
    /// Creates an empty decoder.
    #[must_use]
    pub const fn new(limits: DocumentLimits) -> Self {
        Self { limits, buffer: Vec::new(), read: 0 }
    }

    /// Appends received bytes.
    pub fn feed(&mut self, bytes: &[u8]) {
        if self.read >= COMPACT_BYTES || self.read == self.buffer.len() {
            self.buffer.drain(..self.read);
            self.read = 0;
        }
        self.buffer.extend_from_slice(bytes);
    }

    /// Returns the payload of the next complete frame; `None` until it is complete. A length above the limit is refused as soon as it is
    /// known, before memory is allocated for it; after that no further frame can be found.
    pub fn frame(&mut self) -> Result<Option<Vec<u8>>, WireError> {
        let waiting = &self.buffer[self.read..];
        let Some((header, rest)) = waiting.split_first_chunk::<HEADER_BYTES>() else { return Ok(None) };
        let length = u32::from_be_bytes(*header) as usize;
        self.limits.check_size(length)?;
        let Some(payload) = rest.get(..length) else { return Ok(None) };
        let payload = payload.to_vec();
        self.read += HEADER_BYTES + length;
        Ok(Some(payload))
    }

    /// Counts the bytes that wait for the rest of their frame.
    #[must_use]
    pub const fn waiting_bytes(&self) -> usize {
        self.buffer.len() - self.read
    }
}
