//! Frames and their numbers (RFC 9113, sections 4, 6 and 7).

mod error_code;
#[cfg(test)]
mod tests;

pub use error_code::ErrorCode;

/// The connection preface, which a client sends before its first frame.
pub const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Bytes before every payload.
pub const FRAME_HEADER_BYTES: usize = 9;
/// Largest payload until a SETTINGS frame raises the limit.
pub const PAYLOAD_DEFAULT_MAX_BYTES: usize = 16_384;
/// Largest payload that SETTINGS can allow.
pub const PAYLOAD_LIMIT_BYTES: usize = (1 << 24) - 1;
/// Initial size of every flow-control window.
pub const WINDOW_DEFAULT_BYTES: u32 = 65_535;
/// Largest flow-control window.
pub const WINDOW_MAX_BYTES: u32 = (1 << 31) - 1;
/// Bytes of one setting in a SETTINGS frame: its id and its value.
pub const SETTING_BYTES: usize = 6;

/// The highest bit of a stream id or a window increment is reserved.
const WITHOUT_RESERVED_BIT: u32 = (1 << 31) - 1;

/// Kinds of frames.
#[expect(missing_docs, reason = "the names are those of RFC 9113, section 6")]
pub mod kind {
    pub const DATA: u8 = 0;
    pub const HEADERS: u8 = 1;
    pub const PRIORITY: u8 = 2;
    pub const RST_STREAM: u8 = 3;
    pub const SETTINGS: u8 = 4;
    pub const PUSH_PROMISE: u8 = 5;
    pub const PING: u8 = 6;
    pub const GOAWAY: u8 = 7;
    pub const WINDOW_UPDATE: u8 = 8;
    pub const CONTINUATION: u8 = 9;
}

/// Flags of frames.
#[expect(missing_docs, reason = "the names are those of RFC 9113, section 6")]
pub mod flag {
    pub const ACK: u8 = 0x1;
    pub const END_STREAM: u8 = 0x1;
    pub const END_HEADERS: u8 = 0x4;
    pub const PADDED: u8 = 0x8;
    pub const PRIORITY: u8 = 0x20;
}

/// Ids of settings.
#[expect(missing_docs, reason = "the names are those of RFC 9113, section 6.5.2")]
pub mod setting {
    pub const HEADER_TABLE_SIZE: u16 = 1;
    pub const ENABLE_PUSH: u16 = 2;
    pub const MAX_CONCURRENT_STREAMS: u16 = 3;
    pub const INITIAL_WINDOW_SIZE: u16 = 4;
    pub const MAX_FRAME_SIZE: u16 = 5;
    pub const MAX_HEADER_LIST_SIZE: u16 = 6;
}

/// The nine bytes before a payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameHeader {
    /// Bytes of the payload.
    pub length: usize,
    /// One of [`kind`], or unknown.
    pub kind: u8,
    /// Bits of [`flag`]; their meaning depends on the kind.
    pub flags: u8,
    /// The stream, or 0 for the connection.
    pub stream: u32,
}

impl FrameHeader {
    /// Reads a header off the front; returns `None` if it is incomplete.
    #[inline]
    #[must_use]
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let [l0, l1, l2, kind, flags, s0, s1, s2, s3] = *bytes.first_chunk::<FRAME_HEADER_BYTES>()?;
        let length = u32::from_be_bytes([0, l0, l1, l2]) as usize;
        let stream = u32::from_be_bytes([s0, s1, s2, s3]) & WITHOUT_RESERVED_BIT;
        Some(Self { length, kind, flags, stream })
    }

    /// Appends the header.
    #[inline]
    pub fn write(self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.bytes());
    }

    /// Writes the header into the room left for it at `at`.
    #[inline]
    pub fn fill(self, out: &mut [u8], at: usize) {
        out[at..at + FRAME_HEADER_BYTES].copy_from_slice(&self.bytes());
    }

    /// Returns true if a flag is set.
    #[inline]
    #[must_use]
    pub const fn has(self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    #[inline]
    fn bytes(self) -> [u8; FRAME_HEADER_BYTES] {
        let [_, l0, l1, l2] = (self.length as u32).to_be_bytes();
        let [s0, s1, s2, s3] = self.stream.to_be_bytes();
        [l0, l1, l2, self.kind, self.flags, s0, s1, s2, s3]
    }
}

/// Returns a payload without its padding (RFC 9113, section 6.1). Fails if the padding is malformed.
#[inline]
pub fn unpadded(header: FrameHeader, payload: &[u8]) -> Result<&[u8], (ErrorCode, &'static str)> {
    if !header.has(flag::PADDED) {
        return Ok(payload);
    }
    let empty = (ErrorCode::FRAME_SIZE_ERROR, "a padded frame is empty");
    let (&padding, rest) = payload.split_first().ok_or(empty)?;
    let too_long = (ErrorCode::PROTOCOL_ERROR, "a frame's padding is longer than the frame");
    let length = rest.len().checked_sub(usize::from(padding)).ok_or(too_long)?;
    Ok(&rest[..length])
}

/// Returns the number in the four bytes at `at`; `None` if the payload ends earlier.
#[inline]
#[must_use]
pub fn number(payload: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(*payload.get(at..)?.first_chunk()?))
}

/// Clears the reserved highest bit of a stream id or a window increment.
#[must_use]
pub const fn without_reserved_bit(number: u32) -> u32 {
    number & WITHOUT_RESERVED_BIT
}

/// Appends a whole frame.
pub fn write(kind: u8, flags: u8, stream: u32, payload: &[u8], out: &mut Vec<u8>) {
    FrameHeader { length: payload.len(), kind, flags, stream }.write(out);
    out.extend_from_slice(payload);
}

/// Appends a frame with a single number as its payload: RST_STREAM or WINDOW_UPDATE.
pub fn write_number(kind: u8, stream: u32, number: u32, out: &mut Vec<u8>) {
    write(kind, 0, stream, &number.to_be_bytes(), out);
}

/// Appends a SETTINGS frame with pairs of id and value.
pub fn write_settings(settings: &[(u16, u32)], out: &mut Vec<u8>) {
    let length = settings.len() * SETTING_BYTES;
    FrameHeader { length, kind: kind::SETTINGS, flags: 0, stream: 0 }.write(out);
    for (id, value) in settings {
        out.extend_from_slice(&id.to_be_bytes());
        out.extend_from_slice(&value.to_be_bytes());
    }
}

/// Appends a GOAWAY frame.
pub fn write_goaway(last_stream: u32, code: ErrorCode, debug: &[u8], out: &mut Vec<u8>) {
    FrameHeader { length: 8 + debug.len(), kind: kind::GOAWAY, flags: 0, stream: 0 }.write(out);
    out.extend_from_slice(&last_stream.to_be_bytes());
    out.extend_from_slice(&code.0.to_be_bytes());
    out.extend_from_slice(debug);
}

/// Returns the settings of a SETTINGS payload; `None` if its length is not a multiple of [`SETTING_BYTES`].
#[must_use]
pub fn settings(payload: &[u8]) -> Option<impl Iterator<Item = (u16, u32)>> {
    let (settings, []) = payload.as_chunks::<SETTING_BYTES>() else { return None };
    let pair = |&[i0, i1, v0, v1, v2, v3]: &[u8; SETTING_BYTES]| {
        (u16::from_be_bytes([i0, i1]), u32::from_be_bytes([v0, v1, v2, v3]))
    };
    Some(settings.iter().map(pair))
}
