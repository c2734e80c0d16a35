//! The content of a legacy request, converted to our message.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use stentor_core::device::ProviderKind;
use stentor_core::message::Priority;
use stentor_gateway::SENDER_RECEIPT_FIELD;

use super::reply::GcmError;
use super::request::LegacySendRequest;
use crate::contract::messages::{MessageRequest, NotificationRequest, TargetRequest};
use crate::front::sending::collapse_key;

/// Fields of a notification for Android only, with their present names.
const ANDROID_FIELDS: &[(&str, &str)] = &[
    ("icon", "icon"),
    ("sound", "sound"),
    ("tag", "tag"),
    ("color", "color"),
    ("click_action", "clickAction"),
    ("body_loc_key", "bodyLocKey"),
    ("title_loc_key", "titleLocKey"),
    ("android_channel_id", "channelId"),
];
/// Arguments of localized texts: lists, which may also be encoded as JSON texts.
const ANDROID_LISTS: &[(&str, &str)] =
    &[("body_loc_args", "bodyLocArgs"), ("title_loc_args", "titleLocArgs")];
/// Fields of a notification for iOS, with their names in the alert ("Server Reference", table 2a).
const APPLE_TEXTS: &[(&str, &str)] =
    &[("subtitle", "subtitle"), ("body_loc_key", "loc-key"), ("title_loc_key", "title-loc-key")];
const APPLE_LISTS: &[(&str, &str)] = &[("body_loc_args", "loc-args"), ("title_loc_args", "title-loc-args")];
const RESERVED_KEYS: &[&str] = &["from", "message_type"];
const RESERVED_PREFIXES: &[&str] = &["google", "gcm"];

/// Builds the message that is the same for each token, or returns the error of all of them.
pub(super) fn draft(request: &LegacySendRequest) -> Result<MessageRequest, GcmError> {
    let ttl = request.ttl().ok_or(GcmError::InvalidTtl)?;
    if request.data.keys().any(|key| is_reserved(key)) {
        return Err(GcmError::InvalidDataKey);
    }
    let visible = visible(&request.notification);
    // The defaults of the legacy API: high priority for notifications, normal for data alone.
    let is_high =
        request.priority.as_deref().map_or(!request.notification.is_empty(), |given| given == "high");
    Ok(MessageRequest {
        target: TargetRequest::Everyone,
        notification: visible,
        data: request.data.iter().map(|(key, value)| (key.clone(), text_of(value))).collect(),
        overrides: overrides(request, is_high),
        priority: if is_high { Priority::High } else { Priority::Normal },
        ttl_seconds: Some(ttl),
        collapse_key: request.collapse_key.as_deref().filter(|key| !key.is_empty()).map(collapse_key),
        dry_run: request.dry_run,
        send_at: None,
        exact: false,
    })
}

/// Adds the sender's name for the message, under which a receipt is sent when a device of ours confirms it.
pub(super) fn with_receipt(mut draft: MessageRequest, name: Option<&str>) -> MessageRequest {
    if let Some(name) = name {
        let own = draft.overrides.entry(ProviderKind::Gateway).or_default();
        own.insert(SENDER_RECEIPT_FIELD.to_owned(), name.into());
    }
    draft
}

fn is_reserved(key: &str) -> bool {
    RESERVED_KEYS.contains(&key) || RESERVED_PREFIXES.iter().any(|prefix| key.starts_with(prefix))
}

/// Converts a value to a text; values should be texts.
fn text_of(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn visible(given: &Map<String, Value>) -> Option<NotificationRequest> {
    let text = |name: &str| given.get(name).map(text_of);
    let (title, body, image) = (text("title"), text("body"), text("image"));
    let is_empty = title.is_none() && body.is_none() && image.is_none();
    (!is_empty).then_some(NotificationRequest { title, body, image })
}

fn overrides(request: &LegacySendRequest, is_high: bool) -> BTreeMap<ProviderKind, Map<String, Value>> {
    let mut found = BTreeMap::new();
    let mut android = Map::new();
    let notification = android_notification(&request.notification);
    if !notification.is_empty() {
        android.insert("notification".into(), Value::Object(notification));
    }
    if let Some(name) = request.restricted_package_name.as_deref().filter(|name| !name.is_empty()) {
        android.insert("restrictedPackageName".into(), name.into());
    }
    if request.data.is_empty() && request.notification.is_empty() {
        // A message without content makes a device fetch something. It is legal here, and with this field also valid as our message.
        android.insert("priority".into(), if is_high { "HIGH" } else { "NORMAL" }.into());
    }
    if !android.is_empty() {
        found.insert(ProviderKind::Fcm, android);
    }
    let aps = aps(request);
    if !aps.is_empty() {
        found.insert(ProviderKind::Apns, Map::from_iter([("payload".into(), json!({"aps": aps}))]));
    }
    found
}

fn android_notification(given: &Map<String, Value>) -> Map<String, Value> {
    let text = |(old, new): &(&str, &str)| Some(((*new).to_owned(), text_of(given.get(*old)?).into()));
    let list = |(old, new): &(&str, &str)| Some(((*new).to_owned(), list_of(given.get(*old)?)));
    ANDROID_FIELDS.iter().filter_map(text).chain(ANDROID_LISTS.iter().filter_map(list)).collect()
}

fn list_of(value: &Value) -> Value {
    let inner = value.as_str().and_then(|text| serde_json::from_str::<Value>(text).ok());
    match inner.as_ref().unwrap_or(value) {
        Value::Array(items) => items.iter().map(text_of).collect(),
        other => json!([text_of(other)]),
    }
}

/// Returns the fields of Apple's alert beside title and body, which belong to the message.
fn apple_alert(given: &Map<String, Value>) -> Map<String, Value> {
    let text = |(old, new): &(&str, &str)| Some(((*new).to_owned(), text_of(given.get(*old)?).into()));
    let list = |(old, new): &(&str, &str)| Some(((*new).to_owned(), list_of(given.get(*old)?)));
    APPLE_TEXTS.iter().filter_map(text).chain(APPLE_LISTS.iter().filter_map(list)).collect()
}

fn aps(request: &LegacySendRequest) -> Map<String, Value> {
    let mut aps = Map::new();
    for (name, is_set) in
        [("content-available", request.content_available), ("mutable-content", request.mutable_content)]
    {
        if is_set {
            aps.insert(name.into(), 1.into());
        }
    }
    let given = &request.notification;
    let alert = apple_alert(given);
    if !alert.is_empty() {
        aps.insert("alert".into(), Value::Object(alert));
    }
    if let Some(category) = given.get("click_action") {
        aps.insert("category".into(), text_of(category).into());
    }
    if let Some(sound) = request.notification.get("sound") {
        aps.insert("sound".into(), text_of(sound).into());
    }
    let badge = request.notification.get("badge").map(text_of).and_then(|text| text.parse::<u32>().ok());
    if let Some(badge) = badge {
        aps.insert("badge".into(), badge.into());
    }
    aps
}
