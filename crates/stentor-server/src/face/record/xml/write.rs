//! Encodes records as elements.

use serde_json::Value;
use stentor_wire::xml::allowed;
use stentor_wire::xml::dom::{Element, Node};

use super::{ENTRY, KEY, NAMESPACE, VALUE};
use crate::contract::shape::{FieldShape, RecordShape, Shape, Shapes};
use crate::face::record::Record;

/// Encodes a record as an element of this name, with fields in the order of the shape. Nulls and empty lists are left out, and characters
/// that XML cannot carry become U+FFFD.
#[must_use]
pub fn write_record(name: &str, fields: &Record, record: &RecordShape, shapes: &Shapes) -> Element {
    let mut element = Element::of(NAMESPACE, name);
    for field in &record.fields {
        if let Some(value) = fields.get(&field.name).filter(|value| !value.is_null()) {
            add(&mut element, value, field, shapes);
        }
    }
    element
}

fn add(element: &mut Element, value: &Value, field: &FieldShape, shapes: &Shapes) {
    let written = |value: &Value, shape: &Shape| Node::Element(written(&field.name, value, shape, shapes));
    match (&field.shape, value) {
        (Shape::List(inner), Value::Array(items)) => {
            element.children.extend(items.iter().map(|item| written(item, inner)));
        }
        (shape, value) => element.children.push(written(value, shape)),
    }
}

fn written(name: &str, value: &Value, shape: &Shape, shapes: &Shapes) -> Element {
    match (shape, value) {
        (Shape::Record(record), value) => match shapes.record(record) {
            Some(record) => record_of(name, value, record, shapes),
            None => Element::of(NAMESPACE, name),
        },
        (Shape::Map(inner), Value::Object(entries)) => map(name, entries, inner, shapes),
        (Shape::List(inner), Value::Array(items)) => {
            let items = items.iter().map(|item| written(ENTRY, item, inner, shapes));
            items.fold(Element::of(NAMESPACE, name), Element::with)
        }
        (Shape::Json, value) => leaf(name, &value.to_string()),
        (_, Value::String(text)) => leaf(name, text),
        (_, value) => leaf(name, &value.to_string()),
    }
}

/// Encodes a record. A choice without content is a word in JSON.
fn record_of(name: &str, value: &Value, record: &RecordShape, shapes: &Shapes) -> Element {
    match value {
        Value::Object(fields) => write_record(name, fields, record, shapes),
        Value::String(word) => {
            let element = Element::of(NAMESPACE, name);
            if record.field(word).is_some() { element.with(leaf(word, "true")) } else { element }
        }
        _ => Element::of(NAMESPACE, name),
    }
}

fn map(name: &str, entries: &Record, inner: &Shape, shapes: &Shapes) -> Element {
    let entry = |(key, value): (&String, &Value)| {
        let content = written(VALUE, value, inner, shapes);
        Element::of(NAMESPACE, ENTRY).with(leaf(KEY, key)).with(content)
    };
    entries.iter().map(entry).fold(Element::of(NAMESPACE, name), Element::with)
}

fn leaf(name: &str, text: &str) -> Element {
    Element::of(NAMESPACE, name).with_text(&allowed(text))
}
