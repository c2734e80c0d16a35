//! The check of a message, as the vendor's page "Downlink Message Sending" describes its fields.

use super::errors::{TOO_LARGE, TTL_PASSED, WRONG_COLLAPSE_KEY, WRONG_STRUCTURE, WRONG_TOKEN_COUNT};
use crate::json::JsonNode;
use serde_json::{Value, json};
use std::time::Duration;

const MAX_TOKENS: usize = 1000;
const MAX_BODY_BYTES: usize = 4096;
const MAX_TTL: Duration = Duration::from_secs(15 * 24 * 60 * 60);
const DEFAULT_TTL: Duration = Duration::from_secs(24 * 60 * 60);
/// The value of `collapse_key` with which all waiting messages are kept.
const KEEP_ALL: i64 = -1;
/// The fields that address a message.
const ADDRESS_FIELDS: &[&str] = &["token", "topic", "condition"];

/// A refused message: its code, and what is wrong.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct HmsViolation {
    pub(super) code: &'static str,
    pub(super) description: String,
}

/// The addressees of a message.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum HmsAudience<'a> {
    /// Tokens, in the request's order.
    Tokens(Vec<&'a str>),
    /// A topic or a condition, under the name by which it is counted.
    Wide(String),
}

/// A message that is in order.
#[derive(Debug)]
pub(super) struct HmsMessage<'a> {
    pub(super) audience: HmsAudience<'a>,
    pub(super) validate_only: bool,
    pub(super) ttl: Duration,
    /// The group of waiting messages of which the newest is kept, if not all are.
    pub(super) collapse_key: Option<String>,
    pub(super) is_urgent: bool,
    message: &'a JsonNode<'a>,
}

impl<'a> HmsMessage<'a> {
    /// Checks a request.
    pub(super) fn check(request: &'a JsonNode<'a>) -> Result<Self, HmsViolation> {
        // A misspelled name leaves no tokens, and that is the answer.
        let message = request.exact("message").filter(|message| message.entries().is_some());
        let message = message.ok_or_else(|| violation(WRONG_TOKEN_COUNT, "there is no message"))?;
        let audience = audience(message)?;
        let android = object(message, "android")?;
        let notification = object(message, "notification")?;
        check_payload(message, android, notification)?;
        let list_bytes = message.exact("token").map_or(0, JsonNode::json_bytes);
        if message.json_bytes().saturating_sub(list_bytes) > MAX_BODY_BYTES {
            return Err(violation(TOO_LARGE, "the message has more than 4096 bytes"));
        }
        Ok(Self {
            audience,
            validate_only: validate_only(request)?,
            ttl: ttl(android)?,
            collapse_key: collapse_key(android)?,
            is_urgent: is_urgent(android)?,
            message,
        })
    }

    /// Returns the payload that a device sees: everything but the addressees.
    pub(super) fn payload(&self) -> Value {
        let entries = self.message.entries().unwrap_or_default().iter();
        let seen = entries.filter(|(key, _)| !ADDRESS_FIELDS.contains(&key.as_ref()));
        Value::Object(seen.map(|(key, node)| (key.to_string(), json!(node))).collect())
    }
}

fn audience<'a>(message: &'a JsonNode<'a>) -> Result<HmsAudience<'a>, HmsViolation> {
    let given = ADDRESS_FIELDS.iter().filter(|name| message.exact(name).is_some()).count();
    if given > 1 {
        return Err(violation(WRONG_STRUCTURE, "token, topic and condition exclude each other"));
    }
    if let Some(topic) = text(message, "topic")? {
        return Ok(HmsAudience::Wide(format!("/topics/{topic}")));
    }
    if let Some(condition) = text(message, "condition")? {
        return Ok(HmsAudience::Wide(condition.to_owned()));
    }
    let Some(JsonNode::List(nodes)) = message.exact("token") else {
        return Err(violation(WRONG_TOKEN_COUNT, "there is no list of tokens"));
    };
    if nodes.is_empty() || nodes.len() > MAX_TOKENS {
        return Err(violation(WRONG_TOKEN_COUNT, "there must be 1 to 1000 tokens"));
    }
    let texts: Option<Vec<&str>> = nodes.iter().map(JsonNode::text).collect();
    texts.map(HmsAudience::Tokens).ok_or_else(|| violation(WRONG_STRUCTURE, "a token is not a text"))
}

/// Checks that there is something to send, and the parts of a notification that the page calls mandatory.
fn check_payload(
    message: &JsonNode<'_>,
    android: Option<&JsonNode<'_>>,
    notification: Option<&JsonNode<'_>>,
) -> Result<(), HmsViolation> {
    let own = match android {
        Some(android) => object(android, "notification")?,
        None => None,
    };
    let data = [Some(message), android].into_iter().flatten().map(|part| text(part, "data"));
    let data = data.collect::<Result<Vec<_>, _>>()?;
    let others = object(message, "apns")?.is_some() || object(message, "webpush")?.is_some();
    match (notification, own) {
        (None, None) if others || data.iter().any(Option::is_some) => Ok(()),
        (None, None) => Err(violation(WRONG_STRUCTURE, "there is nothing to send")),
        (Some(_), None) if others => Ok(()),
        (Some(_), None) => Err(violation(WRONG_STRUCTURE, "android.notification is missing")),
        (_, Some(own)) => check_notification(notification, own),
    }
}

fn check_notification(common: Option<&JsonNode<'_>>, own: &JsonNode<'_>) -> Result<(), HmsViolation> {
    let shown = |name: &str| -> Result<Option<&str>, HmsViolation> {
        let of_android = text(own, name)?;
        let of_all = common.map(|common| text(common, name)).transpose()?.flatten();
        Ok(of_android.or(of_all))
    };
    for name in ["title", "body"] {
        if shown(name)?.is_none_or(str::is_empty) {
            return Err(violation(WRONG_STRUCTURE, &format!("{name} is missing")));
        }
    }
    if shown("image")?.is_some_and(|url| !url.starts_with("https://")) {
        return Err(violation(WRONG_STRUCTURE, "an image needs an https URL"));
    }
    check_click(own)
}

fn check_click(notification: &JsonNode<'_>) -> Result<(), HmsViolation> {
    let action = object(notification, "click_action")?
        .ok_or_else(|| violation(WRONG_STRUCTURE, "click_action is missing"))?;
    let has = |name: &str| action.exact(name).and_then(JsonNode::text).is_some();
    let fits = match number(action, "type") {
        Some(1) => has("intent") || has("action"),
        Some(2) => has("url"),
        Some(3) => true,
        _ => false,
    };
    if fits { Ok(()) } else { Err(violation(WRONG_STRUCTURE, "click_action is incomplete")) }
}

fn validate_only(request: &JsonNode<'_>) -> Result<bool, HmsViolation> {
    match request.exact("validate_only") {
        None => Ok(false),
        Some(JsonNode::Bool(value)) => Ok(*value),
        Some(_) => Err(violation(WRONG_STRUCTURE, "validate_only is not true or false")),
    }
}

fn ttl(android: Option<&JsonNode<'_>>) -> Result<Duration, HmsViolation> {
    let written = android.map(|android| text(android, "ttl")).transpose()?.flatten();
    let Some(written) = written else { return Ok(DEFAULT_TTL) };
    match seconds(written) {
        Some(ttl) if ttl.is_zero() => Err(violation(TTL_PASSED, "the time to live has passed")),
        Some(ttl) if ttl <= MAX_TTL => Ok(ttl),
        _ => Err(violation(WRONG_STRUCTURE, "ttl must be seconds, at most fifteen days")),
    }
}

/// Reads whole seconds of "86400", "86400s" or "3.5s". A fraction counts as the second that it begins.
fn seconds(text: &str) -> Option<Duration> {
    let digits = text.strip_suffix(['s', 'S']).unwrap_or(text);
    let (whole, part) = digits.split_once('.').unwrap_or((digits, "0"));
    let numeric = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !numeric(whole) || !numeric(part) || part.len() > 9 {
        return None;
    }
    let begun =
        u64::from(part.bytes().any(|digit| digit != b'0') && whole.bytes().all(|digit| digit == b'0'));
    whole.parse::<u64>().ok().map(|whole| Duration::from_secs(whole + begun))
}

fn collapse_key(android: Option<&JsonNode<'_>>) -> Result<Option<String>, HmsViolation> {
    let Some(android) = android.filter(|android| android.exact("collapse_key").is_some()) else {
        return Ok(None);
    };
    match number(android, "collapse_key") {
        Some(KEEP_ALL) => Ok(None),
        Some(group @ 0..=100) => Ok(Some(group.to_string())),
        _ => Err(violation(WRONG_COLLAPSE_KEY, "collapse_key must be -1 to 100")),
    }
}

fn is_urgent(android: Option<&JsonNode<'_>>) -> Result<bool, HmsViolation> {
    let urgency = android.map(|android| text(android, "urgency")).transpose()?.flatten();
    match urgency {
        None | Some("NORMAL") => Ok(false),
        Some("HIGH") => Ok(true),
        Some(_) => Err(violation(WRONG_STRUCTURE, "urgency must be HIGH or NORMAL")),
    }
}

fn object<'a>(node: &'a JsonNode<'a>, name: &str) -> Result<Option<&'a JsonNode<'a>>, HmsViolation> {
    match node.exact(name) {
        Some(found) if found.entries().is_none() => {
            Err(violation(WRONG_STRUCTURE, &format!("{name} is not an object")))
        }
        found => Ok(found),
    }
}

fn text<'a>(node: &'a JsonNode<'a>, name: &str) -> Result<Option<&'a str>, HmsViolation> {
    match node.exact(name) {
        None => Ok(None),
        Some(found) => {
            let text =
                found.text().ok_or_else(|| violation(WRONG_STRUCTURE, &format!("{name} is not a text")));
            text.map(Some)
        }
    }
}

fn number(node: &JsonNode<'_>, name: &str) -> Option<i64> {
    match node.exact(name) {
        Some(JsonNode::Number(number)) => number.as_i64(),
        _ => None,
    }
}

fn violation(code: &'static str, description: &str) -> HmsViolation {
    HmsViolation { code, description: description.to_owned() }
}
