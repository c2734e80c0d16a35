//! Protocol errors of the peer.

use stentor_http2_codec::frame::ErrorCode;

/// A protocol error of the peer, with its code and description. It ends the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Violation(pub(crate) ErrorCode, pub(crate) &'static str);
