//! Requests for Live Activities, and the checks against the rules of ActivityKit.
//!
//! Sources: Apple, "Starting and updating Live Activities with ActivityKit push notifications" and "Sending broadcast push notification
//! requests to APNs".

use bytes::Bytes;
use http::HeaderValue;
use serde_json::{Map, Value, json};
use stentor_core::device::ProviderKind;
use stentor_core::error::Invalid;
use stentor_core::message::{Content, Message, MessageSpec, Notification, Priority};

use super::fields;
use crate::apns::payload::{EXPIRATION, PAYLOAD_MAX_BYTES, PRIORITY, PUSH_TYPE, Push, TOPIC};

/// Largest body of a broadcast.
pub const BROADCAST_MAX_BYTES: usize = 5_120;
/// Stands for the timestamp where a size is computed before the message has one.
const SOME_TIMESTAMP: i64 = 1_000_000_000;
/// The fields with Apple's names for them, which are passed on as they are.
const PASSED_ON: &[(&str, &str)] = &[
    ("content_state", "content-state"),
    ("attributes_type", "attributes-type"),
    ("attributes", "attributes"),
    ("stale_date", "stale-date"),
    ("dismissal_date", "dismissal-date"),
    ("relevance_score", "relevance-score"),
    ("input_push_channel", "input-push-channel"),
];

/// Writes the part of a push that all tokens share.
#[must_use]
pub fn to_tokens(message: &Message, bundle_id: &str) -> Push {
    // 0 means now or never; any other value is an instant.
    let now_or_never = message.spec.ttl.as_seconds() == 0;
    let mut push = push(message, if now_or_never { 0 } else { expires_s(message) });
    push.headers.extend(
        HeaderValue::try_from(format!("{bundle_id}.push-type.liveactivity")).ok().map(|topic| (TOPIC, topic)),
    );
    push
}

/// Writes a broadcast. A channel that stores nothing refuses any other expiration than 0, so storing is asked for by a field.
pub(crate) fn to_channels(message: &Message, _bundle_id: &str) -> Push {
    let is_stored = field(&message.spec.content, "stored") == Some(&Value::Bool(true));
    push(message, if is_stored { expires_s(message) } else { 0 })
}

fn push(message: &Message, expires_s: i64) -> Push {
    let priority = if message.spec.priority == Priority::High { "10" } else { "5" };
    let headers = vec![
        (PUSH_TYPE, HeaderValue::from_static("liveactivity")),
        (PRIORITY, HeaderValue::from_static(priority)),
        (EXPIRATION, HeaderValue::from(expires_s)),
    ];
    let at = field(&message.spec.content, "timestamp").and_then(Value::as_i64);
    let body = body(&message.spec.content, at.unwrap_or(message.due_at.as_millis() / 1_000));
    Push { headers, body: Bytes::from(body) }
}

fn expires_s(message: &Message) -> i64 {
    message.expires_at().as_millis() / 1_000
}

/// Returns a field of a message for Live Activities.
fn field<'a>(content: &'a Content, name: &str) -> Option<&'a Value> {
    content.overrides.get(&ProviderKind::LiveActivity)?.get(name)
}

fn body(content: &Content, timestamp: i64) -> Vec<u8> {
    let mut aps = Map::new();
    aps.insert("timestamp".into(), timestamp.into());
    aps.extend(field(content, "event").map(|event| ("event".to_owned(), event.clone())));
    for (name, theirs) in PASSED_ON {
        aps.extend(field(content, name).map(|value| ((*theirs).to_owned(), value.clone())));
    }
    if field(content, "input_push_token") == Some(&Value::Bool(true)) {
        aps.insert("input-push-token".into(), 1.into());
    }
    if let Some(notification) = &content.notification {
        aps.insert("alert".into(), alert(notification, field(content, "sound")));
    }
    json!({ "aps": aps }).to_string().into_bytes()
}

fn alert(notification: &Notification, sound: Option<&Value>) -> Value {
    let mut alert = Map::new();
    for (name, text) in [("title", &notification.title), ("body", &notification.body)] {
        alert.extend(text.as_ref().map(|text| (name.to_owned(), Value::from(text.as_str()))));
    }
    alert.extend(sound.map(|sound| ("sound".to_owned(), sound.clone())));
    Value::Object(alert)
}

/// Checks a message to tokens of Live Activities; the error names the field. A message without their fields is not for them.
pub fn check(spec: &MessageSpec) -> Result<(), Invalid> {
    check_within(&spec.content, PAYLOAD_MAX_BYTES)
}

/// Checks a message to channels; the error names the field.
pub(crate) fn check_broadcast(spec: &MessageSpec) -> Result<(), Invalid> {
    check_within(&spec.content, BROADCAST_MAX_BYTES)
}

fn check_within(content: &Content, most: usize) -> Result<(), Invalid> {
    let Some(given) = content.overrides.get(&ProviderKind::LiveActivity) else {
        return Err(Invalid::new("live_activity", "must be given for Live Activities"));
    };
    fields::check(content, given)?;
    let bytes = body(content, SOME_TIMESTAMP).len();
    if bytes <= most {
        return Ok(());
    }
    let problem = format!("too large for APNs: the payload takes {bytes} bytes, at most {most}");
    Err(Invalid::new("live_activity", problem))
}
