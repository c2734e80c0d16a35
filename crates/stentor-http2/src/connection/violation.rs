//! How the peer broke the protocol.

use stentor_http2_codec::frame::ErrorCode;

/// How the peer broke the protocol: the end of the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Violation(pub(crate) ErrorCode, pub(crate) &'static str);
