//! What all HTTP/2 adapters share: replies become outcomes, counters become the port's.

use std::time::Duration;

use http::header::RETRY_AFTER;
use stentor_core::outcome::{Outcome, Reach, Reason};
use stentor_core::ports::clock::Timestamp;
use stentor_core::ports::provider::ProviderStats;
use stentor_http2::{Client, Reply, Response};

use crate::retry_after;

/// Gives the outcome of a reply; `read` knows the vendor's words for answers.
pub(crate) fn outcome(reply: Reply, read: impl FnOnce(&Response) -> Outcome) -> Outcome {
    match reply {
        Reply::Answered(response) => read(&response),
        Reply::NotSent(fault) => {
            tracing::debug!(%fault, "not sent");
            unavailable(None)
        }
        Reply::Unanswered(fault) => {
            tracing::debug!(%fault, "not answered");
            Outcome::Unknown
        }
    }
}

/// The push service, or the way to it, is down.
pub(crate) fn unavailable(retry_after: Option<Duration>) -> Outcome {
    Outcome::Unavailable { reason: Reason::Unavailable, reach: Reach::Service, retry_after }
}

/// Reads the response's `Retry-After`.
pub(crate) fn wait(response: &Response, now: Timestamp) -> Option<Duration> {
    retry_after::parse(response.headers.get(RETRY_AFTER)?.as_bytes(), now)
}

/// Tells whether any outcome asks for fewer requests at a time.
pub(crate) fn asks_to_slow_down(outcomes: &[Outcome]) -> bool {
    let throttled = |outcome: &Outcome| {
        matches!(outcome, Outcome::Throttled { reach: Reach::Credential | Reach::Service, .. })
    };
    outcomes.iter().any(throttled)
}

pub(crate) fn stats(client: &Client) -> ProviderStats {
    let stats = client.stats();
    ProviderStats {
        connections: stats.connections,
        inflight: stats.inflight,
        inflight_limit: stats.inflight_limit,
        goaways: stats.goaways,
        resets: stats.resets,
        connect_failures: stats.connect_failures,
    }
}
