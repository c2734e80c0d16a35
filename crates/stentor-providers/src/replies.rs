//! Shared code of the HTTP/2 adapters: maps replies to outcomes and client counters to the port's.

use std::time::Duration;

use http::header::RETRY_AFTER;
use stentor_core::device::ProviderKind;
use stentor_core::outcome::{Outcome, OutcomeScope, Reason};
use stentor_core::ports::provider::{Batch, ProviderStats};
use stentor_core::time::Timestamp;
use stentor_http2::{Client, Fault, Part, Replies, Reply, Response};

use crate::{Attempt, retry_after};

const WORDS_MAX_CHARS: usize = 200;
/// The headers of an error response that are read.
pub(crate) const HEADERS: &[&str] = &["retry-after"];
/// Bodies of error responses up to this size are kept unchanged.
pub(crate) const BRIEF_MAX_BYTES: usize = 256;
/// Fewest throttling responses in a batch that count as a request of the push service itself.
const ASKS_MIN_ANSWERS: usize = 10;
/// Most characters kept of a vendor's code.
const CODE_MAX_CHARS: usize = 64;

/// The outcome of a delivery that was not sent because all addresses are refused.
pub(crate) const ADDRESS_REFUSED: Outcome =
    Outcome::Unsent { reason: Reason::AddressRefused, retry_after: None };

/// The outcome of a delivery that was not attempted.
pub(crate) const UNSENT: Outcome = Outcome::Unsent { reason: Reason::Unavailable, retry_after: None };

/// Returns the outcome of each reply. `read` interprets the vendor's response to the request at a position.
pub(crate) fn outcomes(replies: Replies, read: impl Fn(usize, &Response) -> Outcome) -> Vec<Outcome> {
    let mut outcomes = vec![Outcome::Accepted; replies.len()];
    replies
        .into_others()
        .for_each(|(at, reply)| outcomes[at] = outcome(reply, |response| read(at, response)));
    outcomes
}

/// Returns the outcomes received so far, each at its position.
pub(crate) fn early(part: Part, read: impl Fn(usize, &Response) -> Outcome) -> Vec<Option<Outcome>> {
    let mut early: Vec<_> = outcomes(part.replies, read).into_iter().map(Some).collect();
    part.missing.into_iter().for_each(|at| early[at] = None);
    early
}

/// Halves the client's limit of requests in flight if most responses to first attempts request a lower rate, or if more than one in five
/// report that the service cannot take the request.
pub(crate) fn obey(client: &Client, outcomes: &[Outcome]) {
    let asks = outcomes.iter().filter(|outcome| asks_for_less(outcome)).count();
    let overloaded = outcomes.iter().filter(|outcome| **outcome == unavailable(None)).count();
    // A single response concerns its own delivery; the majority of several concerns the push service.
    if asks >= ASKS_MIN_ANSWERS && 2 * asks >= outcomes.len() {
        client.slow_down();
    }
    client.note_overload(overloaded, outcomes.len());
}

/// Returns the outcome of a reply; `read` interprets the vendor's responses.
fn outcome(reply: Reply, read: impl FnOnce(&Response) -> Outcome) -> Outcome {
    match reply {
        // The response of both services to almost all requests; nothing else of it is kept.
        Reply::Answered(response) if response.status == 200 => Outcome::Accepted,
        Reply::Answered(response) => read(&response),
        unanswered => outcome_without_answer(unanswered, read),
    }
}

/// Returns the outcome of a request that got no response of its own; `read` interprets the response that held it back.
pub(crate) fn outcome_without_answer(reply: Reply, read: impl FnOnce(&Response) -> Outcome) -> Outcome {
    match reply {
        Reply::Answered(response) => read(&response),
        Reply::NotSent(Fault::Halted(word)) => put_off(&read(word.response())),
        Reply::NotSent(Fault::AddressRefused(_)) => ADDRESS_REFUSED,
        Reply::NotSent(_) => UNSENT,
        Reply::Unanswered(_) => Outcome::Unknown,
    }
}

/// Returns the outcome of a request that was not sent because of the response to another one.
const fn put_off(answer: &Outcome) -> Outcome {
    let (reason, retry_after) = match answer {
        Outcome::Unavailable { reason, retry_after, .. } => (*reason, *retry_after),
        Outcome::Throttled { retry_after, .. } => (Reason::Throttled, *retry_after),
        _ => (Reason::Unavailable, None),
    };
    Outcome::Unsent { reason, retry_after }
}

/// Returns true if a response requests a pause; `read` interprets the vendor's responses.
pub(crate) fn halts(
    response: &Response,
    read: impl FnOnce(u16, &[u8], Option<Duration>, Attempt) -> Outcome,
) -> bool {
    // Which attempt it was changes the meaning of responses without a `Retry-After` only.
    let attempt = Attempt { answered_before: false, left: Duration::ZERO };
    // A `Retry-After` of zero does not request a pause.
    let wait = response.header(RETRY_AFTER).filter(|value| value.as_bytes() != b"0");
    wait.is_some() && asks_for_less(&read(response.status, response.body(), Some(Duration::ZERO), attempt))
}

/// Returns the longest time that a request of the batch may wait for its stream: an expired message must not be sent.
pub(crate) fn start_within(batch: &Batch) -> Option<Duration> {
    // A ttl of 0 leaves no time to start within: the push service has to drop such a message.
    let lives_on = batch.message.spec.ttl.as_seconds() > 0;
    lives_on.then(|| batch.message.expires_at().since(batch.now))
}

/// Logs for the operator, once for a batch, the obstacle to sending and the host. `words` extracts the vendor's message about a refused
/// credential.
pub(crate) fn report(
    provider: ProviderKind,
    host: &str,
    replies: &Replies,
    words: impl Fn(&Response) -> Option<String>,
) {
    let unsent = replies.others().find_map(|(_, reply)| match reply {
        Reply::NotSent(fault) => Some(fault),
        _ => None,
    });
    // The sender itself logs refused addresses, and once.
    if let Some(fault) = unsent.filter(|fault| !matches!(fault, Fault::AddressRefused(_))) {
        tracing::warn!(%provider, host, %fault, "requests were not sent");
    }
    let unanswered = replies.others().find_map(|(_, reply)| match reply {
        Reply::Unanswered(fault) => Some(fault),
        _ => None,
    });
    if let Some(fault) = unanswered {
        tracing::warn!(%provider, host, %fault, "requests were not answered");
    }
    let refused = replies.others().find_map(|(_, reply)| match reply {
        Reply::Answered(response) if matches!(response.status, 401 | 403) => words(response),
        _ => None,
    });
    if let Some(words) = refused {
        tracing::warn!(%provider, host, words, "the push service refuses the credential");
    }
}

/// Reduces a push service's message to text fit for a log.
pub(crate) fn printable(words: &str) -> String {
    words.chars().filter(|c| !c.is_control()).take(WORDS_MAX_CHARS).collect()
}

/// Truncates a vendor's code to the usual length.
pub(crate) fn code(code: &str) -> String {
    code.chars().take(CODE_MAX_CHARS).collect()
}

/// Returns the outcome for a push service, or a network path to it, that is down.
pub(crate) fn unavailable(retry_after: Option<Duration>) -> Outcome {
    Outcome::Unavailable { reason: Reason::Unavailable, scope: OutcomeScope::Service, retry_after }
}

/// Parses the response's `Retry-After`.
pub(crate) fn wait(response: &Response, now: Timestamp) -> Option<Duration> {
    retry_after::parse(response.header(RETRY_AFTER)?.as_bytes(), now)
}

/// Returns true if an outcome requests to wait and its scope is wider than the device.
const fn asks_for_less(outcome: &Outcome) -> bool {
    matches!(
        outcome,
        Outcome::Throttled { scope: OutcomeScope::Credential | OutcomeScope::Service, .. }
            | Outcome::Unavailable { scope: OutcomeScope::Service, retry_after: Some(_), .. }
    )
}

pub(crate) fn stats(client: &Client) -> ProviderStats {
    let stats = client.stats();
    ProviderStats {
        connections: stats.connections,
        inflight: stats.inflight,
        inflight_limit: stats.inflight_limit,
        latency_floor: stats.min_rtt,
        delivery_rate: stats.delivery_rate,
        drains: stats.goaways,
        aborts: stats.resets,
        connect_failures: stats.connect_failures,
    }
}
