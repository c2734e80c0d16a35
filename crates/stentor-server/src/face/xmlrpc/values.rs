//! Conversion between XML-RPC values and records.

use std::borrow::Cow;

use serde_json::{Map, Number, Value as Json};
use stentor_wire::Value;
use stentor_wire::xml::allowed;

use crate::contract::{ErrorCode, Problem, ServiceResult};
use crate::face::record::Record;

/// Returns the record in the only parameter of a method; without one, it is empty.
pub(super) fn record(params: Vec<Value>, method: &str) -> ServiceResult<Record> {
    let mut params = params.into_iter();
    match (params.next(), params.next()) {
        (None, _) => Ok(Record::new()),
        (Some(Value::Record(fields)), None) => fields_of(fields),
        _ => Err(Problem::new(ErrorCode::InvalidRequest, format!("{method} takes one struct"))),
    }
}

fn fields_of(fields: Vec<(String, Value)>) -> ServiceResult<Record> {
    let mut record = Record::new();
    for (name, value) in fields {
        let value = json(value).map_err(|problem| problem.at(name.clone()))?;
        if record.insert(name.clone(), value).is_some() {
            return Err(Problem::field(name, "occurs twice"));
        }
    }
    Ok(record)
}

fn json(value: Value) -> ServiceResult<Json> {
    Ok(match value {
        Value::Nil => Json::Null,
        Value::Bool(flag) => Json::Bool(flag),
        Value::Int(number) => Json::Number(number.into()),
        Value::Double(number) => Number::from_f64(number).map_or(Json::Null, Json::Number),
        Value::Text(text) => Json::String(text),
        Value::DateTime(text) => Json::String(instant(&text).unwrap_or(text)),
        Value::Bytes(_) => return Err(Problem::field("", "must be text, not base64")),
        Value::List(values) => values.into_iter().map(json).collect::<ServiceResult<_>>()?,
        Value::Record(fields) => Json::Object(fields_of(fields)?),
    })
}

/// Returns the approximate size of a value created by this face.
pub(super) fn text_bytes(value: &Value) -> usize {
    /// The bytes around a value.
    const MARKS_BYTES: usize = 32;
    let inner = match value {
        Value::Text(text) => text.len(),
        Value::List(values) => values.iter().map(text_bytes).sum(),
        Value::Record(fields) => fields.iter().map(|(name, value)| name.len() + text_bytes(value)).sum(),
        _ => 0,
    };
    inner + MARKS_BYTES
}

/// Converts an XML-RPC date, `20261130T03:04:05`, to RFC 3339. The format does not specify the time zone: it is UTC here, unless an offset
/// follows the time.
fn instant(text: &str) -> Option<String> {
    let (date, time) = text.split_once('T')?;
    let digits: String = date.chars().filter(|letter| *letter != '-').collect();
    let is_date = digits.len() == 8 && digits.bytes().all(|byte| byte.is_ascii_digit());
    let (year, month, day) = (digits.get(..4)?, digits.get(4..6)?, digits.get(6..)?);
    let zone = time.find(['Z', 'z', '+', '-']).unwrap_or(time.len());
    let (time, zone) = time.split_at(zone);
    let time = match time.as_bytes() {
        // Some senders also omit the colons of the time.
        [_, _, _, _, _, _] => format!("{}:{}:{}", time.get(..2)?, time.get(2..4)?, time.get(4..)?),
        _ => time.to_owned(),
    };
    let zone = match zone {
        "" | "z" => "Z".to_owned(),
        _ if zone.len() == 5 => format!("{}:{}", zone.get(..3)?, zone.get(3..)?),
        _ => zone.to_owned(),
    };
    is_date.then(|| format!("{year}-{month}-{day}T{time}{zone}"))
}

/// Converts a reply. A field without a value is left out, because the format has no common way to express null, and characters that XML
/// cannot carry become U+FFFD.
pub(super) fn value(json: Json) -> Value {
    match json {
        Json::Null => Value::Nil,
        Json::Bool(flag) => Value::Bool(flag),
        Json::Number(number) => match number.as_i64() {
            Some(number) => Value::Int(number),
            None => Value::Double(number.as_f64().unwrap_or_default()),
        },
        Json::String(text) => Value::Text(written(text)),
        Json::Array(values) => Value::List(values.into_iter().map(value).collect()),
        Json::Object(fields) => Value::Record(present(fields).collect()),
    }
}

/// Replaces the characters of a text that XML cannot carry.
fn written(text: String) -> String {
    let changed = match allowed(&text) {
        Cow::Borrowed(_) => None,
        Cow::Owned(changed) => Some(changed),
    };
    changed.unwrap_or(text)
}

fn present(fields: Map<String, Json>) -> impl Iterator<Item = (String, Value)> {
    fields.into_iter().filter(|(_, json)| !json.is_null()).map(|(name, json)| (written(name), value(json)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_without_a_zone_is_utc_and_one_with_a_zone_keeps_it() {
        for (given, expected) in [
            ("20261130T03:04:05", "2026-11-30T03:04:05Z"),
            ("20261130T030405", "2026-11-30T03:04:05Z"),
            ("2026-11-30T03:04:05", "2026-11-30T03:04:05Z"),
            ("20261130T03:04:05.250", "2026-11-30T03:04:05.250Z"),
            ("20261130T03:04:05Z", "2026-11-30T03:04:05Z"),
            ("20261130T03:04:05+0100", "2026-11-30T03:04:05+01:00"),
            ("20261130T03:04:05-05:00", "2026-11-30T03:04:05-05:00"),
        ] {
            assert_eq!(json(Value::DateTime(given.into())).expect("a date"), Json::String(expected.into()));
        }
        let odd = json(Value::DateTime("tomorrow, at eight T".into())).expect("a text");
        assert_eq!(odd, Json::String("tomorrow, at eight T".into()), "what reads it says what is wrong");
    }
}
