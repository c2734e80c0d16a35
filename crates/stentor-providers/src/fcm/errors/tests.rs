use proptest::prelude::*;
use serde_json::json;

use super::*;

const WAIT: Option<Duration> = Some(Duration::from_secs(7));
const NOW: Timestamp = Timestamp::from_millis(1_700_000_000_000);
const HOUR: Duration = Duration::from_secs(3_600);
const TO_TOKEN: Sent =
    Sent { attempt: Attempt { answered_before: false, left: HOUR }, to_installation: false, now: NOW };
const TO_INSTALLATION: Sent = Sent { to_installation: true, ..TO_TOKEN };

fn outcome(status: u16, body: &[u8], retry_after: Option<Duration>) -> Outcome {
    super::outcome(status, body, retry_after, &TO_TOKEN)
}

fn own(status: &str, code: &str) -> String {
    let detail = json!({"@type": "type.googleapis.com/google.firebase.fcm.v1.FcmError", "errorCode": code});
    json!({"error": {"code": 1, "message": "m", "status": status, "details": [detail]}}).to_string()
}

fn violation(field: &str) -> String {
    let violations = json!([{"field": field, "description": "d"}]);
    let detail = json!({"@type": "type.googleapis.com/google.rpc.BadRequest", "fieldViolations": violations});
    json!({"error": {"message": "m", "status": "INVALID_ARGUMENT", "details": [detail]}}).to_string()
}

fn plain(status: &str, message: &str) -> String {
    json!({"error": {"status": status, "message": message}}).to_string()
}

fn is(status: u16, body: &str) -> Outcome {
    outcome(status, body.as_bytes(), WAIT)
}

#[test]
fn success_is_accepted_whichever_2xx_says_it_and_whatever_its_body() {
    for status in [200, 201, 202, 204, 299] {
        for body in [r#"{"name":"projects/p/messages/1"}"#, "cut of", ""] {
            assert_eq!(is(status, body), Outcome::Accepted);
        }
    }
}

fn with_long_details(message: &str, status: &str, detail: &serde_json::Value) -> String {
    let pad = json!({"@type": "type.googleapis.com/google.rpc.DebugInfo", "detail": "d".repeat(3_000)});
    let many: Vec<_> = (0..20).map(|n| json!({"field": format!("message.data.{n}")})).collect();
    let violations = json!({"fieldViolations": many});
    let details = json!([pad, violations, detail]);
    json!({"error": {"code": 1, "message": message, "status": status, "details": details}}).to_string()
}

#[test]
fn the_excerpt_of_long_error_details_means_what_the_whole_means() {
    let long = format!("{} registration token {}", "w".repeat(900), "w".repeat(900));
    let bodies = [
        with_long_details("m", "NOT_FOUND", &json!({"errorCode": "UNREGISTERED"})),
        with_long_details("m", "PERMISSION_DENIED", &json!({"errorCode": "SENDER_ID_MISMATCH"})),
        with_long_details("m", "RESOURCE_EXHAUSTED", &json!({"errorCode": "QUOTA_EXCEEDED"})),
        with_long_details("m", "RESOURCE_EXHAUSTED", &json!({"violations": [{"subject": "project:p"}]})),
        with_long_details("m", "UNAUTHENTICATED", &json!({"errorCode": "THIRD_PARTY_AUTH_ERROR"})),
        with_long_details("m", "UNAUTHENTICATED", &json!({})),
        with_long_details("m", "INVALID_ARGUMENT", &json!({"fieldViolations": [{"field": "message.fid"}]})),
        with_long_details(&long, "INVALID_ARGUMENT", &json!({"errorCode": "INVALID_ARGUMENT"})),
        with_long_details(&long.replace("registration token", "too big"), "INVALID_ARGUMENT", &json!({})),
        with_long_details("m", "INVALID_ARGUMENT", &json!({})),
        with_long_details("m", "SOMETHING", &json!({})),
        "<html>".repeat(1_000),
    ];
    for body in bodies {
        let excerpt = excerpt(body.as_bytes());
        assert!(excerpt.len() <= 600, "{}", excerpt.len());
        for status in [400, 401, 403, 404, 429, 500, 503] {
            let whole = (is(status, &body), lacks_access_token(status, body.as_bytes()));
            assert_eq!(
                (outcome(status, &excerpt, WAIT), lacks_access_token(status, &excerpt)),
                whole,
                "{body}"
            );
        }
        assert_eq!(words(&excerpt).is_some(), words(body.as_bytes()).is_some());
    }
}

#[test]
fn unregistered_retires_the_token() {
    let dead = Outcome::Unregistered { reason: Reason::Unregistered, since: None };
    assert_eq!(is(404, &own("NOT_FOUND", "UNREGISTERED")), dead);
}

#[test]
fn an_installation_id_that_is_unknown_is_tried_again_and_then_retired_unless_its_registration_is_young() {
    let body = own("NOT_FOUND", "UNREGISTERED");
    let answer = |answered_before, seconds| {
        let attempt = Attempt { answered_before, left: Duration::from_secs(seconds) };
        super::outcome(404, body.as_bytes(), None, &Sent { attempt, ..TO_INSTALLATION })
    };
    let later = Outcome::Unavailable {
        reason: Reason::Unregistered,
        scope: OutcomeScope::Device,
        retry_after: Some(Duration::from_secs(60)),
    };
    let a_day_ago = Some(Timestamp::from_millis(NOW.as_millis() - 86_400_000));
    let dead = Outcome::Unregistered { reason: Reason::Unregistered, since: a_day_ago };
    assert_eq!(answer(false, 3_600), later);
    assert_eq!(answer(true, 3_600), dead);
    for short in [0, 60, 119] {
        assert_eq!(answer(false, short), dead, "the message would end before: {short} s");
    }
    let invalid = super::outcome(400, violation("message.fid").as_bytes(), None, &TO_INSTALLATION);
    assert_eq!(invalid, rejected(Reason::InvalidToken, OutcomeScope::Device));
}

#[test]
fn a_404_without_its_own_code_says_nothing_about_the_token() {
    let unknown = rejected(Reason::UnknownAnswer, OutcomeScope::Credential);
    assert_eq!(is(404, &plain("NOT_FOUND", "Not found.")), unknown);
    assert_eq!(is(404, "<html>"), unknown);
}

#[test]
fn an_invalid_argument_blames_the_token_only_when_it_is_named() {
    let device = rejected(Reason::InvalidToken, OutcomeScope::Device);
    assert_eq!(is(400, &violation("message.token")), device);
    let words = "The registration token is not a valid FCM registration token";
    assert_eq!(is(400, &plain("INVALID_ARGUMENT", words)), device);
    let payload = rejected(Reason::InvalidPayload, OutcomeScope::Payload);
    assert_eq!(is(400, &violation("message.data")), payload);
    assert_eq!(is(400, &own("INVALID_ARGUMENT", "INVALID_ARGUMENT")), payload);
    assert_eq!(is(400, "no JSON"), payload);
}

#[test]
fn a_message_too_big_is_the_payload_s_fault() {
    let large = rejected(Reason::PayloadTooLarge, OutcomeScope::Payload);
    assert_eq!(
        is(400, &plain("INVALID_ARGUMENT", "Message is too big: 5000 bytes")),
        Outcome::Rejected { reason: Reason::PayloadTooLarge, scope: OutcomeScope::Payload }
    );
    assert_eq!(is(413, ""), large);
}

#[test]
fn a_sender_mismatch_ends_one_delivery() {
    let mismatch = rejected(Reason::SenderMismatch, OutcomeScope::Device);
    assert_eq!(is(403, &own("PERMISSION_DENIED", "SENDER_ID_MISMATCH")), mismatch);
}

#[test]
fn a_used_up_quota_throttles_the_credential_for_as_long_as_told_or_a_minute() {
    let body = own("RESOURCE_EXHAUSTED", "QUOTA_EXCEEDED");
    let throttled = |seconds| Outcome::Throttled {
        scope: OutcomeScope::Credential,
        retry_after: Some(Duration::from_secs(seconds)),
    };
    assert_eq!(is(429, &body), throttled(7));
    assert_eq!(outcome(429, body.as_bytes(), None), throttled(60));
    assert_eq!(outcome(429, b"", None), throttled(60));
    assert_eq!(is(429, &plain("RESOURCE_EXHAUSTED", "")), throttled(7));
}

#[test]
fn a_quota_that_is_named_as_the_projects_throttles_the_whole_service() {
    let named = |subject: &str| {
        let failure = json!({"@type": "type.googleapis.com/google.rpc.QuotaFailure",
                             "violations": [{"subject": subject, "description": "d"}]});
        let error = json!({"code": 429, "status": "RESOURCE_EXHAUSTED", "details": [failure]});
        is(429, &json!({ "error": error }).to_string())
    };
    let of = |scope| Outcome::Throttled { scope, retry_after: WAIT };
    assert_eq!(named("project:p"), of(OutcomeScope::Service));
    assert_eq!(named("device"), of(OutcomeScope::Credential));
}

#[test]
fn trouble_of_the_service_is_unavailable() {
    let unavailable = |retry_after| Outcome::Unavailable {
        reason: Reason::Unavailable,
        scope: OutcomeScope::Service,
        retry_after,
    };
    assert_eq!(is(503, &own("UNAVAILABLE", "UNAVAILABLE")), unavailable(WAIT));
    assert_eq!(outcome(503, b"", None), unavailable(None));
    assert_eq!(is(500, &own("INTERNAL", "INTERNAL")), unavailable(WAIT));
    assert_eq!(outcome(502, b"<html>bad gateway", None), unavailable(None));
}

#[test]
fn refused_keys_reach_as_far_as_the_credential() {
    let ours = rejected(Reason::CredentialRefused, OutcomeScope::Credential);
    assert_eq!(is(401, &plain("UNAUTHENTICATED", "no token")), ours);
    assert_eq!(is(403, &plain("PERMISSION_DENIED", "no")), ours);
    assert_eq!(is(403, ""), ours);
}

#[test]
fn a_third_partys_refusal_is_tried_again_for_its_devices_only() {
    let (reason, scope) = (Reason::ThirdPartyAuth, OutcomeScope::Device);
    let theirs = Outcome::Unavailable { reason, scope, retry_after: WAIT };
    assert_eq!(is(401, &own("UNAUTHENTICATED", "THIRD_PARTY_AUTH_ERROR")), theirs);
    assert_eq!(is(401, &own("UNAUTHENTICATED", "APNS_AUTH_ERROR")), theirs);
}

#[test]
fn only_a_401_without_its_own_code_asks_for_a_new_access_token() {
    assert!(lacks_access_token(401, plain("UNAUTHENTICATED", "").as_bytes()));
    assert!(lacks_access_token(401, b""));
    assert!(!lacks_access_token(401, own("UNAUTHENTICATED", "THIRD_PARTY_AUTH_ERROR").as_bytes()));
    assert!(!lacks_access_token(403, b""));
}

#[test]
fn an_answer_nobody_documented_is_tried_again_later() {
    let odd = Outcome::Unavailable {
        reason: Reason::UnknownAnswer,
        scope: OutcomeScope::Service,
        retry_after: None,
    };
    assert_eq!(outcome(302, b"", None), odd);
    assert_eq!(outcome(418, br#"{"error":{"status":"TEAPOT"}}"#, None), odd);
}

proptest! {
    #[test]
    fn no_bytes_make_the_parser_panic(status in any::<u16>(), body in prop::collection::vec(any::<u8>(), 0..400)) {
        let _ = outcome(status, &body, None);
        let _ = super::outcome(status, &body, None, &TO_INSTALLATION);
    }

    #[test]
    fn no_json_of_another_shape_makes_the_parser_panic(details in "[\\[\\]{}\",:a-z0-9]{0,80}") {
        let body = format!(r#"{{"error":{{"status":"INVALID_ARGUMENT","details":{details}}}}}"#);
        let _ = outcome(400, body.as_bytes(), None);
    }
}
