//! The decoding error of header blocks.

/// The defect of a malformed header block. It ends the connection (RFC 9113, section 4.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Malformed(pub &'static str);
