use std::collections::BTreeMap;

use stentor_core::id::{AppId, MessageId};
use stentor_core::message::{Priority, Ttl};
use stentor_core::name::CollapseKey;
use stentor_core::target::Target;

use super::*;

const NOW: Timestamp = Timestamp::from_millis(1_800_000_000_000);

fn content(title: Option<&str>, data: &[(&str, &str)], own: Option<Value>) -> Content {
    let notification =
        title.map(|title| Notification { title: Some(title.into()), ..Notification::default() });
    let overrides = own.map(|own| (ProviderKind::Wns, own.as_object().expect("an object").clone()));
    let data: BTreeMap<_, _> =
        data.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    Content { notification, data, overrides: overrides.into_iter().collect() }
}

fn spec(content: Content, ttl_seconds: u64, key: Option<&str>) -> MessageSpec {
    let collapse_key = key.map(|key| CollapseKey::new(key).expect("fits"));
    let ttl = Ttl::from_seconds(ttl_seconds).expect("fits");
    MessageSpec { target: Target::Everyone, content, priority: Priority::High, ttl, collapse_key }
}

fn sent(spec: MessageSpec) -> BTreeMap<String, String> {
    let (id, app) = (MessageId::from_raw(7), AppId::from_raw(1));
    let message = Message { id, app, spec, created_at: NOW, due_at: NOW, occurrence: None };
    let text = |value: HeaderValue| value.to_str().expect("text").to_owned();
    headers(&message, NOW).into_iter().map(|(name, value)| (name.to_string(), text(value))).collect()
}

fn text(content: &Content) -> String {
    String::from_utf8(body(content)).expect("text")
}

#[test]
fn a_notification_is_a_toast_and_data_alone_are_raw_bytes() {
    let shown = content(Some("5 < 6 & \"so\"\u{1}"), &[("order", "7")], None);
    assert_eq!(
        text(&shown),
        "<toast launch=\"{&quot;order&quot;:&quot;7&quot;}\"><visual><binding template=\"ToastGeneric\">\
         <text>5 &lt; 6 &amp; &quot;so&quot;\u{fffd}</text></binding></visual></toast>"
    );
    let headers = sent(spec(shown, 60, None));
    assert_eq!((&*headers["x-wns-type"], &*headers["content-type"]), ("wns/toast", "text/xml"));
    let silent = content(None, &[("order", "7")], None);
    assert_eq!(text(&silent), r#"{"order":"7"}"#);
    let headers = sent(spec(silent, 60, None));
    assert_eq!((&*headers["x-wns-type"], &*headers["content-type"]), ("wns/raw", "application/octet-stream"));
}

#[test]
fn a_message_waits_as_long_as_its_ttl_and_one_without_does_not() {
    let waiting = sent(spec(content(Some("Hi"), &[], None), 60, Some("score7")));
    let named = |name: &str| waiting.get(name).map(String::as_str);
    assert_eq!((named("x-wns-ttl"), named("x-wns-cache-policy")), (Some("60"), Some("cache")));
    assert_eq!((named("x-wns-tag"), named("x-wns-requestforstatus")), (Some("score7"), Some("true")));
    let now_or_never = sent(spec(content(Some("Hi"), &[], None), 0, None));
    assert_eq!(now_or_never.get("x-wns-ttl"), None);
    assert_eq!(now_or_never["x-wns-cache-policy"], "no-cache");
}

#[test]
fn a_collapse_key_that_is_no_tag_becomes_one() {
    let (one, two) = (tag_of("Bestellung №7"), tag_of("Bestellung №8"));
    assert!(one.len() == TAG_MAX_LETTERS && one != two);
}

#[test]
fn an_override_chooses_the_kind_and_wins() {
    let own = json!({"type": "badge", "payload": "<badge value=\"3\"/>", "headers": {"X-WNS-Tag": "mine"}});
    let badge = content(Some("Hi"), &[], Some(own));
    assert_eq!(check(&spec(badge.clone(), 60, None)), Ok(()));
    assert_eq!(text(&badge), "<badge value=\"3\"/>");
    let headers = sent(spec(badge, 60, Some("score7")));
    assert_eq!((&*headers["x-wns-type"], &*headers["x-wns-tag"]), ("wns/badge", "mine"));
}

#[test]
fn a_message_that_wns_does_not_take_is_refused_with_the_name_of_its_field() {
    let refused = |title: Option<&str>, own: Value| {
        check(&spec(content(title, &[], Some(own)), 60, None)).expect_err("refused").field
    };
    for (title, own, field) in [
        (None, json!({"kind": "raw"}), "wns.kind"),
        (None, json!({"type": "popup"}), "wns.type"),
        (None, json!({"type": "tile"}), "wns.payload"),
        (None, json!({"type": "toast"}), "wns.payload"),
        (Some("Hi"), json!({"type": "raw"}), "wns.payload"),
        (None, json!({"payload": 5}), "wns.payload"),
        (None, json!({"headers": {"x-wns-type": "wns/raw"}}), "wns.headers.x-wns-type"),
        (None, json!({"headers": {"x-wns-ttl": "soon"}}), "wns.headers.x-wns-ttl"),
        (None, json!({"headers": {"x-wns-cache-policy": "yes"}}), "wns.headers.x-wns-cache-policy"),
        (None, json!({"headers": {"x-wns-tag": "a\nb"}}), "wns.headers.x-wns-tag"),
    ] {
        assert_eq!(refused(title, own), field);
    }
    let large = "x".repeat(BODY_MAX_BYTES + 1);
    assert_eq!(refused(None, json!({"type": "raw", "payload": large})), "notification");
}
