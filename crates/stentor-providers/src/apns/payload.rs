//! Requests to APNs, and the checks against APNs' limits.
//!
//! Sources: Apple, "Sending notification requests to APNs" and "Generating a remote notification".

use std::borrow::Cow;

use bytes::Bytes;
use http::{HeaderName, HeaderValue};
use serde_json::{Map, Value, json};
use stentor_core::device::ProviderKind;
use stentor_core::error::Invalid;
use stentor_core::message::{Content, Message, MessageSpec, Notification, Priority};
use stentor_core::name::CollapseKey;
use stentor_core::target::{Target, TokenTarget};

use super::credential::is_topic;
use super::{DESCRIPTOR, is_device_token};
use crate::header_text::fits_header;
use crate::json;

/// Largest body.
pub const PAYLOAD_MAX_BYTES: usize = 4_096;
/// Largest body of a VoIP push.
pub const VOIP_PAYLOAD_MAX_BYTES: usize = 5_120;
/// Longest `apns-collapse-id`.
pub const COLLAPSE_ID_MAX_BYTES: usize = 64;
const OVERRIDE_FIELDS: &[&str] = &["headers", "payload"];
const PUSH_TYPES: &[&str] = &[
    "alert",
    "background",
    "complication",
    "controls",
    "fileprovider",
    "liveactivity",
    "location",
    "mdm",
    "pushtotalk",
    "voip",
    "widgets",
];
pub(crate) const TOPIC: HeaderName = HeaderName::from_static("apns-topic");
pub(crate) const PUSH_TYPE: HeaderName = HeaderName::from_static("apns-push-type");
pub(crate) const PRIORITY: HeaderName = HeaderName::from_static("apns-priority");
pub(crate) const EXPIRATION: HeaderName = HeaderName::from_static("apns-expiration");
const COLLAPSE_ID: HeaderName = HeaderName::from_static("apns-collapse-id");

/// The part of a push that all devices share.
pub struct Push {
    /// All headers except `authorization` and `apns-id`.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// The body.
    pub body: Bytes,
}

impl Push {
    /// Writes headers and body.
    #[must_use]
    pub fn new(message: &Message, bundle_id: &str) -> Self {
        let content = &message.spec.content;
        Self { headers: headers(message, bundle_id), body: body(content).into() }
    }
}

fn headers(message: &Message, bundle_id: &str) -> Vec<(HeaderName, HeaderValue)> {
    let spec = &message.spec;
    let own = |name: &HeaderName| overridden(&spec.content, name.as_str());
    let push_type = own(&PUSH_TYPE).unwrap_or_else(|| usual_push_type(&spec.content).to_owned());
    // A background push must have priority 5 (Apple, "Sending notification requests to APNs").
    let urgent = spec.priority == Priority::High && push_type != "background";
    // 0 means now or never; any other value is an instant.
    let expires_s = if spec.ttl.as_seconds() == 0 { 0 } else { message.expires_at().as_millis() / 1_000 };
    let collapse =
        own(&COLLAPSE_ID).or_else(|| spec.collapse_key.as_ref().map(|key| collapse_id(key).into_owned()));
    let texts = [
        (TOPIC, Some(own(&TOPIC).unwrap_or_else(|| usual_topic(bundle_id, &push_type)))),
        (PRIORITY, Some(own(&PRIORITY).unwrap_or_else(|| if urgent { "10" } else { "5" }.to_owned()))),
        (EXPIRATION, Some(own(&EXPIRATION).unwrap_or_else(|| expires_s.to_string()))),
        (COLLAPSE_ID, collapse),
        (PUSH_TYPE, Some(push_type)),
    ];
    let value = |(name, text): (HeaderName, Option<String>)| Some((name, HeaderValue::try_from(text?).ok()?));
    texts.into_iter().filter_map(value).collect()
}

/// Returns the `apns-collapse-id` of a key: the key, or its hash if the key has too many bytes. A key that is no valid header value is
/// refused today; a stored older one is hashed as well.
pub(crate) fn collapse_id(key: &CollapseKey) -> Cow<'_, str> {
    let text = key.as_str();
    if text.len() <= COLLAPSE_ID_MAX_BYTES && fits_header(text) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(blake3::hash(text.as_bytes()).to_hex().to_string())
}

/// Returns the default topic of a push type; some types have their own, derived from the bundle id.
fn usual_topic(bundle_id: &str, push_type: &str) -> String {
    let suffix = match push_type {
        "voip" => ".voip",
        "complication" => ".complication",
        "fileprovider" => ".pushkit.fileprovider",
        "liveactivity" => ".push-type.liveactivity",
        "location" => ".location-query",
        "pushtotalk" => ".voip-ptt",
        "widgets" => ".push-type.widgets",
        "controls" => ".push-type.controls",
        _ => "",
    };
    format!("{bundle_id}{suffix}")
}

fn usual_push_type(content: &Content) -> &'static str {
    if content.notification.is_some() || overridden_alert(content) { "alert" } else { "background" }
}

fn overridden_alert(content: &Content) -> bool {
    let aps = part(content, "payload").and_then(|payload| payload.get("aps"));
    aps.is_some_and(|aps| ["alert", "badge", "sound"].iter().any(|name| aps.get(name).is_some()))
}

fn part<'a>(content: &'a Content, name: &str) -> Option<&'a Map<String, Value>> {
    content.overrides.get(&ProviderKind::Apns)?.get(name)?.as_object()
}

fn overridden(content: &Content, header: &str) -> Option<String> {
    part(content, "headers")?.get(header)?.as_str().map(ToOwned::to_owned)
}

fn body(content: &Content) -> Vec<u8> {
    let mut fields = Map::new();
    let aps = match &content.notification {
        Some(notification) => visible(notification, &mut fields),
        None if overridden_alert(content) => json!({}),
        // Apple requires this if there is no alert.
        None => json!({"content-available": 1}),
    };
    fields.insert("aps".into(), aps);
    for (key, value) in &content.data {
        fields.insert(key.clone(), value.as_str().into());
    }
    if let Some(overrides) = part(content, "payload") {
        json::merge(&mut fields, overrides);
    }
    Value::Object(fields).to_string().into_bytes()
}

/// Writes the alert; a picture is left to the app's notification service extension.
fn visible(notification: &Notification, fields: &mut Map<String, Value>) -> Value {
    let mut alert = Map::new();
    let texts = [("title", &notification.title), ("body", &notification.body)];
    for (name, text) in texts {
        alert.extend(text.as_ref().map(|text| (name.to_owned(), Value::from(text.as_str()))));
    }
    let mut aps = json!({"alert": alert});
    if let Some(image) = &notification.image {
        // It invokes the app's extension, which loads the picture.
        aps["mutable-content"] = 1.into();
        fields.insert("image".into(), image.as_str().into());
    }
    aps
}

/// Checks a message against APNs' documented limits; the error names the field.
pub fn check(spec: &MessageSpec) -> Result<(), Invalid> {
    let content = &spec.content;
    // The token becomes a part of the path.
    if let Target::Token(TokenTarget { token, provider: ProviderKind::Apns, .. }) = &spec.target
        && !is_device_token(token.expose())
    {
        let problem = format!("must be {} for {}", DESCRIPTOR.token_form, DESCRIPTOR.label);
        return Err(Invalid::new("target.token.token", problem));
    }
    if content.data.contains_key("aps") {
        return Err(Invalid::new("data.aps", "this key is reserved by APNs"));
    }
    if let Some(apns) = content.overrides.get(&ProviderKind::Apns) {
        json::only(apns, OVERRIDE_FIELDS, "apns")?;
        json::object(apns, "payload", "apns")?;
        if let Some(headers) = json::object(apns, "headers", "apns")? {
            check_headers(headers)?;
        }
    }
    if let Some(Value::Object(_)) | None = part(content, "payload").and_then(|payload| payload.get("aps")) {
        return check_size(content);
    }
    Err(Invalid::new("apns.payload.aps", "must be an object"))
}

fn check_headers(headers: &Map<String, Value>) -> Result<(), Invalid> {
    json::strings(headers, "apns.headers")?;
    for (name, value) in headers {
        let text = value.as_str().unwrap_or_default();
        if let Some(problem) = header_problem(name, text) {
            return Err(Invalid::new(format!("apns.headers.{name}"), problem));
        }
    }
    let is = |name: &str, text: &str| headers.get(name).and_then(Value::as_str) == Some(text);
    if is("apns-push-type", "background") && is("apns-priority", "10") {
        return Err(Invalid::new("apns.headers.apns-priority", "must be 5 for a background push"));
    }
    Ok(())
}

fn header_problem(name: &str, text: &str) -> Option<String> {
    let (fits, rule) = match name {
        "apns-topic" => (is_topic(text), "must be letters, digits, `.`, `-` or `_`".to_owned()),
        "apns-push-type" => (PUSH_TYPES.contains(&text), format!("must be one of {}", PUSH_TYPES.join(", "))),
        "apns-priority" => (matches!(text, "1" | "5" | "10"), "must be 1, 5 or 10".to_owned()),
        "apns-expiration" => {
            // `parse` would accept a sign as well.
            let seconds = !text.starts_with('+') && text.parse::<u64>().is_ok_and(|s| s <= i64::MAX as u64);
            (seconds, "must be seconds since 1970, or 0".to_owned())
        }
        "apns-collapse-id" => {
            let fits = (1..=COLLAPSE_ID_MAX_BYTES).contains(&text.len());
            let rule = format!(
                "must be 1 to {COLLAPSE_ID_MAX_BYTES} bytes of printable text, without a space at either end"
            );
            (fits && fits_header(text), rule)
        }
        "apns-id" => (false, "is chosen by Stentor: the same for every attempt of a delivery".to_owned()),
        _ => (false, "is not a header that APNs knows".to_owned()),
    };
    (!fits).then_some(rule)
}

fn check_size(content: &Content) -> Result<(), Invalid> {
    let voip = overridden(content, "apns-push-type").as_deref() == Some("voip");
    let most = if voip { VOIP_PAYLOAD_MAX_BYTES } else { PAYLOAD_MAX_BYTES };
    let bytes = body(content).len();
    if bytes <= most {
        return Ok(());
    }
    let data: usize = content.data.iter().map(|(key, value)| key.len() + value.len()).sum();
    let payload_bytes = part(content, "payload").map_or(0, |payload| json!(payload).to_string().len());
    let visible =
        content.notification.as_ref().map_or(0, |notification| json!(notification).to_string().len());
    let field = match data.max(payload_bytes).max(visible) {
        largest if largest == data => "data",
        largest if largest == payload_bytes => "apns.payload",
        _ => "notification",
    };
    Err(Invalid::new(field, format!("too large for APNs: the payload takes {bytes} bytes, at most {most}")))
}

#[cfg(test)]
mod tests;
