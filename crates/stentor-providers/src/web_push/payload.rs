//! Requests to push services, and the checks against their limits. Sources: RFC 8030 (TTL, Topic, Urgency), RFC 8291 (size), W3C Push API
//! (declarative messages).

use std::borrow::Cow;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use http::{HeaderName, HeaderValue};
use serde_json::{Map, Value, json};
use stentor_core::device::ProviderKind;
use stentor_core::error::Invalid;
use stentor_core::message::{Content, Message, MessageSpec, Notification, Priority};
use stentor_core::name::CollapseKey;
use stentor_core::time::Timestamp;
use stentor_wire::web_push::SEALED_OVERHEAD_BYTES;

use crate::json;

/// Largest body that every push service takes (RFC 8030, 7.2).
const BODY_MAX_BYTES: usize = 4_096;
/// Largest text in such a body (RFC 8291, 4).
const TEXT_MAX_BYTES: usize = BODY_MAX_BYTES - SEALED_OVERHEAD_BYTES;
/// Longest topic (RFC 8030, 5.4).
const TOPIC_MAX_LETTERS: usize = 32;
/// Bytes of a hash whose base64url is as long as a topic may be.
const TOPIC_HASH_BYTES: usize = 24;
/// The number by which browsers recognise a declarative message (W3C Push API).
const DECLARATIVE: u64 = 8030;
const FIELD: &str = "web_push";
const OVERRIDE_FIELDS: &[&str] = &["headers", "payload", "raw"];
const URGENCIES: &[&str] = &["very-low", "low", "normal", "high"];
const TTL: HeaderName = HeaderName::from_static("ttl");
const URGENCY: HeaderName = HeaderName::from_static("urgency");
const TOPIC: HeaderName = HeaderName::from_static("topic");

/// Returns the headers of a message, except the one that identifies the sender.
pub(super) fn headers(message: &Message, now: Timestamp) -> Vec<(HeaderName, HeaderValue)> {
    let spec = &message.spec;
    let own = |name: &HeaderName| overridden(&spec.content, name.as_str());
    let urgency = if spec.priority == Priority::High { "high" } else { "normal" };
    let topic = own(&TOPIC).or_else(|| spec.collapse_key.as_ref().map(|key| topic_of(key).into_owned()));
    let texts = [
        (TTL, Some(own(&TTL).unwrap_or_else(|| message.remaining_ttl(now).as_seconds().to_string()))),
        (URGENCY, Some(own(&URGENCY).unwrap_or_else(|| urgency.to_owned()))),
        (TOPIC, topic),
        (CONTENT_ENCODING, Some("aes128gcm".to_owned())),
        (CONTENT_TYPE, Some("application/octet-stream".to_owned())),
    ];
    let value = |(name, text): (HeaderName, Option<String>)| Some((name, HeaderValue::try_from(text?).ok()?));
    texts.into_iter().filter_map(value).collect()
}

/// Returns the topic of a collapse key: the key, or its hash if the key has other letters or too many.
fn topic_of(key: &CollapseKey) -> Cow<'_, str> {
    if is_topic(key.as_str()) {
        return Cow::Borrowed(key.as_str());
    }
    let hash = blake3::hash(key.as_str().as_bytes());
    Cow::Owned(URL_SAFE_NO_PAD.encode(&hash.as_bytes()[..TOPIC_HASH_BYTES]))
}

fn is_topic(text: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    (1..=TOPIC_MAX_LETTERS).contains(&text.len()) && text.bytes().all(is_letter)
}

/// Returns the text that is sealed for each device. `navigate` is the address that a notification opens if its message names none.
pub(super) fn text(content: &Content, navigate: Option<&str>) -> Vec<u8> {
    let own = content.overrides.get(&ProviderKind::WebPush);
    let raw = own.and_then(|own| own.get("raw")).and_then(Value::as_str);
    if let Some(bytes) = raw.and_then(|raw| STANDARD.decode(raw).ok()) {
        return bytes;
    }
    let mut fields = Map::new();
    if let Some(shown) = &content.notification {
        fields.insert("notification".into(), Value::Object(notification(shown, navigate)));
    }
    if !content.data.is_empty() {
        fields.insert("data".into(), json!(content.data));
    }
    if let Some(payload) = own.and_then(|own| own.get("payload")).and_then(Value::as_object) {
        json::merge(&mut fields, payload);
    }
    if is_declarative(&fields) {
        fields.insert(FIELD.into(), DECLARATIVE.into());
    }
    Value::Object(fields).to_string().into_bytes()
}

fn notification(shown: &Notification, navigate: Option<&str>) -> Map<String, Value> {
    let texts = [
        ("title", shown.title.as_deref()),
        ("body", shown.body.as_deref()),
        ("image", shown.image.as_deref()),
        ("navigate", navigate),
    ];
    texts.into_iter().filter_map(|(name, text)| Some((name.to_owned(), text?.into()))).collect()
}

/// Returns true if a browser can show a message without a service worker: it has a title and an address to open.
fn is_declarative(fields: &Map<String, Value>) -> bool {
    let notification = fields.get("notification");
    ["title", "navigate"].iter().all(|name| notification.is_some_and(|shown| shown[name].is_string()))
}

fn overridden(content: &Content, header: &str) -> Option<String> {
    let headers = content.overrides.get(&ProviderKind::WebPush)?.get("headers")?.as_object()?;
    let named = headers.iter().find(|(name, _)| name.eq_ignore_ascii_case(header))?;
    named.1.as_str().map(ToOwned::to_owned)
}

/// Checks a message against the limits of the standard; the error names the field.
pub(super) fn check(spec: &MessageSpec) -> Result<(), Invalid> {
    if let Some(own) = spec.content.overrides.get(&ProviderKind::WebPush) {
        check_override(own)?;
    }
    let bytes = text(&spec.content, None).len();
    if bytes <= TEXT_MAX_BYTES {
        return Ok(());
    }
    let field = if spec.content.data.is_empty() { "notification" } else { "data" };
    let problem = format!("too large for Web Push: {bytes} bytes, at most {TEXT_MAX_BYTES}");
    Err(Invalid::new(field, problem))
}

fn check_override(own: &Map<String, Value>) -> Result<(), Invalid> {
    json::only(own, OVERRIDE_FIELDS, FIELD)?;
    json::object(own, "payload", FIELD)?;
    if let Some(headers) = json::object(own, "headers", FIELD)? {
        json::strings(headers, &format!("{FIELD}.headers"))?;
        for (name, value) in headers {
            check_header(name, value.as_str().unwrap_or_default())?;
        }
    }
    let Some(raw) = own.get("raw") else { return Ok(()) };
    let wrong = |problem: &str| Err(Invalid::new(format!("{FIELD}.raw"), problem));
    match raw.as_str().map(|text| STANDARD.decode(text)) {
        Some(Ok(_)) if own.contains_key("payload") => wrong("excludes `payload`"),
        Some(Ok(_)) => Ok(()),
        _ => wrong("must be a text of base64"),
    }
}

fn check_header(name: &str, value: &str) -> Result<(), Invalid> {
    let (fits, rule) = match name.to_ascii_lowercase().as_str() {
        "ttl" => (value.len() <= 10 && value.parse::<u64>().is_ok(), "must be seconds"),
        "urgency" => (URGENCIES.contains(&value), "must be very-low, low, normal or high"),
        "topic" => (is_topic(value), "must be 1 to 32 letters of base64url"),
        _ => (false, "unknown; known are ttl, urgency, topic"),
    };
    if fits { Ok(()) } else { Err(Invalid::new(format!("{FIELD}.headers.{name}"), rule)) }
}

#[cfg(test)]
mod tests;
