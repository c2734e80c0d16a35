use std::collections::BTreeMap;

use stentor_core::id::{AppId, MessageId};
use stentor_core::message::Ttl;
use stentor_core::name::CollapseKey;
use stentor_core::target::Target;
use stentor_core::time::Timestamp;

use super::*;

const DUE: Timestamp = Timestamp::from_millis(1_700_000_000_000);

fn object(value: Value) -> Map<String, Value> {
    value.as_object().expect("an object").clone()
}

fn overriding(fields: Map<String, Value>) -> BTreeMap<ProviderKind, Map<String, Value>> {
    [(ProviderKind::Apns, fields)].into()
}

fn spec(content: Content) -> MessageSpec {
    MessageSpec {
        target: Target::Everyone,
        content,
        priority: Priority::High,
        ttl: Ttl::from_seconds(3_600).expect("fits"),
        collapse_key: None,
    }
}

fn push(spec: MessageSpec) -> (Vec<(String, String)>, Value) {
    let message = Message {
        id: MessageId::from_raw(1),
        app: AppId::from_raw(1),
        spec,
        created_at: DUE,
        due_at: DUE,
        occurrence: None,
    };
    let push = Push::new(&message, "com.example.app");
    let text = |(name, value): (HeaderName, HeaderValue)| {
        (name.as_str().to_owned(), value.to_str().expect("text").to_owned())
    };
    let mut headers: Vec<_> = push.headers.into_iter().map(text).collect();
    headers.sort();
    (headers, serde_json::from_slice(&push.body).expect("JSON"))
}

fn is(headers: &[(String, String)], wanted: &[(&str, &str)]) {
    let wanted: Vec<_> =
        wanted.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    assert_eq!(headers, wanted);
}

fn visible() -> Content {
    let notification = Notification { title: Some("Hi".into()), body: Some("there".into()), image: None };
    Content { notification: Some(notification), ..Content::default() }
}

fn data(pairs: &[(&str, &str)]) -> Content {
    let data = pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    Content { data, ..Content::default() }
}

fn refused(content: Content) -> String {
    check(&spec(content)).expect_err("refused").field
}

#[test]
fn a_notification_is_an_alert_of_high_priority() {
    let (headers, body) = push(spec(Content { data: data(&[("k", "v")]).data, ..visible() }));
    let wanted = [
        ("apns-expiration", "1700003600"),
        ("apns-priority", "10"),
        ("apns-push-type", "alert"),
        ("apns-topic", "com.example.app"),
    ];
    is(&headers, &wanted);
    assert_eq!(body, json!({"aps": {"alert": {"title": "Hi", "body": "there"}}, "k": "v"}));
}

#[test]
fn data_alone_is_a_background_push_of_priority_5() {
    let (headers, body) = push(spec(data(&[("k", "v")])));
    let wanted = [
        ("apns-expiration", "1700003600"),
        ("apns-priority", "5"),
        ("apns-push-type", "background"),
        ("apns-topic", "com.example.app"),
    ];
    is(&headers, &wanted);
    assert_eq!(body, json!({"aps": {"content-available": 1}, "k": "v"}));
}

#[test]
fn a_collapse_key_of_too_many_bytes_goes_as_its_hash() {
    let id = |text: &str| collapse_id(&CollapseKey::new(text).expect("fits")).into_owned();
    assert_eq!(id(&"x".repeat(64)), "x".repeat(64));
    let (one, other) = (id(&"語".repeat(64)), id(&format!("{}x", "語".repeat(63))));
    assert_eq!((one.len(), other.len()), (COLLAPSE_ID_MAX_BYTES, COLLAPSE_ID_MAX_BYTES));
    assert_ne!(one, other, "different keys replace nothing of each other");
}

/// Such a key is refused today; a stored older one must not make every attempt a malformed request.
#[test]
fn a_kept_collapse_key_that_no_header_can_carry_goes_as_its_hash() {
    for key_text in ["score ", " score"] {
        let key = CollapseKey::new(key_text).expect("was taken before");
        assert_eq!(collapse_id(&key).len(), 64, "{key_text:?}");
    }
}

#[test]
fn ttl_zero_collapse_key_and_normal_priority_become_headers() {
    let message = MessageSpec {
        ttl: Ttl::from_seconds(0).expect("fits"),
        collapse_key: Some(CollapseKey::new("score").expect("fits")),
        priority: Priority::Normal,
        ..spec(visible())
    };
    let (headers, _) = push(message);
    let wanted = [
        ("apns-collapse-id", "score"),
        ("apns-expiration", "0"),
        ("apns-priority", "5"),
        ("apns-push-type", "alert"),
        ("apns-topic", "com.example.app"),
    ];
    is(&headers, &wanted);
}

#[test]
fn a_picture_is_left_to_the_app_s_service_extension() {
    let mut content = visible();
    content.notification.as_mut().expect("visible").image = Some("https://e.example/i.png".into());
    let (_, body) = push(spec(content));
    assert_eq!(body["aps"]["mutable-content"], 1);
    assert_eq!(body["image"], "https://e.example/i.png");
}

#[test]
fn overrides_win_and_the_aps_objects_are_merged() {
    let apns = json!({
        "headers": {"apns-push-type": "voip", "apns-priority": "5", "apns-collapse-id": "x", "apns-expiration": "7"},
        "payload": {"aps": {"badge": 3}, "call": {"id": 1}},
    });
    let content = Content { overrides: overriding(object(apns)), ..visible() };
    assert_eq!(check(&spec(content.clone())), Ok(()));
    let (headers, body) = push(spec(content));
    let wanted = [
        ("apns-collapse-id", "x"),
        ("apns-expiration", "7"),
        ("apns-priority", "5"),
        ("apns-push-type", "voip"),
        ("apns-topic", "com.example.app.voip"),
    ];
    is(&headers, &wanted);
    let aps = json!({"alert": {"title": "Hi", "body": "there"}, "badge": 3});
    assert_eq!(body, json!({"aps": aps, "call": {"id": 1}}));
}

#[test]
fn an_alert_given_only_in_the_override_is_an_alert() {
    let apns = object(json!({"payload": {"aps": {"alert": "Hi"}}}));
    let (headers, body) = push(spec(Content { overrides: overriding(apns), ..Content::default() }));
    assert!(headers.contains(&("apns-push-type".to_owned(), "alert".to_owned())));
    assert_eq!(body, json!({"aps": {"alert": "Hi"}}));
}

#[test]
fn a_body_may_take_4096_bytes_and_a_voip_body_5120() {
    let around = json!({"aps": {"content-available": 1}, "k": ""}).to_string().len();
    let fill = |bytes: usize| data(&[("k", &"x".repeat(bytes - around))]);
    assert_eq!(check(&spec(fill(4_096))), Ok(()));
    assert_eq!(refused(fill(4_097)), "data");
    let voip = |content| {
        let apns = object(json!({"headers": {"apns-push-type": "voip"}}));
        Content { overrides: overriding(apns), ..content }
    };
    assert_eq!(check(&spec(voip(fill(5_120)))), Ok(()));
    assert_eq!(refused(voip(fill(5_121))), "data");
    let long = Notification { body: Some("x".repeat(5_000)), ..Notification::default() };
    assert_eq!(refused(Content { notification: Some(long), ..Content::default() }), "notification");
    let apns = object(json!({"payload": {"x": "y".repeat(5_000)}}));
    assert_eq!(refused(Content { overrides: overriding(apns), ..visible() }), "apns.payload");
}

#[test]
fn every_malformed_override_is_named() {
    assert_eq!(refused(data(&[("aps", "x")])), "data.aps");
    let apns = |value: Value| refused(Content { overrides: overriding(object(value)), ..visible() });
    assert_eq!(apns(json!({"header": {}})), "apns.header");
    assert_eq!(apns(json!({"payload": []})), "apns.payload");
    assert_eq!(apns(json!({"payload": {"aps": "x"}})), "apns.payload.aps");
    let header = |name: &str, value: &str| apns(json!({"headers": {name: value}}));
    for (name, value) in [
        ("apns-push-type", "shout"),
        ("apns-priority", "7"),
        ("apns-expiration", "soon"),
        ("apns-expiration", "-1"),
        ("apns-collapse-id", ""),
        ("apns-collapse-id", "score "),
        ("apns-collapse-id", &"x".repeat(65)),
        ("apns-topic", "a b"),
        ("apns-id", "1"),
        ("authorization", "bearer x"),
    ] {
        assert_eq!(header(name, value), format!("apns.headers.{name}"), "{value:?}");
    }
    assert_eq!(apns(json!({"headers": {"apns-priority": 5}})), "apns.headers.apns-priority");
    let background = json!({"headers": {"apns-push-type": "background", "apns-priority": "10"}});
    assert_eq!(apns(background), "apns.headers.apns-priority");
}
