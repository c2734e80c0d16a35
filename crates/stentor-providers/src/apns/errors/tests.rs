use proptest::prelude::*;

use super::*;

const WAIT: Option<Duration> = Some(Duration::from_secs(7));
const HOUR: Duration = Duration::from_secs(3_600);
const FIRST: Attempt = Attempt { answered_before: false, left: HOUR };
const REPEATED: Attempt = Attempt { answered_before: true, left: HOUR };

fn outcome(status: u16, body: &[u8], retry_after: Option<Duration>) -> Outcome {
    super::outcome(status, body, retry_after, FIRST)
}

fn is(status: u16, reason: &str) -> Outcome {
    outcome(status, &body(reason), WAIT)
}

fn body(reason: &str) -> Vec<u8> {
    format!(r#"{{"reason":"{reason}"}}"#).into_bytes()
}

fn all(status: u16, reasons: &[&str], meaning: &Outcome) {
    for reason in reasons {
        assert_eq!(&is(status, reason), meaning, "{reason}");
    }
}

#[test]
fn success_is_accepted_whichever_2xx_says_it() {
    for status in [201, 202, 204, 299] {
        assert_eq!(outcome(status, b"", None), Outcome::Accepted);
    }
    assert_eq!(outcome(200, b"", None), Outcome::Accepted);
}

#[test]
fn a_dead_token_is_dead_since_the_time_that_apple_names() {
    let since = Some(Timestamp::from_millis(1_700_000_000_123));
    let body = |reason| format!(r#"{{"reason":"{reason}","timestamp":1700000000123}}"#);
    let dead = |reason| Outcome::Unregistered { reason, since };
    assert_eq!(outcome(410, body("Unregistered").as_bytes(), None), dead(Reason::Unregistered));
    assert_eq!(outcome(410, body("ExpiredToken").as_bytes(), None), dead(Reason::TokenExpired));
    let unknown_since = Outcome::Unregistered { reason: Reason::Unregistered, since: None };
    assert_eq!(is(410, "Unregistered"), unknown_since);
    assert_eq!(outcome(410, b"", None), unknown_since);
    assert_eq!(outcome(410, br#"{"reason":"Unregistered","timestamp":"x"}"#, None), unknown_since);
}

#[test]
fn the_excerpt_of_a_long_refusal_means_what_the_whole_means() {
    let pad = "p".repeat(6_000);
    for (status, reason) in
        [(410, "Unregistered"), (400, "BadDeviceToken"), (403, "ExpiredProviderToken"), (429, "x")]
    {
        let body = serde_json::json!({ "pad": pad, "reason": reason, "timestamp": 1_700_000_000_000_i64 })
            .to_string();
        let excerpt = excerpt(body.as_bytes());
        assert!(excerpt.len() <= 256, "{}", excerpt.len());
        assert_eq!(outcome(status, &excerpt, None), outcome(status, body.as_bytes(), None));
    }
    assert_eq!(excerpt(&[b'x'; 9_000]), excerpt(format!("{{\"pad\":\"{pad}\"}}").as_bytes()));
}

#[test]
fn reasons_about_the_token_end_one_delivery() {
    all(
        400,
        &["BadDeviceToken", "MissingDeviceToken"],
        &rejected(Reason::InvalidToken, OutcomeScope::Device),
    );
    all(400, &["DeviceTokenNotForTopic"], &rejected(Reason::SenderMismatch, OutcomeScope::Device));
}

#[test]
fn reasons_about_the_content_reach_the_payload() {
    let reasons = [
        "BadCollapseId",
        "BadExpirationDate",
        "BadMessage",
        "BadMessageId",
        "BadPriority",
        "DuplicateHeaders",
        "InvalidPushType",
        "PayloadEmpty",
    ];
    all(400, &reasons, &rejected(Reason::InvalidPayload, OutcomeScope::Payload));
    all(413, &["PayloadTooLarge", "?"], &rejected(Reason::PayloadTooLarge, OutcomeScope::Payload));
}

#[test]
fn reasons_about_the_key_or_the_topic_reach_the_credential() {
    let refused = rejected(Reason::CredentialRefused, OutcomeScope::Credential);
    all(400, &["BadTopic", "MissingTopic", "TopicDisallowed"], &refused);
    let reasons = [
        "BadCertificate",
        "BadCertificateEnvironment",
        "BadEnvironmentKeyIdInToken",
        "BadEnvironmentKeyInToken",
        "Forbidden",
        "InvalidProviderToken",
        "MissingProviderToken",
        "UnrelatedKeyIdInToken",
        "SomethingNew",
    ];
    all(403, &reasons, &refused);
}

#[test]
fn an_expired_provider_token_is_not_the_key_s_end() {
    let later = Outcome::Unavailable {
        reason: Reason::CredentialRefused,
        scope: OutcomeScope::Credential,
        retry_after: WAIT,
    };
    assert_eq!(is(403, "ExpiredProviderToken"), later);
    assert!(is_expired(403, br#"{"reason":"ExpiredProviderToken"}"#));
    assert!(!is_expired(403, br#"{"reason":"InvalidProviderToken"}"#));
    assert!(!is_expired(403, b"garbage"));
}

#[test]
fn too_many_requests_throttles_one_device_and_too_many_tokens_the_credential() {
    let device = Outcome::Throttled { scope: OutcomeScope::Device, retry_after: WAIT };
    all(429, &["TooManyRequests", "?"], &device);
    let minute = Some(Duration::from_secs(60));
    let body = br#"{"reason":"TooManyProviderTokenUpdates"}"#;
    let credential = |retry_after| Outcome::Throttled { scope: OutcomeScope::Credential, retry_after };
    assert_eq!(outcome(429, body, WAIT), credential(WAIT));
    assert_eq!(outcome(429, body, None), credential(minute));
}

#[test]
fn trouble_of_the_service_is_unavailable() {
    let down = unavailable(Reason::Unavailable, WAIT);
    all(503, &["ServiceUnavailable", "Shutdown", "?"], &down);
    all(500, &["InternalServerError", "?"], &down);
    all(400, &["IdleTimeout"], &down);
}

#[test]
fn a_5xx_that_comes_again_delays_its_delivery_alone_for_the_15_minutes_that_apple_names() {
    let later = Outcome::Unavailable {
        reason: Reason::Unavailable,
        scope: OutcomeScope::Delivery,
        retry_after: Some(Duration::from_secs(900)),
    };
    let soon = unavailable(Reason::Unavailable, None);
    for (status, reason) in [(500, "InternalServerError"), (503, "ServiceUnavailable"), (502, "")] {
        let answer = |retry_after, attempt| super::outcome(status, &body(reason), retry_after, attempt);
        assert_eq!(answer(None, FIRST), soon, "another of Apple's servers may take it");
        assert_eq!(answer(None, REPEATED), later);
        assert_eq!(answer(WAIT, REPEATED), unavailable(Reason::Unavailable, WAIT), "it says for how long");
    }
    for (status, reason) in [(503, "Shutdown"), (400, "IdleTimeout")] {
        assert_eq!(super::outcome(status, &body(reason), None, REPEATED), soon, "{reason}");
    }
}

#[test]
fn a_message_with_a_short_ttl_is_tried_again_before_it_ends() {
    let answer = |seconds| {
        let attempt = Attempt { answered_before: true, left: Duration::from_secs(seconds) };
        super::outcome(500, &body("InternalServerError"), None, attempt)
    };
    for short in [0, 1, 60, 899, 900, 1_799] {
        assert_eq!(answer(short), unavailable(Reason::Unavailable, None), "{short} s");
    }
    assert!(matches!(answer(1_800), Outcome::Unavailable { scope: OutcomeScope::Delivery, .. }));
}

#[test]
fn what_nobody_documented_never_blames_the_token() {
    assert_eq!(outcome(400, b"<html>", None), rejected(Reason::UnknownAnswer, OutcomeScope::Payload));
    all(404, &["BadPath"], &rejected(Reason::UnknownAnswer, OutcomeScope::Credential));
    all(405, &["MethodNotAllowed"], &rejected(Reason::UnknownAnswer, OutcomeScope::Credential));
    assert_eq!(outcome(301, b"", None), unavailable(Reason::UnknownAnswer, None));
}

proptest! {
    #[test]
    fn no_bytes_make_the_parser_panic(status in any::<u16>(), body in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = (outcome(status, &body, None), is_expired(status, &body));
        let _ = super::outcome(status, &body, None, REPEATED);
    }
}
