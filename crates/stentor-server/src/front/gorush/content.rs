//! The content of a gorush notification, converted to our message.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use stentor_core::device::ProviderKind;
use stentor_core::limits::TTL_MAX_SECONDS;
use stentor_core::message::Priority;
use stentor_core::time::Timestamp;

use super::empty;
use super::request::GorushNotification;
use crate::contract::messages::{MessageRequest, NotificationRequest};
use crate::contract::{Problem, ServiceResult};
use crate::front::sending::collapse_key;

/// Builds the message that is the same for each token.
pub(super) fn draft(of: &mut GorushNotification, now: Timestamp) -> ServiceResult<MessageRequest> {
    let (data, custom) = data(std::mem::take(&mut of.data), of.is_ios());
    let overrides = if of.is_ios() { for_ios(of, custom) } else { for_android(of)? };
    let overrides: BTreeMap<_, _> = overrides.into_iter().filter(|(_, fields)| !fields.is_empty()).collect();
    Ok(MessageRequest {
        notification: visible(of),
        data,
        overrides,
        priority: if of.priority == "normal" { Priority::Normal } else { Priority::High },
        ttl_seconds: ttl(of, now),
        collapse_key: collapse_key_of(of),
        dry_run: of.dry_run,
        ..empty()
    })
}

/// Returns the first collapse key that is not empty.
fn collapse_key_of(of: &GorushNotification) -> Option<String> {
    let names = [&of.collapse_id, &of.collapse_key].into_iter().flatten();
    names.into_iter().find(|name| !name.is_empty()).map(|name| collapse_key(name))
}

/// Splits data into texts and, on iOS, other values, which stand beside `aps` unchanged. FCM accepts texts only.
fn data(given: Map<String, Value>, is_ios: bool) -> (BTreeMap<String, String>, Map<String, Value>) {
    let (mut texts, mut custom) = (BTreeMap::new(), Map::new());
    for (name, value) in given {
        match value {
            Value::String(text) => _ = texts.insert(name, text),
            value if is_ios => _ = custom.insert(name, value),
            value => _ = texts.insert(name, value.to_string()),
        }
    }
    (texts, custom)
}

fn visible(of: &GorushNotification) -> Option<NotificationRequest> {
    let text = |own: &str, name: &str| {
        let inner = of.notification.get(name).and_then(Value::as_str).unwrap_or_default();
        let alert =
            if of.is_ios() { of.alert.get(name).and_then(Value::as_str).unwrap_or_default() } else { "" };
        let found = [own, alert, inner].into_iter().find(|text| !text.is_empty());
        found.map(str::to_owned)
    };
    let (title, body, image) =
        (text(&of.title, "title"), text(&of.message, "body"), text(&of.image, "image"));
    let is_empty = title.is_none() && body.is_none() && image.is_none();
    (!is_empty).then_some(NotificationRequest { title, body, image })
}

/// Returns the TTL: given in seconds, or derived from an instant of Unix time, where 0 is one attempt.
fn ttl(of: &GorushNotification, now: Timestamp) -> Option<u64> {
    let until = |instant: i64| {
        let left = instant.saturating_sub(now.as_millis().div_euclid(1_000));
        u64::try_from(left).unwrap_or(0).min(TTL_MAX_SECONDS)
    };
    of.time_to_live.or(of.expiration.map(until))
}

fn for_ios(
    of: &GorushNotification,
    mut payload: Map<String, Value>,
) -> BTreeMap<ProviderKind, Map<String, Value>> {
    let aps = aps(of);
    if !aps.is_empty() {
        payload.insert("aps".into(), Value::Object(aps));
    }
    let mut headers = Map::new();
    put_text(&mut headers, "apns-topic", of.apns_topic().unwrap_or_default());
    put_text(&mut headers, "apns-push-type", &of.push_type);
    let mut fields = Map::new();
    for (name, part) in [("headers", headers), ("payload", payload)] {
        if !part.is_empty() {
            fields.insert(name.into(), Value::Object(part));
        }
    }
    BTreeMap::from([(ProviderKind::Apns, fields)])
}

fn aps(of: &GorushNotification) -> Map<String, Value> {
    let mut aps = Map::new();
    if !of.alert.is_empty() {
        aps.insert("alert".into(), Value::Object(of.alert.clone()));
    }
    if let Some(badge) = of.badge {
        aps.insert("badge".into(), badge.into());
    }
    match &of.sound {
        Value::String(name) if !name.is_empty() => _ = aps.insert("sound".into(), name.as_str().into()),
        Value::Object(sound) => _ = aps.insert("sound".into(), Value::Object(sound.clone())),
        _ if !of.sound_name.is_empty() => {
            aps.insert(
                "sound".into(),
                json!({"critical": 1, "name": of.sound_name, "volume": of.sound_volume}),
            );
        }
        _ => {}
    }
    for (name, is_set) in
        [("content-available", of.content_available), ("mutable-content", of.mutable_content)]
    {
        if is_set {
            aps.insert(name.into(), 1.into());
        }
    }
    put_text(&mut aps, "category", &of.category);
    put_text(&mut aps, "thread-id", &of.thread_id);
    put_text(&mut aps, "interruption-level", &of.interruption_level);
    put_text(&mut aps, "event", &of.event);
    if !of.content_state.is_empty() {
        aps.insert("content-state".into(), Value::Object(of.content_state.clone()));
    }
    let instants =
        [("timestamp", of.timestamp), ("stale-date", of.stale_date), ("dismissal-date", of.dismissal_date)];
    aps.extend(instants.into_iter().filter_map(|(name, at)| Some((name.to_owned(), at?.into()))));
    if !of.url_args.is_empty() {
        aps.insert("url-args".into(), json!(of.url_args));
    }
    aps
}

fn for_android(of: &mut GorushNotification) -> ServiceResult<BTreeMap<ProviderKind, Map<String, Value>>> {
    let mut android = std::mem::take(&mut of.android);
    put_text(&mut android, "restrictedPackageName", &of.restricted_package_name);
    if let Some(sound) = of.sound.as_str().filter(|sound| !sound.is_empty()) {
        let notification = android.entry("notification").or_insert_with(|| json!({}));
        let fields = notification.as_object_mut();
        let fields = fields.ok_or_else(|| Problem::field("android.notification", "must be an object"))?;
        fields.insert("sound".into(), sound.into());
    }
    let apns = std::mem::take(&mut of.apns);
    Ok(BTreeMap::from([(ProviderKind::Fcm, android), (ProviderKind::Apns, apns)]))
}

fn put_text(fields: &mut Map<String, Value>, name: &str, text: &str) {
    if !text.is_empty() {
        fields.insert(name.to_owned(), text.into());
    }
}
