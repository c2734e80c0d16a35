//! Conditions, fields, durations and forms, from outside input.

use super::condition::FcmCondition;
use super::message::{MessageTarget, SendRequest, is_topic};
use super::oauth::percent_decode;
use crate::json::{JsonNode, is_name};
use std::time::Duration;

fn holds(condition: &str, topics: &[&str]) -> Option<bool> {
    FcmCondition::parse(condition).map(|condition| condition.holds(&|topic| topics.contains(&topic)))
}

#[test]
fn conditions_follow_the_usual_precedence() {
    let nested = "'a' in topics && ('b' in topics || !('c' in topics))";
    assert_eq!(holds(nested, &["a"]), Some(true));
    assert_eq!(holds(nested, &["a", "c"]), Some(false));
    assert_eq!(holds(nested, &["a", "b", "c"]), Some(true));
    assert_eq!(holds("'a' in topics || 'b' in topics && 'c' in topics", &["a"]), Some(true));
    assert_eq!(holds("!'a' in topics", &[]), Some(true));
}

#[test]
fn what_is_no_condition_is_refused() {
    let deep = format!("{}'a' in topics{}", "(".repeat(10_000), ")".repeat(10_000));
    let many = ["'a' in topics"; 6].join(" || ");
    for text in [
        "",
        "a in topics",
        "'a'",
        "'a' in topic",
        "('a' in topics",
        "'a' in topics)",
        "'a b' in topics",
        "'a' in topics &&",
        "'a' in topics 'b' in topics",
        &deep,
        &many,
    ] {
        assert_eq!(holds(text, &[]), None, "{text}");
    }
}

#[test]
fn names_match_in_camel_and_snake_case_only() {
    assert!(is_name("validateOnly", "validateOnly") && is_name("validate_only", "validateOnly"));
    assert!(is_name("android_v2", "androidV2"));
    for other in ["validateonly", "validate_Only", "validate__only", "validate_only_", "_validate_only"] {
        assert!(!is_name(other, "validateOnly"), "{other}");
    }
}

#[test]
fn a_request_is_read_with_its_android_options() {
    let json = br#"{"message":{"fid":"x","android":{"collapse_key":"k","ttl":"3.9s","priority":"HIGH"}}}"#;
    let node = JsonNode::parse(json).unwrap();
    let sent = SendRequest::check(&node).unwrap();
    assert_eq!((sent.target, sent.collapse_key), (MessageTarget::Installation("x"), Some("k")));
    assert_eq!((sent.ttl, sent.high_priority), (Duration::from_secs(3), true));
}

#[test]
fn null_fields_are_absent() {
    let node = JsonNode::parse(br#"{"message":{"token":"x","topic":null,"android":null}}"#).unwrap();
    assert!(SendRequest::check(&node).is_ok());
}

#[test]
fn topics_have_a_small_alphabet_and_a_limit() {
    assert!(is_topic("a-Z_0.9~%") && is_topic(&"x".repeat(900)));
    assert!(!is_topic("") && !is_topic("a/b") && !is_topic(&"x".repeat(901)));
}

#[test]
fn broken_escapes_are_not_decoded() {
    assert_eq!(percent_decode(b"a%3Ab+c", true).as_deref(), Some("a:b c"));
    assert_eq!(percent_decode(b"a+b", false).as_deref(), Some("a+b"));
    for broken in [b"%".as_slice(), b"%4", b"%zz", b"%ff", b"%+4"] {
        assert_eq!(percent_decode(broken, true), None);
    }
}

#[test]
fn settings_from_when_there_were_two_engines_are_still_taken() {
    for engine in ["h2", "frames"] {
        let file = format!(r#"{{"engine":"{engine}","seed":7}}"#);
        let fcm: crate::FcmConfig = serde_json::from_str(&file).unwrap();
        let apns: crate::ApnsConfig = serde_json::from_str(&file).unwrap();
        assert_eq!((fcm.seed, apns.seed), (7, 7));
        assert!(!serde_json::to_string(&fcm).unwrap().contains("engine"), "and not written again");
    }
}

#[test]
fn settings_of_one_push_service_stand_beside_the_common_ones_and_unknown_ones_are_refused() {
    let fcm: crate::FcmConfig = serde_json::from_str(r#"{"projects":["p"],"seed":7}"#).unwrap();
    assert_eq!((fcm.vendor.projects, fcm.seed, fcm.max_concurrent_streams), (vec!["p".to_owned()], 7, 100));
    let apns: crate::ApnsConfig = serde_json::from_str(r#"{"sandbox":true,"seed":7}"#).unwrap();
    assert_eq!((apns.vendor.sandbox, apns.seed, apns.max_concurrent_streams), (true, 7, 1000));
    let foreign = serde_json::from_str::<crate::ApnsConfig>(r#"{"projects":["p"]}"#).unwrap_err();
    assert!(foreign.to_string().contains("unknown field `projects`"), "{foreign}");
}

#[test]
fn a_refused_field_gets_the_fields_that_there_are() {
    let refused = serde_json::from_str::<crate::FcmConfig>(r#"{"projekts":["p"],"seed":7}"#).unwrap_err();
    let message = refused.to_string();
    assert!(message.starts_with("unknown field `projekts`, expected one of `"), "{message}");
    for field in ["`auth`", "`listen`", "`projects`", "`strict_tokens`", "line 1"] {
        assert!(message.contains(field), "{message}");
    }
    assert!(!message.contains("`sandbox`") && !message.contains("`engine`"), "{message}");
}
