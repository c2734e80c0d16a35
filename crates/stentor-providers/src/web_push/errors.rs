//! Interpretation of the answers of push services. Sources: RFC 8030 (5, 8.4), RFC 8292 (4.2), and the pages of Apple, Google and Mozilla
//! about their push services.

use std::time::Duration;

use serde::Deserialize;

use crate::hosts::Answer;
use crate::replies;

/// Apple's reason for a subscription that was made with another key.
const OTHER_KEY: &str = "VapidPkHashMismatch";

#[derive(Default, Deserialize)]
#[serde(default)]
struct Refusal {
    reason: String,
}

/// Reduces an error body to the part that [`answer`] reads.
pub(super) fn excerpt(body: &[u8]) -> Vec<u8> {
    if body.len() <= replies::BRIEF_MAX_BYTES {
        return body.to_vec();
    }
    let Refusal { reason } = serde_json::from_slice(body).unwrap_or_default();
    serde_json::json!({ "reason": replies::code(&reason) }).to_string().into_bytes()
}

/// Reads a response; `retry_after` is from its header.
pub(super) fn answer(status: u16, body: &[u8], retry_after: Option<Duration>) -> Answer {
    match status {
        200..=299 => Answer::Accepted,
        400 if serde_json::from_slice::<Refusal>(body).is_ok_and(|refusal| refusal.reason == OTHER_KEY) => {
            Answer::Refused
        }
        400 => Answer::Malformed,
        401 | 403 => Answer::Refused,
        404 | 410 => Answer::Gone,
        413 => Answer::TooLarge,
        // Edge's push service throttles with 406 (Microsoft, the answers of WNS).
        406 | 429 => Answer::Throttled(retry_after),
        408 | 500.. => Answer::Unavailable(retry_after),
        _ => Answer::Undefined,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_status_has_its_meaning() {
        let wait = Some(Duration::from_secs(7));
        for (status, meaning) in [
            (200, Answer::Accepted),
            (201, Answer::Accepted),
            (202, Answer::Accepted),
            (204, Answer::Accepted),
            (307, Answer::Undefined),
            (400, Answer::Malformed),
            (401, Answer::Refused),
            (403, Answer::Refused),
            (404, Answer::Gone),
            (406, Answer::Throttled(wait)),
            (408, Answer::Unavailable(wait)),
            (410, Answer::Gone),
            (413, Answer::TooLarge),
            (418, Answer::Undefined),
            (429, Answer::Throttled(wait)),
            (500, Answer::Unavailable(wait)),
            (503, Answer::Unavailable(wait)),
        ] {
            assert_eq!(answer(status, b"", wait), meaning, "{status}");
        }
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
