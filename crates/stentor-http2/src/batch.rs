//! Requests and replies of a batch.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderName, HeaderValue};

use crate::fault::Fault;
use crate::line::Line;
use crate::response::{PLAIN_STATUS, Response, ResponseContent};

/// Requests handed over in one call, all with the method POST.
#[derive(Clone)]
pub struct RequestBatch {
    /// Headers of every request.
    pub constant: Vec<(HeaderName, HeaderValue)>,
    /// Path and query of every request; `None` if each request has its own.
    pub path: Option<PathAndQuery>,
    /// The requests.
    pub requests: Arc<dyn Requests>,
    /// Longest wait of a request for a stream. Later it is not sent. `None` applies the client's own limit.
    pub start_within: Option<Duration>,
    /// The responses that keep their headers and bodies.
    pub keep: Keep,
    /// True if the requests failed before. Repeated failures are weak evidence about the peer, so no response to this batch halts the
    /// client.
    pub repeated: bool,
}

impl fmt::Debug for RequestBatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batch").field("requests", &self.requests.count()).finish_non_exhaustive()
    }
}

/// Selects the responses that keep their headers and bodies. The status is always kept.
#[derive(Debug, Clone, Copy, Default)]
pub enum Keep {
    /// All responses.
    #[default]
    All,
    /// All responses but those with a status of 2xx, which then need no memory.
    Refusals,
    /// Like [`Keep::Refusals`], but only an excerpt of each response, so that unneeded headers and bodies do not occupy memory until the
    /// batch ends.
    Excerpts(Excerpt),
}

impl Keep {
    pub(crate) const fn keeps_all(self) -> bool {
        matches!(self, Self::All)
    }

    pub(crate) const fn excerpt(self) -> Option<Excerpt> {
        match self {
            Self::Excerpts(excerpt) => Some(excerpt),
            Self::All | Self::Refusals => None,
        }
    }
}

/// The part of a response that its reader needs.
#[derive(Debug, Clone, Copy)]
pub struct Excerpt {
    /// Names of the headers to keep, in lower case. A value longer than [`EXCERPT_HEADER_MAX_BYTES`] is dropped.
    pub headers: &'static [&'static str],
    /// Extracts the part of a body to keep. A result longer than [`EXCERPT_BODY_MAX_BYTES`] is dropped as a whole.
    pub body: fn(&[u8]) -> Vec<u8>,
}

/// Most bytes of one header's value in an [`Excerpt`].
pub const EXCERPT_HEADER_MAX_BYTES: usize = 128;
/// Most bytes of a body in an [`Excerpt`].
pub const EXCERPT_BODY_MAX_BYTES: usize = 1_024;

impl Excerpt {
    /// Returns the headers to keep.
    pub(crate) fn headers(self, mut all: HeaderMap) -> HeaderMap {
        let mut few = HeaderMap::new();
        for name in self.headers {
            if let Some(value) = all.remove(*name).filter(|value| value.len() <= EXCERPT_HEADER_MAX_BYTES) {
                // A separate copy, so that it does not retain the buffer from which the value was read.
                let own = HeaderValue::from_bytes(value.as_bytes()).unwrap_or(value);
                few.insert(HeaderName::from_static(name), own);
            }
        }
        few
    }

    /// Reduces the body received so far to the excerpt.
    pub(crate) fn cut(self, content: &mut ResponseContent) {
        let mut body = (self.body)(&content.body);
        if body.len() > EXCERPT_BODY_MAX_BYTES {
            body.clear();
            content.is_cut = true;
        }
        body.shrink_to_fit();
        content.body = body;
    }
}

/// The requests of a batch, written one by one straight into a connection's buffer.
pub trait Requests: Send + Sync {
    /// Returns the number of requests.
    fn count(&self) -> usize;

    /// Writes request `index`: its path (unless the batch has one), its headers, its body, in this order.
    ///
    /// It may be called again for a request that is sent again.
    fn write(&self, index: usize, line: &mut Line<'_>);
}

/// A request with its own path, headers and body.
#[derive(Debug, Clone)]
pub struct Request {
    /// Path and query.
    pub path: PathAndQuery,
    /// Headers of this request, in addition to the constant ones.
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

/// The outcome of one request.
#[derive(Debug, Clone)]
pub enum Reply {
    /// The peer responded.
    Answered(Response),
    /// The peer certainly did not process the request: sending it again is safe.
    NotSent(Fault),
    /// The request was written, at least in part, and got no response: the peer may have processed it.
    Unanswered(Fault),
}

impl Reply {
    /// Finds the responses that demand a pause. Returns their number and the last of them.
    pub(crate) fn halting<'a>(
        replies: impl Iterator<Item = &'a Self>,
        halts: fn(&Response) -> bool,
    ) -> (usize, Option<&'a Response>) {
        let halting = replies.filter_map(|reply| match reply {
            Self::Answered(response) if response.status >= 400 && halts(response) => Some(response),
            _ => None,
        });
        halting.fold((0, None), |(count, _), response| (count + 1, Some(response)))
    }
}

/// The outcomes of a batch: reply i belongs to request i.
///
/// A 200 without kept content ([`Keep::Refusals`]) takes no memory here, because nearly all replies are of this kind.
#[derive(Debug, Clone, Default)]
pub struct Replies {
    count: usize,
    /// All other replies, ascending.
    others: Vec<(u32, Reply)>,
}

impl Replies {
    pub(crate) fn new(count: usize, mut others: Vec<(u32, Reply)>) -> Self {
        others.sort_unstable_by_key(|(at, _)| *at);
        Self { count, others }
    }

    /// Returns the number of requests.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.count
    }

    /// Returns true if the batch had no requests.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Returns all replies except plain 200s, with their indices, ascending.
    pub fn others(&self) -> impl Iterator<Item = (usize, &Reply)> {
        self.others.iter().map(|(at, reply)| (*at as usize, reply))
    }

    /// The same, by value.
    pub fn into_others(self) -> impl Iterator<Item = (usize, Reply)> {
        self.others.into_iter().map(|(at, reply)| (at as usize, reply))
    }

    /// Replaces the replies at `places` by the replies of the requests sent again; `places` ascend.
    pub fn renew(&mut self, places: &[usize], again: Self) {
        self.others.retain(|(at, _)| places.binary_search(&(*at as usize)).is_err());
        let moved = again.into_others().filter_map(|(at, reply)| Some((*places.get(at)? as u32, reply)));
        self.others.extend(moved);
        self.others.sort_unstable_by_key(|(at, _)| *at);
    }

    /// Returns a reply for each request.
    #[must_use]
    pub fn into_vec(self) -> Vec<Reply> {
        let mut all = vec![Reply::Answered(Response::new(PLAIN_STATUS, false, None)); self.count];
        self.others.into_iter().for_each(|(at, reply)| all[at as usize] = reply);
        all
    }
}

/// The replies received so far by a batch that still waits for others.
#[derive(Debug, Clone, Default)]
pub struct Part {
    /// The replies. Those at the missing indices are meaningless.
    pub replies: Replies,
    /// Indices of the requests without a reply, ascending.
    pub missing: Vec<usize>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::Fault;

    fn statuses(replies: Replies) -> Vec<u16> {
        let status = |reply| if let Reply::Answered(response) = reply { response.status } else { 0 };
        replies.into_vec().into_iter().map(status).collect()
    }

    fn answered(status: u16) -> Reply {
        Reply::Answered(Response::new(status, false, None))
    }

    #[test]
    fn what_is_no_plain_200_is_kept_at_its_place() {
        let replies = Replies::new(4, vec![(3, answered(410)), (0, Reply::NotSent(Fault::Closed))]);
        assert_eq!(replies.others().map(|(at, _)| at).collect::<Vec<_>>(), [0, 3]);
        assert_eq!(statuses(replies), [0, 200, 200, 410]);
    }

    #[test]
    fn replies_to_requests_that_went_again_take_the_places_of_those_before() {
        let mut replies = Replies::new(4, vec![(0, answered(400)), (1, answered(403)), (3, answered(403))]);
        replies.renew(&[1, 3], Replies::new(2, vec![(1, answered(410))]));
        assert_eq!(replies.others().map(|(at, _)| at).collect::<Vec<_>>(), [0, 3]);
        assert_eq!(statuses(replies), [400, 200, 200, 410]);
    }
}
