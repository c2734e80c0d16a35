use std::collections::BTreeMap;

use proptest::prelude::*;
use stentor_core::id::{AppId, MessageId};
use stentor_core::message::{Notification, Ttl};
use stentor_core::name::CollapseKey;
use stentor_core::target::Target;

use super::*;

const DUE: Timestamp = Timestamp::from_millis(1_700_000_000_000);

fn object(value: Value) -> Map<String, Value> {
    value.as_object().expect("an object").clone()
}

fn overriding(provider: ProviderKind, value: Value) -> BTreeMap<ProviderKind, Map<String, Value>> {
    [(provider, object(value))].into()
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

fn message(spec: MessageSpec) -> Message {
    Message {
        id: MessageId::from_raw(1),
        app: AppId::from_raw(1),
        spec,
        created_at: DUE,
        due_at: DUE,
        occurrence: None,
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

fn sent(spec: MessageSpec, seconds_later: u64) -> Value {
    let now = DUE.plus(std::time::Duration::from_secs(seconds_later));
    let body = BodyTemplate::new(&message(spec), now).with_token("tok:en", |parts| parts.concat());
    serde_json::from_slice::<Value>(&body).expect("JSON")["message"].clone()
}

fn refused(content: Content) -> String {
    check(&spec(content)).expect_err("refused").field
}

#[test]
fn a_notification_is_sent_with_priority_and_the_ttl_that_is_left() {
    let message = sent(spec(visible()), 600);
    assert_eq!(message["token"], "tok:en");
    assert_eq!(message["notification"], json!({"title": "Hi", "body": "there"}));
    assert_eq!(message["android"], json!({"priority": "HIGH", "ttl": "3000s"}));
    let headers = json!({"apns-priority": "10", "apns-expiration": "1700003600"});
    assert_eq!(message["apns"], json!({"headers": headers}));
}

#[test]
fn data_alone_wakes_apple_devices_in_the_background_only() {
    let message = sent(spec(data(&[("a", "1")])), 0);
    assert_eq!(message["data"], json!({"a": "1"}));
    assert_eq!(message["apns"]["headers"]["apns-priority"], "5");
    assert_eq!(message["apns"]["payload"], json!({"aps": {"content-available": 1}}));
    assert_eq!(message.get("notification"), None);
}

#[test]
fn ttl_zero_means_now_or_never_everywhere() {
    let now_or_never = MessageSpec { ttl: Ttl::from_seconds(0).expect("fits"), ..spec(visible()) };
    let message = sent(now_or_never, 30);
    assert_eq!(message["android"]["ttl"], "0s");
    assert_eq!(message["apns"]["headers"]["apns-expiration"], "0");
}

#[test]
fn a_collapse_key_and_normal_priority_are_passed_on() {
    let key = CollapseKey::new("score").expect("fits");
    let quiet = MessageSpec { priority: Priority::Normal, collapse_key: Some(key), ..spec(visible()) };
    let message = sent(quiet, 0);
    assert_eq!(message["android"], json!({"priority": "NORMAL", "ttl": "3600s", "collapseKey": "score"}));
    assert_eq!(message["apns"]["headers"]["apns-collapse-id"], "score");
    assert_eq!(message["apns"]["headers"]["apns-priority"], "5");
}

#[test]
fn overrides_win_in_either_spelling() {
    let android = object(json!({"collapse_key": "mine", "ttl": "3.5s", "notification": {"color": "#fff"}}));
    let apns = object(json!({"headers": {"apns-priority": "1"}, "payload": {"aps": {"badge": 2}}}));
    let overrides = [(ProviderKind::Fcm, android), (ProviderKind::Apns, apns)].into();
    let content = Content { overrides, ..visible() };
    let key = CollapseKey::new("ours").expect("fits");
    let overridden = MessageSpec { collapse_key: Some(key), ..spec(content) };
    assert_eq!(check(&overridden), Ok(()));
    let message = sent(overridden, 0);
    let wanted =
        json!({"priority": "HIGH", "ttl": "3.5s", "collapseKey": "mine", "notification": {"color": "#fff"}});
    assert_eq!(message["android"], wanted);
    assert_eq!(message["apns"]["headers"]["apns-priority"], "1");
    assert_eq!(message["apns"]["headers"]["apns-expiration"], "1700003600");
    assert_eq!(message["apns"]["payload"], json!({"aps": {"badge": 2}}));
}

#[test]
fn reserved_keys_are_named() {
    for key in ["from", "message_type", "google.x", "gcm.notification.y"] {
        assert_eq!(refused(data(&[("ok", "1"), (key, "2")])), format!("data.{key}"));
        let android = object(json!({"data": {key: "x"}}));
        let field = refused(Content { overrides: [(ProviderKind::Fcm, android)].into(), ..visible() });
        assert_eq!(field, format!("android.data.{key}"));
    }
    assert_eq!(check(&spec(data(&[("fromage", "1"), ("googled", "2")]))), Ok(()));
}

#[test]
fn keys_and_values_may_take_4096_bytes_and_no_more() {
    let fill = |bytes: usize| data(&[("key", &"x".repeat(bytes - 3))]);
    assert_eq!(check(&spec(fill(4_096))), Ok(()));
    assert_eq!(refused(fill(4_097)), "data");
    let long = Notification { body: Some("x".repeat(4_093)), ..Notification::default() };
    assert_eq!(refused(Content { notification: Some(long), ..Content::default() }), "notification");
    let instead =
        Content { overrides: overriding(ProviderKind::Fcm, json!({"data": {"a": "b"}})), ..fill(9_000) };
    assert_eq!(check(&spec(instead)), Ok(()), "Android gets the override");
}

#[test]
fn every_malformed_override_is_named() {
    let android =
        |value: Value| refused(Content { overrides: overriding(ProviderKind::Fcm, value), ..visible() });
    assert_eq!(android(json!({"surprise": 1})), "android.surprise");
    assert_eq!(android(json!({"ttl": "2419201s"})), "android.ttl");
    assert_eq!(android(json!({"ttl": 5})), "android.ttl");
    assert_eq!(android(json!({"priority": "URGENT"})), "android.priority");
    assert_eq!(android(json!({"data": {"a": 1}})), "android.data.a");
    assert_eq!(android(json!({"data": "a"})), "android.data");
    assert_eq!(android(json!({"notification": []})), "android.notification");
    assert_eq!(android(json!({"collapse_key": 1})), "android.collapseKey");
    let apns =
        |value: Value| refused(Content { overrides: overriding(ProviderKind::Apns, value), ..visible() });
    assert_eq!(apns(json!({"header": {}})), "apns.header");
    assert_eq!(apns(json!({"headers": {"a": 1}})), "apns.headers.a");
    assert_eq!(apns(json!({"payload": 1})), "apns.payload");
    assert_eq!(apns(json!({"payload": {"x": "y".repeat(5_000)}})), "apns.payload");
}

#[test]
fn an_installation_id_is_named_by_a_field_of_its_own() {
    let named = |address: &str| {
        let template = BodyTemplate::new(&message(spec(visible())), DUE);
        let body = template.with_token(address, |parts| parts.concat());
        let message = serde_json::from_slice::<Value>(&body).expect("JSON")["message"].clone();
        let field = |name| message.get(name).and_then(Value::as_str).map(ToOwned::to_owned);
        assert_eq!(message["notification"]["title"], "Hi");
        (field("fid"), field("token"))
    };
    let fid = "cJ4vGd1wRk2aB-3_xYz09Q";
    assert_eq!(named(fid), (Some(fid.to_owned()), None));
    // A registration token begins with an installation id.
    let token = format!("{fid}:APA91bHun4MxP5egoKMwt2KZFBaFUH-1RYqx");
    for other in [token.as_str(), &fid[1..], "aJ4vGd1wRk2aB-3_xYz09Q", "cJ4vGd1wRk2aB-3_xYz0:Q"] {
        assert_eq!(named(other), (None, Some(other.to_owned())));
    }
}

proptest! {
    #[test]
    fn any_token_and_any_text_make_a_body_that_reads_back(
        token in prop_oneof!["[!-~]{1,60}", "[cdef][A-Za-z0-9_-]{21}"],
        title in any::<String>(),
        pairs in prop::collection::btree_map(any::<String>(), any::<String>(), 0..5),
    ) {
        let notification = Notification { title: Some(title.clone()), ..Notification::default() };
        let content = Content { notification: Some(notification), data: pairs.clone(), ..Content::default() };
        let body = BodyTemplate::new(&message(spec(content)), DUE).with_token(&token, |parts| parts.concat());
        let read: Value = serde_json::from_slice(&body).expect("JSON");
        let field = if is_installation_id(&token) { "fid" } else { "token" };
        prop_assert_eq!(read["message"][field].as_str(), Some(token.as_str()));
        prop_assert_eq!(read["message"]["notification"]["title"].as_str(), Some(title.as_str()));
        let data: BTreeMap<String, String> =
            serde_json::from_value(read["message"].get("data").cloned().unwrap_or(json!({}))).expect("strings");
        prop_assert_eq!(data, pairs);
    }
}

#[test]
fn parts_beside_androids_go_to_their_places_and_the_newer_form_replaces_androids() {
    let own = json!({"direct_boot_ok": true, "webpush": {"headers": {"Urgency": "high"}}, "apns": {"fcm_options": {"image": "i"}}});
    let content = Content { overrides: overriding(ProviderKind::Fcm, own), ..visible() };
    check(&spec(content.clone())).expect("fits");
    let message = sent(spec(content), 0);
    assert_eq!(message["webpush"], json!({"headers": {"Urgency": "high"}}));
    assert_eq!(message["android"], json!({"priority": "HIGH", "ttl": "3600s", "directBootOk": true}));
    assert_eq!(
        (&message["apns"]["fcmOptions"], &message["apns"]["headers"]["apns-priority"]),
        (&json!({"image": "i"}), &json!("10"))
    );
}

#[test]
fn the_newer_part_for_android_has_the_messages_ttl_and_collapse_key_unless_it_names_its_own() {
    let key = CollapseKey::new("ours").expect("fits");
    let newer = |part: Value| {
        let overrides = overriding(ProviderKind::Fcm, json!({ "androidV2": part }));
        let content = Content { overrides, ..visible() };
        let spec = MessageSpec { collapse_key: Some(key.clone()), ..spec(content) };
        assert_eq!(check(&spec), Ok(()));
        sent(spec, 600)
    };
    let message = newer(json!({"background_sync": {}}));
    let expected = json!({"backgroundSync": {}, "ttl": "3000s", "collapseKey": "ours"});
    assert_eq!((&message["androidV2"], message.get("android")), (&expected, None));
    let own = json!({"collapseKey": "own", "ttl": "5s", "remoteNotification": {"mutableContent": true}});
    assert_eq!(newer(own.clone())["androidV2"], own);
}

#[test]
fn the_newer_part_for_android_is_checked_before_it_is_sent() {
    for (part, field) in [
        (json!({"priority": "HIGH"}), "priority"),
        (json!({"notification": {}}), "notification"),
        (json!({"ttl": "soon"}), "ttl"),
        (json!({"collapse_key": 1}), "collapseKey"),
        (json!({"data": {"from": "x"}}), "data.from"),
        (json!({"data": {"k": 1}}), "data.k"),
        (json!({"remote_notification": true}), "remoteNotification"),
        (json!({"remote_notification": {"title": "x"}}), "remoteNotification.title"),
        (json!({"remote_notification": {}, "background_sync": {}}), "backgroundSync"),
    ] {
        let overrides = overriding(ProviderKind::Fcm, json!({ "androidV2": part }));
        assert_eq!(refused(Content { overrides, ..visible() }), format!("android.androidV2.{field}"));
    }
    let large = json!({"androidV2": {"data": {"k": "x".repeat(4_096)}}});
    assert_eq!(refused(Content { overrides: overriding(ProviderKind::Fcm, large), ..visible() }), "data");
    let instead = json!({"androidV2": {"data": {"k": "v"}}});
    let content =
        Content { overrides: overriding(ProviderKind::Fcm, instead), ..data(&[("k", &"x".repeat(9_000))]) };
    assert_eq!(check(&spec(content)), Ok(()), "Android gets the newer part's data");
}

#[test]
fn parts_beside_androids_are_checked() {
    for (own, field) in [
        (json!({"webpush": {"headers": {"TTL": 1}}}), "webpush.headers.TTL"),
        (json!({"webpush": {"body": "x"}}), "webpush.body"),
        (json!({"webpush": "x"}), "android.webpush"),
        (json!({"apns": {"x": 1}}), "apns.x"),
        (json!({"androidV2": {}, "directBootOk": true}), "android.androidV2"),
        (json!({"androidV2": 1}), "android.androidV2"),
    ] {
        assert_eq!(refused(Content { overrides: overriding(ProviderKind::Fcm, own), ..visible() }), field);
    }
}

#[test]
fn headers_that_fcm_could_hand_to_nobody_are_refused_by_name() {
    let with = |part: &str, headers: Value| {
        let mut own = json!({});
        own[part] = json!({ "headers": headers });
        check(&spec(Content { overrides: overriding(ProviderKind::Fcm, own), ..visible() }))
    };
    for (part, headers, field) in [
        ("webpush", json!({"Topic": "a b"}), "webpush.headers.Topic"),
        ("webpush", json!({"topic": "x".repeat(33)}), "webpush.headers.topic"),
        ("webpush", json!({"Urgency": "urgent"}), "webpush.headers.Urgency"),
        ("webpush", json!({"TTL": "soon"}), "webpush.headers.TTL"),
        ("webpush", json!({"X-Own": "value "}), "webpush.headers.X-Own"),
        ("webpush", json!({"not a name": "value"}), "webpush.headers.not a name"),
        ("apns", json!({"apns-collapse-id": " score"}), "apns.headers.apns-collapse-id"),
        ("apns", json!({"apns-collapse-id": "a\nb"}), "apns.headers.apns-collapse-id"),
    ] {
        assert_eq!(with(part, headers).expect_err("refused").field, field);
    }
    for headers in
        [json!({"TTL": "60", "Urgency": "HIGH", "Topic": "score-1_x"}), json!({"X-Own": "a value"})]
    {
        assert_eq!(with("webpush", headers), Ok(()));
    }
}
