//! One message to many tokens in one request, as push services with a list of recipients take it: the request's body, the division of a
//! batch into requests, and the outcomes of the tokens.
//!
//! A chunk of the usual size is one request, so nothing of it is known early.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use http::HeaderValue;
use http::header::CONTENT_TYPE;

use stentor_core::chunk::TokenList;
use stentor_core::outcome::Outcome;
use stentor_core::ports::provider::ProviderStats;
use stentor_http2::{Limits, Line, Replies, Reply, Requests, Response};

use crate::preview::{RequestPreview, TOKEN_PLACE};
use crate::replies;

/// Most tokens in one request; both vendors have the same limit.
pub const TOKENS_MAX_COUNT: usize = 1_000;

/// Requests in flight at the start, for a push service whose speed is not known yet: as many deliveries as other adapters begin with.
const INITIAL_INFLIGHT_REQUESTS: usize = 8;
/// Most requests in flight before the first response.
const SLOW_START_INFLIGHT_REQUESTS: usize = 32;
/// Most requests in flight; each may have a body of some hundred kilobytes.
const MAX_INFLIGHT_REQUESTS: usize = 128;
/// Most bytes kept of a response, which may repeat each token of its request.
const REPLY_MAX_BYTES: usize = 1_024 * 1_024;
/// Weight of former requests in the mean number of tokens, as a power of two.
const MEAN_SHIFT: u32 = 3;
/// Resolution of that mean.
const MEAN_UNIT: u64 = 16;

/// The body of a request, with a gap for the list of tokens.
pub struct ListTemplate {
    before: Vec<u8>,
    /// The text before a token that is alone, if such a request has no list.
    before_one: Option<&'static [u8]>,
    after: Vec<u8>,
}

impl ListTemplate {
    /// Creates a body from the text before the tokens, which ends with the list's bracket, and the text after the list's other bracket.
    pub(crate) fn new(before: &str, after: String) -> Self {
        Self { before: before.as_bytes().to_vec(), before_one: None, after: after.into_bytes() }
    }

    /// Sets the text that stands before a token that is alone, in place of the list.
    pub(crate) fn or_one(self, before_one: &'static str) -> Self {
        Self { before_one: Some(before_one.as_bytes()), ..self }
    }

    /// Passes the body for these tokens, in parts, to `write`.
    pub fn with_tokens<'a, T>(
        &self,
        tokens: impl Iterator<Item = &'a str>,
        write: impl FnOnce(&[&[u8]]) -> T,
    ) -> T {
        let (mut list, mut count) = (Vec::new(), 0);
        for token in tokens {
            list.extend_from_slice(if list.is_empty() { b"\"" } else { b",\"" });
            push_escaped(token, &mut list);
            list.push(b'"');
            count += 1;
        }
        match self.before_one.filter(|_| count == 1) {
            Some(before) => write(&[before, &list, &self.after]),
            None => write(&[&self.before, &list, b"]", &self.after]),
        }
    }

    /// Shows the request to a URL for one device.
    pub(crate) fn preview(&self, url: String, content_type: HeaderValue) -> RequestPreview {
        let body = self.with_tokens(std::iter::once(TOKEN_PLACE), |parts| parts.concat());
        RequestPreview::new(url, &[(CONTENT_TYPE, content_type)], &body)
    }

    /// Returns the size of a body without tokens.
    pub(crate) fn bytes(&self) -> usize {
        self.before.len() + b"]".len() + self.after.len()
    }
}

/// Appends a token as JSON: it is visible ASCII, so that two letters alone need an escape.
fn push_escaped(token: &str, list: &mut Vec<u8>) {
    for byte in token.bytes() {
        if matches!(byte, b'"' | b'\\') {
            list.push(b'\\');
        }
        list.push(byte);
    }
}

/// The requests of one batch.
pub(crate) struct Multicast {
    body: ListTemplate,
    tokens: TokenList,
}

impl Multicast {
    pub(crate) fn new(body: ListTemplate, tokens: TokenList) -> Self {
        Self { body, tokens }
    }

    fn places(&self, request: usize) -> Range<usize> {
        let from = request * TOKENS_MAX_COUNT;
        from..self.tokens.len().min(from + TOKENS_MAX_COUNT)
    }

    fn tokens_of(&self, request: usize) -> impl Iterator<Item = &str> {
        self.places(request).filter_map(|place| self.tokens.get(place))
    }

    /// Returns the outcome of each of `count` devices. `read` interprets the response to a request with these tokens: an outcome for each
    /// of them. `whole` interprets a response to another request, which held a request back.
    pub(crate) fn outcomes(
        &self,
        replies: Replies,
        count: usize,
        read: impl Fn(&Response, &[&str]) -> Vec<Outcome>,
        whole: impl Fn(&Response) -> Outcome,
    ) -> Vec<Outcome> {
        let mut outcomes = Vec::with_capacity(count);
        for (request, reply) in replies.into_vec().into_iter().enumerate() {
            match reply {
                Reply::Answered(response) => {
                    let tokens: Vec<&str> = self.tokens_of(request).collect();
                    outcomes.extend(read(&response, &tokens));
                }
                unanswered => {
                    let outcome = replies::outcome_without_answer(unanswered, &whole);
                    outcomes.extend(vec![outcome; self.places(request).len()]);
                }
            }
        }
        // Devices without a push token were not sent to.
        outcomes.resize(count, replies::UNSENT);
        outcomes
    }
}

impl Requests for Multicast {
    fn count(&self) -> usize {
        self.tokens.len().div_ceil(TOKENS_MAX_COUNT)
    }

    fn write(&self, index: usize, line: &mut Line<'_>) {
        self.body.with_tokens(self.tokens_of(index), |parts| line.body(parts));
    }
}

/// Returns the limits of a client whose requests are as large as a whole chunk.
pub(crate) fn limits(usual: &Limits) -> Limits {
    if usual.min_inflight_requests == usual.max_inflight_requests {
        // Fixed by the operator.
        let (max_reply_body_bytes, max_reply_drain_bytes) = (REPLY_MAX_BYTES, 2 * REPLY_MAX_BYTES);
        return Limits { max_reply_body_bytes, max_reply_drain_bytes, ..usual.clone() };
    }
    Limits {
        initial_inflight_requests: usual.initial_inflight_requests.min(INITIAL_INFLIGHT_REQUESTS),
        slow_start_inflight_requests: usual.slow_start_inflight_requests.min(SLOW_START_INFLIGHT_REQUESTS),
        max_inflight_requests: usual.max_inflight_requests.min(MAX_INFLIGHT_REQUESTS),
        min_inflight_requests: usual.min_inflight_requests.min(INITIAL_INFLIGHT_REQUESTS),
        max_reply_body_bytes: REPLY_MAX_BYTES,
        max_reply_drain_bytes: usual.max_reply_drain_bytes.max(2 * REPLY_MAX_BYTES),
        ..usual.clone()
    }
}

/// The mean number of tokens in the latest requests, by which requests are counted as deliveries.
#[derive(Debug, Default)]
pub(crate) struct TokenMean(AtomicU64);

impl TokenMean {
    /// Notes a batch.
    pub(crate) fn note(&self, tokens: usize) {
        let requests = tokens.div_ceil(TOKENS_MAX_COUNT) as u64;
        if requests == 0 {
            return;
        }
        let latest = tokens as u64 * MEAN_UNIT / requests;
        // A lost update of another thread only delays the mean.
        let before = self.0.load(Ordering::Relaxed);
        let mean =
            if before == 0 { latest } else { before - (before >> MEAN_SHIFT) + (latest >> MEAN_SHIFT) };
        self.0.store(mean, Ordering::Relaxed);
    }

    /// Returns the activity of a client in deliveries, which is the unit of the pipeline.
    pub(crate) fn deliveries(&self, requests: ProviderStats) -> ProviderStats {
        let mean = self.0.load(Ordering::Relaxed).max(MEAN_UNIT);
        let scaled = |count: u64| count.saturating_mul(mean) / MEAN_UNIT;
        ProviderStats {
            inflight: scaled(requests.inflight),
            inflight_limit: scaled(requests.inflight_limit),
            delivery_rate: scaled(requests.delivery_rate),
            ..requests
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn multicast(count: usize) -> Multicast {
        let mut tokens = TokenList::default();
        (0..count).for_each(|number| tokens.push(&format!("t{number}")));
        Multicast::new(ListTemplate::new(r#"{"to":["#, "}".to_owned()), tokens)
    }

    fn body(of: &Multicast, request: usize) -> serde_json::Value {
        let bytes = of.body.with_tokens(of.tokens_of(request), |parts| parts.concat());
        serde_json::from_slice(&bytes).expect("JSON")
    }

    #[test]
    fn a_batch_is_divided_into_requests_of_a_thousand_tokens_in_their_order() {
        let batch = multicast(2_001);
        assert_eq!(batch.count(), 3);
        let lengths = [0, 1, 2].map(|request| body(&batch, request)["to"].as_array().expect("a list").len());
        assert_eq!(lengths, [1_000, 1_000, 1]);
        assert_eq!(body(&batch, 2)["to"][0], "t2000");
        assert_eq!(multicast(0).count(), 0);
    }

    #[test]
    fn a_token_with_quotes_is_a_text_of_the_list() {
        let mut tokens = TokenList::default();
        tokens.push(r#"a"b\c"#);
        let batch = Multicast::new(ListTemplate::new(r#"{"to":["#, "}".to_owned()), tokens);
        assert_eq!(body(&batch, 0)["to"][0], r#"a"b\c"#);
    }

    #[test]
    fn requests_are_counted_as_the_deliveries_that_they_usually_carry() {
        let mean = TokenMean::default();
        let requests =
            ProviderStats { delivery_rate: 10, inflight: 2, inflight_limit: 8, ..ProviderStats::default() };
        assert_eq!(mean.deliveries(requests), requests, "nothing was sent yet");
        mean.note(3_000);
        let deliveries = mean.deliveries(requests);
        assert_eq!(
            (deliveries.delivery_rate, deliveries.inflight, deliveries.inflight_limit),
            (10_000, 2_000, 8_000)
        );
        (0..100).for_each(|_| mean.note(1));
        assert!(mean.deliveries(requests).delivery_rate < 50, "{:?}", mean.deliveries(requests));
    }
}
