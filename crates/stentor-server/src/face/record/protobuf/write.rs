//! Encodes records, with fields in the order of their numbers.

use serde_json::Value;
use stentor_wire::protobuf::fields::{WireValue, put_delimited, put_field, put_key, put_varint};

use super::layout::{Clearable, Layout, Layouts, MessageField, MessageFieldKind};
use super::within;
use crate::contract::shape::CLEAR;
use crate::contract::{ErrorCode, Problem, ServiceResult};
use crate::face::record::Record;

/// Encodes a record. A null field is left out; if it can be cleared, the list `clear` names it.
pub(super) fn record(
    layouts: &Layouts,
    layout: &Layout,
    record: &Record,
    out: &mut Vec<u8>,
) -> ServiceResult<()> {
    for field in &layout.fields {
        if field.name == CLEAR && !layout.clearable.is_empty() {
            let is_nothing = |one: &&Clearable| record.get(&one.name) == Some(&one.nothing);
            let cleared = layout.clearable.iter().filter(is_nothing);
            cleared.for_each(|one| put_field(field.number, one.name.as_bytes(), out));
            continue;
        }
        let value = record.get(&field.name).filter(|value| !value.is_null());
        let Some(value) = value else { continue };
        self::field(layouts, field, value, out).map_err(|problem| within(&field.name, problem))?;
    }
    Ok(())
}

fn field(layouts: &Layouts, field: &MessageField, value: &Value, out: &mut Vec<u8>) -> ServiceResult<()> {
    match &field.kind {
        MessageFieldKind::List(inner) => list(layouts, field.number, inner, value, out),
        MessageFieldKind::Map(inner) => map(layouts, field.number, inner, value, out),
        kind => numbered(layouts, field.number, kind, value, out),
    }
}

fn list(
    layouts: &Layouts,
    number: u32,
    inner: &MessageFieldKind,
    list: &Value,
    out: &mut Vec<u8>,
) -> ServiceResult<()> {
    let values = list.as_array().ok_or_else(unfit)?;
    if !inner.is_packed() {
        return values.iter().try_for_each(|value| numbered(layouts, number, inner, value, out));
    }
    if values.is_empty() {
        return Ok(());
    }
    let mut packed = Vec::new();
    values.iter().try_for_each(|value| bare(layouts, inner, value, &mut packed))?;
    put_field(number, &packed, out);
    Ok(())
}

fn map(
    layouts: &Layouts,
    number: u32,
    inner: &MessageFieldKind,
    map: &Value,
    out: &mut Vec<u8>,
) -> ServiceResult<()> {
    for (name, value) in map.as_object().ok_or_else(unfit)? {
        let mut entry = Vec::new();
        put_field(1, name.as_bytes(), &mut entry);
        numbered(layouts, 2, inner, value, &mut entry).map_err(|problem| within(name, problem))?;
        put_field(number, &entry, out);
    }
    Ok(())
}

/// Encodes a value with its number before it.
fn numbered(
    layouts: &Layouts,
    number: u32,
    kind: &MessageFieldKind,
    value: &Value,
    out: &mut Vec<u8>,
) -> ServiceResult<()> {
    let wire = match kind {
        MessageFieldKind::Int | MessageFieldKind::Bool => WireValue::Varint,
        MessageFieldKind::Double => WireValue::Fixed64,
        _ => WireValue::Delimited,
    };
    put_key(number, wire, out);
    bare(layouts, kind, value, out)
}

fn bare(layouts: &Layouts, kind: &MessageFieldKind, value: &Value, out: &mut Vec<u8>) -> ServiceResult<()> {
    match kind {
        MessageFieldKind::Int => put_varint(int(value)?.cast_unsigned(), out),
        MessageFieldKind::Bool => out.push(u8::from(value.as_bool().ok_or_else(unfit)?)),
        MessageFieldKind::Double => out.extend(value.as_f64().ok_or_else(unfit)?.to_le_bytes()),
        MessageFieldKind::Text => put_delimited(value.as_str().ok_or_else(unfit)?.as_bytes(), out),
        MessageFieldKind::Json | MessageFieldKind::List(_) | MessageFieldKind::Map(_) => {
            put_delimited(value.to_string().as_bytes(), out)
        }
        MessageFieldKind::Record(at) => put_delimited(&inner(layouts, layouts.at(*at), value)?, out),
    }
    Ok(())
}

fn inner(layouts: &Layouts, layout: &Layout, value: &Value) -> ServiceResult<Vec<u8>> {
    let mut bytes = Vec::new();
    match value {
        Value::Object(fields) => record(layouts, layout, fields, &mut bytes)?,
        Value::String(word) if layout.is_choice => {
            let fields = Record::from_iter([(word.clone(), Value::Bool(true))]);
            record(layouts, layout, &fields, &mut bytes)?;
        }
        _ => return Err(unfit()),
    }
    Ok(bytes)
}

/// Returns an integer, limited to the largest that the format can carry.
fn int(value: &Value) -> ServiceResult<i64> {
    let beyond = || value.as_u64().map(|_| i64::MAX);
    value.as_i64().or_else(beyond).ok_or_else(unfit)
}

fn unfit() -> Problem {
    Problem::new(ErrorCode::Internal, "the value is not of the kind that the contract describes")
}
