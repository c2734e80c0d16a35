//! Frames on the server side: cut from the front of the received bytes, or rejected.

use stentor_http2_codec::frame::{
    ErrorCode, FRAME_HEADER_BYTES, FrameHeader, PAYLOAD_DEFAULT_MAX_BYTES, number, unpadded,
};

/// A protocol violation by the peer, with its scope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Breach {
    /// The connection ends with GOAWAY; the text is its debug data.
    Connection(ErrorCode, &'static str),
    /// The stream ends with RST_STREAM.
    Stream(ErrorCode),
}

/// One frame in the buffer it was read into.
#[derive(Clone, Copy)]
pub(crate) struct Frame<'a> {
    pub(crate) header: FrameHeader,
    pub(crate) payload: &'a [u8],
}

impl<'a> Frame<'a> {
    /// Cuts the first frame off; `None` if it is incomplete.
    #[inline]
    pub(crate) fn cut(bytes: &'a [u8]) -> Result<Option<(Self, &'a [u8])>, Breach> {
        let Some(header) = FrameHeader::read(bytes) else { return Ok(None) };
        // No other limit is announced.
        if header.length > PAYLOAD_DEFAULT_MAX_BYTES {
            return Err(Breach::Connection(ErrorCode::FRAME_SIZE_ERROR, "a frame above the announced size"));
        }
        let rest = &bytes[FRAME_HEADER_BYTES..];
        let Some((payload, rest)) = rest.split_at_checked(header.length) else { return Ok(None) };
        Ok(Some((Frame { header, payload }, rest)))
    }

    pub(crate) fn has(&self, flag: u8) -> bool {
        self.header.has(flag)
    }

    /// Returns the payload without padding.
    #[inline]
    pub(crate) fn unpadded(&self) -> Result<&'a [u8], Breach> {
        unpadded(self.header, self.payload).map_err(|(code, text)| Breach::Connection(code, text))
    }

    /// Returns the payload of a fixed size as one number.
    pub(crate) fn number(&self) -> Result<u32, Breach> {
        let number = number(self.payload, 0).filter(|_| self.payload.len() == 4);
        number.ok_or(Breach::Connection(ErrorCode::FRAME_SIZE_ERROR, "a frame of the wrong size"))
    }
}
