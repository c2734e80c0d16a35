//! What all HTTP/2 adapters share: replies become outcomes, counters become the port's.

use std::time::Duration;

use http::header::RETRY_AFTER;
use stentor_core::device::ProviderKind;
use stentor_core::outcome::{Outcome, OutcomeScope, Reason};
use stentor_core::ports::provider::{Batch, ProviderStats};
use stentor_core::time::Timestamp;
use stentor_http2::{Client, Fault, Part, Replies, Reply, Response};

use crate::retry_after;

const WORDS_MAX_CHARS: usize = 200;
/// The headers of a refusal that are read.
pub(crate) const HEADERS: &[&str] = &["retry-after"];
/// Up to here a refusal's body is kept as it came.
pub(crate) const BRIEF_MAX_BYTES: usize = 256;
/// Fewest answers of a batch that can ask for less in the push service's name.
const ASKS_MIN_ANSWERS: usize = 10;
/// Most characters kept of a vendor's code.
const CODE_MAX_CHARS: usize = 64;

/// What was not sent because nothing may be connected to.
pub(crate) const ADDRESS_REFUSED: Outcome =
    Outcome::Unsent { reason: Reason::AddressRefused, retry_after: None };

/// Returns the outcome of each reply. `read` knows the vendor's words for answers.
pub(crate) fn outcomes(replies: Replies, read: impl Fn(&Response) -> Outcome) -> Vec<Outcome> {
    let mut outcomes = vec![Outcome::Accepted; replies.len()];
    replies.into_others().for_each(|(at, reply)| outcomes[at] = outcome(reply, &read));
    outcomes
}

/// Returns the outcomes that have come, each at its place.
pub(crate) fn early(part: Part, read: impl Fn(&Response) -> Outcome) -> Vec<Option<Outcome>> {
    let mut early: Vec<_> = outcomes(part.replies, read).into_iter().map(Some).collect();
    part.missing.into_iter().for_each(|at| early[at] = None);
    early
}

/// Lets the client have fewer requests in flight when most answers to first attempts ask for less, and when the service
/// cannot take more than one in five of them.
pub(crate) fn obey(client: &Client, outcomes: &[Outcome]) {
    let asks = outcomes.iter().filter(|outcome| asks_for_less(outcome)).count();
    let overloaded = outcomes.iter().filter(|outcome| **outcome == unavailable(None)).count();
    // One answer speaks for its own delivery; most of several speak for the push service.
    if asks >= ASKS_MIN_ANSWERS && 2 * asks >= outcomes.len() {
        client.slow_down();
    }
    client.note_overload(overloaded, outcomes.len());
}

/// Returns the outcome of a reply; `read` knows the vendor's words for answers.
fn outcome(reply: Reply, read: impl FnOnce(&Response) -> Outcome) -> Outcome {
    match reply {
        // What both services say to nearly everything; nothing else of it is kept.
        Reply::Answered(response) if response.status == 200 => Outcome::Accepted,
        Reply::Answered(response) => read(&response),
        Reply::NotSent(Fault::Halted(word)) => put_off(&read(word.response())),
        Reply::NotSent(Fault::AddressRefused(_)) => ADDRESS_REFUSED,
        Reply::NotSent(_) => Outcome::Unsent { reason: Reason::Unavailable, retry_after: None },
        Reply::Unanswered(_) => Outcome::Unknown,
    }
}

/// Returns what becomes of a request that was not sent because of the answer to another.
const fn put_off(answer: &Outcome) -> Outcome {
    let (reason, retry_after) = match answer {
        Outcome::Unavailable { reason, retry_after, .. } => (*reason, *retry_after),
        Outcome::Throttled { retry_after, .. } => (Reason::Throttled, *retry_after),
        _ => (Reason::Unavailable, None),
    };
    Outcome::Unsent { reason, retry_after }
}

/// Returns whether an answer asks to send nothing more for a while; `read` knows the vendor's words.
pub(crate) fn halts(response: &Response, read: impl FnOnce(u16, &[u8], Option<Duration>) -> Outcome) -> bool {
    // A wait of nothing asks for nothing.
    let wait = response.header(RETRY_AFTER).filter(|value| value.as_bytes() != b"0");
    wait.is_some() && asks_for_less(&read(response.status, response.body(), Some(Duration::ZERO)))
}

/// Returns how long a request of the batch may wait for its stream: once the message has expired it must not be sent.
pub(crate) fn start_within(batch: &Batch) -> Option<Duration> {
    // A TTL of 0 leaves no time to start within: such a message is for the push service to drop.
    let lives_on = batch.message.spec.ttl.as_seconds() > 0;
    lives_on.then(|| batch.message.expires_at().since(batch.now))
}

/// Reports to the operator, once for a batch, what kept it from being sent, and where to; `words` are a refused credential's.
pub(crate) fn report(
    (provider, host): (ProviderKind, &str),
    replies: &Replies,
    words: impl Fn(&Response) -> Option<String>,
) {
    let unsent = replies.others().find_map(|(_, reply)| match reply {
        Reply::NotSent(fault) => Some(fault),
        _ => None,
    });
    // The sender tells of refused addresses itself, and once.
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

/// Keeps a push service's words fit for a log.
pub(crate) fn printable(words: &str) -> String {
    words.chars().filter(|c| !c.is_control()).take(WORDS_MAX_CHARS).collect()
}

/// Keeps a vendor's code to the length that codes have.
pub(crate) fn code(code: &str) -> String {
    code.chars().take(CODE_MAX_CHARS).collect()
}

/// The push service, or the way to it, is down.
pub(crate) fn unavailable(retry_after: Option<Duration>) -> Outcome {
    Outcome::Unavailable { reason: Reason::Unavailable, scope: OutcomeScope::Service, retry_after }
}

/// Reads the response's `Retry-After`.
pub(crate) fn wait(response: &Response, now: Timestamp) -> Option<Duration> {
    retry_after::parse(response.header(RETRY_AFTER)?.as_bytes(), now)
}

/// Returns whether an answer speaks of more than its own device, and asks to wait.
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
