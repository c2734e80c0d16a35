//! Round trips of envelopes, and their robustness against arbitrary bytes.

use proptest::prelude::*;
use serde_json::{Value, json};
use stentor_wire::protobuf::fields::{put_field, put_number, read_delimited, read_key, read_varint};

use super::*;
use crate::contract::ErrorCode;
use crate::face::record::protobuf::Schema;

/// Encodes a request in Protocol Buffers, as a client does.
fn protobuf(id: u64, operation: &str, record: &Value, key: &str) -> Vec<u8> {
    let mut out = Vec::new();
    put_number(1, id, &mut out);
    put_field(2, operation.as_bytes(), &mut out);
    let fields = record.as_object().expect("an object");
    let shape = description().operations.iter().find(|one| one.facts.name == operation);
    let bytes = shape.map(|shape| Schema::get().write(&shape.request.name, fields).expect("written"));
    put_field(4, &bytes.unwrap_or_default(), &mut out);
    put_field(5, key.as_bytes(), &mut out);
    out
}

fn json_of(id: u64, operation: &str, record: &Value, key: &str) -> Vec<u8> {
    json!({"id": id, "operation": operation, "record": record, "idempotency_key": key}).to_string().into()
}

proptest! {
    #[test]
    fn a_request_is_the_same_in_both_encodings(
        id in 1_u64..,
        token in "[a-z0-9 äöü\\\\\"]{1,40}",
        topics in prop::collection::vec("[a-z]{1,9}", 0..4),
        key in "[!-~]{0,20}",
    ) {
        let mut record = json!({"platform": "android", "token": token});
        if !topics.is_empty() {
            record["topics"] = json!(topics);
        }
        let as_json = FrameEncoding::Json.read(&json_of(id, "devices.register", &record, &key));
        let as_protobuf = FrameEncoding::Protobuf.read(&protobuf(id, "devices.register", &record, &key));
        prop_assert_eq!(&as_json, &as_protobuf);
        let request = as_json.expect("a request");
        prop_assert_eq!(Value::Object(request.record), record);
        prop_assert_eq!((request.id, request.key.is_some()), (id, !key.is_empty()));
    }

    #[test]
    fn no_bytes_do_harm(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        for encoding in [FrameEncoding::Json, FrameEncoding::Protobuf] {
            if let Err(unread) = encoding.read(&bytes) {
                prop_assert!(!encoding.write(unread.id, "", &Err(unread.problem)).is_empty());
            }
        }
    }

    #[test]
    fn a_request_that_was_cut_or_changed_does_no_harm(at in 0_usize..100, byte: u8) {
        let record = json!({"platform": "android", "token": "t", "topics": ["a", "b"]});
        for (encoding, mut bytes) in [
            (FrameEncoding::Json, json_of(7, "devices.register", &record, "k")),
            (FrameEncoding::Protobuf, protobuf(7, "devices.register", &record, "k")),
        ] {
            let at = at % bytes.len();
            let _refused_or_not = encoding.read(&bytes[..at]);
            bytes[at] = byte;
            let _refused_or_not = encoding.read(&bytes);
        }
    }
}

#[test]
fn an_operation_is_named_or_numbered() {
    let mut bytes = Vec::new();
    put_number(1, 3, &mut bytes);
    put_number(3, 11, &mut bytes);
    let numbered = FrameEncoding::Protobuf.read(&bytes).expect("a request");
    assert_eq!((numbered.id, numbered.operation.as_str()), (3, "devices.register"));
    let numbered = FrameEncoding::Json.read(br#"{"id":3,"operation":11}"#).expect("a request");
    assert_eq!(numbered.operation, "devices.register");
    bytes.clear();
    put_number(1, 3, &mut bytes);
    put_number(3, 4_711, &mut bytes);
    assert_eq!(FrameEncoding::Protobuf.read(&bytes).expect_err("unknown").id, 3);
}

#[test]
fn replies_and_errors_have_their_numbers() {
    let reply = json!({"id": "dev_0000000000001", "created": true});
    let reply = reply.as_object().expect("an object").clone();
    let bytes = FrameEncoding::Protobuf.write(300, "devices.register", &Ok(reply));
    let mut rest = &bytes[..];
    assert_eq!((read_key(&mut rest).expect("a key").0, read_varint(&mut rest)), (1, Ok(300)));
    assert_eq!(read_key(&mut rest).expect("a key").0, 2);
    assert!(!read_delimited(&mut rest).expect("a record").is_empty() && rest.is_empty());
    let problem = Problem::field("token", "is wrong").with_hint("mend it");
    let bytes = FrameEncoding::Protobuf.write(1, "devices.register", &Err(problem));
    let mut rest = &bytes[2..];
    assert_eq!(read_key(&mut rest).expect("a key").0, 3);
    let mut error = read_delimited(&mut rest).expect("an error");
    let mut texts = Vec::new();
    while !error.is_empty() {
        match read_key(&mut error).expect("a key").0 {
            2 => assert_eq!(read_varint(&mut error), Ok(2)),
            number => texts.push((number, read_delimited(&mut error).expect("a text"))),
        }
    }
    assert_eq!(texts, [(1, &b"invalid_field"[..]), (3, b"token"), (4, b"is wrong"), (5, b"mend it")]);
}

#[test]
fn a_request_without_a_number_is_known_as_such() {
    for (encoding, bytes) in
        [(FrameEncoding::Json, &br#"{"operation":"topics.list"}"#[..]), (FrameEncoding::Protobuf, &[][..])]
    {
        let unread = encoding.read(bytes).expect_err("no number");
        assert_eq!((unread.id, unread.problem.code), (0, ErrorCode::InvalidField));
    }
    let group = FrameEncoding::Protobuf.read(&[0x0b]).expect_err("a group");
    assert_eq!((group.id, group.problem.code), (0, ErrorCode::InvalidRequest));
}
