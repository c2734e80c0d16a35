//! Decodes records from untrusted bytes. The cost is bounded by their length, their depth and their number of values.

use serde_json::{Map, Number, Value};
use stentor_wire::protobuf::fields::{WireValue, read_delimited, read_double, read_key, read_varint, skip};
use stentor_wire::{DocumentLimits, WireError};

use super::layout::{Layout, Layouts, MessageField, MessageFieldKind};
use super::within;
use crate::contract::shape::CLEAR;
use crate::contract::{ErrorCode, Problem, ServiceResult};
use crate::decode::free_value;
use crate::face::record::Record;

/// Maximum depth of a record, regardless of the limits, so that the stack cannot overflow.
const DEPTH_CEILING: usize = 100;
/// Field numbers of a map's entry.
const MAP_KEY: u32 = 1;
const MAP_VALUE: u32 = 2;

/// Decodes a record from all of the bytes.
pub(super) fn record(
    layouts: &Layouts,
    layout: &Layout,
    bytes: &[u8],
    limits: &DocumentLimits,
) -> ServiceResult<Record> {
    let max_bytes = limits.document_max_bytes;
    if bytes.len() > max_bytes {
        return Err(too_much(format!("a record may have at most {max_bytes} bytes")));
    }
    let depth_max = limits.depth_max.min(DEPTH_CEILING);
    let mut reader = MessageReader {
        layouts,
        depth_left: depth_max,
        nodes_left: limits.nodes_max,
        nodes_max: limits.nodes_max,
    };
    let mut record = Record::new();
    reader.fields(layout, bytes, &mut record)?;
    Ok(record)
}

struct MessageReader<'a> {
    layouts: &'a Layouts,
    depth_left: usize,
    nodes_left: usize,
    nodes_max: usize,
}

impl MessageReader<'_> {
    /// Decodes the fields of a record into it. Repeated occurrences are merged, as the format requires.
    fn fields(&mut self, layout: &Layout, mut bytes: &[u8], record: &mut Record) -> ServiceResult<()> {
        self.depth_left = self.depth_left.checked_sub(1).ok_or_else(too_deep)?;
        while !bytes.is_empty() {
            let (number, wire) = read_key(&mut bytes).map_err(malformed)?;
            match layout.field(number) {
                None => skip(wire, &mut bytes).map_err(malformed)?,
                Some(field) => {
                    if layout.is_choice {
                        record.retain(|name, _| *name == field.name);
                    }
                    let read = self.field(field, wire, &mut bytes, record);
                    read.map_err(|problem| within(&field.name, problem))?;
                }
            }
        }
        clear(layout, record)?;
        self.complete(layout, record)?;
        self.depth_left += 1;
        Ok(())
    }

    /// Adds required fields that are absent because they are zero or empty.
    fn complete(&mut self, layout: &Layout, record: &mut Record) -> ServiceResult<()> {
        for field in layout.fields.iter().filter(|field| field.is_required) {
            let Some(value) = zero(&field.kind) else { continue };
            if !record.contains_key(&field.name) {
                self.count()?;
                record.insert(field.name.clone(), value);
            }
        }
        Ok(())
    }

    fn field(
        &mut self,
        field: &MessageField,
        wire: WireValue,
        bytes: &mut &[u8],
        record: &mut Record,
    ) -> ServiceResult<()> {
        match &field.kind {
            MessageFieldKind::List(inner) => self.list(inner, wire, bytes, slot(record, &field.name)),
            MessageFieldKind::Map(inner) => self.entry(inner, wire, bytes, slot(record, &field.name)),
            kind => {
                let before = record.remove(&field.name);
                let value = self.value(kind, wire, bytes, before)?;
                record.insert(field.name.clone(), value);
                Ok(())
            }
        }
    }

    fn list(
        &mut self,
        inner: &MessageFieldKind,
        wire: WireValue,
        bytes: &mut &[u8],
        list: &mut Value,
    ) -> ServiceResult<()> {
        let mut values = match list.take() {
            Value::Array(values) => values,
            _ => Vec::new(),
        };
        let at = |values: &[Value], problem| within(&format!("[{}]", values.len()), problem);
        if wire == WireValue::Delimited && inner.is_packed() {
            let mut packed = delimited(bytes)?;
            let wire = if matches!(inner, MessageFieldKind::Double) {
                WireValue::Fixed64
            } else {
                WireValue::Varint
            };
            while !packed.is_empty() {
                let value = self.value(inner, wire, &mut packed, None);
                values.push(value.map_err(|problem| at(&values, problem))?);
            }
        } else {
            let value = self.value(inner, wire, bytes, None);
            values.push(value.map_err(|problem| at(&values, problem))?);
        }
        *list = Value::Array(values);
        Ok(())
    }

    /// Decodes one entry of a map: a record of a key and a value, either of which may be absent because it is empty.
    fn entry(
        &mut self,
        inner: &MessageFieldKind,
        wire: WireValue,
        bytes: &mut &[u8],
        map: &mut Value,
    ) -> ServiceResult<()> {
        expect(wire, WireValue::Delimited)?;
        let mut entry = delimited(bytes)?;
        let (mut name, mut value) = (String::new(), None);
        while !entry.is_empty() {
            let (number, wire) = read_key(&mut entry).map_err(malformed)?;
            match number {
                MAP_KEY => {
                    expect(wire, WireValue::Delimited)?;
                    name = text(&mut entry)?.to_owned();
                }
                MAP_VALUE => {
                    let read = self.value(inner, wire, &mut entry, value.take());
                    value = Some(read.map_err(|problem| within(&name, problem))?);
                }
                _ => skip(wire, &mut entry).map_err(malformed)?,
            }
        }
        let value =
            value.or_else(|| default(inner)).ok_or_else(|| Problem::field(name.clone(), "is missing"))?;
        self.count()?;
        let mut entries = object(map.take());
        entries.insert(name, value);
        *map = Value::Object(entries);
        Ok(())
    }

    /// Decodes one value. A record is merged into an earlier one.
    fn value(
        &mut self,
        kind: &MessageFieldKind,
        wire: WireValue,
        bytes: &mut &[u8],
        before: Option<Value>,
    ) -> ServiceResult<Value> {
        self.count()?;
        Ok(match kind {
            MessageFieldKind::Int => {
                expect(wire, WireValue::Varint)?;
                Value::from(varint(bytes)?.cast_signed())
            }
            MessageFieldKind::Bool => {
                expect(wire, WireValue::Varint)?;
                Value::Bool(varint(bytes)? != 0)
            }
            MessageFieldKind::Double => {
                expect(wire, WireValue::Fixed64)?;
                double(bytes)?
            }
            MessageFieldKind::Text => {
                expect(wire, WireValue::Delimited)?;
                Value::from(text(bytes)?)
            }
            MessageFieldKind::Json | MessageFieldKind::List(_) | MessageFieldKind::Map(_) => {
                expect(wire, WireValue::Delimited)?;
                json(text(bytes)?)?
            }
            MessageFieldKind::Record(at) => {
                expect(wire, WireValue::Delimited)?;
                self.inner(*at, delimited(bytes)?, before)?
            }
        })
    }

    fn inner(&mut self, at: usize, bytes: &[u8], before: Option<Value>) -> ServiceResult<Value> {
        let layout = self.layouts.at(at);
        let mut record = match before {
            Some(Value::String(word)) => Map::from_iter([(word, Value::Bool(true))]),
            other => object(other.unwrap_or_default()),
        };
        self.fields(layout, bytes, &mut record)?;
        if layout.is_choice { chosen(layout, record) } else { Ok(Value::Object(record)) }
    }

    fn count(&mut self) -> ServiceResult<()> {
        let max = self.nodes_max;
        let left = self.nodes_left.checked_sub(1);
        self.nodes_left = left.ok_or_else(|| too_much(format!("a record may have at most {max} values")))?;
        Ok(())
    }
}

/// Clears the fields named in the list `clear`.
fn clear(layout: &Layout, record: &mut Record) -> ServiceResult<()> {
    if layout.clearable.is_empty() {
        return Ok(());
    }
    let Some(Value::Array(names)) = record.remove(CLEAR) else { return Ok(()) };
    for (at, name) in names.iter().enumerate() {
        let refused = |why: String| Problem::field(format!("{CLEAR}[{at}]"), why);
        let Some(one) = layout.clearable.iter().find(|one| name.as_str() == Some(&one.name)) else {
            let names: Vec<_> = layout.clearable.iter().map(|one| one.name.as_str()).collect();
            return Err(refused(format!("must be one of {}", names.join(", "))));
        };
        let before = record.insert(one.name.clone(), one.nothing.clone());
        if before.is_some_and(|before| before != one.nothing) {
            return Err(refused(format!("is cleared and set: {}", one.name)));
        }
    }
    Ok(())
}

/// Returns a choice as in JSON: one without content is its name.
fn chosen(layout: &Layout, record: Record) -> ServiceResult<Value> {
    match record.iter().next() {
        None => {
            let names: Vec<_> = layout.fields.iter().map(|field| field.name.as_str()).collect();
            Err(Problem::field("", format!("must have one of {}", names.join(", "))))
        }
        Some((name, Value::Bool(true))) => Ok(Value::from(name.as_str())),
        Some((name, Value::Bool(false))) => Err(Problem::field(name.as_str(), "must be true")),
        Some(_) => Ok(Value::Object(record)),
    }
}

fn slot<'a>(record: &'a mut Record, name: &str) -> &'a mut Value {
    if !record.contains_key(name) {
        record.insert(name.to_owned(), Value::Null);
    }
    &mut record[name]
}

fn object(value: Value) -> Record {
    match value {
        Value::Object(fields) => fields,
        _ => Record::new(),
    }
}

/// Returns the value of an absent required field; `None` if it must be present.
fn zero(kind: &MessageFieldKind) -> Option<Value> {
    match kind {
        MessageFieldKind::Int => Some(Value::from(0)),
        MessageFieldKind::Double => Some(Value::from(0.0)),
        MessageFieldKind::Bool => Some(Value::Bool(false)),
        MessageFieldKind::List(_) => Some(Value::Array(Vec::new())),
        MessageFieldKind::Map(_) => Some(Value::Object(Map::new())),
        MessageFieldKind::Text | MessageFieldKind::Json | MessageFieldKind::Record(_) => None,
    }
}

/// Returns the value of an absent value in a map's entry.
fn default(kind: &MessageFieldKind) -> Option<Value> {
    match kind {
        MessageFieldKind::Text => Some(Value::from("")),
        kind => zero(kind),
    }
}

fn varint(bytes: &mut &[u8]) -> ServiceResult<u64> {
    read_varint(bytes).map_err(malformed)
}

fn double(bytes: &mut &[u8]) -> ServiceResult<Value> {
    let number = Number::from_f64(read_double(bytes).map_err(malformed)?);
    number.map(Value::Number).ok_or_else(|| Problem::field("", "must be a finite number"))
}

fn delimited<'a>(bytes: &mut &'a [u8]) -> ServiceResult<&'a [u8]> {
    read_delimited(bytes).map_err(malformed)
}

fn text<'a>(bytes: &mut &'a [u8]) -> ServiceResult<&'a str> {
    std::str::from_utf8(delimited(bytes)?).map_err(|_| Problem::field("", "must be text in UTF-8"))
}

fn json(text: &str) -> ServiceResult<Value> {
    free_value(text.as_bytes())
}

fn expect(found: WireValue, wanted: WireValue) -> ServiceResult<()> {
    if found == wanted {
        return Ok(());
    }
    let why = format!("the value is laid out as {found:?} where {wanted:?} belongs");
    Err(Problem::new(ErrorCode::InvalidRequest, why))
}

fn malformed(error: WireError) -> Problem {
    Problem::new(ErrorCode::InvalidRequest, error.to_string())
}

fn too_much(why: String) -> Problem {
    Problem::new(ErrorCode::PayloadTooLarge, why)
}

fn too_deep() -> Problem {
    Problem::new(ErrorCode::InvalidRequest, "records are nested too deep")
}
