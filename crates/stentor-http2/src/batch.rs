//! What goes in and what comes out.

use std::time::Duration;

use bytes::Bytes;
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderName, HeaderValue};

use crate::fault::Fault;

/// Requests handed over in one call, all with the method POST.
#[derive(Debug, Clone, Default)]
pub struct Batch {
    /// Headers of every request; mark secrets with [`HeaderValue::set_sensitive`].
    pub constant: Vec<(HeaderName, HeaderValue)>,
    /// The requests.
    pub requests: Vec<Request>,
    /// A request that has no stream after this long is not sent; `None` leaves it to the client's own limit.
    pub start_within: Option<Duration>,
}

/// One request of a batch.
#[derive(Debug, Clone)]
pub struct Request {
    /// Path and query.
    pub path: PathAndQuery,
    /// Headers of its own, beside the constant ones.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// Body; empty means none.
    pub body: Bytes,
}

/// What the peer answered.
#[derive(Debug, Clone)]
pub struct Response {
    /// HTTP status.
    pub status: u16,
    /// All its headers.
    pub headers: HeaderMap,
    /// Its body, cut at `max_reply_body_bytes`.
    pub body: Bytes,
    /// Whether `body` lacks its end: too long, too slow, or broken off.
    pub truncated: bool,
}

/// What became of one request.
#[derive(Debug, Clone)]
pub enum Reply {
    /// The peer answered.
    Answered(Response),
    /// The peer certainly did not process it: sending it again is safe.
    NotSent(Fault),
    /// Written, at least in part, and never answered: perhaps processed, perhaps not.
    Unanswered(Fault),
}
