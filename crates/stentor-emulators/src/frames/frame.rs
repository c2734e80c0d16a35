//! Frames and their numbers (RFC 9113, sections 4, 6 and 7).

pub(crate) const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
pub(crate) const HEADER_BYTES: usize = 9;
/// The largest payload that a peer may send: no other limit is announced.
pub(crate) const MAX_PAYLOAD_BYTES: usize = 16 * 1024;
/// The window of a stream or connection before anybody says otherwise, in bytes.
pub(crate) const FIRST_WINDOW_BYTES: u32 = 65_535;
pub(crate) const MAX_WINDOW_BYTES: u32 = 0x7fff_ffff;

pub(crate) const DATA: u8 = 0;
pub(crate) const HEADERS: u8 = 1;
pub(crate) const PRIORITY: u8 = 2;
pub(crate) const RST_STREAM: u8 = 3;
pub(crate) const SETTINGS: u8 = 4;
pub(crate) const PUSH_PROMISE: u8 = 5;
pub(crate) const PING: u8 = 6;
pub(crate) const GOAWAY: u8 = 7;
pub(crate) const WINDOW_UPDATE: u8 = 8;
pub(crate) const CONTINUATION: u8 = 9;

pub(crate) const ACK: u8 = 0x1;
pub(crate) const END_STREAM: u8 = 0x1;
pub(crate) const END_HEADERS: u8 = 0x4;
pub(crate) const PADDED: u8 = 0x8;
pub(crate) const WITH_PRIORITY: u8 = 0x20;

pub(crate) const SETTING_TABLE_BYTES: u16 = 1;
pub(crate) const SETTING_ENABLE_PUSH: u16 = 2;
pub(crate) const SETTING_MAX_STREAMS: u16 = 3;
pub(crate) const SETTING_FIRST_WINDOW: u16 = 4;
pub(crate) const SETTING_MAX_FRAME: u16 = 5;
pub(crate) const SETTING_MAX_HEADER_LIST: u16 = 6;

/// An error code (RFC 9113, section 7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Code(pub(crate) u32);

impl Code {
    pub(crate) const NO_ERROR: Self = Self(0);
    pub(crate) const PROTOCOL_ERROR: Self = Self(1);
    pub(crate) const FLOW_CONTROL_ERROR: Self = Self(3);
    pub(crate) const STREAM_CLOSED: Self = Self(5);
    pub(crate) const FRAME_SIZE_ERROR: Self = Self(6);
    pub(crate) const REFUSED_STREAM: Self = Self(7);
    pub(crate) const COMPRESSION_ERROR: Self = Self(9);
    pub(crate) const ENHANCE_YOUR_CALM: Self = Self(11);
}

/// What a peer did wrong, and how far the damage goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Breach {
    /// The connection ends with GOAWAY; the text is its debug data.
    Connection(Code, &'static str),
    /// The stream ends with RST_STREAM.
    Stream(Code),
}

/// One frame in the buffer it was read into.
#[derive(Clone, Copy)]
pub(crate) struct Frame<'a> {
    pub(crate) kind: u8,
    pub(crate) flags: u8,
    pub(crate) stream: u32,
    pub(crate) payload: &'a [u8],
}

impl<'a> Frame<'a> {
    /// Cuts the first frame off; `None` when it is not there whole.
    #[inline]
    pub(crate) fn cut(bytes: &'a [u8]) -> Result<Option<(Self, &'a [u8])>, Breach> {
        let Some((header, rest)) = bytes.split_first_chunk::<HEADER_BYTES>() else { return Ok(None) };
        let [l0, l1, l2, kind, flags, s0, s1, s2, s3] = *header;
        let length = u32::from_be_bytes([0, l0, l1, l2]) as usize;
        if length > MAX_PAYLOAD_BYTES {
            return Err(Breach::Connection(Code::FRAME_SIZE_ERROR, "a frame above the announced size"));
        }
        let Some((payload, rest)) = rest.split_at_checked(length) else { return Ok(None) };
        let stream = u32::from_be_bytes([s0, s1, s2, s3]) & MAX_WINDOW_BYTES;
        Ok(Some((Frame { kind, flags, stream, payload }, rest)))
    }

    pub(crate) fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// Returns the payload without padding.
    #[inline]
    pub(crate) fn unpadded(&self) -> Result<&'a [u8], Breach> {
        if !self.has(PADDED) {
            return Ok(self.payload);
        }
        let bad = Breach::Connection(Code::PROTOCOL_ERROR, "padding longer than its frame");
        let (padding, rest) = self.payload.split_first().ok_or(bad)?;
        let length = rest.len().checked_sub(usize::from(*padding)).ok_or(bad)?;
        Ok(&rest[..length])
    }

    /// Returns the payload of a fixed size as one number, its first four bytes.
    pub(crate) fn number(&self) -> Result<u32, Breach> {
        let number = <[u8; 4]>::try_from(self.payload);
        let number =
            number.map_err(|_| Breach::Connection(Code::FRAME_SIZE_ERROR, "a frame of the wrong size"))?;
        Ok(u32::from_be_bytes(number))
    }
}

/// Writes a frame header.
#[inline]
pub(crate) fn write_header(out: &mut Vec<u8>, length: usize, kind: u8, flags: u8, stream: u32) {
    let [_, l0, l1, l2] = (length as u32).to_be_bytes();
    let [s0, s1, s2, s3] = stream.to_be_bytes();
    out.extend_from_slice(&[l0, l1, l2, kind, flags, s0, s1, s2, s3]);
}

/// Writes a frame whose payload is one number.
pub(crate) fn write_number(out: &mut Vec<u8>, kind: u8, stream: u32, number: u32) {
    write_header(out, 4, kind, 0, stream);
    out.extend_from_slice(&number.to_be_bytes());
}

/// Writes a SETTINGS frame.
pub(crate) fn write_settings(out: &mut Vec<u8>, settings: &[(u16, u32)]) {
    write_header(out, settings.len() * 6, SETTINGS, 0, 0);
    for (name, value) in settings {
        out.extend_from_slice(&name.to_be_bytes());
        out.extend_from_slice(&value.to_be_bytes());
    }
}

/// Writes a GOAWAY frame.
pub(crate) fn write_goaway(out: &mut Vec<u8>, last_stream: u32, code: Code, debug: &[u8]) {
    write_header(out, 8 + debug.len(), GOAWAY, 0, 0);
    out.extend_from_slice(&last_stream.to_be_bytes());
    out.extend_from_slice(&code.0.to_be_bytes());
    out.extend_from_slice(debug);
}
