//! Tests of the sink's request parsing.

use super::request::{Route, SinkTarget, apns_id, write_message_name};
use crate::observer::token_hash;

fn route(path: &str) -> (Route, Vec<u8>) {
    let mut project = Vec::new();
    (Route::of(path.as_bytes(), &mut project), project)
}

#[test]
fn paths_are_told_apart() {
    let hash = token_hash(b"00abff");
    assert_eq!(route("/3/device/00abff").0, Route::Apns { token_hash: hash });
    assert_eq!(route("/3/device/00ABff").0, Route::Apns { token_hash: hash }, "in either case");
    assert_eq!(route("/v1/projects/my-app:1/messages:send"), (Route::Fcm, b"my-app:1".to_vec()));
    assert_eq!(route("/v1/projects/a\"b/messages:send"), (Route::Fcm, b"sink".to_vec()), "JSON stays whole");
    assert_eq!(route("/token").0, Route::Grant);
    assert_eq!(route("/").0, Route::Other);
}

#[test]
fn the_token_of_a_message_is_found_wherever_it_is() {
    let token = SinkTarget::Device(token_hash(b"to:ken"));
    let bodies = [
        (r#"{"message":{"token":"to:ken","data":{"token":"other"}}}"#, token),
        (r#"{"message":{"data":{"token":"other"},"token":"to:ken"}}"#, token),
        (r#" { "validate_only" : false, "message" : { "token" : "to:ken" } } "#, token),
        (r#"{"message":{"token":"to\u003aken"}}"#, token),
        (r#"{"message":{"topic":null,"notification":{"body":"\"token\":\"x\""},"token":"to:ken"}}"#, token),
        (r#"{"message":{"fid":"to:ken"}}"#, token),
        (r#"{"message":{"data":{"fid":"other"},"fid":"to:ken"}}"#, token),
        (r#"{"message":{"data":{"token":"other"},"topic":"news"}}"#, SinkTarget::Uncounted),
        (r#"{"message":{"condition":"'a' in topics"}}"#, SinkTarget::Uncounted),
        (r#"{"message":{"data":{"token":"other"}}}"#, SinkTarget::Nobody),
        (r#"{"message":{"token":"to:ken"#, SinkTarget::Nobody),
        (r#"{"message":{"token":7}}"#, SinkTarget::Nobody),
        ("", SinkTarget::Nobody),
    ];
    for (body, expected) in bodies {
        assert_eq!(SinkTarget::of(body.as_bytes()), expected, "{body}");
    }
}

#[test]
fn an_address_ends_at_the_first_byte_that_is_not_plain_wherever_that_is() {
    for (field, length) in ["token", "fid"].into_iter().flat_map(|field| (1..40).map(move |n| (field, n))) {
        let token = "t".repeat(length);
        let body = |end: &str| format!(r#"{{"message":{{"{field}":"{token}{end}"#);
        let whole = body(r#"","data":{"padding":"0123456789"}}}"#);
        assert_eq!(SinkTarget::of(whole.as_bytes()), SinkTarget::Device(token_hash(token.as_bytes())));
        let escaped = body(r#"\u0074"}}"#);
        assert_eq!(
            SinkTarget::of(escaped.as_bytes()),
            SinkTarget::Device(token_hash("t".repeat(length + 1).as_bytes()))
        );
        for broken in ["", "\n\"}}", "\\"] {
            assert_eq!(
                SinkTarget::of(body(broken).as_bytes()),
                SinkTarget::Nobody,
                "{length} and {broken:?}"
            );
        }
    }
}

#[test]
fn names_and_ids_have_the_shape_that_clients_expect() {
    let mut body = Vec::new();
    write_message_name(&mut body, b"my-app", 0x12ab);
    assert_eq!(body, br#"{"name":"projects/my-app/messages/0:00000000000012AB"}"#);
    let id = apns_id(0x0011_2233_4455_6677, 0x8899_aabb_ccdd_eeff);
    assert_eq!(&id, b"00112233-4455-6677-8899-AABBCCDDEEFF");
}
