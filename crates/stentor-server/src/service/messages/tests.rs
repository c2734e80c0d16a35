//! Round trips: an accepted request becomes a record and the same request again.

use proptest::prelude::*;
use serde_json::{Value, json};
use stentor_core::limits::OVERRIDE_DEPTH_MAX_LEVELS;
use stentor_core::message::MessageSpec;

use super::MessageRequest;

/// Texts with characters that JSON must escape, and some that it need not escape.
fn texts() -> impl Strategy<Value = String> {
    proptest::string::string_regex("[a-c\"\\\\/\u{0}-\u{1f}\u{7f}\u{2028}\u{fffd}\u{1f600}]{0,8}")
        .expect("a pattern")
}

/// Values of every kind, numbers of every size; occasionally deeper than allowed.
fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        texts().prop_map(Value::from),
    ];
    let tree = leaf.prop_recursive(6, 32, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::hash_map(texts(), inner, 0..4).prop_map(|fields| json!(fields)),
        ]
    });
    (tree, 0..OVERRIDE_DEPTH_MAX_LEVELS + 6).prop_map(|(tree, levels)| nested(tree, levels))
}

fn nested(value: Value, levels: usize) -> Value {
    (0..levels)
        .fold(value, |inner, level| if level % 2 == 0 { json!([inner]) } else { json!({ "a": inner }) })
}

fn targets() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(json!("everyone")),
        texts().prop_map(|user| json!({ "user": user })),
        texts().prop_map(|token| json!({ "token": { "platform": "android", "token": token } })),
        prop::collection::vec(1_u64..1 << 40, 1..4).prop_map(|ids| {
            let name = |id: u64| stentor_core::id::DeviceId::from_raw(id).to_string();
            json!({ "devices": ids.into_iter().map(name).collect::<Vec<_>>() })
        }),
        "[ (]{0,3}'[a-z~%]{1,5}' in topics[ )]{0,3}".prop_map(|text| json!({ "condition": text })),
    ]
}

proptest! {
    #[test]
    fn every_request_that_is_accepted_is_read_back_as_it_was_asked(
        target in targets(),
        title in texts(),
        data in prop::collection::btree_map(texts(), texts(), 0..4),
        payload in values(),
        android in values(),
        ttl in prop::option::of(0_u64..3_000_000),
        collapse_key in prop::option::of(texts()),
    ) {
        let text = json!({
            "target": target, "notification": { "title": title }, "data": data, "apns": { "payload": payload },
            "android": { "x": android }, "ttl_seconds": ttl, "collapse_key": collapse_key,
        }).to_string();
        let request: MessageRequest = serde_json::from_str(&text).expect("a request");
        if let Ok(spec) = request.spec() {
            prop_assert_eq!(MessageSpec::decode(&spec.encode().expect("a record")), Some(spec));
        }
    }
}

#[test]
fn names_given_twice_huge_numbers_and_halves_of_characters_are_refused_or_read_back() {
    let with = |payload: &str| format!(r#"{{"target":"everyone","apns":{{"payload":{payload}}}}}"#);
    let accepted =
        [r#"{"a":1,"a":2}"#, "18446744073709551616", "1e308", "-0", "4.9e-324", r#""\u0000\u001f""#];
    for payload in accepted {
        let request: MessageRequest = serde_json::from_str(&with(payload)).expect(payload);
        let spec = request.spec().expect(payload);
        assert_eq!(MessageSpec::decode(&spec.encode().expect(payload)), Some(spec), "{payload}");
    }
    for payload in ["1e400", r#""\ud800""#, r#""\udc00\ud800""#, "NaN", "\"\u{1}\""] {
        assert!(serde_json::from_str::<MessageRequest>(&with(payload)).is_err(), "{payload}");
    }
}
