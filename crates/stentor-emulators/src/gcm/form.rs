//! The plain text form of a message: `registration_id=…&collapse_key=…&data.KEY=VALUE`.

use crate::fcm::percent_decode;
use crate::json::JsonNode;
use std::borrow::Cow;

const MAX_PAIRS: usize = 1024;
const DATA_PREFIX: &str = "data.";

/// Parses a form into the JSON of the same message. Fails with a sentence.
pub(super) fn parse(body: &[u8]) -> Result<JsonNode<'static>, &'static str> {
    let (mut fields, mut data) = (Vec::new(), Vec::new());
    for (count, pair) in body.split(|byte| *byte == b'&').filter(|pair| !pair.is_empty()).enumerate() {
        if count == MAX_PAIRS {
            return Err("too many fields");
        }
        let (key, value) = decode(pair).ok_or("a field is not UTF-8 in percent encoding")?;
        match key.strip_prefix(DATA_PREFIX) {
            Some(key) => data.push((Cow::Owned(key.to_owned()), JsonNode::Text(Cow::Owned(value)))),
            None => fields.push(field(key, value)),
        }
    }
    if !data.is_empty() {
        fields.push((Cow::Borrowed("data"), JsonNode::Object(data)));
    }
    Ok(JsonNode::Object(fields))
}

fn decode(pair: &[u8]) -> Option<(String, String)> {
    let at = pair.iter().position(|byte| *byte == b'=').unwrap_or(pair.len());
    let value = pair.get(at + 1..).unwrap_or_default();
    Some((percent_decode(&pair[..at], true)?, percent_decode(value, true)?))
}

/// Returns a field under its name in JSON. Booleans are written here as a word or a digit.
fn field(key: String, value: String) -> (Cow<'static, str>, JsonNode<'static>) {
    let is_switch = matches!(key.as_str(), "delay_while_idle" | "dry_run" | "content_available");
    let node = match value.as_str() {
        "1" | "true" if is_switch => JsonNode::Bool(true),
        "" | "0" | "false" if is_switch => JsonNode::Bool(false),
        _ => JsonNode::Text(Cow::Owned(value)),
    };
    let key = if key == "registration_id" { Cow::Borrowed("to") } else { Cow::Owned(key) };
    (key, node)
}
