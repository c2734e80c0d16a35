//! Requests to WNS, and the checks against its limits. Sources: Microsoft, "Push notification service request and response headers" and
//! "Toast content schema".

use std::borrow::Cow;
use std::fmt::Write as _;

use http::header::CONTENT_TYPE;
use http::{HeaderName, HeaderValue};
use serde_json::{Map, Value, json};
use stentor_core::device::ProviderKind;
use stentor_core::error::Invalid;
use stentor_core::message::{Content, Message, MessageSpec, Notification};
use stentor_core::time::Timestamp;

use crate::header_text::fits_header;
use crate::json;

/// Largest body.
const BODY_MAX_BYTES: usize = 5_000;
/// Longest tag, which names a notification that a newer one replaces.
const TAG_MAX_LETTERS: usize = 16;
const FIELD: &str = "wns";
const OVERRIDE_FIELDS: &[&str] = &["type", "payload", "headers"];
const OWN_HEADERS: &[&str] =
    &["x-wns-cache-policy", "x-wns-group", "x-wns-match", "x-wns-suppresspopup", "x-wns-tag", "x-wns-ttl"];
const TYPE: HeaderName = HeaderName::from_static("x-wns-type");
const TTL: HeaderName = HeaderName::from_static("x-wns-ttl");
const CACHE_POLICY: HeaderName = HeaderName::from_static("x-wns-cache-policy");
const REQUEST_FOR_STATUS: HeaderName = HeaderName::from_static("x-wns-requestforstatus");
const TAG: HeaderName = HeaderName::from_static("x-wns-tag");

/// The kinds of notifications.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Toast,
    Tile,
    Badge,
    Raw,
}

impl Kind {
    const ALL: [(&'static str, Self); 4] =
        [("toast", Self::Toast), ("tile", Self::Tile), ("badge", Self::Badge), ("raw", Self::Raw)];

    fn read(word: &str) -> Option<Self> {
        Self::ALL.iter().find(|(name, _)| *name == word).map(|(_, kind)| *kind)
    }

    /// Returns its value of `X-WNS-Type`, and of `Content-Type`.
    const fn headers(self) -> (&'static str, &'static str) {
        match self {
            Self::Toast => ("wns/toast", "text/xml"),
            Self::Tile => ("wns/tile", "text/xml"),
            Self::Badge => ("wns/badge", "text/xml"),
            Self::Raw => ("wns/raw", "application/octet-stream"),
        }
    }
}

/// Returns the kind of a message: a toast if it shows something, raw bytes otherwise.
fn kind_of(content: &Content) -> Kind {
    let own = own(content).and_then(|own| own.get("type")).and_then(Value::as_str).and_then(Kind::read);
    own.unwrap_or(if content.notification.is_some() { Kind::Toast } else { Kind::Raw })
}

fn own(content: &Content) -> Option<&Map<String, Value>> {
    content.overrides.get(&ProviderKind::Wns)
}

/// Returns the headers of a message, except the one that identifies the sender.
pub(super) fn headers(message: &Message, now: Timestamp) -> Vec<(HeaderName, HeaderValue)> {
    let spec = &message.spec;
    let (kind, content_type) = kind_of(&spec.content).headers();
    let mut texts = vec![
        (TYPE, kind.to_owned()),
        (CONTENT_TYPE, content_type.to_owned()),
        (REQUEST_FOR_STATUS, "true".to_owned()),
    ];
    // A message that may not wait is not kept for a device that is away.
    match spec.ttl.as_seconds() {
        0 => texts.push((CACHE_POLICY, "no-cache".to_owned())),
        _ => texts.extend([
            (CACHE_POLICY, "cache".to_owned()),
            (TTL, message.remaining_ttl(now).as_seconds().to_string()),
        ]),
    }
    texts.extend(spec.collapse_key.as_ref().map(|key| (TAG, tag_of(key.as_str()).into_owned())));
    let given = own(&spec.content).and_then(|own| own.get("headers")).and_then(Value::as_object);
    for (name, value) in given.into_iter().flatten() {
        let (Ok(name), Some(text)) = (HeaderName::try_from(name.to_ascii_lowercase()), value.as_str()) else {
            continue;
        };
        texts.retain(|(known, _)| *known != name);
        texts.push((name, text.to_owned()));
    }
    texts.into_iter().filter_map(|(name, text)| Some((name, HeaderValue::try_from(text).ok()?))).collect()
}

/// Returns the tag of a collapse key: the key, or its hash if the key has other letters or too many.
fn tag_of(key: &str) -> Cow<'_, str> {
    if key.len() <= TAG_MAX_LETTERS && key.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return Cow::Borrowed(key);
    }
    Cow::Owned(blake3::hash(key.as_bytes()).to_hex()[..TAG_MAX_LETTERS].to_owned())
}

/// Returns the body of a message.
pub(super) fn body(content: &Content) -> Vec<u8> {
    if let Some(text) = own(content).and_then(|own| own.get("payload")).and_then(Value::as_str) {
        return text.as_bytes().to_vec();
    }
    match &content.notification {
        Some(notification) => toast(notification, content).into_bytes(),
        None => json!(content.data).to_string().into_bytes(),
    }
}

/// Writes a toast. The app gets the data, as JSON, when the user opens it.
fn toast(notification: &Notification, content: &Content) -> String {
    let mut xml = "<toast".to_owned();
    // Writing to a string cannot fail.
    if !content.data.is_empty() {
        let _ = write!(xml, " launch=\"{}\"", escaped(&json!(content.data).to_string()));
    }
    xml.push_str("><visual><binding template=\"ToastGeneric\">");
    for text in [&notification.title, &notification.body].into_iter().flatten() {
        let _ = write!(xml, "<text>{}</text>", escaped(text));
    }
    if let Some(image) = &notification.image {
        let _ = write!(xml, "<image src=\"{}\"/>", escaped(image));
    }
    xml.push_str("</binding></visual></toast>");
    xml
}

/// Replaces the letters that XML has other uses or no place for (XML 1.0, 2.2 and 2.4).
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\t' | '\n' | '\r' => escaped.push(letter),
            '\u{fffe}' | '\u{ffff}' => escaped.push('\u{fffd}'),
            other if other.is_control() && u32::from(other) < 0x20 => escaped.push('\u{fffd}'),
            other => escaped.push(other),
        }
    }
    escaped
}

/// Checks a message against the limits of WNS; the error names the field.
pub(super) fn check(spec: &MessageSpec) -> Result<(), Invalid> {
    if let Some(own) = own(&spec.content) {
        check_override(own, spec.content.notification.is_some())?;
    }
    let bytes = body(&spec.content).len();
    if bytes <= BODY_MAX_BYTES {
        return Ok(());
    }
    let field = if spec.content.data.is_empty() { "notification" } else { "data" };
    Err(Invalid::new(field, format!("too large for WNS: {bytes} bytes, at most {BODY_MAX_BYTES}")))
}

fn check_override(own: &Map<String, Value>, is_visible: bool) -> Result<(), Invalid> {
    json::only(own, OVERRIDE_FIELDS, FIELD)?;
    let wrong = |name: &str, problem: &str| Err(Invalid::new(format!("{FIELD}.{name}"), problem));
    let kind = own.get("type").map(|word| word.as_str().and_then(Kind::read));
    let has_payload = match own.get("payload") {
        None => false,
        Some(Value::String(text)) if !text.is_empty() => true,
        Some(_) => return wrong("payload", "must be a text"),
    };
    match kind {
        Some(None) => return wrong("type", "must be toast, tile, badge or raw"),
        Some(Some(Kind::Tile | Kind::Badge)) if !has_payload => {
            return wrong("payload", "must be given for a tile or a badge");
        }
        Some(Some(Kind::Toast)) if !has_payload && !is_visible => {
            return wrong("payload", "must be given for a toast without a notification");
        }
        Some(Some(Kind::Raw)) if !has_payload && is_visible => {
            return wrong("payload", "must be given for raw bytes beside a notification");
        }
        _ => {}
    }
    let Some(headers) = json::object(own, "headers", FIELD)? else { return Ok(()) };
    json::strings(headers, "wns.headers")?;
    for (name, value) in headers {
        let path = format!("headers.{name}");
        match (name.to_ascii_lowercase().as_str(), value.as_str().unwrap_or_default()) {
            (known, _) if !OWN_HEADERS.contains(&known) => {
                return wrong(&path, &format!("unknown; known are {}", OWN_HEADERS.join(", ")));
            }
            ("x-wns-ttl", text) if text.parse::<u32>().is_err() => return wrong(&path, "must be seconds"),
            ("x-wns-cache-policy", text) if !["cache", "no-cache"].contains(&text) => {
                return wrong(&path, "must be cache or no-cache");
            }
            (_, text) if !fits_header(text) => {
                return wrong(&path, "must be printable text, without a space at either end");
            }
            _ => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
