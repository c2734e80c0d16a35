//! Layout of records: the fields by number.

use std::collections::HashMap;

use serde_json::Value;

use crate::contract::description::Numbers;
use crate::contract::shape::{FieldShape, RecordShape, Shape};

/// All records, with their positions by name.
#[derive(Debug)]
pub(super) struct Layouts {
    all: Vec<Layout>,
    by_name: HashMap<String, usize>,
}

/// One record.
#[derive(Debug)]
pub(super) struct Layout {
    pub(super) is_choice: bool,
    /// Fields in the order of their numbers.
    pub(super) fields: Vec<MessageField>,
    /// Fields that the list `clear` can clear.
    pub(super) clearable: Vec<Clearable>,
}

/// A field that can be cleared.
#[derive(Debug)]
pub(super) struct Clearable {
    pub(super) name: String,
    /// Value after clearing: null, or the empty list.
    pub(super) nothing: Value,
}

/// One field.
#[derive(Debug)]
pub(super) struct MessageField {
    pub(super) number: u32,
    pub(super) name: String,
    pub(super) kind: MessageFieldKind,
    pub(super) is_required: bool,
}

/// Type of a field.
#[derive(Debug)]
pub(super) enum MessageFieldKind {
    Text,
    Int,
    Double,
    Bool,
    /// JSON as text; also a list or a map inside another, which the format cannot express.
    Json,
    /// The record at this position.
    Record(usize),
    List(Box<Self>),
    Map(Box<Self>),
}

impl Layouts {
    pub(super) fn new<'a>(records: impl Iterator<Item = &'a RecordShape>, numbers: &Numbers) -> Self {
        let shapes: Vec<&RecordShape> = records.collect();
        let by_name: HashMap<_, _> =
            shapes.iter().enumerate().map(|(at, one)| (one.name.clone(), at)).collect();
        let layout = |shape: &&RecordShape| {
            let field = |field| field_of(&shape.name, field, numbers, &by_name);
            let clear = shape.clear_field();
            let mut fields: Vec<_> = shape.fields.iter().chain(&clear).filter_map(field).collect();
            fields.sort_by_key(|field| field.number);
            Layout { is_choice: shape.is_choice, fields, clearable: clearable(shape) }
        };
        Self { all: shapes.iter().map(layout).collect(), by_name }
    }

    pub(super) fn named(&self, name: &str) -> Option<&Layout> {
        self.all.get(*self.by_name.get(name)?)
    }

    pub(super) fn at(&self, place: usize) -> &Layout {
        &self.all[place]
    }
}

impl Layout {
    /// Returns the field with a number.
    pub(super) fn field(&self, number: u32) -> Option<&MessageField> {
        let at = self.fields.binary_search_by_key(&number, |field| field.number).ok()?;
        self.fields.get(at)
    }
}

impl MessageFieldKind {
    /// Returns true if lists of this type are packed: the values follow each other without a number before each.
    pub(super) const fn is_packed(&self) -> bool {
        matches!(self, Self::Int | Self::Double | Self::Bool)
    }
}

fn clearable(shape: &RecordShape) -> Vec<Clearable> {
    let one = |field: &FieldShape| Clearable {
        name: field.name.clone(),
        nothing: if matches!(field.shape, Shape::List(_)) { Value::Array(Vec::new()) } else { Value::Null },
    };
    shape.fields.iter().filter(|field| field.is_clearable).map(one).collect()
}

fn field_of(
    record: &str,
    field: &FieldShape,
    numbers: &Numbers,
    places: &HashMap<String, usize>,
) -> Option<MessageField> {
    let number = numbers.field(record, &field.name)?;
    let kind = kind_of(&field.shape, places);
    Some(MessageField { number, name: field.name.clone(), kind, is_required: field.is_required })
}

fn kind_of(shape: &Shape, places: &HashMap<String, usize>) -> MessageFieldKind {
    let inner = |shape: &Shape| {
        Box::new(match shape {
            Shape::List(_) | Shape::Map(_) => MessageFieldKind::Json,
            other => kind_of(other, places),
        })
    };
    match shape {
        Shape::Text => MessageFieldKind::Text,
        Shape::Int => MessageFieldKind::Int,
        Shape::Double => MessageFieldKind::Double,
        Shape::Bool => MessageFieldKind::Bool,
        Shape::Json => MessageFieldKind::Json,
        Shape::List(of) => MessageFieldKind::List(inner(of)),
        Shape::Map(of) => MessageFieldKind::Map(inner(of)),
        Shape::Record(name) => {
            places.get(name).map_or(MessageFieldKind::Json, |at| MessageFieldKind::Record(*at))
        }
    }
}
