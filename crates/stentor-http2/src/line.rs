//! The writer of one request into a connection's buffer: header block first, then the body.

use http::HeaderName;
use stentor_http2_codec::frame::{FRAME_HEADER_BYTES, FrameHeader, flag, kind};
use stentor_http2_codec::hpack::{write_integer, write_literal};

/// `:path` in the static table, as the name of a literal that enters no table (RFC 7541, section 6.2.2).
const LITERAL_PATH: u8 = 0x04;

/// The request being written; created by a connection, filled by [`Requests::write`](crate::Requests::write).
pub struct Line<'a> {
    out: &'a mut Vec<u8>,
    /// The encoded shared fields that follow the path.
    shared: &'a [u8],
    begins_at: usize,
    step: Step,
    /// Offset of the body after the header block, before its frame header is filled in; 0 without a body.
    body_at: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Path,
    Headers,
    Body,
    Broken(&'static str),
}

impl<'a> Line<'a> {
    /// Starts a request after the shared pseudo-headers, which are in `out` from `begins_at` on, preceded by space for a frame header.
    pub(crate) fn new(out: &'a mut Vec<u8>, begins_at: usize, shared: &'a [u8], has_path: bool) -> Self {
        let mut line = Self { out, shared, begins_at, step: Step::Path, body_at: 0 };
        if has_path {
            line.end_path();
        }
        line
    }

    /// Writes path and query in parts.
    pub fn path(&mut self, parts: &[&[u8]]) {
        let clean = parts.iter().all(|part| every(part, |byte| byte.is_ascii_graphic()));
        match self.step {
            Step::Path if clean => {
                self.out.push(LITERAL_PATH);
                self.text(parts);
                self.end_path();
            }
            Step::Path => self.step = Step::Broken("its path is not printable"),
            _ => self.step = Step::Broken("its path is written twice or too late"),
        }
    }

    /// Writes a header of this request.
    pub fn header(&mut self, name: &HeaderName, value: &[u8]) {
        let clean = every(value, |byte| matches!(byte, b'\t' | 0x20..=0x7e | 0x80..));
        match self.step {
            Step::Headers if clean => write_literal(name.as_str().as_bytes(), value, self.out),
            Step::Headers => self.step = Step::Broken("a header holds a control character"),
            _ => self.step = Step::Broken("a header is written before the path or after the body"),
        }
    }

    /// Writes the body in parts. Without this call the request has no body.
    pub fn body(&mut self, parts: &[&[u8]]) {
        if self.step != Step::Headers {
            self.step = Step::Broken("its body is written before the path or twice");
            return;
        }
        self.step = Step::Body;
        if parts.iter().all(|part| part.is_empty()) {
            return;
        }
        self.body_at = self.out.len();
        self.out.extend_from_slice(&[0; FRAME_HEADER_BYTES]);
        parts.iter().for_each(|part| self.out.extend_from_slice(part));
    }

    /// Ends the request. Returns the offset of its body in the buffer, if it has one; space for a frame header precedes it.
    pub(crate) fn end(self, stream: u32) -> Result<Option<usize>, &'static str> {
        match self.step {
            Step::Broken(problem) => return Err(problem),
            Step::Path => return Err("it has no path"),
            Step::Headers | Step::Body => {}
        }
        let bare = self.body_at == 0;
        let block_end = if bare { self.out.len() } else { self.body_at };
        let flags = flag::END_HEADERS | if bare { flag::END_STREAM } else { 0 };
        let length = block_end - self.begins_at - FRAME_HEADER_BYTES;
        FrameHeader { length, kind: kind::HEADERS, flags, stream }.fill(self.out, self.begins_at);
        Ok((!bare).then_some(self.body_at + FRAME_HEADER_BYTES))
    }

    fn end_path(&mut self) {
        self.out.extend_from_slice(self.shared);
        self.step = Step::Headers;
    }

    fn text(&mut self, parts: &[&[u8]]) {
        write_integer(0, 7, parts.iter().map(|part| part.len()).sum(), self.out);
        parts.iter().for_each(|part| self.out.extend_from_slice(part));
    }
}

/// Tests all bytes without stopping early, which compilers turn into a few SIMD instructions.
fn every(bytes: &[u8], holds: impl Fn(u8) -> bool) -> bool {
    bytes.iter().fold(true, |all, byte| all & holds(*byte))
}
