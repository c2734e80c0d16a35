//! Reasons for a request without a response.

use std::sync::Arc;

use crate::response::HaltResponse;

/// The reason why a request got no response.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// The configured endpoint is unusable.
    #[error("the endpoint is misconfigured: {0}")]
    Endpoint(Arc<str>),
    /// The request itself cannot be written.
    #[error("the request is malformed: {0}")]
    Request(Arc<str>),
    /// No address of the host is allowed.
    #[error("may not connect: {0}")]
    AddressRefused(Arc<str>),
    /// TCP connection failed.
    #[error("cannot connect: {0}")]
    Connect(Arc<str>),
    /// TLS handshake failed, often because no root vouches for the certificate.
    #[error("TLS failed: {0}")]
    Tls(Arc<str>),
    /// The peer does not speak HTTP/2.
    #[error("the peer does not offer HTTP/2 (ALPN `h2`)")]
    Alpn,
    /// Connecting took longer than `connect_timeout_ms`.
    #[error("connecting took too long")]
    ConnectTimeout,
    /// The request waited longer than `queue_timeout_ms` for a stream.
    #[error("waited too long for a free stream")]
    QueueTimeout,
    /// No response within `request_timeout_ms`.
    #[error("no answer in time")]
    Timeout,
    /// The peer answered no PING.
    #[error("the connection is dead: a PING was not answered")]
    DeadConnection,
    /// The peer sent GOAWAY and had not processed this stream.
    #[error("the peer went away before processing this ({0})")]
    GoAway(Arc<str>),
    /// The peer refused the stream before processing it (REFUSED_STREAM).
    #[error("the peer refused the stream")]
    Refused,
    /// The peer reset the stream.
    #[error("the peer reset the stream ({0})")]
    Reset(Arc<str>),
    /// The connection broke, or the peer broke the protocol.
    #[error("the connection was lost: {0}")]
    Lost(Arc<str>),
    /// A response to another request demanded a pause.
    #[error("the server demands a pause (HTTP status {})", .0.response().status)]
    Halted(HaltResponse),
    /// Its batch was cut off by the caller.
    #[error("the caller no longer waits for the response")]
    Abandoned,
    /// The client is closed.
    #[error("the client is closed")]
    Closed,
}

impl Fault {
    pub(crate) fn lost(cause: &dyn std::fmt::Display) -> Self {
        Self::Lost(cause.to_string().into())
    }
}
