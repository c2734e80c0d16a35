use proptest::prelude::*;
use serde_json::json;

use super::*;

const WAIT: Option<Duration> = Some(Duration::from_secs(7));
const TOKENS: &[&str] = &["one", "two", "three"];

fn body(code: &str, msg: &str) -> String {
    json!({"code": code, "msg": msg, "requestId": "1"}).to_string()
}

fn is(status: u16, code: &str) -> Outcome {
    outcome(status, body(code, "words").as_bytes(), WAIT)
}

fn each(status: u16, code: &str, msg: &str) -> Vec<Outcome> {
    outcomes(status, body(code, msg).as_bytes(), WAIT, TOKENS)
}

fn dead() -> Outcome {
    Outcome::Unregistered { reason: Reason::Unregistered, since: None }
}

#[test]
fn success_is_accepted_for_each_token() {
    assert_eq!(each(200, "80000000", "Success"), vec![Outcome::Accepted; 3]);
}

#[test]
fn a_partial_success_retires_the_tokens_that_it_lists_and_no_other() {
    let listed = r#"{"success":2,"failure":1,"illegal_tokens":["two"]}"#;
    let wanted = [Outcome::Accepted, dead(), Outcome::Accepted];
    assert_eq!(each(200, "80100000", listed), wanted);
    let newer = r#"{"success":2,"failure":1,"illegalTokens":{"tokenFormatError":["two"]}}"#;
    assert_eq!(each(200, "80100000", newer), wanted);
    let strangers = r#"{"success":3,"failure":1,"illegal_tokens":["two","four"]}"#;
    assert_eq!(each(400, "80100000", strangers), wanted, "whatever the status is");
}

#[test]
fn a_partial_success_that_does_not_list_all_refused_tokens_leaves_the_others_in_doubt() {
    let short = r#"{"success":1,"failure":2,"illegal_tokens":["two"]}"#;
    assert_eq!(each(200, "80100000", short), [Outcome::Unknown, dead(), Outcome::Unknown]);
    for unreadable in ["", "Partial success", "[]", "{}", r#"{"failure":1}"#, r#"{"failure":"#] {
        assert_eq!(each(200, "80100000", unreadable), vec![Outcome::Unknown; 3], "{unreadable}");
    }
    assert_eq!(is(200, "80100000"), Outcome::Unknown);
}

#[test]
fn if_all_tokens_are_invalid_none_is_retired_because_the_project_may_be_the_wrong_one() {
    let invalid = rejected(Reason::InvalidToken, OutcomeScope::Device);
    assert_eq!(each(400, "80300007", "All the tokens are invalid"), vec![invalid; 3]);
}

#[test]
fn content_that_push_kit_refuses_is_the_payload_s_fault() {
    assert_eq!(is(400, "80300008"), rejected(Reason::PayloadTooLarge, OutcomeScope::Payload));
    for code in
        ["80100001", "80100003", "80100004", "80100013", "80100016", "80100018", "80300010", "80300011"]
    {
        assert_eq!(is(400, code), rejected(Reason::InvalidPayload, OutcomeScope::Payload), "{code}");
    }
}

#[test]
fn refused_clients_and_apps_reach_as_far_as_the_credential() {
    let ours = rejected(Reason::CredentialRefused, OutcomeScope::Credential);
    for (status, code) in [(401, "80200001"), (400, "80300002"), (400, "80300013"), (401, ""), (403, "")] {
        assert_eq!(is(status, code), ours, "{status} {code}");
    }
    let expired = Outcome::Unavailable {
        reason: Reason::CredentialRefused,
        scope: OutcomeScope::Credential,
        retry_after: WAIT,
    };
    assert_eq!(is(401, "80200003"), expired);
    assert_eq!(is(401, "80200005"), expired);
}

#[test]
fn an_access_token_that_is_refused_asks_for_a_new_one() {
    for (status, code) in [(401, "80200001"), (401, "80200003"), (400, "80200003"), (401, "")] {
        assert!(lacks_access_token(status, body(code, "").as_bytes()), "{status} {code}");
    }
    for (status, code) in [(400, "80300002"), (200, "80000000"), (403, "")] {
        assert!(!lacks_access_token(status, body(code, "").as_bytes()), "{status} {code}");
    }
}

#[test]
fn traffic_control_throttles_the_credential_for_as_long_as_told() {
    let throttled = |retry_after| Outcome::Throttled { scope: OutcomeScope::Credential, retry_after };
    assert_eq!(outcome(503, b"<html>", WAIT), throttled(WAIT));
    assert_eq!(outcome(503, b"", None), throttled(None));
    assert_eq!(outcome(429, b"", WAIT), throttled(WAIT));
    assert_eq!(is(400, "80100017"), throttled(WAIT));
}

#[test]
fn trouble_of_the_service_is_unavailable() {
    let down = unavailable(Reason::Unavailable, WAIT);
    assert_eq!(is(500, "81000001"), down);
    assert_eq!(is(500, "80600003"), down);
    assert_eq!(outcome(502, b"", WAIT), down);
    assert_eq!(outcome(500, b"<html>", WAIT), down);
}

#[test]
fn an_answer_nobody_documented_ends_no_delivery_and_a_success_without_its_code_is_in_doubt() {
    assert_eq!(outcome(200, b"", None), Outcome::Unknown);
    assert_eq!(outcome(200, b"{\"code\":", None), Outcome::Unknown);
    assert_eq!(outcome(302, b"", None), unavailable(Reason::UnknownAnswer, None));
    assert_eq!(outcome(404, b"", None), rejected(Reason::UnknownAnswer, OutcomeScope::Credential));
}

#[test]
fn a_description_with_tokens_is_not_for_the_log() {
    assert_eq!(words(body("80200001", "Oauth failed").as_bytes()), Some("80200001 Oauth failed".into()));
    assert_eq!(words(body("80300007", r#"{"illegalTokens":["secret"]}"#).as_bytes()), None);
}

proptest! {
    #[test]
    fn no_bytes_make_the_parser_panic(
        status in any::<u16>(),
        body in prop::collection::vec(any::<u8>(), 0..400),
        msg in any::<String>(),
    ) {
        prop_assert_eq!(outcomes(status, &body, None, TOKENS).len(), TOKENS.len());
        let of = json!({"code": "80100000", "msg": msg}).to_string();
        prop_assert_eq!(outcomes(status, of.as_bytes(), None, TOKENS).len(), TOKENS.len());
    }
}
