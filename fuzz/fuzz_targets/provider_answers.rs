//! Responses of push services: any status, delay and body become an outcome, and no delay exceeds the limit.
#![no_main]
use libfuzzer_sys::fuzz_target;
use std::time::Duration;
use stentor_core::time::Timestamp;
use stentor_providers::retry_after::{self, RETRY_AFTER_MAX_SECONDS};
use stentor_providers::fcm::errors::Sent;
use stentor_providers::{Attempt, apns, fcm, gcm, hms, oauth};

fuzz_target!(|input: &[u8]| {
    let Some((status, rest)) = input.split_first_chunk::<2>() else { return };
    let status = 100 + u16::from_le_bytes(*status) % 500;
    let at = rest.iter().position(|byte| *byte == b'\n').unwrap_or(0);
    let (header, body) = rest.split_at(at);
    let wait = retry_after::parse(header, Timestamp::from_millis(1_800_000_000_000));
    assert!(wait.unwrap_or_default() <= Duration::from_secs(RETRY_AFTER_MAX_SECONDS));
    let _ = retry_after::parse(body, Timestamp::MAX);
    for (answered_before, seconds) in [(false, 0), (false, 3_600), (true, 3_600)] {
        let attempt = Attempt { answered_before, left: Duration::from_secs(seconds) };
        let _ = apns::errors::outcome(status, body, wait, attempt);
        for to_installation in [false, true] {
            let now = Timestamp::from_millis(1_800_000_000_000);
            let sent = Sent { attempt, to_installation, now };
            let _ = fcm::errors::outcome(status, body, wait, &sent);
        }
    }
    let _ = (fcm::errors::lacks_access_token(status, body), apns::errors::is_expired(status, body));
    let _ = (fcm::errors::parse(body), apns::errors::parse(body));
    // Two tokens of one request: whatever the answer is, each gets its outcome.
    assert_eq!(hms::errors::outcomes(status, body, wait, &["one", "two"]).len(), 2);
    assert_eq!(gcm::errors::outcomes(status, body, wait, 2).len(), 2);
    let _ = (hms::errors::outcome(status, body, wait), gcm::errors::outcome(status, body, wait));
    let _ = hms::errors::lacks_access_token(status, body);
    let _ = (oauth::parse_grant(body), oauth::parse_refusal(status, body));
});
