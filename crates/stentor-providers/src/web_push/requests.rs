//! The requests of one message to many subscriptions, sealed one by one when they are written.

use std::sync::Arc;

use http::{HeaderName, HeaderValue};
use stentor_core::chunk::TokenList;
use stentor_core::ports::provider::Batch;
use stentor_core::time::Timestamp;
use stentor_http2::{Line, Requests};
use stentor_wire::web_push::seal;

use super::payload;
use super::subscription::Subscription;
use crate::replies;

/// A batch, as all push services share it.
pub(super) struct WebPushBatch {
    /// The headers of every request, except the one that identifies the sender.
    pub(super) headers: Vec<(HeaderName, HeaderValue)>,
    pub(super) requests: Arc<SealedRequests>,
    /// The longest wait for a stream.
    pub(super) start_within: Option<std::time::Duration>,
    /// True if the deliveries failed before.
    pub(super) repeated: bool,
    pub(super) now: Timestamp,
}

impl WebPushBatch {
    pub(super) fn new(batch: Batch, navigate: Option<&str>) -> Self {
        let start_within = replies::start_within(&batch);
        let headers = payload::headers(&batch.message, batch.now);
        let text = payload::text(&batch.message.spec.content, navigate);
        let requests = Arc::new(SealedRequests { tokens: batch.tokens, text });
        Self { headers, requests, start_within, repeated: batch.repeated, now: batch.now }
    }
}

/// One message to many subscriptions. Each time that a request is written, it is sealed with a new key pair and a new salt.
pub(super) struct SealedRequests {
    tokens: TokenList,
    text: Vec<u8>,
}

impl SealedRequests {
    /// Returns the subscription at a place.
    pub(super) fn subscription(&self, index: usize) -> Option<Subscription<'_>> {
        Subscription::of(self.tokens.get(index)?)
    }

    /// Returns the path and the sealed body of a request; `None` if its keys cannot be used.
    pub(super) fn sealed(&self, index: usize) -> Option<(&str, Vec<u8>)> {
        let subscription = self.subscription(index)?;
        let body = seal(&self.text, &subscription.keys()?).ok()?;
        Some((subscription.path, body))
    }
}

impl Requests for SealedRequests {
    fn count(&self) -> usize {
        self.tokens.len()
    }

    fn write(&self, index: usize, line: &mut Line<'_>) {
        // A request that is not written is reported as malformed.
        if let Some((path, body)) = self.sealed(index) {
            line.path(&[path.as_bytes()]);
            line.body(&[&body]);
        }
    }
}
