//! Values of XML-RPC as records, and back.

use std::borrow::Cow;

use serde_json::{Map, Number, Value as Json};
use stentor_wire::Value;
use stentor_wire::xml::allowed;

use crate::contract::{ErrorCode, Problem, ServiceResult};
use crate::face::record::Record;

/// Reads the one struct that a method takes; without one, it is empty.
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
            return Err(Problem::field(name, "is there twice"));
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
        Value::Text(text) | Value::DateTime(text) => Json::String(text),
        Value::Bytes(_) => return Err(Problem::field("", "must be text, not base64")),
        Value::List(values) => values.into_iter().map(json).collect::<ServiceResult<_>>()?,
        Value::Record(fields) => Json::Object(fields_of(fields)?),
    })
}

/// Writes a reply; a field without a value is left out, because the format has no usual way to say it, and characters that XML
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

/// Returns what XML can carry of a text, which is mostly all of it.
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
