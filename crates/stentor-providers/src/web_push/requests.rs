//! The requests of one message to many subscriptions, sealed one by one when they are written.

use std::sync::Arc;

use stentor_core::chunk::TokenList;
use stentor_core::ports::provider::Batch;
use stentor_http2::{Line, Requests};
use stentor_wire::web_push::seal;

use super::payload;
use super::subscription::Subscription;
use crate::hosts::{HostBatch, HostRequests};
use crate::replies;

/// Prepares a batch for all push services.
pub(super) fn batch_of(batch: Batch, navigate: Option<&str>) -> HostBatch {
    let start_within = replies::start_within(&batch);
    let headers = payload::headers(&batch.message, batch.now);
    let text = payload::text(&batch.message.spec.content, navigate);
    let requests = Arc::new(SealedRequests { tokens: batch.tokens, text });
    HostBatch { headers, requests, start_within, repeated: batch.repeated, now: batch.now }
}

/// One message to many subscriptions. Each time that a request is written, it is sealed with a new key pair and a new salt.
struct SealedRequests {
    tokens: TokenList,
    text: Vec<u8>,
}

impl HostRequests for SealedRequests {
    fn origin(&self, index: usize) -> Option<&str> {
        Subscription::of(self.tokens.get(index)?).map(|subscription| subscription.origin)
    }

    fn request(&self, index: usize) -> Option<(&str, Vec<u8>)> {
        let subscription = Subscription::of(self.tokens.get(index)?)?;
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
        if let Some((path, body)) = self.request(index) {
            line.path(&[path.as_bytes()]);
            line.body(&[&body]);
        }
    }
}
