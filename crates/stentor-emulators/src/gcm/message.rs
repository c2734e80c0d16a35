//! The content of a message of the legacy API, apart from its address.

use super::errors::{INVALID_DATA_KEY, INVALID_TTL, MESSAGE_TOO_BIG};
use crate::json::JsonNode;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::time::Duration;

const MAX_DATA_BYTES: usize = 4096;
const MAX_TOPIC_DATA_BYTES: usize = 2048;
/// Four weeks, which is the default as well.
const MAX_TTL: Duration = Duration::from_secs(2_419_200);
/// The fields that address a message.
const ADDRESS_FIELDS: &[&str] = &["to", "registration_ids", "condition", "notification_key"];

/// The reason for rejecting a message before the policy is consulted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum GcmRefusal {
    /// It cannot be read as a message: HTTP 400, or a stanza error.
    Malformed(String),
    /// The rejection has a code of the API.
    Code(&'static str),
}

/// The address of one message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GcmAddress<'a> {
    Token(&'a str),
    /// A topic, without "/topics/".
    Topic(&'a str),
    Condition(&'a str),
}

impl<'a> GcmAddress<'a> {
    /// Parses the field `to`.
    pub(crate) fn to(text: &'a str) -> Self {
        text.strip_prefix("/topics/").map_or(Self::Token(text), Self::Topic)
    }

    /// Returns the name under which it is counted and scripted.
    pub(crate) fn name(self) -> Cow<'a, str> {
        match self {
            Self::Token(text) | Self::Condition(text) => Cow::Borrowed(text),
            Self::Topic(topic) => Cow::Owned(format!("/topics/{topic}")),
        }
    }
}

/// A message that is in order.
#[derive(Debug)]
pub(crate) struct GcmMessage<'a> {
    pub(crate) collapse_key: Option<&'a str>,
    pub(crate) ttl: Duration,
    pub(crate) high_priority: bool,
    pub(crate) dry_run: bool,
    pub(crate) package: Option<&'a str>,
    data_bytes: usize,
    request: &'a JsonNode<'a>,
}

impl<'a> GcmMessage<'a> {
    /// Checks a message; `overhead_bytes` are charged beside its data.
    pub(crate) fn check(request: &'a JsonNode<'a>, overhead_bytes: usize) -> Result<Self, GcmRefusal> {
        let (collapse_key, priority) = (text(request, "collapse_key")?, text(request, "priority")?);
        let package = text(request, "restricted_package_name")?;
        let dry_run = switch(request, "dry_run")?;
        switch(request, "delay_while_idle")?;
        switch(request, "content_available")?;
        let data = object(request, "data")?;
        let notification = object(request, "notification")?;
        let ttl = ttl(request)?;
        if data.iter().flat_map(|data| data.entries().unwrap_or_default()).any(|(key, _)| is_reserved(key)) {
            return Err(GcmRefusal::Code(INVALID_DATA_KEY));
        }
        let overhead_bytes = if data.is_some() { overhead_bytes } else { 0 };
        let data_bytes = pair_bytes(data) + pair_bytes(notification) + overhead_bytes;
        let high_priority = priority.is_some_and(|priority| priority.eq_ignore_ascii_case("high"));
        Ok(Self { collapse_key, ttl, high_priority, dry_run, package, data_bytes, request })
    }

    /// Checks the size. The limit depends on the address.
    pub(crate) fn check_size(&self, address: GcmAddress<'_>) -> Result<(), &'static str> {
        let limit = match address {
            GcmAddress::Token(_) => MAX_DATA_BYTES,
            GcmAddress::Topic(_) | GcmAddress::Condition(_) => MAX_TOPIC_DATA_BYTES,
        };
        if self.data_bytes > limit { Err(MESSAGE_TOO_BIG) } else { Ok(()) }
    }

    /// Returns the payload that a device sees: everything but the address fields.
    pub(crate) fn payload(&self) -> Value {
        let entries = self.request.entries().unwrap_or_default().iter();
        let seen = entries.filter(|(key, _)| !ADDRESS_FIELDS.contains(&key.as_ref()));
        Value::Object(seen.map(|(key, node)| (key.to_string(), json!(node))).collect())
    }
}

/// Returns a field that must be text.
pub(crate) fn text<'a>(request: &'a JsonNode<'a>, name: &str) -> Result<Option<&'a str>, GcmRefusal> {
    match request.exact(name) {
        None => Ok(None),
        Some(node) => node.text().map(Some).ok_or_else(|| wrong_kind(name, "string")),
    }
}

/// Returns a boolean field; false if absent.
pub(crate) fn switch(request: &JsonNode<'_>, name: &str) -> Result<bool, GcmRefusal> {
    match request.exact(name) {
        None => Ok(false),
        Some(JsonNode::Bool(value)) => Ok(*value),
        Some(_) => Err(wrong_kind(name, "boolean")),
    }
}

fn object<'a>(request: &'a JsonNode<'a>, name: &str) -> Result<Option<&'a JsonNode<'a>>, GcmRefusal> {
    match request.exact(name) {
        Some(node) if node.entries().is_none() => Err(wrong_kind(name, "object")),
        found => Ok(found),
    }
}

/// Returns the time to live. The vendor's examples write it as a number and, for XMPP, as text.
fn ttl(request: &JsonNode<'_>) -> Result<Duration, GcmRefusal> {
    let seconds = match request.exact("time_to_live") {
        None => return Ok(MAX_TTL),
        Some(JsonNode::Number(number)) => number.as_i64(),
        Some(JsonNode::Text(digits)) => digits.parse().ok(),
        Some(_) => return Err(wrong_kind("time_to_live", "number")),
    };
    let ttl = seconds.and_then(|seconds| u64::try_from(seconds).ok()).map(Duration::from_secs);
    ttl.filter(|ttl| *ttl <= MAX_TTL).ok_or(GcmRefusal::Code(INVALID_TTL))
}

fn wrong_kind(name: &str, kind: &str) -> GcmRefusal {
    GcmRefusal::Malformed(format!("Field \"{name}\" must be a JSON {kind}"))
}

fn is_reserved(key: &str) -> bool {
    matches!(key, "from" | "message_type") || key.starts_with("google") || key.starts_with("gcm")
}

fn pair_bytes(node: Option<&JsonNode<'_>>) -> usize {
    let entries = node.and_then(JsonNode::entries).unwrap_or_default();
    entries.iter().map(|(key, value)| key.len() + value_bytes(value)).sum()
}

/// Counts a value as the text that a device gets. Other values are converted to JSON.
fn value_bytes(value: &JsonNode<'_>) -> usize {
    match value.text() {
        Some(text) => text.len(),
        None => value.json_bytes(),
    }
}
