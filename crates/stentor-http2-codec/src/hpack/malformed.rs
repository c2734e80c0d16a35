//! What ends a connection's header compression.

/// What is wrong with a header block: the end of its connection (RFC 9113, section 4.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Malformed(pub &'static str);
