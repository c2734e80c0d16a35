//! What goes in and what comes out.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderName, HeaderValue};

use crate::fault::Fault;
use crate::line::Line;

/// Requests handed over in one call, all with the method POST.
#[derive(Clone)]
pub struct Batch {
    /// Headers of every request.
    pub constant: Vec<(HeaderName, HeaderValue)>,
    /// Path and query of every request; `None` when each has its own.
    pub path: Option<PathAndQuery>,
    /// The requests.
    pub requests: Arc<dyn Requests>,
    /// A request that has no stream after this long is not sent; `None` leaves it to the client's own limit.
    pub start_within: Option<Duration>,
    /// Which answers are kept whole.
    pub keep: Keep,
}

impl fmt::Debug for Batch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batch").field("requests", &self.requests.count()).finish_non_exhaustive()
    }
}

/// Which answers are kept with their headers and bodies; the status is always kept.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Keep {
    /// All.
    #[default]
    All,
    /// All but those with a status of 2xx, which then cost no memory.
    Refusals,
}

/// The requests of a batch, written one by one straight into a connection's buffer.
pub trait Requests: Send + Sync {
    /// Counts them.
    fn count(&self) -> usize;

    /// Writes request `index`: its path (if the batch has none), its headers, its body, in this order.
    ///
    /// It may be called again for a request that goes again.
    fn write(&self, index: usize, line: &mut Line<'_>);
}

/// One request of its own.
#[derive(Debug, Clone)]
pub struct Request {
    /// Path and query.
    pub path: PathAndQuery,
    /// Headers of its own, beside the constant ones.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// Body; empty means none.
    pub body: Bytes,
}

impl Requests for Vec<Request> {
    fn count(&self) -> usize {
        self.len()
    }

    fn write(&self, index: usize, line: &mut Line<'_>) {
        let Request { path, headers, body } = &self[index];
        line.path(&[path.as_str().as_bytes()]);
        headers.iter().for_each(|(name, value)| line.header(name, value.as_bytes()));
        line.body(&[body]);
    }
}

/// What the peer answered.
#[derive(Clone)]
pub struct Response {
    /// HTTP status.
    pub status: u16,
    /// Whether the body, if it is kept, lacks its end: too long, too slow, or broken off.
    pub truncated: bool,
    kept: Option<Box<Kept>>,
}

/// The answer that halted a client; equal only to itself.
#[derive(Debug, Clone)]
pub struct Word(pub(crate) Arc<Response>);

impl Word {
    /// Finds the first answer that halts.
    pub(crate) fn among<'a>(
        mut replies: impl Iterator<Item = &'a Reply>,
        halts: fn(&Response) -> bool,
    ) -> Option<Self> {
        replies.find_map(|reply| match reply {
            Reply::Answered(response) if response.status >= 400 && halts(response) => {
                Some(Self(Arc::new(response.clone())))
            }
            _ => None,
        })
    }

    /// Gives the answer.
    #[must_use]
    pub fn response(&self) -> &Response {
        &self.0
    }
}

impl PartialEq for Word {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Word {}

/// What is kept of an answer beside its status.
#[derive(Debug, Clone, Default)]
pub(crate) struct Kept {
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
    /// Whether more of the body came than is kept.
    pub(crate) is_cut: bool,
}

impl Response {
    pub(crate) const fn new(status: u16, truncated: bool, kept: Option<Box<Kept>>) -> Self {
        Self { status, truncated, kept }
    }

    /// Gives a header; `None` also when the answer was not kept.
    #[must_use]
    pub fn header(&self, name: impl http::header::AsHeaderName) -> Option<&HeaderValue> {
        self.kept.as_ref()?.headers.get(name)
    }

    /// Gives the body, cut at `max_reply_body_bytes`; empty also when the answer was not kept.
    #[must_use]
    pub fn body(&self) -> &[u8] {
        self.kept.as_ref().map_or(&[], |kept| &kept.body)
    }
}

impl fmt::Debug for Response {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let body = self.body().len();
        f.debug_struct("Response").field("status", &self.status).field("body_bytes", &body).finish()
    }
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
