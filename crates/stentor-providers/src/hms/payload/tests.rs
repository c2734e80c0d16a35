use std::collections::BTreeMap;
use std::time::Duration;

use proptest::prelude::*;
use stentor_core::id::{AppId, MessageId};
use stentor_core::message::{Notification, Priority, Ttl};
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
    Content { overrides: [(ProviderKind::Hms, own)].into(), ..content }
}

fn sent(spec: MessageSpec, seconds_later: u64) -> Value {
    let (id, app) = (MessageId::from_raw(1), AppId::from_raw(1));
    let message = Message { id, app, spec, created_at: DUE, due_at: DUE, occurrence: None };
    let template = template(&message, DUE.plus(Duration::from_secs(seconds_later)));
    let body = template.with_tokens(["a", "b"].into_iter(), |parts| parts.concat());
    serde_json::from_slice::<Value>(&body).expect("JSON")["message"].clone()
}

fn refused(content: Content) -> String {
    check(&spec(content)).expect_err("refused").field
}

#[test]
fn a_notification_goes_to_all_tokens_with_the_ttl_that_is_left_and_opens_the_app() {
    let notification = json!({"title": "Hi", "body": "there", "click_action": {"type": 3}});
    let wanted = json!({"token": ["a", "b"], "android": {"ttl": "3000s", "notification": notification}});
    assert_eq!(sent(spec(visible()), 600), wanted);
}

#[test]
fn data_alone_is_one_text_of_json() {
    let message = sent(spec(data(&[("a", "1"), ("b", "\"")])), 0);
    let text = message["data"].as_str().expect("a text");
    assert_eq!(serde_json::from_str::<Value>(text).expect("JSON"), json!({"a": "1", "b": "\""}));
    assert_eq!(message["android"], json!({"ttl": "3600s"}));
}

#[test]
fn a_time_to_live_is_between_a_second_and_fifteen_days() {
    let living = |seconds| MessageSpec { ttl: Ttl::from_seconds(seconds).expect("fits"), ..spec(visible()) };
    assert_eq!(sent(living(0), 0)["android"]["ttl"], "1s");
    assert_eq!(sent(living(28 * 24 * 3_600), 0)["android"]["ttl"], "1296000s");
}

#[test]
fn a_collapse_key_is_the_tag_of_a_notification() {
    let key = Some(CollapseKey::new("score").expect("fits"));
    let collapsing = |content| MessageSpec { collapse_key: key.clone(), ..spec(content) };
    assert_eq!(sent(collapsing(visible()), 0)["android"]["notification"]["tag"], "score");
    assert_eq!(sent(collapsing(data(&[("a", "1")])), 0)["android"], json!({"ttl": "3600s"}));
}

#[test]
fn the_override_wins_and_may_bring_the_notification_itself() {
    let own = json!({
        "urgency": "HIGH", "ttl": "60s", "collapse_key": 7, "category": "IM",
        "notification": {"body": "other", "click_action": {"type": 2, "url": "https://example.com"}},
    });
    let content = with(own, visible());
    assert_eq!(check(&spec(content.clone())), Ok(()));
    let android = &sent(spec(content), 0)["android"];
    assert_eq!((&android["urgency"], &android["ttl"]), (&json!("HIGH"), &json!("60s")));
    let click = json!({"type": 2, "url": "https://example.com"});
    assert_eq!(android["notification"], json!({"title": "Hi", "body": "other", "click_action": click}));
    let alone = with(json!({"notification": {"title": "t", "body": "b"}}), Content::default());
    assert_eq!(check(&spec(alone.clone())), Ok(()));
    assert_eq!(sent(spec(alone), 0)["android"]["notification"]["click_action"]["type"], 3);
}

#[test]
fn a_notification_needs_a_title_a_body_and_a_secure_image() {
    let notification = |title: Option<&str>, body: Option<&str>, image: Option<&str>| {
        let [title, body, image] = [title, body, image].map(|text| text.map(str::to_owned));
        Content { notification: Some(Notification { title, body, image }), ..Content::default() }
    };
    assert_eq!(refused(notification(None, Some("b"), None)), "notification.title");
    assert_eq!(refused(notification(Some("t"), Some(""), None)), "notification.body");
    let insecure = notification(Some("t"), Some("b"), Some("http://example.com/i.png"));
    assert_eq!(refused(insecure), "notification.image");
    let secure = notification(Some("t"), Some("b"), Some("https://example.com/i.png"));
    assert_eq!(check(&spec(secure)), Ok(()));
    assert_eq!(refused(Content::default()), "notification");
}

#[test]
fn every_malformed_override_is_named() {
    let own = |value: Value| refused(with(value, visible()));
    assert_eq!(own(json!({"surprise": 1})), "huawei.surprise");
    assert_eq!(own(json!({"ttl": "1296001s"})), "huawei.ttl");
    assert_eq!(own(json!({"ttl": "0s"})), "huawei.ttl");
    assert_eq!(own(json!({"ttl": 5})), "huawei.ttl");
    assert_eq!(own(json!({"urgency": "high"})), "huawei.urgency");
    assert_eq!(own(json!({"collapse_key": 101})), "huawei.collapse_key");
    assert_eq!(own(json!({"collapse_key": "a"})), "huawei.collapse_key");
    assert_eq!(own(json!({"data": {}})), "huawei.data");
    assert_eq!(own(json!({"target_user_type": 2})), "huawei.target_user_type");
    assert_eq!(own(json!({"notification": []})), "huawei.notification");
    assert_eq!(own(json!({"notification": {"title": 1}})), "huawei.notification.title");
    let click = |action: Value| own(json!({"notification": {"click_action": action}}));
    for wrong in [json!(3), json!({"type": 4}), json!({"type": 1}), json!({"type": 2, "url": 1})] {
        assert_eq!(click(wrong), "huawei.notification.click_action");
    }
}

#[test]
fn a_request_without_its_tokens_may_take_4096_bytes_and_no_more() {
    let sized = |bytes: usize| spec(data(&[("k", &"x".repeat(bytes))]));
    let rest = of(&sized(0), 3_600).bytes();
    assert_eq!(check(&sized(BODY_MAX_BYTES - rest)), Ok(()));
    let refused = check(&sized(BODY_MAX_BYTES - rest + 1)).expect_err("too large");
    assert_eq!(refused.field, "data");
    assert!(refused.problem.contains("4097 bytes"), "{}", refused.problem);
    let own = with(json!({"category": "x".repeat(5_000)}), visible());
    assert_eq!(self::refused(own), "huawei");
}

proptest! {
    #[test]
    fn any_token_and_any_text_make_a_body_that_reads_back(
        token in "[!-~]{1,60}",
        title in any::<String>(),
        pairs in prop::collection::btree_map(any::<String>(), any::<String>(), 0..5),
    ) {
        let notification = Notification { title: Some(title.clone()), ..Notification::default() };
        let content = Content { notification: Some(notification), data: pairs.clone(), ..Content::default() };
        let body = of(&spec(content), 60).with_tokens([token.as_str()].into_iter(), |parts| parts.concat());
        let read: Value = serde_json::from_slice(&body).expect("JSON");
        prop_assert_eq!(read["message"]["token"][0].as_str(), Some(token.as_str()));
        prop_assert_eq!(read["message"]["android"]["notification"]["title"].as_str(), Some(title.as_str()));
        let data: BTreeMap<String, String> =
            serde_json::from_str(read["message"]["data"].as_str().unwrap_or("{}")).expect("texts");
        prop_assert_eq!(data, pairs);
    }
}
