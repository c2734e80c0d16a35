use std::time::Duration;

use stentor_core::id::{AppId, MessageId};
use stentor_core::message::{Notification, Ttl};
use stentor_core::name::CollapseKey;
use stentor_core::target::Target;

use super::*;

const DUE: Timestamp = Timestamp::from_millis(1_700_000_000_000);

fn spec(content: Content) -> MessageSpec {
    MessageSpec {
        target: Target::Everyone,
        content,
        priority: Priority::High,
        ttl: Ttl::from_seconds(3_600).expect("fits"),
        collapse_key: None,
    }
}

fn visible() -> Content {
    let notification = Notification { title: Some("Hi".into()), body: Some("there".into()), image: None };
    Content { notification: Some(notification), ..Content::default() }
}

fn data(pairs: &[(&str, &str)]) -> Content {
    let data = pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    Content { data, ..Content::default() }
}

fn with(own: Value, content: Content) -> Content {
    let own = own.as_object().expect("an object").clone();
    Content { overrides: [(ProviderKind::Gcm, own)].into(), ..content }
}

fn sent(spec: MessageSpec, seconds_later: u64) -> Value {
    let (id, app) = (MessageId::from_raw(1), AppId::from_raw(1));
    let message = Message { id, app, spec, created_at: DUE, due_at: DUE, occurrence: None };
    let template = template(&message, DUE.plus(Duration::from_secs(seconds_later)));
    let body = template.with_tokens(["a", "b\""].into_iter(), |parts| parts.concat());
    serde_json::from_slice(&body).expect("JSON")
}

fn refused(content: Content) -> String {
    check(&spec(content)).expect_err("refused").field
}

#[test]
fn a_message_goes_to_all_tokens_with_the_ttl_that_is_left() {
    let content = Content { data: data(&[("k", "v")]).data, ..visible() };
    let wanted = json!({
        "registration_ids": ["a", "b\""], "priority": "high", "time_to_live": 3_000, "data": {"k": "v"},
        "notification": {"title": "Hi", "body": "there"},
    });
    assert_eq!(sent(spec(content), 600), wanted);
}

#[test]
fn a_collapse_key_and_normal_priority_are_passed_on() {
    let key = Some(CollapseKey::new("score").expect("fits"));
    let quiet = MessageSpec { priority: Priority::Normal, collapse_key: key, ..spec(data(&[("k", "v")])) };
    let message = sent(quiet, 0);
    assert_eq!((&message["collapse_key"], &message["priority"]), (&json!("score"), &json!("normal")));
}

#[test]
fn the_override_wins() {
    let own = json!({"time_to_live": 5, "delay_while_idle": true, "notification": {"icon": "i"}});
    let content = with(own, visible());
    assert_eq!(check(&spec(content.clone())), Ok(()));
    let message = sent(spec(content), 0);
    assert_eq!((&message["time_to_live"], &message["delay_while_idle"]), (&json!(5), &json!(true)));
    assert_eq!(message["notification"], json!({"title": "Hi", "body": "there", "icon": "i"}));
}

#[test]
fn reserved_keys_are_named() {
    for key in ["from", "message_type", "google.x", "gcm.y", "gcmx"] {
        assert_eq!(refused(data(&[("ok", "1"), (key, "2")])), format!("data.{key}"));
        assert_eq!(refused(with(json!({"data": {key: "x"}}), visible())), format!("gcm.data.{key}"));
    }
    assert_eq!(check(&spec(data(&[("fromage", "1")]))), Ok(()));
}

#[test]
fn keys_and_values_may_take_4096_bytes_and_no_more() {
    let fill = |bytes: usize| data(&[("key", &"x".repeat(bytes - 3))]);
    assert_eq!(check(&spec(fill(4_096))), Ok(()));
    assert_eq!(refused(fill(4_097)), "data");
    let long = Notification { body: Some("x".repeat(4_093)), ..Notification::default() };
    assert_eq!(refused(Content { notification: Some(long), ..Content::default() }), "notification");
    assert_eq!(refused(with(json!({"data": {"a": "x".repeat(5_000)}}), visible())), "gcm.data");
}

#[test]
fn every_malformed_override_is_named() {
    let own = |value: Value| refused(with(value, visible()));
    assert_eq!(own(json!({"to": "x"})), "gcm.to");
    assert_eq!(own(json!({"dry_run": true})), "gcm.dry_run");
    assert_eq!(own(json!({"time_to_live": 2_419_201})), "gcm.time_to_live");
    assert_eq!(own(json!({"time_to_live": -1})), "gcm.time_to_live");
    assert_eq!(own(json!({"priority": "HIGH"})), "gcm.priority");
    assert_eq!(own(json!({"delay_while_idle": "yes"})), "gcm.delay_while_idle");
    assert_eq!(own(json!({"data": {"a": 1}})), "gcm.data.a");
    assert_eq!(own(json!({"notification": []})), "gcm.notification");
    assert_eq!(own(json!({"restricted_package_name": 1})), "gcm.restricted_package_name");
}
