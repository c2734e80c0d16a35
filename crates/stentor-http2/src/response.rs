//! A response, and its kept content.

use std::fmt;
use std::sync::Arc;

use http::{HeaderMap, HeaderValue};

/// The status of a response without other content.
pub(crate) const PLAIN_STATUS: u16 = 200;

/// The peer's response.
#[derive(Clone)]
pub struct Response {
    /// HTTP status.
    pub status: u16,
    /// True if a kept body is incomplete: too long, too slow, or broken off.
    pub truncated: bool,
    kept: Option<Box<ResponseContent>>,
}

impl Response {
    pub(crate) const fn new(status: u16, truncated: bool, content: Option<Box<ResponseContent>>) -> Self {
        Self { status, truncated, kept: content }
    }

    /// Returns a header; `None` also if the response was not kept.
    #[must_use]
    pub fn header(&self, name: impl http::header::AsHeaderName) -> Option<&HeaderValue> {
        self.kept.as_ref()?.headers.get(name)
    }

    /// Returns the size of the kept headers and body in bytes.
    #[must_use]
    pub fn kept_bytes(&self) -> usize {
        self.kept.as_ref().map_or(0, |content| content.bytes())
    }

    /// Returns the body, cut at `max_reply_body_bytes`; empty also if the response was not kept.
    #[must_use]
    pub fn body(&self) -> &[u8] {
        self.kept.as_ref().map_or(&[], |content| &content.body)
    }
}

impl fmt::Debug for Response {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let body = self.body().len();
        f.debug_struct("Response").field("status", &self.status).field("body_bytes", &body).finish()
    }
}

/// The response that halted a client; equal only to itself.
#[derive(Debug, Clone)]
pub struct HaltResponse(pub(crate) Arc<Response>);

impl HaltResponse {
    pub(crate) fn of(response: &Response) -> Self {
        Self(Arc::new(response.clone()))
    }

    /// Returns the response.
    #[must_use]
    pub fn response(&self) -> &Response {
        &self.0
    }
}

impl PartialEq for HaltResponse {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for HaltResponse {}

/// The kept content of a response beside its status.
#[derive(Debug, Clone, Default)]
pub(crate) struct ResponseContent {
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
    /// True if the body received was longer than the part kept.
    pub(crate) is_cut: bool,
}

impl ResponseContent {
    /// Returns the size of headers and body in bytes.
    fn bytes(&self) -> usize {
        let headers = self.headers.iter().map(|(name, value)| name.as_str().len() + value.len());
        headers.sum::<usize>() + self.body.capacity()
    }
}
