use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

const WAIT: Option<Duration> = Some(Duration::from_secs(7));

fn results(results: &[Value]) -> Vec<Outcome> {
    let body = json!({"multicast_id": 1, "success": 0, "failure": 0, "canonical_ids": 0, "results": results});
    outcomes(200, body.to_string().as_bytes(), WAIT, results.len())
}

fn error(code: &str) -> Outcome {
    results(&[json!({ "error": code })]).remove(0)
}

#[test]
fn the_results_come_in_the_order_of_the_tokens() {
    let outcomes = results(&[
        json!({"message_id": "0:1"}),
        json!({"error": "NotRegistered"}),
        json!({"message_id": "0:2", "registration_id": "new"}),
    ]);
    let dead = Outcome::Unregistered { reason: Reason::Unregistered, since: None };
    let replaced = Outcome::Replaced { token: PushToken::new("new").expect("a token") };
    assert_eq!(outcomes, [Outcome::Accepted, dead, replaced]);
}

#[test]
fn a_new_token_that_is_none_changes_nothing_about_the_message() {
    assert_eq!(results(&[json!({"message_id": "1", "registration_id": "\u{e4}"})]), [Outcome::Accepted]);
}

#[test]
fn each_error_of_a_result_reaches_as_far_as_its_cause() {
    let device = |reason| rejected(reason, OutcomeScope::Device);
    let payload = |reason| rejected(reason, OutcomeScope::Payload);
    assert_eq!(error("InvalidRegistration"), device(Reason::InvalidToken));
    assert_eq!(error("MissingRegistration"), device(Reason::InvalidToken));
    assert_eq!(error("MismatchSenderId"), device(Reason::SenderMismatch));
    assert_eq!(error("InvalidPackageName"), device(Reason::SenderMismatch));
    assert_eq!(error("MessageTooBig"), payload(Reason::PayloadTooLarge));
    assert_eq!(error("InvalidDataKey"), payload(Reason::InvalidPayload));
    assert_eq!(error("InvalidTtl"), payload(Reason::InvalidPayload));
    let service = unavailable(Reason::Unavailable, OutcomeScope::Service, WAIT);
    assert_eq!(error("Unavailable"), service);
    assert_eq!(error("InternalServerError"), service);
    let device = Outcome::Throttled { scope: OutcomeScope::Device, retry_after: WAIT };
    assert_eq!(error("DeviceMessageRateExceeded"), device);
    assert_eq!(
        error("InvalidApnsCredential"),
        unavailable(Reason::ThirdPartyAuth, OutcomeScope::Device, WAIT)
    );
    assert_eq!(error("Surprise"), unavailable(Reason::UnknownAnswer, OutcomeScope::Service, WAIT));
}

#[test]
fn a_request_that_is_refused_as_a_whole_is_refused_for_each_token() {
    let whole = |status| outcomes(status, b"Unauthorized\n", WAIT, 2);
    assert_eq!(whole(400), vec![rejected(Reason::InvalidPayload, OutcomeScope::Payload); 2]);
    assert_eq!(whole(401), vec![rejected(Reason::CredentialRefused, OutcomeScope::Credential); 2]);
    let down = unavailable(Reason::Unavailable, OutcomeScope::Service, WAIT);
    for status in [500, 502, 503, 599] {
        assert_eq!(whole(status), vec![down.clone(); 2], "{status}");
    }
    let throttled = Outcome::Throttled { scope: OutcomeScope::Credential, retry_after: WAIT };
    assert_eq!(whole(429), vec![throttled; 2]);
    // What the vendor's own server answers today.
    assert_eq!(whole(404), vec![rejected(Reason::UnknownAnswer, OutcomeScope::Credential); 2]);
}

#[test]
fn a_success_without_a_result_for_each_token_is_in_doubt() {
    for body in ["", "<html>", "{}", r#"{"results":[{"message_id":"1"}]}"#, r#"{"results":[{},{}]}"#] {
        assert_eq!(outcomes(200, body.as_bytes(), None, 2), vec![Outcome::Unknown; 2], "{body}");
    }
}

proptest! {
    #[test]
    fn no_bytes_make_the_parser_panic(
        status in any::<u16>(),
        body in prop::collection::vec(any::<u8>(), 0..400),
        tokens in 0..3_usize,
    ) {
        prop_assert_eq!(outcomes(status, &body, None, tokens).len(), tokens);
    }
}

#[test]
fn a_device_group_is_accepted_once_one_member_got_the_message() {
    let group = |body: Value| outcomes(200, body.to_string().as_bytes(), WAIT, 1).remove(0);
    assert_eq!(group(json!({"success": 2, "failure": 0})), Outcome::Accepted);
    let some = json!({"success": 1, "failure": 1, "failed_registration_ids": ["b"]});
    assert_eq!(group(some), Outcome::Accepted);
    let none = json!({"success": 0, "failure": 1, "failed_registration_ids": ["b"]});
    assert_eq!(group(none), unavailable(Reason::Unavailable, OutcomeScope::Device, WAIT));
    assert_eq!(group(json!({"success": 0, "failure": 0})), Outcome::Unknown);
    assert_eq!(outcomes(200, br#"{"success":1,"failure":0}"#, WAIT, 2), [Outcome::Unknown, Outcome::Unknown]);
}
