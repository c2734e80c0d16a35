//! The shapes of records, for faces whose formats must be told them: which fields there are, in which order, of which kind.

mod schema;

use std::collections::BTreeMap;

use utoipa::ToSchema;

pub use schema::record_of;

/// What a value looks like.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Shape {
    /// A text.
    Text,
    /// A whole number of 64 bits with a sign.
    Int,
    /// A number with a fraction.
    Double,
    /// True or false.
    Bool,
    /// A JSON value of any form. A format whose fields have kinds carries its text.
    Json,
    /// Values of one shape, in order.
    List(Box<Self>),
    /// Values of one shape under names that the caller chooses.
    Map(Box<Self>),
    /// The record of this name.
    Record(String),
}

/// A record: what its fields are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RecordShape {
    /// Its name, one in the whole contract.
    pub name: String,
    /// What it is, in a sentence.
    pub about: String,
    /// Its fields, in order.
    pub fields: Vec<FieldShape>,
    /// Whether exactly one field is there; one without content is written as its name alone in JSON.
    pub is_choice: bool,
}

/// A field of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldShape {
    /// Its name.
    pub name: String,
    /// What it means.
    pub about: String,
    /// What stands in it.
    pub shape: Shape,
    /// Whether it must be there.
    pub is_required: bool,
    /// Whether it can be cleared, which is something else than leaving it out: JSON has null for it, or the empty list.
    pub is_clearable: bool,
}

/// The field in which a format without null names what is cleared.
pub const CLEAR: &str = "clear";

/// All records by their names.
#[derive(Debug, Clone, Default)]
pub struct Shapes(pub BTreeMap<String, RecordShape>);

/// A request or a reply whose shape is known.
pub trait Described {
    /// Returns its record; `shapes` gets the records inside it.
    fn describe(shapes: &mut Shapes) -> RecordShape;
}

impl FieldShape {
    /// Describes a field that may be absent.
    #[must_use]
    pub fn optional(name: &str, shape: Shape, about: &str) -> Self {
        let (name, about) = (name.to_owned(), about.to_owned());
        Self { name, about, shape, is_required: false, is_clearable: false }
    }

    /// Describes a field that must be there.
    #[must_use]
    pub fn required(name: &str, shape: Shape, about: &str) -> Self {
        Self { is_required: true, ..Self::optional(name, shape, about) }
    }
}

impl RecordShape {
    /// Describes a record that no type of the contract is.
    #[must_use]
    pub fn new(name: &str, about: &str, fields: Vec<FieldShape>) -> Self {
        Self { name: name.to_owned(), about: about.to_owned(), fields, is_choice: false }
    }

    /// Returns the field that a format without null has beside the others, if anything can be cleared.
    #[must_use]
    pub fn clear_field(&self) -> Option<FieldShape> {
        let clearable = self.fields.iter().filter(|field| field.is_clearable);
        let names: Vec<_> = clearable.map(|field| format!("`{}`", field.name)).collect();
        let (last, others) = names.split_last()?;
        let about = format!("Names of the fields to clear: {} or {last}.", others.join(", "));
        Some(FieldShape::optional(CLEAR, Shape::List(Box::new(Shape::Text)), &about))
    }

    /// Returns the field of this name.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&FieldShape> {
        self.fields.iter().find(|field| field.name == name)
    }
}

impl Shapes {
    /// Returns the record of a name.
    #[must_use]
    pub fn record(&self, name: &str) -> Option<&RecordShape> {
        self.0.get(name)
    }

    /// Adds a type of the contract and what it is made of, and returns the name of its record.
    pub fn add<T: ToSchema>(&mut self) -> String {
        let record = record_of::<T>(self);
        let name = record.name.clone();
        self.0.insert(name.clone(), record);
        name
    }

    /// Adds a record that no type of the contract is, and returns its shape.
    pub fn put(&mut self, record: RecordShape) -> Shape {
        let name = record.name.clone();
        self.0.insert(name.clone(), record);
        Shape::Record(name)
    }
}

impl Described for () {
    fn describe(_: &mut Shapes) -> RecordShape {
        RecordShape::default()
    }
}
