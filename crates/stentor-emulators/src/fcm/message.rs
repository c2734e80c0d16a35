//! The send request: the fields that FCM accepts, and the field to blame for an invalid request.

use crate::json::{JsonNode, is_name};
use std::borrow::Cow;
use std::time::Duration;

const MAX_MESSAGE_BYTES: usize = 4096;
const MAX_TOPIC_MESSAGE_BYTES: usize = 2048;
const MAX_TTL: Duration = Duration::from_secs(28 * 24 * 60 * 60);
const MAX_TOPIC_CHARS: usize = 900;
const MAX_TOKEN_CHARS: usize = 4096;
const MAX_LABEL_CHARS: usize = 50;

const REQUEST_FIELDS: &[&str] = &["message", "validateOnly"];
const MESSAGE_FIELDS: &[&str] = &[
    "name",
    "token",
    "fid",
    "topic",
    "condition",
    "data",
    "notification",
    "android",
    "androidV2",
    "apns",
    "webpush",
    "fcmOptions",
];
/// The fields of which a message has one.
const TARGET_FIELDS: &[&str] = &["fid", "token", "topic", "condition"];
const NOTIFICATION_FIELDS: &[&str] = &["title", "body", "image"];
const ANDROID_FIELDS: &[&str] = &[
    "collapseKey",
    "priority",
    "ttl",
    "restrictedPackageName",
    "data",
    "notification",
    "fcmOptions",
    "directBootOk",
    "bandwidthConstrainedOk",
    "restrictedSatelliteOk",
];
const ANDROID_V2_FIELDS: &[&str] = &[
    "collapseKey",
    "ttl",
    "restrictedPackageName",
    "data",
    "fcmOptions",
    "directBootOk",
    "bandwidthConstrainedOk",
    "restrictedSatelliteOk",
    "remoteNotification",
    "backgroundSync",
];
const REMOTE_NOTIFICATION_FIELDS: &[&str] = &["notification", "mutableContent", "useAsV1DataMessage"];
const APNS_FIELDS: &[&str] = &["headers", "payload", "fcmOptions", "liveActivityToken"];
const WEBPUSH_FIELDS: &[&str] = &["headers", "data", "notification", "fcmOptions"];

/// A violation found in a request.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct RequestViolation {
    /// The field, as a path.
    pub(super) field: Cow<'static, str>,
    pub(super) description: String,
}

/// The target of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MessageTarget<'a> {
    /// A registration token.
    Device(&'a str),
    /// An installation id.
    Installation(&'a str),
    Topic(&'a str),
    Condition(&'a str),
}

/// A send request that is in order.
#[derive(Debug)]
pub(super) struct SendRequest<'a> {
    pub(super) validate_only: bool,
    pub(super) target: MessageTarget<'a>,
    pub(super) collapse_key: Option<&'a str>,
    pub(super) ttl: Duration,
    pub(super) high_priority: bool,
}

type Checked<T = ()> = Result<T, RequestViolation>;

/// Returns the device that a request names, even if the request is otherwise invalid.
pub(super) fn device_of<'a>(request: &'a JsonNode<'_>) -> Option<&'a str> {
    let message = request.field("message")?;
    message.field("token").or_else(|| message.field("fid"))?.text()
}

impl<'a> MessageTarget<'a> {
    /// Returns the address of the device, if the target is one.
    pub(super) const fn device(self) -> Option<&'a str> {
        match self {
            Self::Device(address) | Self::Installation(address) => Some(address),
            Self::Topic(_) | Self::Condition(_) => None,
        }
    }
}

impl<'a> SendRequest<'a> {
    /// Checks a request, outside in.
    pub(super) fn check(request: &'a JsonNode<'_>) -> Checked<Self> {
        known_fields(request, REQUEST_FIELDS, "")?;
        let validate_only = match request.field("validateOnly") {
            None => false,
            Some(JsonNode::Bool(value)) => *value,
            Some(_) => return violation("validate_only", "must be true or false"),
        };
        let Some(message) = request.field("message") else {
            return violation("message", "a message is required");
        };
        known_fields(message, MESSAGE_FIELDS, "message")?;
        let target = check_target(message)?;
        let android = check_android(message)?;
        let newer = check_android_v2(message)?;
        check_data(message.field("data"), "message.data")?;
        check_notification(message)?;
        check_apns(message)?;
        check_web(message)?;
        check_label(message, "message.fcm_options.analytics_label")?;
        check_size(message, target)?;
        let either = android.or(newer);
        let is_urgent = android.and_then(|android| text_field(android, "priority"));
        Ok(Self {
            validate_only,
            target,
            collapse_key: either.and_then(|android| text_field(android, "collapseKey")),
            ttl: either.and_then(|android| parse_ttl(android.field("ttl"))).unwrap_or(MAX_TTL),
            high_priority: is_urgent.is_some_and(|priority| priority.eq_ignore_ascii_case("high"))
                || newer.is_some_and(|newer| newer.field("remoteNotification").is_some()),
        })
    }
}

fn violation<T>(field: impl Into<Cow<'static, str>>, description: impl Into<String>) -> Checked<T> {
    Err(RequestViolation { field: field.into(), description: description.into() })
}

fn text_field<'a>(node: &'a JsonNode<'_>, name: &str) -> Option<&'a str> {
    node.field(name).and_then(JsonNode::text)
}

/// Refuses anything but an object with known fields, as Google's JSON reader does.
fn known_fields(node: &JsonNode<'_>, known: &[&str], path: &'static str) -> Checked {
    let Some(entries) = node.entries() else { return violation(path, "must be an object") };
    for (key, _) in entries {
        if !known.iter().any(|name| is_name(key, name)) {
            return violation(path, format!("unknown name {key:?}: no such field"));
        }
    }
    Ok(())
}

fn check_target<'a>(message: &'a JsonNode<'_>) -> Checked<MessageTarget<'a>> {
    let mut found = TARGET_FIELDS.iter().filter_map(|name| message.field(name).map(|value| (*name, value)));
    let (name, value) = match (found.next(), found.next()) {
        (Some(target), None) => target,
        (None, _) => {
            return violation("message", "exactly one of fid, token, topic and condition must be set");
        }
        // As Google's JSON reader refuses a second member of a protobuf `oneof`.
        (Some(_), Some((second, _))) => {
            let description = format!(
                "Invalid value at 'message' (oneof), oneof field 'target' is already set. Cannot set '{second}'"
            );
            return violation("message", description);
        }
    };
    match (name, value.text()) {
        ("token", Some(token)) if is_token(token) => Ok(MessageTarget::Device(token)),
        ("fid", Some(fid)) if is_token(fid) => Ok(MessageTarget::Installation(fid)),
        ("topic", Some(topic)) if is_topic(topic) => Ok(MessageTarget::Topic(topic)),
        ("condition", Some(condition)) if super::condition::FcmCondition::parse(condition).is_some() => {
            Ok(MessageTarget::Condition(condition))
        }
        _ => violation(format!("message.{name}"), format!("not a valid {name}")),
    }
}

/// Returns true if this could be a registration token or an installation id.
pub(crate) fn is_token(text: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"_-:.%~".contains(&byte);
    !text.is_empty() && text.len() <= MAX_TOKEN_CHARS && text.bytes().all(allowed)
}

/// Returns true if this is a topic name, without the old prefix.
pub(crate) fn is_topic(text: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~%".contains(&byte);
    !text.is_empty() && text.len() <= MAX_TOPIC_CHARS && text.bytes().all(allowed)
}

fn check_data(data: Option<&JsonNode<'_>>, path: &'static str) -> Checked {
    let Some(data) = data else { return Ok(()) };
    let Some(entries) = data.entries() else { return violation(path, "must be an object of strings") };
    for (key, value) in entries {
        if value.text().is_none() {
            return violation(format!("{path}[{key}]"), "must be a string");
        }
        if is_reserved(key) {
            return violation(path, format!("the key {key:?} is reserved"));
        }
    }
    Ok(())
}

fn is_reserved(key: &str) -> bool {
    matches!(key, "from" | "message_type")
        || key.starts_with("google.")
        || key.starts_with("gcm.notification.")
}

fn check_notification(message: &JsonNode<'_>) -> Checked {
    let Some(notification) = message.field("notification") else { return Ok(()) };
    known_fields(notification, NOTIFICATION_FIELDS, "message.notification")?;
    for name in NOTIFICATION_FIELDS {
        if notification.field(name).is_some_and(|value| value.text().is_none()) {
            return violation(format!("message.notification.{name}"), "must be a string");
        }
    }
    Ok(())
}

fn check_android<'a, 'b>(message: &'a JsonNode<'b>) -> Checked<Option<&'a JsonNode<'b>>> {
    let Some(android) = message.field("android") else { return Ok(None) };
    if message.field("androidV2").is_some() {
        return violation("message.android", "android and android_v2 exclude each other");
    }
    known_fields(android, ANDROID_FIELDS, "message.android")?;
    check_ttl(android, "message.android.ttl")?;
    let priority = android.field("priority");
    let is_priority = |text: &str| text.eq_ignore_ascii_case("high") || text.eq_ignore_ascii_case("normal");
    if priority.is_some_and(|priority| !priority.text().is_some_and(is_priority)) {
        return violation("message.android.priority", "must be NORMAL or HIGH");
    }
    for (name, field) in [
        ("collapseKey", "message.android.collapse_key"),
        ("restrictedPackageName", "message.android.restricted_package_name"),
    ] {
        if android.field(name).is_some_and(|value| value.text().is_none()) {
            return violation(field, "must be a string");
        }
    }
    check_data(android.field("data"), "message.android.data")?;
    check_label(android, "message.android.fcm_options.analytics_label")?;
    Ok(Some(android))
}

/// Checks the newer form, whose kind of message is one of two.
fn check_android_v2<'a, 'b>(message: &'a JsonNode<'b>) -> Checked<Option<&'a JsonNode<'b>>> {
    let Some(android) = message.field("androidV2") else { return Ok(None) };
    known_fields(android, ANDROID_V2_FIELDS, "message.android_v2")?;
    check_ttl(android, "message.android_v2.ttl")?;
    check_data(android.field("data"), "message.android_v2.data")?;
    check_label(android, "message.android_v2.fcm_options.analytics_label")?;
    match (android.field("remoteNotification"), android.field("backgroundSync")) {
        (Some(_), Some(_)) => {
            violation("message.android_v2", "remote_notification and background_sync exclude each other")
        }
        (Some(visible), None) => {
            known_fields(visible, REMOTE_NOTIFICATION_FIELDS, "message.android_v2.remote_notification")
                .map(|()| Some(android))
        }
        _ => Ok(Some(android)),
    }
}

fn check_ttl(android: &JsonNode<'_>, path: &'static str) -> Checked {
    if android.field("ttl").is_some() && parse_ttl(android.field("ttl")).is_none() {
        return violation(path, "must be a duration such as \"3.5s\" of at most four weeks");
    }
    Ok(())
}

/// Parses a duration such as "3.5s", in whole seconds.
fn parse_ttl(ttl: Option<&JsonNode<'_>>) -> Option<Duration> {
    let digits = ttl?.text()?.strip_suffix('s')?;
    let (whole, part) = digits.split_once('.').unwrap_or((digits, "0"));
    let all_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    // A duration has at most nine digits behind the point (JSON of protobuf's `Duration`).
    if !all_digits(whole) || !all_digits(part) || part.len() > 9 {
        return None;
    }
    whole.parse().ok().map(Duration::from_secs).filter(|ttl| *ttl <= MAX_TTL)
}

fn check_apns(message: &JsonNode<'_>) -> Checked {
    let Some(apns) = message.field("apns") else { return Ok(()) };
    known_fields(apns, APNS_FIELDS, "message.apns")?;
    check_strings(apns.field("headers"), "message.apns.headers")?;
    let Some(payload) = apns.field("payload") else { return Ok(()) };
    if payload.entries().is_none() {
        return violation("message.apns.payload", "must be an object");
    }
    let bytes = payload.json_bytes();
    if bytes > MAX_MESSAGE_BYTES {
        return violation("message.apns.payload", format!("{bytes} bytes, at most {MAX_MESSAGE_BYTES}"));
    }
    Ok(())
}

fn check_web(message: &JsonNode<'_>) -> Checked {
    let Some(web) = message.field("webpush") else { return Ok(()) };
    known_fields(web, WEBPUSH_FIELDS, "message.webpush")?;
    check_strings(web.field("headers"), "message.webpush.headers")?;
    check_data(web.field("data"), "message.webpush.data")
}

fn check_strings(map: Option<&JsonNode<'_>>, path: &'static str) -> Checked {
    let Some(map) = map else { return Ok(()) };
    let all = map.entries().is_some_and(|entries| entries.iter().all(|(_, value)| value.text().is_some()));
    if all { Ok(()) } else { violation(path, "must be an object of strings") }
}

fn check_label(node: &JsonNode<'_>, path: &'static str) -> Checked {
    let Some(label) = node.field("fcmOptions").and_then(|options| options.field("analyticsLabel")) else {
        return Ok(());
    };
    let sane = |label: &str| label.len() <= MAX_LABEL_CHARS && (label.is_empty() || is_topic(label));
    if label.text().is_some_and(sane) { Ok(()) } else { violation(path, "not a valid label") }
}

/// Checks the size of the keys and values that reach an Android device.
fn check_size(message: &JsonNode<'_>, target: MessageTarget<'_>) -> Checked {
    // The message's own data reaches an Android device only where the part for Android has none.
    let android = message.field("android").or_else(|| message.field("androidV2"));
    let data = android.and_then(|android| android.field("data")).or_else(|| message.field("data"));
    let own = android
        .and_then(|android| android.field("notification").or_else(|| android.field("remoteNotification")));
    let bytes = text_bytes(data) + text_bytes(message.field("notification")) + text_bytes(own);
    let limit = match target {
        MessageTarget::Device(_) | MessageTarget::Installation(_) => MAX_MESSAGE_BYTES,
        MessageTarget::Topic(_) | MessageTarget::Condition(_) => MAX_TOPIC_MESSAGE_BYTES,
    };
    if bytes > limit {
        return violation("message", format!("message is too big: {bytes} bytes, at most {limit}"));
    }
    Ok(())
}

fn text_bytes(node: Option<&JsonNode<'_>>) -> usize {
    match node {
        Some(JsonNode::Object(entries)) => {
            entries.iter().map(|(key, value)| key.len() + text_bytes(Some(value))).sum()
        }
        Some(JsonNode::List(nodes)) => nodes.iter().map(|node| text_bytes(Some(node))).sum(),
        Some(JsonNode::Text(text)) => text.len(),
        _ => 0,
    }
}
