//! The shapes of records, for faces whose formats need a schema: the fields, their order and their types.

mod schema;

use std::collections::BTreeMap;

use utoipa::ToSchema;

pub use schema::record_of;

/// Type of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Shape {
    /// A text.
    Text,
    /// A signed 64-bit integer.
    Int,
    /// A floating-point number.
    Double,
    /// A boolean.
    Bool,
    /// Any JSON value. Formats with typed fields carry it as JSON text.
    Json,
    /// An ordered list of values of one shape.
    List(Box<Self>),
    /// A map from names chosen by the caller to values of one shape.
    Map(Box<Self>),
    /// A record, by its name.
    Record(String),
}

/// A record and its fields.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RecordShape {
    /// Name, unique in the whole contract.
    pub name: String,
    /// Description in a sentence.
    pub about: String,
    /// Its fields, in order.
    pub fields: Vec<FieldShape>,
    /// True if exactly one field is present. In JSON, a field without content is written as its bare name.
    pub is_choice: bool,
}

/// A field of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldShape {
    /// Its name.
    pub name: String,
    /// Description.
    pub about: String,
    /// Type of its value.
    pub shape: Shape,
    /// True if the field must be present.
    pub is_required: bool,
    /// True if the field can be cleared, which differs from leaving it out. In JSON, null or an empty list clears it.
    pub is_clearable: bool,
}

/// Field with the names of the fields to clear, in formats without null.
pub const CLEAR: &str = "clear";

/// All records by their names.
#[derive(Debug, Clone, Default)]
pub struct Shapes(pub BTreeMap<String, RecordShape>);

/// A request or reply with a known shape.
pub trait Described {
    /// Returns the record, and adds the nested records to `shapes`.
    fn describe(shapes: &mut Shapes) -> RecordShape;
}

impl FieldShape {
    /// Describes an optional field.
    #[must_use]
    pub fn optional(name: &str, shape: Shape, about: &str) -> Self {
        let (name, about) = (name.to_owned(), about.to_owned());
        Self { name, about, shape, is_required: false, is_clearable: false }
    }

    /// Describes a required field.
    #[must_use]
    pub fn required(name: &str, shape: Shape, about: &str) -> Self {
        Self { is_required: true, ..Self::optional(name, shape, about) }
    }
}

impl RecordShape {
    /// Describes a record that is not a type of the contract.
    #[must_use]
    pub fn new(name: &str, about: &str, fields: Vec<FieldShape>) -> Self {
        Self { name: name.to_owned(), about: about.to_owned(), fields, is_choice: false }
    }

    /// Returns the additional field with which formats without null clear others; `None` if no field can be cleared.
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

    /// Adds a type of the contract with its nested records, and returns the name of its record.
    pub fn add<T: ToSchema>(&mut self) -> String {
        let record = record_of::<T>(self);
        let name = record.name.clone();
        self.0.insert(name.clone(), record);
        name
    }

    /// Adds a record that is not a type of the contract, and returns its shape.
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
