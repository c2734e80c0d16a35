//! Derives shapes from the OpenAPI schemas of the contract's types.

use serde_json::{Map, Value, json};
use utoipa::ToSchema;
use utoipa::openapi::{RefOr, Schema};

use super::{FieldShape, RecordShape, Shape, Shapes};
use crate::contract::devices;

/// Schemas of a type and of its nested types.
type TypeSchemas = Vec<(String, RefOr<Schema>)>;

/// Returns the record of a type, and adds the nested records to `shapes`.
pub fn record_of<T: ToSchema>(shapes: &mut Shapes) -> RecordShape {
    let mut inside = TypeSchemas::new();
    T::schemas(&mut inside);
    let known: Map<String, Value> = inside.into_iter().map(|(name, schema)| (name, json(&schema))).collect();
    for (name, schema) in &known {
        if !shapes.0.contains_key(name) && is_record(schema) {
            let record = record(name, schema, &known);
            shapes.0.insert(name.clone(), record);
        }
    }
    record(&T::name(), &json(&T::schema()), &known)
}

fn json(schema: &RefOr<Schema>) -> Value {
    json!(schema)
}

/// Returns true if a schema has fields of its own.
fn is_record(schema: &Value) -> bool {
    schema.get("properties").is_some() || schema.get("allOf").is_some() || choices(schema).is_some()
}

fn record(name: &str, schema: &Value, known: &Map<String, Value>) -> RecordShape {
    let about = text(schema, "description");
    let (fields, is_choice) = match choices(schema) {
        Some(choices) => (choices.iter().flat_map(|choice| choice_field(choice, known)).collect(), true),
        None => (fields_of(schema, known), false),
    };
    let mut fields: Vec<_> = in_order(fields, schema).into_iter().chain(beside(name)).collect();
    for field in &mut fields {
        field.is_clearable = clearable(name).contains(&field.name.as_str());
    }
    RecordShape { name: name.to_owned(), about, fields, is_choice }
}

/// Returns the variants of an enum with values: each is an object with one field, or a word.
fn choices(schema: &Value) -> Option<&Vec<Value>> {
    let forms = schema.get("oneOf")?.as_array()?;
    let is_form = |form: &Value| form.get("properties").is_some() || form.get("enum").is_some();
    forms.iter().all(is_form).then_some(forms)
}

/// Returns the fields for one variant of an enum. A word becomes a boolean field.
fn choice_field(form: &Value, known: &Map<String, Value>) -> Vec<FieldShape> {
    let about = text(form, "description");
    if let Some(words) = form.get("enum").and_then(Value::as_array) {
        let words = words.iter().filter_map(Value::as_str);
        return words.map(|word| FieldShape::optional(word, Shape::Bool, &about)).collect();
    }
    let fields = fields_of(form, known).into_iter();
    fields.map(|field| FieldShape { about: about.clone(), is_required: false, ..field }).collect()
}

/// Returns the fields of an object, including those of flattened types.
fn fields_of(schema: &Value, known: &Map<String, Value>) -> Vec<FieldShape> {
    if let Some(parts) = schema.get("allOf").and_then(Value::as_array) {
        return parts.iter().flat_map(|part| flattened(part, known)).collect();
    }
    let required: Vec<_> = schema["required"].as_array().into_iter().flatten().collect();
    let properties = schema["properties"].as_object().into_iter().flatten();
    properties
        .map(|(name, property)| FieldShape {
            name: name.clone(),
            about: about(property),
            shape: shape(property, known),
            is_required: required.iter().any(|other| *other == name),
            is_clearable: false,
        })
        .collect()
}

/// Returns the shape of a schema.
fn shape(schema: &Value, known: &Map<String, Value>) -> Shape {
    if let Some(name) = referred(schema) {
        let meant = &known[name];
        return if is_record(meant) { Shape::Record(name.to_owned()) } else { shape(meant, known) };
    }
    for word in ["oneOf", "anyOf"] {
        let forms = schema.get(word).and_then(Value::as_array).into_iter().flatten();
        if let [one] = *forms.filter(|form| form["type"] != "null").collect::<Vec<_>>() {
            return shape(one, known);
        }
    }
    match kind(schema) {
        Some("string") => Shape::Text,
        Some("integer") => Shape::Int,
        Some("number") => Shape::Double,
        Some("boolean") => Shape::Bool,
        Some("array") => Shape::List(Box::new(shape(&schema["items"], known))),
        Some("object") if schema["additionalProperties"].is_object() => {
            Shape::Map(Box::new(shape(&schema["additionalProperties"], known)))
        }
        _ => Shape::Json,
    }
}

/// Returns the type named by a schema, ignoring `null`.
fn kind(schema: &Value) -> Option<&str> {
    match &schema["type"] {
        Value::String(kind) => Some(kind),
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).find(|kind| *kind != "null"),
        _ => None,
    }
}

/// Returns the fields of a flattened part.
fn flattened(part: &Value, known: &Map<String, Value>) -> Vec<FieldShape> {
    let Some(name) = referred(part) else { return in_order(fields_of(part, known), part) };
    let meant = &known[name];
    in_order(fields_of(meant, known), meant).into_iter().chain(beside(name)).collect()
}

/// Sorts required fields to the front, in the order of the type. Schemas sort fields by name.
fn in_order(mut fields: Vec<FieldShape>, schema: &Value) -> Vec<FieldShape> {
    let required: Vec<_> = schema["required"].as_array().into_iter().flatten().collect();
    let place = |field: &FieldShape| required.iter().position(|name| **name == field.name);
    fields.sort_by_key(|field| place(field).unwrap_or(usize::MAX));
    fields
}

/// Returns the fields of a record that can be cleared. A schema only states that they may be absent.
fn clearable(name: &str) -> &'static [&'static str] {
    match name {
        "DeviceChange" => &devices::CLEARABLE,
        _ => &[],
    }
}

/// Returns the additional fields of a record that push services define.
fn beside(name: &str) -> Vec<FieldShape> {
    let adapters = stentor_providers::all();
    match name {
        "MessageRequest" | "MessageContent" => adapters
            .filter_map(|adapter| Some((adapter.override_field()?, adapter.title)))
            .map(|(field, title)| {
                FieldShape::optional(field, Shape::Json, &format!("Fields for {title} in its own format."))
            })
            .collect(),
        "CredentialSummary" => stentor_providers::shown()
            .map(|shown| FieldShape::optional(shown.name, Shape::Text, shown.about))
            .collect(),
        _ => Vec::new(),
    }
}

fn referred(schema: &Value) -> Option<&str> {
    schema.get("$ref")?.as_str()?.rsplit('/').next()
}

/// Returns the description of a field. If the field is an optional record, its description is nested one level deeper.
fn about(property: &Value) -> String {
    let own = text(property, "description");
    let forms = property.get("oneOf").and_then(Value::as_array).into_iter().flatten();
    let deeper = || forms.map(|form| text(form, "description")).find(|words| !words.is_empty());
    if own.is_empty() { deeper().unwrap_or_default() } else { own }
}

fn text(schema: &Value, name: &str) -> String {
    schema[name].as_str().unwrap_or_default().to_owned()
}
