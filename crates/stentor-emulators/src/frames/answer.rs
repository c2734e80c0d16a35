//! The encoded response of a host to one request.

use stentor_http2_codec::frame::ErrorCode;
use stentor_http2_codec::hpack::{write_literal, write_status};
use tokio::time::Instant;

/// A response, encoded as far as possible before its turn. Its buffers are reused.
#[derive(Default)]
pub(crate) struct EncodedAnswer {
    pub(super) block: Vec<u8>,
    pub(super) body: Vec<u8>,
}

/// The time at which a response is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum When {
    /// With the other answers of the same read.
    Now,
    /// Not before this instant.
    At(Instant),
    /// When it is released.
    Released,
}

impl EncodedAnswer {
    /// Starts a response.
    pub(crate) fn status(&mut self, status: u16) {
        self.block.clear();
        self.body.clear();
        write_status(status, &mut self.block);
    }

    /// Adds a header field; the name is in lower case.
    pub(crate) fn field(&mut self, name: &[u8], value: &[u8]) {
        write_literal(name, value, &mut self.block);
    }

    /// Returns the body for appending; an empty one means headers only.
    pub(crate) fn body(&mut self) -> &mut Vec<u8> {
        &mut self.body
    }

    /// Answers with RST_STREAM instead of a response.
    pub(crate) fn reset(&mut self, code: ErrorCode) {
        self.block.clear();
        self.body.clear();
        self.body.extend_from_slice(&code.0.to_be_bytes());
    }
}

/// Returns the code of an answer that is a reset: a response has at least a status in its header block.
pub(super) fn reset_code(block: &[u8], body: &[u8]) -> Option<ErrorCode> {
    let code = block.is_empty().then(|| body.first_chunk())??;
    Some(ErrorCode(u32::from_be_bytes(*code)))
}
