//! Interpretation of the answers of WNS. Source: Microsoft, "Push notification service request and response headers".

use std::time::Duration;

use http::HeaderName;

use crate::hosts::{Answer, HostResponse};

/// The fate of a notification that was taken: `received`, `dropped` or `channelthrottled`.
const STATUS: HeaderName = HeaderName::from_static("x-wns-status");

/// Reads a response; `retry_after` is from its header.
pub(super) fn answer(response: &HostResponse<'_>, retry_after: Option<Duration>) -> Answer {
    let fate = response.header(&STATUS).and_then(|value| value.to_str().ok()).unwrap_or_default();
    by_status(response.status(), fate, retry_after)
}

fn by_status(status: u16, fate: &str, retry_after: Option<Duration>) -> Answer {
    match status {
        200..=299 if fate.eq_ignore_ascii_case("dropped") => Answer::Dropped,
        // The second word comes from public reports of senders.
        200..=299
            if ["channelthrottled", "appthrottled"].iter().any(|word| fate.eq_ignore_ascii_case(word)) =>
        {
            Answer::Throttled(retry_after)
        }
        200..=299 => Answer::Accepted,
        400 => Answer::Malformed,
        401 => Answer::Refused,
        // The channel belongs to another app.
        403 => Answer::Foreign,
        404 | 410 => Answer::Gone,
        // Too many notifications of this sender.
        406 | 429 => Answer::Throttled(retry_after),
        413 => Answer::TooLarge,
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
        for (status, fate, meaning) in [
            (200, "received", Answer::Accepted),
            (200, "", Answer::Accepted),
            (200, "dropped", Answer::Dropped),
            (200, "channelThrottled", Answer::Throttled(wait)),
            (200, "appthrottled", Answer::Throttled(wait)),
            (400, "", Answer::Malformed),
            (401, "", Answer::Refused),
            (403, "", Answer::Foreign),
            (404, "", Answer::Gone),
            (405, "", Answer::Undefined),
            (406, "dropped", Answer::Throttled(wait)),
            (410, "dropped", Answer::Gone),
            (413, "", Answer::TooLarge),
            (500, "", Answer::Unavailable(wait)),
            (503, "", Answer::Unavailable(wait)),
        ] {
            assert_eq!(by_status(status, fate, wait), meaning, "{status} {fate}");
        }
    }
}
