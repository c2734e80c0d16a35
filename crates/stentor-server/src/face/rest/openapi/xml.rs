//! Schemas of bodies in XML: the JSON schemas, adapted where XML differs. The XML schema in the WSDL describes the same for tools that read
//! it.

use serde_json::{Map, Value, json};

use super::super::error::{PROBLEM_NAMESPACE, PROBLEM_XML};
use super::super::format::MEDIA_TYPES;
use super::exact::{BATCHES, never, reference};
use crate::contract::Operation as _;
use crate::contract::description::{OperationShape, description};
use crate::contract::shape::{FieldShape, RecordShape, Shape};
use crate::contract::table::PutCredential;
use crate::face::record::xml::{ENTRY, KEY, NAMESPACE, VALUE};

/// Prefix of a reference to a schema.
const SCHEMAS: &str = "#/components/schemas/";
/// Keywords that combine schemas.
const COMBINED: [&str; 3] = ["allOf", "anyOf", "oneOf"];

/// JSON schemas by name.
type JsonSchemas = Map<String, Value>;

/// Adds the XML schema to every body that may be XML.
pub(super) fn apply(document: &mut Value) {
    let Some(schemas) = document["components"]["schemas"].as_object().cloned() else { return };
    let items = document["paths"].as_object_mut().into_iter().flatten();
    let operations = items.filter_map(|(_, item)| item.as_object_mut()).flatten();
    operations.for_each(|(_, operation)| describe_bodies(operation, &schemas));
    let refusal = &mut document["components"]["responses"]["Problem"]["content"][PROBLEM_XML];
    *refusal = json!({"schema": with_root(reference("Problem"), "problem", PROBLEM_NAMESPACE)});
}

/// Describes the request that sets a credential, which is free JSON in the record.
pub(super) fn of_credential(credential: &Value) -> Value {
    let mut content = credential.clone();
    content["description"] =
        "The credential as its push service needs it: the text of an object of JSON.".into();
    let record = json!({
        "type": "object", "additionalProperties": false, "required": ["credential"],
        "properties": {"credential": text_of_json(&content)},
    });
    with_root(record, PutCredential::FACTS.type_name, NAMESPACE)
}

fn describe_bodies(operation: &mut Value, schemas: &JsonSchemas) {
    let named = |one: &&OperationShape| operation["operationId"] == one.facts.name.replace('.', "_");
    let Some(one) = description().operations.iter().find(named) else { return };
    let request = operation.pointer_mut("/requestBody/content");
    add_schema(request, |body| with_root(asked(body, &one.request, schemas), one.facts.type_name, NAMESPACE));
    let responses = operation.get_mut("responses").and_then(Value::as_object_mut);
    for (_, response) in responses.into_iter().flatten() {
        add_schema(response.get_mut("content"), |body| {
            with_root(reply(body, &one.reply, schemas), &one.reply.name, NAMESPACE)
        });
    }
}

/// Adds the XML schema beside the JSON schema.
fn add_schema(content: Option<&mut Value>, written: impl FnOnce(&Value) -> Value) {
    let [json, xml, _] = MEDIA_TYPES;
    let Some(content) = content else { return };
    let body = content.get(json).and_then(|content| content.get("schema")).cloned();
    if let (Some(body), Some(in_xml)) = (body, content.get_mut(xml)) {
        in_xml["schema"] = written(&body);
    }
}

fn with_root(mut schema: Value, element: &str, namespace: &str) -> Value {
    schema["xml"] = json!({"name": element, "namespace": namespace});
    schema
}

/// Returns the schema of a request. In a batch, an invalid item is refused on its own: the document stays valid if each item has the form
/// of its record.
fn asked(body: &Value, record: &RecordShape, schemas: &JsonSchemas) -> Value {
    let mut written = whole(body, schemas);
    let many = BATCHES.iter().find(|(name, _)| *body == reference(name));
    let many = many.and_then(|(_, field)| record.field(field));
    if let Some(FieldShape { name, shape: Shape::List(thing), .. }) = many {
        let items = &mut written["properties"][name]["items"];
        let mut form = of_shape(thing, &form_of_record);
        form["description"] = "An entry that breaks a rule is refused by itself.".into();
        *items = json!({"anyOf": [items.take(), form]});
    }
    written
}

/// Returns the form of a record, without the rules for its fields.
fn form_of_record(name: &str) -> Value {
    let Some(record) = description().shapes.record(name) else { return json!({}) };
    let elements = record.fields.iter().map(|field| (&field.name, of_shape(&field.shape, &form_of_record)));
    let object = |elements: JsonSchemas| json!({"type": "object", "additionalProperties": false, "properties": elements});
    if !record.is_choice {
        return object(elements.map(|(name, form)| (name.clone(), form)).collect());
    }
    let one = |(name, mut form): (&String, Value)| {
        if form["type"] == "boolean" {
            form = only_true();
        }
        let mut one = object(JsonSchemas::from_iter([(name.clone(), form)]));
        one["required"] = json!([name]);
        one
    };
    json!({"oneOf": elements.map(one).collect::<Vec<_>>()})
}

/// Returns the schema of an element that is only present or absent. From an enumeration with `true` alone, generators produce invalid Java.
fn only_true() -> Value {
    let mut element = never(json!({"enum": [false]}));
    element["type"] = "boolean".into();
    element
}

/// Returns the schema of a reply: a single record, even if JSON has several forms or puts a part into headers.
fn reply(body: &Value, record: &RecordShape, schemas: &JsonSchemas) -> Value {
    let fields = record.fields.iter();
    let of_record = |name: &str| as_xml(&reference(name), schemas);
    let elements = fields.map(|field| (field.name.clone(), of_shape(&field.shape, &of_record)));
    if *body != reference(&record.name) {
        return json!({"type": "object", "properties": elements.collect::<JsonSchemas>()});
    }
    let mut written = whole(body, schemas);
    let Some(known) = written["properties"].as_object_mut() else { return as_xml(body, schemas) };
    let further: JsonSchemas = elements.filter(|(name, _)| !known.contains_key(name)).collect();
    if further.is_empty() {
        return as_xml(body, schemas);
    }
    known.extend(further);
    written
}

/// Returns the schema of a shape; `of_record` returns the one of a record.
fn of_shape(shape: &Shape, of_record: &dyn Fn(&str) -> Value) -> Value {
    match shape {
        Shape::Text => json!({"type": "string"}),
        Shape::Int => json!({"type": "integer", "format": "int64"}),
        Shape::Double => json!({"type": "number", "format": "double"}),
        Shape::Bool => json!({"type": "boolean"}),
        Shape::Json => text_of_json(&json!({})),
        Shape::List(inner) => json!({"type": "array", "items": of_shape(inner, of_record)}),
        Shape::Map(inner) => entries(&Map::new(), &of_shape(inner, of_record)),
        Shape::Record(name) => of_record(name),
    }
}

/// Returns a schema adapted to XML, with a reference at its top replaced by its target.
fn whole(schema: &Value, schemas: &JsonSchemas) -> Value {
    as_xml(referred(schema, schemas).unwrap_or(schema), schemas)
}

fn referred<'a>(schema: &Value, schemas: &'a JsonSchemas) -> Option<&'a Value> {
    schemas.get(schema["$ref"].as_str()?.strip_prefix(SCHEMAS)?)
}

/// Returns a schema adapted to XML. A reference stays if XML and JSON agree on its target.
fn as_xml(schema: &Value, schemas: &JsonSchemas) -> Value {
    if let Some(referred) = referred(schema, schemas) {
        let written = match schema["$ref"] == reference("Target")["$ref"] {
            true => target(referred, schemas),
            false => as_xml(referred, schemas),
        };
        return if written == *referred { schema.clone() } else { with_description(written, schema) };
    }
    if let Some(one) = alone(schema) {
        return with_description(as_xml(one, schemas), schema);
    }
    let Some(schema) = schema.as_object() else { return schema.clone() };
    match schema.get("additionalProperties").filter(|of| of.is_object()) {
        Some(of) => entries(schema, &as_xml(of, schemas)),
        None => Value::Object(parts(schema, schemas)),
    }
}

/// Returns the keywords of a schema with all nested schemas adapted to XML.
fn parts(schema: &Map<String, Value>, schemas: &JsonSchemas) -> Map<String, Value> {
    let mut written = schema.clone();
    if let Some(kinds) = schema.get("type").and_then(Value::as_array) {
        // An element without content is an empty text; null is expressed by leaving the element out.
        let kinds: Vec<_> = kinds.iter().filter(|kind| **kind != "null").cloned().collect();
        written.insert("type".into(), if kinds.len() == 1 { kinds[0].clone() } else { kinds.into() });
    }
    if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
        let elements = properties.iter().map(|(name, one)| (name.clone(), element(name, one, schemas)));
        written.insert("properties".into(), Value::Object(elements.collect()));
    }
    if let Some(items) = schema.get("items") {
        written.insert("items".into(), as_xml(items, schemas));
    }
    if let Some(described) = schema.get("if") {
        written.insert("if".into(), as_xml(described, schemas));
    }
    for word in COMBINED {
        if let Some(parts) = schema.get(word).and_then(Value::as_array) {
            written.insert(word.into(), parts.iter().map(|part| as_xml(part, schemas)).collect());
        }
    }
    written
}

/// Returns the only alternative beside null and items that are refused on their own.
fn alone(schema: &Value) -> Option<&Value> {
    let parts = schema.get("oneOf").or_else(|| schema.get("anyOf"))?.as_array()?;
    let says_something = |part: &&Value| {
        part["type"] != "null" && part.as_object().is_some_and(|part| !part.keys().eq(["description"]))
    };
    let mut left = parts.iter().filter(says_something);
    left.next().filter(|_| left.next().is_none() && parts.len() > 1)
}

/// Returns the schema of a field as an element. A field that must be null becomes an element that must be absent.
fn element(name: &str, property: &Value, schemas: &JsonSchemas) -> Value {
    if property["type"] == "null" {
        return Value::Bool(false);
    }
    if stentor_providers::all().any(|adapter| adapter.override_field() == Some(name)) {
        return with_description(text_of_json(&json!({"type": "object"})), property);
    }
    if is_any_object(property) {
        return text_of_json(property);
    }
    if property.as_object().is_some_and(|rule| rule.keys().eq(["maxProperties"])) {
        return json!({"properties": {ENTRY: {"maxItems": property["maxProperties"]}}});
    }
    as_xml(property, schemas)
}

/// Returns the schema of free JSON, which XML carries as text.
fn text_of_json(what: &Value) -> Value {
    let mut content = what.clone();
    if let Some(content) = content.as_object_mut() {
        content.remove("description");
    }
    let text = json!({"type": "string", "contentMediaType": "application/json", "contentSchema": content});
    with_description(text, what)
}

/// Returns true if a field is any object or any value. A rule for a field has no description.
fn is_any_object(property: &Value) -> bool {
    let Some(field) = property.as_object() else { return false };
    field.keys().eq(["description"])
        || field.keys().eq(["description", "type"]) && property["type"] == "object"
}

/// Returns the schema of a map: a list of entries with unique keys, each with a key and a value.
fn entries(map: &Map<String, Value>, of: &Value) -> Value {
    let entry = json!({
        "type": "object", "additionalProperties": false, "required": [KEY, VALUE],
        "properties": {KEY: {"type": "string"}, VALUE: of},
    });
    let mut list = json!({"type": "array", "items": entry});
    for (bound, least_or_most) in [("minProperties", "minItems"), ("maxProperties", "maxItems")] {
        if let Some(count) = map.get(bound) {
            list[least_or_most] = count.clone();
        }
    }
    let written = json!({"type": "object", "additionalProperties": false, "properties": {ENTRY: list}});
    with_description(written, &Value::Object(map.clone()))
}

/// Returns the schema of a target. The word for all devices becomes an element with the value true.
fn target(json: &Value, schemas: &JsonSchemas) -> Value {
    let mut written = as_xml(json, schemas);
    for one in written["oneOf"].as_array_mut().into_iter().flatten() {
        if one["type"] == "string" {
            let word = one["enum"][0].as_str().unwrap_or_default().to_owned();
            *one = json!({
                "type": "object", "additionalProperties": false, "required": [word],
                "properties": {word: only_true()}, "description": one["description"],
            });
        }
    }
    written
}

fn with_description(mut written: Value, schema: &Value) -> Value {
    if let (Some(description), Some(written)) = (schema.get("description"), written.as_object_mut()) {
        written.insert("description".into(), description.clone());
    }
    written
}

#[cfg(test)]
mod tests;
