//! Numbered requests and replies as JSON.

use std::fmt;

use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Value, json};
use stentor_core::name::IdempotencyKey;

use super::{SocketRequest, Unread, operation_of};
use crate::contract::{Problem, ServiceResult};
use crate::decode::decode;
use crate::face::record::Record;

/// A request in JSON.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RequestFrame {
    id: u64,
    operation: Value,
    #[serde(default)]
    record: RecordFields,
    idempotency_key: Option<String>,
}

/// The number of an otherwise invalid request.
#[derive(Deserialize)]
struct Number {
    id: u64,
}

/// A record without duplicate fields.
#[derive(Default)]
struct RecordFields(Record);

#[derive(Serialize)]
struct ReplyFrame<'a> {
    id: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    reply: Option<&'a Record>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<ErrorFrame<'a>>,
}

#[derive(Serialize)]
pub(super) struct ErrorFrame<'a> {
    code: &'a str,
    number: i32,
    detail: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    field: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after_seconds: Option<u32>,
}

/// Decodes a request.
pub(super) fn read(frame: &[u8]) -> Result<SocketRequest, Unread> {
    let number = || serde_json::from_slice::<Number>(frame).map_or(0, |Number { id }| id);
    let request = decode::<RequestFrame>(frame).map_err(in_record).and_then(RequestFrame::request);
    request.map_err(|problem| Unread { id: number(), problem })
}

/// Encodes a reply.
pub(super) fn write(id: u64, reply: &Result<Record, Problem>) -> Vec<u8> {
    let frame = match reply {
        Ok(reply) => ReplyFrame { id, reply: Some(reply), error: None },
        Err(problem) => ReplyFrame { id, reply: None, error: Some(error(problem)) },
    };
    serde_json::to_vec(&frame).unwrap_or_else(|failure| {
        let problem = Problem::unwritten(failure);
        json!({ "id": id, "error": error(&problem) }).to_string().into_bytes()
    })
}

fn error(problem: &Problem) -> ErrorFrame<'_> {
    ErrorFrame {
        code: problem.code.as_str(),
        number: problem.code.number(),
        detail: &problem.detail,
        field: problem.field.as_deref().filter(|field| !field.is_empty()),
        hint: problem.hint_with(str::to_owned).map(|hint| hint.into_owned()),
        retry_after_seconds: problem.retry_after_seconds,
    }
}

/// Makes the path of a field relative to the record, as in all faces.
fn in_record(mut problem: Problem) -> Problem {
    let inside = problem.field.as_deref().and_then(|field| field.strip_prefix("record."));
    if let Some(inside) = inside.map(str::to_owned) {
        problem.field = Some(inside);
    }
    problem
}

impl RequestFrame {
    fn request(self) -> ServiceResult<SocketRequest> {
        let Self { id, operation, record: RecordFields(record), idempotency_key } = self;
        if id == 0 {
            return Err(Problem::field("id", "must be at least 1"));
        }
        let operation = match operation {
            Value::String(name) => name,
            number => named(&number)?,
        };
        let key = idempotency_key.filter(|key| !key.is_empty()).map(IdempotencyKey::new).transpose()?;
        Ok(SocketRequest { id, operation, record, key })
    }
}

/// Returns the name of an operation from its number.
fn named(number: &Value) -> ServiceResult<String> {
    let wrong = || Problem::field("operation", "must be the name or the number of an operation");
    operation_of(number.as_u64().ok_or_else(wrong)?).map(str::to_owned).ok_or_else(wrong)
}

impl<'de> Deserialize<'de> for RecordFields {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_map(FieldsVisitor)
    }
}

struct FieldsVisitor;

impl<'de> Visitor<'de> for FieldsVisitor {
    type Value = RecordFields;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<RecordFields, A::Error> {
        let mut record = Record::new();
        while let Some((name, value)) = map.next_entry::<String, Value>()? {
            if record.insert(name.clone(), value).is_some() {
                return Err(A::Error::custom(format_args!("duplicate field `{name}`")));
            }
        }
        Ok(RecordFields(record))
    }
}
