//! Requests to FCM, and the checks against FCM's limits. Source: FCM v1 `projects.messages` reference.

use serde_json::{Map, Value, json};
use stentor_core::device::ProviderKind;
use stentor_core::error::Invalid;
use stentor_core::message::{Content, Message, MessageSpec, Priority};
use stentor_core::time::Timestamp;

use super::address::is_installation_id;
use crate::apns::payload::collapse_id;
use crate::header_text::{fits_header, is_header_name};
use crate::json;

/// Largest size of the keys and values that reach a device, in bytes.
pub const PAYLOAD_MAX_BYTES: usize = 4_096;
const TTL_MAX_SECONDS: u64 = 28 * 24 * 3_600;
const RESERVED_KEYS: &[&str] = &["from", "message_type"];
const RESERVED_PREFIXES: &[&str] = &["google.", "gcm.notification."];
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
/// The fields of the newer form. Its kind of message, which is one of two, stands for a priority.
const ANDROID_V2_FIELDS: &[&str] = &[
    "backgroundSync",
    "bandwidthConstrainedOk",
    "collapseKey",
    "data",
    "directBootOk",
    "fcmOptions",
    "remoteNotification",
    "restrictedPackageName",
    "restrictedSatelliteOk",
    "ttl",
];
const REMOTE_NOTIFICATION_FIELDS: &[&str] = &["mutableContent", "notification", "useAsV1DataMessage"];
/// Parts of a message that may be given among Android's fields although they stand beside them, because no Android field has these names.
const WEB: &str = "webpush";
const ANDROID_V2: &str = "androidV2";
const APPLE: &str = "apns";
const WEB_FIELDS: &[&str] = &["headers", "data", "notification", "fcmOptions"];
/// Longest `Topic` of Web Push, and the values of `Urgency` (RFC 8030, 5.3 and 5.4).
const WEB_TOPIC_MAX_LETTERS: usize = 32;
const URGENCIES: &[&str] = &["very-low", "low", "normal", "high"];
const APNS_FIELDS: &[&str] = &["headers", "payload", "fcmOptions", "liveActivityToken"];

/// The beginnings of a body, up to the address of the device, by the kind of the address.
const TO_INSTALLATION: &[u8] = br#"{"message":{"fid":""#;
const TO_TOKEN: &[u8] = br#"{"message":{"token":""#;

/// A request body with a gap for the address of the device.
pub struct BodyTemplate {
    after: Vec<u8>,
}

impl BodyTemplate {
    /// Encodes the part that all devices share; the ttl is the remaining one at `now`.
    #[must_use]
    pub fn new(message: &Message, now: Timestamp) -> Self {
        let rest = Value::Object(rest(message, now)).to_string();
        // The address comes first, so that the rest is one piece.
        let after = match rest.strip_prefix('{') {
            Some(fields) => format!("\",{fields}}}"),
            None => "\"}}".to_owned(),
        };
        Self { after: after.into_bytes() }
    }

    /// Passes the body for one device, known by a registration token or an installation id, in parts to `write`.
    pub fn with_token<T>(&self, token: &str, write: impl FnOnce(&[&[u8]]) -> T) -> T {
        // An installation id has no letters that need escaping.
        if is_installation_id(token) {
            return write(&[TO_INSTALLATION, token.as_bytes(), &self.after]);
        }
        // A push token is visible ASCII: nothing else needs escaping. `contains` compares 16 bytes at once; a loop over both was compiled
        // byte by byte and took 5 % of a campaign.
        let bytes = token.as_bytes();
        if !bytes.contains(&b'"') && !bytes.contains(&b'\\') {
            return write(&[TO_TOKEN, token.as_bytes(), &self.after]);
        }
        let escaped = token.replace('\\', "\\\\").replace('"', "\\\"");
        write(&[TO_TOKEN, escaped.as_bytes(), &self.after])
    }
}

fn rest(message: &Message, now: Timestamp) -> Map<String, Value> {
    let content = &message.spec.content;
    let mut fields = Map::new();
    if let Some(notification) = &content.notification {
        fields.insert("notification".into(), json!(notification));
    }
    if !content.data.is_empty() {
        fields.insert("data".into(), json!(content.data));
    }
    let mut own = camel(content.overrides.get(&ProviderKind::Fcm));
    let apple = own.remove(APPLE);
    fields.extend(own.remove_entry(WEB));
    // FCM refuses a message with both forms.
    match own.remove_entry(ANDROID_V2) {
        Some((name, instead)) => {
            fields.insert(name, Value::Object(android_v2(message, now, instead.as_object())))
        }
        None => fields.insert("android".into(), Value::Object(android(message, now, &own))),
    };
    fields.insert("apns".into(), Value::Object(apns(message, apple.as_ref().and_then(Value::as_object))));
    fields
}

fn android(message: &Message, now: Timestamp, own: &Map<String, Value>) -> Map<String, Value> {
    let mut android = while_it_waits(message, now);
    let priority = if message.spec.priority == Priority::High { "HIGH" } else { "NORMAL" };
    android.insert("priority".into(), priority.into());
    json::merge(&mut android, own);
    android
}

/// Returns the newer form of the part for Android devices. Without a ttl FCM would keep the message for four weeks.
fn android_v2(message: &Message, now: Timestamp, own: Option<&Map<String, Value>>) -> Map<String, Value> {
    let mut android = while_it_waits(message, now);
    json::merge(&mut android, &camel(own));
    android
}

/// Returns the fields that both forms of the part for Android devices have for a message that waits at FCM.
fn while_it_waits(message: &Message, now: Timestamp) -> Map<String, Value> {
    let mut android = Map::new();
    android.insert("ttl".into(), format!("{}s", message.remaining_ttl(now).as_seconds()).into());
    if let Some(key) = &message.spec.collapse_key {
        android.insert("collapseKey".into(), key.as_str().into());
    }
    android
}

/// Returns the part for Apple devices behind FCM; FCM's own defaults are 30 days and priority 10.
fn apns(message: &Message, beside: Option<&Map<String, Value>>) -> Map<String, Value> {
    let spec = &message.spec;
    let visible = spec.content.notification.is_some();
    let urgent = visible && spec.priority == Priority::High;
    let mut headers = Map::new();
    headers.insert("apns-priority".into(), if urgent { "10" } else { "5" }.into());
    headers.insert("apns-expiration".into(), expiration(message).to_string().into());
    if let Some(key) = &spec.collapse_key {
        headers.insert("apns-collapse-id".into(), collapse_id(key).into());
    }
    let mut apns = Map::new();
    apns.insert("headers".into(), Value::Object(headers));
    if !visible {
        apns.insert("payload".into(), json!({"aps": {"content-available": 1}}));
    }
    json::merge(&mut apns, &camel(beside));
    json::merge(&mut apns, &camel(spec.content.overrides.get(&ProviderKind::Apns)));
    apns
}

fn expiration(message: &Message) -> i64 {
    if message.spec.ttl.as_seconds() == 0 { 0 } else { message.expires_at().as_millis() / 1_000 }
}

/// Converts the names of the first level to camel case, so that an override matches the overridden field.
fn camel(map: Option<&Map<String, Value>>) -> Map<String, Value> {
    let entries = map.into_iter().flatten();
    entries.map(|(name, value)| (json::camel_case(name), value.clone())).collect()
}

/// Checks a message against FCM's documented limits; the error names the field.
pub fn check(spec: &MessageSpec) -> Result<(), Invalid> {
    let content = &spec.content;
    content.data.keys().try_for_each(|key| check_key(key, "data"))?;
    let mut android = camel(content.overrides.get(&ProviderKind::Fcm));
    check_beside(&mut android)?;
    check_apns(&camel(content.overrides.get(&ProviderKind::Apns)))?;
    if let Some(newer) = android_v2_of(&android)? {
        check_android_v2(&newer)?;
        return check_size(content, &newer);
    }
    check_android(&android)?;
    check_size(content, &android)
}

fn check_key(key: &str, path: &str) -> Result<(), Invalid> {
    let reserved =
        RESERVED_KEYS.contains(&key) || RESERVED_PREFIXES.iter().any(|prefix| key.starts_with(prefix));
    if reserved { Err(Invalid::new(format!("{path}.{key}"), "this key is reserved by FCM")) } else { Ok(()) }
}

/// Checks the parts that stand beside Android's, and removes them.
fn check_beside(android: &mut Map<String, Value>) -> Result<(), Invalid> {
    if let Some(apple) = json::object(android, APPLE, "android")? {
        check_apns(&camel(Some(apple)))?;
    }
    if let Some(web) = json::object(android, WEB, "android")? {
        let web = camel(Some(web));
        json::only(&web, WEB_FIELDS, WEB)?;
        for name in ["headers", "data"] {
            if let Some(texts) = json::object(&web, name, WEB)? {
                json::strings(texts, &format!("{WEB}.{name}"))?;
                if name == "headers" {
                    check_headers(texts, "webpush.headers")?;
                }
            }
        }
    }
    android.retain(|name, _| name != APPLE && name != WEB);
    Ok(())
}

/// Returns the newer form, which stands alone.
fn android_v2_of(android: &Map<String, Value>) -> Result<Option<Map<String, Value>>, Invalid> {
    let newer = json::object(android, ANDROID_V2, "android")?.map(|newer| camel(Some(newer)));
    if newer.is_some() && android.len() > 1 {
        return Err(Invalid::new(format!("android.{ANDROID_V2}"), "excludes all other fields of `android`"));
    }
    Ok(newer)
}

fn check_android(android: &Map<String, Value>) -> Result<(), Invalid> {
    json::only(android, ANDROID_FIELDS, "android")?;
    check_common(android, "android")?;
    json::object(android, "notification", "android")?;
    let is_priority = |text: &str| matches!(text.to_ascii_uppercase().as_str(), "HIGH" | "NORMAL");
    if android.get("priority").is_some_and(|priority| !priority.as_str().is_some_and(is_priority)) {
        return Err(Invalid::new("android.priority", "must be HIGH or NORMAL"));
    }
    Ok(())
}

fn check_android_v2(newer: &Map<String, Value>) -> Result<(), Invalid> {
    let path = "android.androidV2";
    json::only(newer, ANDROID_V2_FIELDS, path)?;
    check_common(newer, path)?;
    let visible = json::object(newer, "remoteNotification", path)?;
    let silent = json::object(newer, "backgroundSync", path)?;
    if visible.is_some() && silent.is_some() {
        return Err(Invalid::new(format!("{path}.backgroundSync"), "excludes `remoteNotification`"));
    }
    let Some(visible) = visible else { return Ok(()) };
    let (visible, path) = (camel(Some(visible)), "android.androidV2.remoteNotification");
    json::only(&visible, REMOTE_NOTIFICATION_FIELDS, path)?;
    json::object(&visible, "notification", path).map(drop)
}

/// Checks the fields that both forms of the part for Android devices have.
fn check_common(android: &Map<String, Value>, path: &str) -> Result<(), Invalid> {
    if let Some(data) = json::object(android, "data", path)? {
        let path = format!("{path}.data");
        json::strings(data, &path)?;
        data.keys().try_for_each(|key| check_key(key, &path))?;
    }
    if android.get("ttl").is_some_and(|ttl| !ttl.as_str().is_some_and(is_ttl)) {
        let problem = "must be seconds such as \"3.5s\", at most four weeks";
        return Err(Invalid::new(format!("{path}.ttl"), problem));
    }
    for name in ["collapseKey", "restrictedPackageName"] {
        if android.get(name).is_some_and(|value| !value.is_string()) {
            return Err(Invalid::new(format!("{path}.{name}"), "must be a string"));
        }
    }
    Ok(())
}

fn is_ttl(text: &str) -> bool {
    let Some(digits) = text.strip_suffix('s') else { return false };
    let (whole, part) = digits.split_once('.').unwrap_or((digits, "0"));
    let numeric = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    numeric(whole)
        && numeric(part)
        && part.len() <= 9
        && whole.parse::<u64>().is_ok_and(|seconds| seconds <= TTL_MAX_SECONDS)
}

fn check_apns(apns: &Map<String, Value>) -> Result<(), Invalid> {
    json::only(apns, APNS_FIELDS, "apns")?;
    if let Some(headers) = json::object(apns, "headers", "apns")? {
        json::strings(headers, "apns.headers")?;
        check_headers(headers, "apns.headers")?;
    }
    let Some(payload) = json::object(apns, "payload", "apns")? else { return Ok(()) };
    let bytes = json!(payload).to_string().len();
    if bytes > PAYLOAD_MAX_BYTES {
        return Err(too_large("apns.payload", bytes));
    }
    Ok(())
}

/// Fails on headers that FCM could not pass to another push service: these become its headers (RFC 8030, 5).
fn check_headers(headers: &Map<String, Value>, path: &str) -> Result<(), Invalid> {
    for (name, value) in headers {
        let text = value.as_str().unwrap_or_default();
        if let Some(problem) = header_problem(name, text) {
            return Err(Invalid::new(format!("{path}.{name}"), problem));
        }
    }
    Ok(())
}

fn header_problem(name: &str, text: &str) -> Option<&'static str> {
    let is_topic_letter = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    let (fits, rule) = match name.to_ascii_lowercase().as_str() {
        _ if !is_header_name(name) => (false, "cannot be the name of a header"),
        "topic" => {
            let fits = (1..=WEB_TOPIC_MAX_LETTERS).contains(&text.len()) && text.bytes().all(is_topic_letter);
            (fits, "must be 1 to 32 letters of base64url")
        }
        "urgency" => {
            let fits = URGENCIES.iter().any(|known| text.eq_ignore_ascii_case(known));
            (fits, "must be very-low, low, normal or high")
        }
        "ttl" => (is_digits(text), "must be seconds"),
        _ => (fits_header(text), "must be printable text, without a space at either end"),
    };
    (!fits).then_some(rule)
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Checks the size of the part for an Android device, counting keys and values as FCM does.
fn check_size(content: &Content, android: &Map<String, Value>) -> Result<(), Invalid> {
    let data = match android.get("data") {
        Some(instead) => bytes_of(instead),
        None => content.data.iter().map(|(key, value)| key.len() + value.len()).sum(),
    };
    let notification = content.notification.as_ref().map_or(0, |visible| bytes_of(&json!(visible)));
    let own = android.get("notification").or_else(|| android.get("remoteNotification")).map_or(0, bytes_of);
    let bytes = data + notification + own;
    if bytes <= PAYLOAD_MAX_BYTES {
        return Ok(());
    }
    let field = if data >= notification + own { "data" } else { "notification" };
    Err(too_large(field, bytes))
}

fn bytes_of(value: &Value) -> usize {
    match value {
        Value::Object(map) => map.iter().map(|(key, value)| key.len() + bytes_of(value)).sum(),
        Value::Array(list) => list.iter().map(bytes_of).sum(),
        Value::String(text) => text.len(),
        other => other.to_string().len(),
    }
}

fn too_large(field: &str, bytes: usize) -> Invalid {
    let problem =
        format!("too large for FCM: keys and values take {bytes} bytes, at most {PAYLOAD_MAX_BYTES}");
    Invalid::new(field, problem)
}

#[cfg(test)]
mod tests;
