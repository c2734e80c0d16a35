//! Requests to Push Kit, and the checks against its limits. Source: Huawei, "Downlink Message Sending" of the REST API of Push Kit.

use serde_json::{Map, Value, json};
use stentor_core::device::ProviderKind;
use stentor_core::error::Invalid;
use stentor_core::message::{Content, Message, MessageSpec};
use stentor_core::time::Timestamp;

use crate::json;
use crate::multicast::ListTemplate;

/// Largest size of a request without its tokens, in bytes.
pub const BODY_MAX_BYTES: usize = 4_096;
/// Longest time that Push Kit keeps a message: 15 days.
const TTL_MAX_SECONDS: u64 = 15 * 24 * 3_600;
/// The shortest: a message that may not wait is given one second, because Push Kit refuses an end that has passed.
const TTL_MIN_SECONDS: u64 = 1;
const ANDROID_FIELDS: &[&str] = &[
    "bi_tag",
    "category",
    "collapse_key",
    "data",
    "fast_app_target",
    "notification",
    "receipt_id",
    "target_user_type",
    "ttl",
    "urgency",
];
/// The groups of messages that wait for a device: all of them (-1), the newest of the app (0), or of one of a hundred groups.
const COLLAPSE_KEYS: std::ops::RangeInclusive<i64> = -1..=100;
/// The action of a tap that opens the app.
const OPEN_APP: u64 = 3;
const TOO_LARGE: &str = "too large for Push Kit";

/// Encodes the part of a request that all devices share; the ttl is the remaining one at `now`.
#[must_use]
pub fn template(message: &Message, now: Timestamp) -> ListTemplate {
    of(&message.spec, message.remaining_ttl(now).as_seconds())
}

fn of(spec: &MessageSpec, ttl_seconds: u64) -> ListTemplate {
    let rest = Value::Object(rest(spec, ttl_seconds)).to_string();
    // There is always a part for Android, which follows the list of tokens.
    let fields = rest.strip_prefix('{').unwrap_or_default();
    ListTemplate::new(r#"{"message":{"token":["#, format!(",{fields}}}"))
}

fn rest(spec: &MessageSpec, ttl_seconds: u64) -> Map<String, Value> {
    let mut fields = Map::new();
    if !spec.content.data.is_empty() {
        // Push Kit hands a text to the app; apps read JSON from it.
        fields.insert("data".into(), json!(spec.content.data).to_string().into());
    }
    fields.insert("android".into(), Value::Object(android(spec, ttl_seconds)));
    fields
}

fn android(spec: &MessageSpec, ttl_seconds: u64) -> Map<String, Value> {
    let mut android = Map::new();
    let ttl = ttl_seconds.clamp(TTL_MIN_SECONDS, TTL_MAX_SECONDS);
    android.insert("ttl".into(), format!("{ttl}s").into());
    if is_visible(&spec.content) {
        android.insert("notification".into(), Value::Object(notification(spec)));
    }
    json::merge(&mut android, &own(&spec.content));
    android
}

/// Returns the visible part, with everything that Push Kit requires of one.
fn notification(spec: &MessageSpec) -> Map<String, Value> {
    let mut fields = Map::new();
    if let Some(notification) = &spec.content.notification {
        let texts =
            [("title", &notification.title), ("body", &notification.body), ("image", &notification.image)];
        for (name, text) in texts {
            fields.extend(text.as_ref().map(|text| (name.to_owned(), Value::from(text.as_str()))));
        }
    }
    // Waiting messages are replaced by numbers from 1 to 100 only, in which two keys could meet. A tag is a text: the newer notification
    // takes the place of the older one on the device.
    if let Some(key) = &spec.collapse_key {
        fields.insert("tag".into(), key.as_str().into());
    }
    fields.insert("click_action".into(), json!({ "type": OPEN_APP }));
    fields
}

fn own(content: &Content) -> Map<String, Value> {
    content.overrides.get(&ProviderKind::Hms).cloned().unwrap_or_default()
}

fn is_visible(content: &Content) -> bool {
    let own = content.overrides.get(&ProviderKind::Hms);
    content.notification.is_some() || own.is_some_and(|own| own.contains_key("notification"))
}

/// Checks a message against Push Kit's documented limits; the error names the field.
pub fn check(spec: &MessageSpec) -> Result<(), Invalid> {
    let own = own(&spec.content);
    json::only(&own, ANDROID_FIELDS, "huawei")?;
    json::object(&own, "notification", "huawei")?;
    for name in ANDROID_FIELDS {
        if let Some(problem) = own.get(*name).and_then(|value| problem(name, value)) {
            return Err(Invalid::new(format!("huawei.{name}"), problem));
        }
    }
    if is_visible(&spec.content) {
        check_notification(spec)?;
    } else if spec.content.data.is_empty() && !own.contains_key("data") {
        return Err(Invalid::new("notification", "Push Kit needs a notification or data"));
    }
    check_size(spec)
}

fn problem(name: &str, value: &Value) -> Option<&'static str> {
    let is_one_of = |numbers: &[i64]| value.as_i64().is_some_and(|number| numbers.contains(&number));
    let (fits, rule) = match name {
        // Checked by itself.
        "notification" => (true, ""),
        "ttl" => (
            value.as_str().is_some_and(is_ttl),
            "must be seconds such as \"3600s\", at least one second and at most fifteen days",
        ),
        "urgency" => (matches!(value.as_str(), Some("HIGH" | "NORMAL")), "must be HIGH or NORMAL"),
        "collapse_key" => {
            let fits = value.as_i64().is_some_and(|number| COLLAPSE_KEYS.contains(&number));
            (fits, "must be a number from -1 to 100")
        }
        "fast_app_target" => (is_one_of(&[1, 2]), "must be 1 or 2"),
        "target_user_type" => (is_one_of(&[0, 1]), "must be 0 or 1"),
        _ => (value.is_string(), "must be a string"),
    };
    (!fits).then_some(rule)
}

fn is_ttl(text: &str) -> bool {
    let digits = text.strip_suffix(['s', 'S']).unwrap_or(text);
    let (whole, part) = digits.split_once('.').unwrap_or((digits, "0"));
    let numeric = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    numeric(whole)
        && numeric(part)
        && part.len() <= 9
        && whole.parse::<u64>().is_ok_and(|seconds| (TTL_MIN_SECONDS..=TTL_MAX_SECONDS).contains(&seconds))
}

fn check_notification(spec: &MessageSpec) -> Result<(), Invalid> {
    let android = android(spec, 0);
    let own = own(&spec.content);
    let is_own = |name: &str| own.get("notification").is_some_and(|own| own.get(name).is_some());
    let path = |name: &str| {
        if is_own(name) { format!("huawei.notification.{name}") } else { format!("notification.{name}") }
    };
    let field = |name: &str| android.get("notification").and_then(|fields| fields.get(name));
    for name in ["title", "body"] {
        if field(name).and_then(Value::as_str).is_none_or(str::is_empty) {
            return Err(Invalid::new(path(name), "Push Kit requires a text for each notification"));
        }
    }
    let is_secure = |image: &Value| image.as_str().is_some_and(|url| url.starts_with("https://"));
    if field("image").is_some_and(|image| !is_secure(image)) {
        return Err(Invalid::new(path("image"), "must begin with https:// for Push Kit"));
    }
    if let Some(problem) = field("click_action").and_then(click_problem) {
        return Err(Invalid::new("huawei.notification.click_action", problem));
    }
    Ok(())
}

fn click_problem(action: &Value) -> Option<&'static str> {
    let has = |name: &str| action.get(name).is_some_and(Value::is_string);
    match action.get("type").and_then(Value::as_i64) {
        Some(1) if has("intent") || has("action") => None,
        Some(1) => Some("needs `intent` or `action`, because its type is 1"),
        Some(2) if has("url") => None,
        Some(2) => Some("needs `url`, because its type is 2"),
        Some(3) => None,
        _ => Some("must be an object whose `type` is 1, 2 or 3"),
    }
}

fn check_size(spec: &MessageSpec) -> Result<(), Invalid> {
    let bytes = of(spec, spec.ttl.as_seconds()).bytes();
    if bytes <= BODY_MAX_BYTES {
        return Ok(());
    }
    let content = &spec.content;
    let data = json!(content.data).to_string().len();
    let own = content.overrides.get(&ProviderKind::Hms).map_or(0, |own| json!(own).to_string().len());
    let visible = content.notification.as_ref().map_or(0, |visible| json!(visible).to_string().len());
    let field = match data.max(own).max(visible) {
        largest if largest == data => "data",
        largest if largest == own => "huawei",
        _ => "notification",
    };
    let problem =
        format!("{TOO_LARGE}: the request takes {bytes} bytes without tokens, at most {BODY_MAX_BYTES}");
    Err(Invalid::new(field, problem))
}

#[cfg(test)]
mod tests;
