use std::collections::BTreeMap;

use stentor_core::id::{AppId, MessageId};
use stentor_core::message::Ttl;
use stentor_core::target::Target;

use super::*;

const NOW: Timestamp = Timestamp::from_millis(1_800_000_000_000);

fn content(own: Option<Value>) -> Content {
    let notification = Notification { title: Some("Hi".into()), body: Some("there".into()), image: None };
    let overrides = own.map(|own| (ProviderKind::WebPush, own.as_object().expect("an object").clone()));
    Content {
        notification: Some(notification),
        data: BTreeMap::from([("order".to_owned(), "7".to_owned())]),
        overrides: overrides.into_iter().collect(),
    }
}

fn spec(content: Content, key: Option<&str>) -> MessageSpec {
    let collapse_key = key.map(|key| CollapseKey::new(key).expect("fits"));
    let ttl = Ttl::from_seconds(3_600).expect("fits");
    MessageSpec { target: Target::Everyone, content, priority: Priority::Normal, ttl, collapse_key }
}

fn sent(spec: MessageSpec) -> Vec<(String, String)> {
    let (id, app) = (MessageId::from_raw(7), AppId::from_raw(1));
    let message = Message { id, app, spec, created_at: NOW, due_at: NOW, occurrence: None };
    let text = |value: HeaderValue| value.to_str().expect("text").to_owned();
    headers(&message, NOW).into_iter().map(|(name, value)| (name.to_string(), text(value))).collect()
}

fn json_of(content: &Content, navigate: Option<&str>) -> Value {
    serde_json::from_slice(&text(content, navigate)).expect("JSON")
}

#[test]
fn a_message_is_declarative_if_it_names_an_address_and_readable_by_a_service_worker_in_any_case() {
    let shown = json!({"title": "Hi", "body": "there"});
    let classic = json!({"notification": shown, "data": {"order": "7"}});
    assert_eq!(json_of(&content(None), None), classic);
    let mut declarative = classic;
    declarative["web_push"] = 8030.into();
    declarative["notification"]["navigate"] = "https://app.example/".into();
    assert_eq!(json_of(&content(None), Some("https://app.example/")), declarative);
    let own = json!({"payload": {"notification": {"navigate": "https://app.example/7", "silent": true}, "app_badge": 2}});
    declarative["notification"]["navigate"] = "https://app.example/7".into();
    declarative["notification"]["silent"] = true.into();
    declarative["app_badge"] = 2.into();
    assert_eq!(json_of(&content(Some(own)), Some("https://app.example/")), declarative);
}

#[test]
fn raw_bytes_are_sealed_as_they_are() {
    assert_eq!(text(&content(Some(json!({"raw": "AAEC"}))), None), [0, 1, 2]);
}

#[test]
fn time_to_live_urgency_and_topic_are_headers() {
    let plain = sent(spec(content(None), Some("score-7")));
    for (name, value) in [
        ("ttl", "3600"),
        ("urgency", "normal"),
        ("topic", "score-7"),
        ("content-encoding", "aes128gcm"),
        ("content-type", "application/octet-stream"),
    ] {
        assert!(plain.contains(&(name.to_owned(), value.to_owned())), "{name}: {plain:?}");
    }
    let own = json!({"headers": {"TTL": "0", "urgency": "very-low", "Topic": "mine"}});
    let overridden = sent(spec(content(Some(own)), Some("score-7")));
    for (name, value) in [("ttl", "0"), ("urgency", "very-low"), ("topic", "mine")] {
        assert!(overridden.contains(&(name.to_owned(), value.to_owned())), "{name}: {overridden:?}");
    }
}

#[test]
fn a_collapse_key_that_is_no_topic_becomes_one_and_two_keys_never_the_same() {
    let topic = |key: &str| topic_of(&CollapseKey::new(key).expect("fits")).into_owned();
    let (one, two) = (topic("Bestellung №7"), topic("Bestellung №8"));
    assert!(is_topic(&one) && is_topic(&two) && one != two);
    assert_eq!(one.len(), TOPIC_MAX_LETTERS);
    assert_eq!(topic("a_b-C9"), "a_b-C9");
}

#[test]
fn a_message_that_no_push_service_takes_is_refused_with_the_name_of_its_field() {
    let refused = |own: Value| check(&spec(content(Some(own)), None)).expect_err("refused").field;
    for (own, field) in [
        (json!({"header": {}}), "web_push.header"),
        (json!({"headers": {"ttl": "soon"}}), "web_push.headers.ttl"),
        (json!({"headers": {"urgency": "urgent"}}), "web_push.headers.urgency"),
        (json!({"headers": {"topic": "a b"}}), "web_push.headers.topic"),
        (json!({"headers": {"authorization": "x"}}), "web_push.headers.authorization"),
        (json!({"headers": {"ttl": 5}}), "web_push.headers.ttl"),
        (json!({"payload": "x"}), "web_push.payload"),
        (json!({"raw": "?"}), "web_push.raw"),
        (json!({"raw": "AAEC", "payload": {}}), "web_push.raw"),
    ] {
        assert_eq!(refused(own), field);
    }
    let of_bytes = |bytes: usize| json!({"raw": STANDARD.encode(vec![0; bytes])});
    assert_eq!(check(&spec(content(Some(of_bytes(TEXT_MAX_BYTES))), None)), Ok(()));
    assert_eq!(refused(of_bytes(TEXT_MAX_BYTES + 1)), "data");
    assert_eq!(TEXT_MAX_BYTES, 3_993);
}
