//! The content of an FCM message, converted to our message.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use stentor_core::device::ProviderKind;
use stentor_core::limits::TTL_MAX_SECONDS;
use stentor_core::message::Priority;

use super::request::{FcmFields, FcmTarget, SendCall, only};
use super::rpc_status::RpcStatus;
use crate::contract::messages::{MessageRequest, NotificationRequest, TargetRequest};
use crate::front::sending::collapse_key;

const RESERVED_KEYS: &[&str] = &["from", "message_type"];
const RESERVED_PREFIXES: &[&str] = &["google.", "gcm.notification."];
/// Most bytes of keys and values for a topic or a condition, as documented. The limit of a device is checked with its push service.
const TOPIC_PAYLOAD_MAX_BYTES: usize = 2_048;
const LABEL_MAX_CHARS: usize = 50;
/// The newer form of the part for Android devices.
const NEWER: &str = "androidV2";

/// Builds the message without its target.
pub(super) fn draft(call: &SendCall) -> Result<MessageRequest, RpcStatus> {
    let message = &call.message;
    let notification = notification(message)?;
    let data = data(message.get("data"), "message.data")?;
    let is_newer = message.contains_key(NEWER);
    let (name, path) = if is_newer { (NEWER, "message.android_v2") } else { ("android", "message.android") };
    let mut android = part(message, name)?;
    if message.contains_key("android") && is_newer {
        let detail = "android and android_v2 exclude each other";
        return Err(RpcStatus::violation("message.android", detail));
    }
    if is_newer && android.contains_key("priority") {
        let detail = format!(
            "Invalid JSON payload received. Unknown name \"priority\" at '{path}': Cannot find field."
        );
        return Err(RpcStatus::violation(path, detail));
    }
    // Fields with an equivalent in our message are taken out of the part; the rest belongs to FCM and is passed on unchanged.
    let mut settings = AndroidSettings::take(&mut android, path, notification.is_some())?;
    if is_newer {
        // The kind of message stands for a priority.
        let is_urgent = android.contains_key("remoteNotification");
        settings.priority = if is_urgent { Priority::High } else { Priority::Normal };
    }
    if !matches!(call.fcm_target, FcmTarget::Token(_) | FcmTarget::Group(_)) {
        check_topic_size(message)?;
    }
    let is_empty = notification.is_none() && data.is_empty();
    // Only validated: FCM receives it in the part for Android, where it replaces the message's data.
    self::data(android.get("data"), &format!("{path}.data"))?;
    let overrides = overrides(message, android, (!is_newer && is_empty).then_some(settings.priority))?;
    Ok(MessageRequest {
        // A placeholder: the caller sets the target before sending.
        target: TargetRequest::Everyone,
        notification,
        data,
        overrides,
        priority: settings.priority,
        ttl_seconds: Some(settings.ttl_seconds),
        collapse_key: settings.collapse_key,
        dry_run: call.validate_only,
        send_at: None,
        exact: false,
    })
}

/// Settings of the Android part that apply to all platforms.
struct AndroidSettings {
    priority: Priority,
    ttl_seconds: u64,
    collapse_key: Option<String>,
}

impl AndroidSettings {
    fn take(android: &mut FcmFields, path: &str, is_visible: bool) -> Result<Self, RpcStatus> {
        let ttl = android.remove("ttl");
        // FCM keeps a message for four weeks by default.
        let ttl_seconds = ttl.map_or(Some(TTL_MAX_SECONDS), |ttl| ttl.as_str().and_then(seconds));
        let ttl_seconds = ttl_seconds.ok_or_else(|| {
            RpcStatus::violation(
                format!("{path}.ttl"),
                "must be seconds such as \"3.5s\", at most four weeks",
            )
        })?;
        let priority = match text(android, "priority", path)?.map(|text| text.to_ascii_uppercase()) {
            // The defaults of FCM: high priority for notifications, normal for data alone.
            None if is_visible => Priority::High,
            None => Priority::Normal,
            Some(text) if text == "HIGH" => Priority::High,
            Some(text) if text == "NORMAL" => Priority::Normal,
            Some(_) => {
                return Err(RpcStatus::violation(format!("{path}.priority"), "must be NORMAL or HIGH"));
            }
        };
        let key = text(android, "collapseKey", path)?.filter(|key| !key.is_empty());
        Ok(Self { priority, ttl_seconds, collapse_key: key.as_deref().map(collapse_key) })
    }
}

/// Parses a duration such as `3.5s`, truncated to whole seconds.
fn seconds(text: &str) -> Option<u64> {
    let digits = text.strip_suffix('s')?;
    let (whole, part) = digits.split_once('.').unwrap_or((digits, "0"));
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    // A duration of Protocol Buffers has at most nine fractional digits.
    let fits = is_number(whole) && is_number(part) && part.len() <= 9;
    whole.parse().ok().filter(|seconds| fits && *seconds <= TTL_MAX_SECONDS)
}

/// Removes a text field from a part.
fn text(fields: &mut FcmFields, name: &str, path: &str) -> Result<Option<String>, RpcStatus> {
    match fields.remove(name) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(RpcStatus::violation(format!("{path}.{name}"), "must be a string")),
    }
}

/// Returns a part of a message; an empty one if it is missing.
fn part(message: &FcmFields, name: &str) -> Result<FcmFields, RpcStatus> {
    match message.get(name) {
        None => Ok(FcmFields::new()),
        Some(Value::Object(fields)) => Ok(fields.clone()),
        Some(_) => Err(RpcStatus::violation(format!("message.{name}"), "must be an object")),
    }
}

fn notification(message: &FcmFields) -> Result<Option<NotificationRequest>, RpcStatus> {
    let path = "message.notification";
    let mut fields = part(message, "notification")?;
    only(&fields, &["title", "body", "image"], path)?;
    let mut text = |name| text(&mut fields, name, path);
    let (title, body, image) = (text("title")?, text("body")?, text("image")?);
    let is_empty = title.is_none() && body.is_none() && image.is_none();
    Ok((!is_empty).then_some(NotificationRequest { title, body, image }))
}

fn data(given: Option<&Value>, path: &str) -> Result<BTreeMap<String, String>, RpcStatus> {
    let Some(given) = given else { return Ok(BTreeMap::new()) };
    let fields =
        given.as_object().ok_or_else(|| RpcStatus::violation(path, "must be an object of strings"))?;
    let entry = |(key, value): (&String, &Value)| {
        let Some(text) = value.as_str() else {
            return Err(RpcStatus::violation(format!("{path}[{key}]"), "must be a string"));
        };
        // The type is right and the value is not; FCM reports this by an `FcmError` beside the field.
        if is_reserved(key) {
            return Err(RpcStatus::invalid_argument(path, format!("Invalid data payload key: {key}")));
        }
        Ok((key.clone(), text.to_owned()))
    };
    fields.iter().map(entry).collect()
}

fn is_reserved(key: &str) -> bool {
    RESERVED_KEYS.contains(&key) || RESERVED_PREFIXES.iter().any(|prefix| key.starts_with(prefix))
}

/// Returns the overrides of a message by push service. The override of FCM consists of fields beside those of the Android part, and the
/// override of APNs of headers and payload.
fn overrides(
    message: &FcmFields,
    mut fcm: FcmFields,
    priority: Option<Priority>,
) -> Result<BTreeMap<ProviderKind, FcmFields>, RpcStatus> {
    let mut apple = part(message, "apns")?;
    let headers_and_payload: FcmFields =
        ["headers", "payload"].iter().filter_map(|name| apple.remove_entry(*name)).collect();
    let mut web = part(message, "webpush")?;
    // A platform's own label wins over the message's.
    if let Some(label) = label(message)? {
        for options in [&mut fcm, &mut apple, &mut web] {
            options.entry("fcmOptions").or_insert_with(|| json!({"analyticsLabel": label}));
        }
    }
    if message.contains_key(NEWER) {
        fcm = FcmFields::from_iter([(NEWER.to_owned(), Value::Object(fcm))]);
    } else if let Some(priority) = priority {
        // A message without content makes a device fetch something. It is legal here, and with this field also valid as our message.
        let word = if priority == Priority::High { "HIGH" } else { "NORMAL" };
        fcm.insert("priority".to_owned(), word.into());
    }
    for (name, part) in [("apns", apple), ("webpush", web)] {
        if !part.is_empty() {
            fcm.insert(name.to_owned(), Value::Object(part));
        }
    }
    let both = [(ProviderKind::Fcm, fcm), (ProviderKind::Apns, headers_and_payload)];
    Ok(both.into_iter().filter(|(_, fields)| !fields.is_empty()).collect())
}

/// Returns the analytics label of a message.
fn label(message: &FcmFields) -> Result<Option<String>, RpcStatus> {
    let path = "message.fcm_options";
    let mut options = part(message, "fcmOptions")?;
    only(&options, &["analyticsLabel"], path)?;
    let Some(label) = text(&mut options, "analyticsLabel", path)? else { return Ok(None) };
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~%".contains(&byte);
    if label.len() > LABEL_MAX_CHARS || !label.bytes().all(is_letter) {
        return Err(RpcStatus::invalid_argument(format!("{path}.analytics_label"), "not a valid label"));
    }
    Ok(Some(label).filter(|label| !label.is_empty()))
}

fn check_topic_size(message: &FcmFields) -> Result<(), RpcStatus> {
    let android = message.get("android").or_else(|| message.get(NEWER));
    // At FCM, Android's data replaces the message's; only one of both counts.
    let data = android.and_then(|android| android.get("data")).or_else(|| message.get("data"));
    let own =
        android.and_then(|android| android.get("notification").or_else(|| android.get("remoteNotification")));
    let bytes: usize = [data, message.get("notification"), own].into_iter().flatten().map(bytes_of).sum();
    if bytes > TOPIC_PAYLOAD_MAX_BYTES {
        let detail = format!("Topic message too big: {bytes} bytes, at most {TOPIC_PAYLOAD_MAX_BYTES}");
        return Err(RpcStatus::invalid_argument("message", detail));
    }
    Ok(())
}

fn bytes_of(value: &Value) -> usize {
    match value {
        Value::Object(fields) => fields.iter().map(|(key, value)| key.len() + bytes_of(value)).sum(),
        Value::Array(values) => values.iter().map(bytes_of).sum(),
        Value::String(text) => text.len(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests;
