//! Interpretation of the answers of push services. Sources: RFC 8030 (5, 8.4), RFC 8292 (4.2), and the pages of Apple, Google and Mozilla
//! about their push services.

use std::time::Duration;

use serde::Deserialize;
use stentor_core::outcome::{Outcome, OutcomeScope, Reason};

use super::pace::HostVerdict;
use crate::replies;

/// Apple's reason for a subscription that was made with another key.
const OTHER_KEY: &str = "VapidPkHashMismatch";

/// The answer to one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// Taken over.
    Accepted,
    /// The subscription has ended.
    Gone,
    /// The body is larger than this push service takes.
    TooLarge,
    /// The request is malformed.
    Malformed,
    /// The key does not belong to the subscription, or the push service refuses the sender.
    Refused,
    /// Too many messages.
    Throttled(Option<Duration>),
    /// The push service cannot take messages now.
    Unavailable(Option<Duration>),
    /// An answer that no standard defines.
    Undefined,
    /// The push service cannot be reached; the request was not sent.
    Unreached,
    /// The outbound policy refuses all addresses of the push service.
    AddressRefused,
    /// The message cannot be sealed with the keys of the subscription.
    Unsealed,
    /// Sent and never answered.
    Unanswered,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Refusal {
    reason: String,
}

/// Reduces an error body to the part that [`answer`] reads.
#[must_use]
pub fn excerpt(body: &[u8]) -> Vec<u8> {
    if body.len() <= replies::BRIEF_MAX_BYTES {
        return body.to_vec();
    }
    let Refusal { reason } = serde_json::from_slice(body).unwrap_or_default();
    serde_json::json!({ "reason": replies::code(&reason) }).to_string().into_bytes()
}

/// Reads a response; `retry_after` is from its header.
#[must_use]
pub fn answer(status: u16, body: &[u8], retry_after: Option<Duration>) -> Answer {
    match status {
        200..=299 => Answer::Accepted,
        400 if serde_json::from_slice::<Refusal>(body).is_ok_and(|refusal| refusal.reason == OTHER_KEY) => {
            Answer::Refused
        }
        400 => Answer::Malformed,
        401 | 403 => Answer::Refused,
        404 | 410 => Answer::Gone,
        413 => Answer::TooLarge,
        429 => Answer::Throttled(retry_after),
        408 | 500.. => Answer::Unavailable(retry_after),
        _ => Answer::Undefined,
    }
}

/// Returns the outcome of an answer. The verdict on its push service says whether a bad answer concerns all its subscriptions: such a
/// delivery waits without limit, because its device is not the cause.
#[must_use]
pub fn outcome(answer: Answer, verdict: &HostVerdict) -> Outcome {
    let deferred = |reason| Outcome::Deferred { reason, retry_after: verdict.wait };
    match answer {
        Answer::Accepted => Outcome::Accepted,
        Answer::Gone => Outcome::Unregistered { reason: Reason::Unregistered, since: None },
        // Another push service may take larger bodies, so that this one stops no campaign.
        Answer::TooLarge => rejected(Reason::PayloadTooLarge, OutcomeScope::Device),
        Answer::Malformed => rejected(Reason::InvalidPayload, OutcomeScope::Payload),
        Answer::Unsealed => rejected(Reason::InvalidToken, OutcomeScope::Device),
        Answer::AddressRefused => rejected(Reason::AddressRefused, OutcomeScope::Device),
        Answer::Refused if verdict.concerns_all => deferred(Reason::CredentialRefused),
        Answer::Refused => rejected(Reason::SenderMismatch, OutcomeScope::Device),
        Answer::Throttled(_) if verdict.concerns_all => deferred(Reason::Throttled),
        Answer::Throttled(retry_after) => Outcome::Throttled { scope: OutcomeScope::Device, retry_after },
        Answer::Unavailable(_) if verdict.concerns_all => deferred(Reason::Unavailable),
        Answer::Unavailable(retry_after) => unavailable(Reason::Unavailable, retry_after),
        Answer::Undefined => unavailable(Reason::UnknownAnswer, None),
        Answer::Unreached => deferred(Reason::Unavailable),
        Answer::Unanswered => Outcome::Unknown,
    }
}

fn rejected(reason: Reason, scope: OutcomeScope) -> Outcome {
    Outcome::Rejected { reason, scope }
}

fn unavailable(reason: Reason, retry_after: Option<Duration>) -> Outcome {
    Outcome::Unavailable { reason, scope: OutcomeScope::Device, retry_after }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WAIT: Duration = Duration::from_secs(7);

    fn outcome_of(status: u16, concerns_all: bool) -> Outcome {
        outcome(answer(status, b"", None), &HostVerdict { concerns_all, wait: WAIT })
    }

    #[test]
    fn each_status_has_its_meaning() {
        for status in [200, 201, 202, 204] {
            assert_eq!(outcome_of(status, false), Outcome::Accepted, "{status}");
        }
        for status in [404, 410] {
            let gone = Outcome::Unregistered { reason: Reason::Unregistered, since: None };
            assert_eq!(outcome_of(status, true), gone, "{status}");
        }
        assert_eq!(outcome_of(413, true), rejected(Reason::PayloadTooLarge, OutcomeScope::Device));
        assert_eq!(outcome_of(400, true), rejected(Reason::InvalidPayload, OutcomeScope::Payload));
        assert_eq!(outcome_of(307, true), unavailable(Reason::UnknownAnswer, None));
    }

    #[test]
    fn a_bad_answer_of_a_push_service_to_most_requests_only_delays_them() {
        for (status, reason) in [
            (401, Reason::CredentialRefused),
            (403, Reason::CredentialRefused),
            (429, Reason::Throttled),
            (500, Reason::Unavailable),
            (503, Reason::Unavailable),
        ] {
            assert_eq!(outcome_of(status, true), Outcome::Deferred { reason, retry_after: WAIT }, "{status}");
        }
        assert_eq!(outcome_of(403, false), rejected(Reason::SenderMismatch, OutcomeScope::Device));
        assert_eq!(outcome_of(503, false), unavailable(Reason::Unavailable, None));
        let throttled = Outcome::Throttled { scope: OutcomeScope::Device, retry_after: None };
        assert_eq!(outcome_of(429, false), throttled);
    }

    #[test]
    fn apples_answer_about_another_key_is_a_refusal_of_the_key() {
        let body = br#"{"reason":"VapidPkHashMismatch"}"#;
        assert_eq!(answer(400, body, None), Answer::Refused);
        let long = format!(r#"{{"reason":"VapidPkHashMismatch","more":"{}"}}"#, "x".repeat(500));
        assert_eq!(answer(400, &excerpt(long.as_bytes()), None), Answer::Refused);
        assert_eq!(answer(400, br#"{"reason":"BadWebPushTopic"}"#, None), Answer::Malformed);
    }
}
