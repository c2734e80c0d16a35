//! Requests to GCM, and the checks against its limits. Source: Google, "GCM HTTP connection server" and the server reference, as copied
//! into the sources of Android.

use serde_json::{Map, Value, json};
use stentor_core::device::ProviderKind;
use stentor_core::error::Invalid;
use stentor_core::message::{Content, Message, MessageSpec, Priority};
use stentor_core::time::Timestamp;

use crate::json;
use crate::multicast::ListTemplate;

/// Largest size of the keys and values that reach a device, in bytes.
pub const PAYLOAD_MAX_BYTES: usize = 4_096;
const TTL_MAX_SECONDS: u64 = 28 * 24 * 3_600;
const RESERVED_KEYS: &[&str] = &["from", "message_type"];
const RESERVED_PREFIXES: &[&str] = &["google", "gcm"];
const FIELDS: &[&str] = &[
    "collapse_key",
    "content_available",
    "data",
    "delay_while_idle",
    "notification",
    "priority",
    "restricted_package_name",
    "time_to_live",
];

/// Encodes the part of a request that all devices share; the ttl is the remaining one at `now`.
#[must_use]
pub fn template(message: &Message, now: Timestamp) -> ListTemplate {
    of(&message.spec, message.remaining_ttl(now).as_seconds())
}

fn of(spec: &MessageSpec, ttl_seconds: u64) -> ListTemplate {
    let rest = Value::Object(rest(spec, ttl_seconds)).to_string();
    // There is always a time to live, which follows the list of tokens.
    let fields = rest.strip_prefix('{').unwrap_or_default();
    // A token that is alone may be that of a device group, which no list may have.
    ListTemplate::new(r#"{"registration_ids":["#, format!(",{fields}")).or_one(r#"{"to":"#)
}

fn rest(spec: &MessageSpec, ttl_seconds: u64) -> Map<String, Value> {
    let content = &spec.content;
    let mut fields = Map::new();
    let priority = if spec.priority == Priority::High { "high" } else { "normal" };
    fields.insert("priority".into(), priority.into());
    fields.insert("time_to_live".into(), ttl_seconds.into());
    if let Some(key) = &spec.collapse_key {
        fields.insert("collapse_key".into(), key.as_str().into());
    }
    if !content.data.is_empty() {
        fields.insert("data".into(), json!(content.data));
    }
    if let Some(notification) = &content.notification {
        let texts = [("title", &notification.title), ("body", &notification.body)];
        let texts =
            texts.into_iter().filter_map(|(name, text)| Some((name.to_owned(), json!(text.as_ref()?))));
        fields.insert("notification".into(), Value::Object(texts.collect()));
    }
    if let Some(own) = content.overrides.get(&ProviderKind::Gcm) {
        json::merge(&mut fields, own);
    }
    fields
}

/// Checks a message against GCM's documented limits; the error names the field.
pub fn check(spec: &MessageSpec) -> Result<(), Invalid> {
    let content = &spec.content;
    content.data.keys().try_for_each(|key| check_key(key, "data"))?;
    if let Some(own) = content.overrides.get(&ProviderKind::Gcm) {
        json::only(own, FIELDS, "gcm")?;
        if let Some(data) = json::object(own, "data", "gcm")? {
            json::strings(data, "gcm.data")?;
            data.keys().try_for_each(|key| check_key(key, "gcm.data"))?;
        }
        json::object(own, "notification", "gcm")?;
        for (name, value) in own {
            if let Some(problem) = problem(name, value) {
                return Err(Invalid::new(format!("gcm.{name}"), problem));
            }
        }
    }
    check_size(spec)
}

fn check_key(key: &str, path: &str) -> Result<(), Invalid> {
    let reserved =
        RESERVED_KEYS.contains(&key) || RESERVED_PREFIXES.iter().any(|prefix| key.starts_with(prefix));
    if reserved { Err(Invalid::new(format!("{path}.{key}"), "this key is reserved by GCM")) } else { Ok(()) }
}

fn problem(name: &str, value: &Value) -> Option<&'static str> {
    let (fits, rule) = match name {
        // Checked by themselves.
        "data" | "notification" => (true, ""),
        "content_available" | "delay_while_idle" => (value.is_boolean(), "must be true or false"),
        "priority" => (matches!(value.as_str(), Some("high" | "normal")), "must be high or normal"),
        "time_to_live" => {
            let fits = value.as_u64().is_some_and(|seconds| seconds <= TTL_MAX_SECONDS);
            (fits, "must be a number of seconds, at most four weeks")
        }
        _ => (value.is_string(), "must be a string"),
    };
    (!fits).then_some(rule)
}

/// Checks the size, counting keys and values as GCM does.
fn check_size(spec: &MessageSpec) -> Result<(), Invalid> {
    let fields = rest(spec, 0);
    let bytes_of = |name: &str| fields.get(name).and_then(Value::as_object).map_or(0, pair_bytes);
    let (data, visible) = (bytes_of("data"), bytes_of("notification"));
    if data + visible <= PAYLOAD_MAX_BYTES {
        return Ok(());
    }
    let part = if data >= visible { "data" } else { "notification" };
    let problem = format!(
        "too large for GCM: keys and values take {} bytes, at most {PAYLOAD_MAX_BYTES}",
        data + visible
    );
    Err(Invalid::new(path(&spec.content, part), problem))
}

/// Returns the field that brings a part of the message.
fn path(content: &Content, part: &str) -> String {
    let own = content.overrides.get(&ProviderKind::Gcm).is_some_and(|own| own.contains_key(part));
    if own { format!("gcm.{part}") } else { part.to_owned() }
}

/// Counts keys and values; a value that is no text counts as JSON.
fn pair_bytes(pairs: &Map<String, Value>) -> usize {
    let bytes = |value: &Value| value.as_str().map_or_else(|| value.to_string().len(), str::len);
    pairs.iter().map(|(key, value)| key.len() + bytes(value)).sum()
}

#[cfg(test)]
mod tests;
