//! The types of the API for a program; further rules of JSON Schema (lengths, patterns) are checked by the server only.

use serde_json::{Map, Value};

/// Enumerations with more words than this are plain text: the server's list may grow (time zones).
const WORDS_MAX: usize = 32;

/// Kind of a value for a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ValueKind {
    Text,
    Int,
    Number,
    Bool,
    /// A JSON object of any content.
    Object,
    /// One of these texts.
    Words(Vec<String>),
    List(Box<Self>),
    /// Values under names that the caller chooses.
    Map(Box<Self>),
    /// A type of the description.
    Named(String),
    OrNull(Box<Self>),
    Either(Vec<Self>),
}

/// A field of a record, or a parameter.
#[derive(Debug, Clone)]
pub(crate) struct ApiField {
    pub(crate) name: String,
    pub(crate) about: String,
    pub(crate) kind: ValueKind,
    pub(crate) is_required: bool,
}

/// A type with a name.
#[derive(Debug, Clone)]
pub(crate) struct ApiType {
    pub(crate) name: String,
    pub(crate) about: String,
    pub(crate) body: TypeBody,
}

/// The definition of a type.
#[derive(Debug, Clone)]
pub(crate) enum TypeBody {
    /// Fields, beside those of another record.
    Fields { base: Option<String>, fields: Vec<ApiField> },
    /// Another name of a kind.
    Alias(ValueKind),
}

/// All schemas of the description by their names.
pub(crate) struct Schemas<'a>(pub(crate) &'a Map<String, Value>);

impl Schemas<'_> {
    /// Lists the types that programs name. A choice between inline records gives each of them a name of its own.
    pub(crate) fn types(&self) -> Vec<ApiType> {
        let named = self.0.iter().filter(|(_, schema)| !is_text(schema));
        named.flat_map(|(name, schema)| self.named(name, schema)).collect()
    }

    /// Lists the fields of a record, in the order of the description, the required ones first.
    pub(crate) fn fields(&self, schema: &Value) -> Vec<ApiField> {
        let required = array(schema, "required");
        let properties = schema["properties"].as_object().into_iter().flatten();
        let mut fields: Vec<_> = properties
            .map(|(name, schema)| ApiField {
                name: name.clone(),
                about: about(schema),
                kind: self.kind(schema),
                is_required: required.iter().any(|one| one == name),
            })
            .collect();
        fields.sort_by_key(|field| !field.is_required);
        fields
    }

    /// Returns the kind of a value of a schema.
    pub(crate) fn kind(&self, schema: &Value) -> ValueKind {
        if let Some(name) = referred(schema) {
            let is_plain = self.0.get(name).is_some_and(is_text);
            return if is_plain { ValueKind::Text } else { ValueKind::Named(name.to_owned()) };
        }
        if let Some(first) = array(schema, "allOf").first() {
            return self.kind(first);
        }
        let choices = array(schema, "oneOf");
        if !choices.is_empty() {
            return either(choices.iter().map(|one| self.kind(one)).collect(), has_null(choices));
        }
        match schema["type"].as_array() {
            Some(types) => or_null(self.plain(schema, first_type(types))),
            None => self.plain(schema, schema["type"].as_str().unwrap_or_default()),
        }
    }

    fn plain(&self, schema: &Value, kind: &str) -> ValueKind {
        match kind {
            "string" if schema["enum"].is_array() && !is_text(schema) => ValueKind::Words(words(schema)),
            "string" => ValueKind::Text,
            "integer" => ValueKind::Int,
            "number" => ValueKind::Number,
            "boolean" => ValueKind::Bool,
            "array" => ValueKind::List(Box::new(self.kind(&schema["items"]))),
            "object" if schema["additionalProperties"].is_object() => {
                ValueKind::Map(Box::new(self.kind(&schema["additionalProperties"])))
            }
            _ if schema["enum"].is_array() => ValueKind::Words(words(schema)),
            _ => ValueKind::Object,
        }
    }

    fn named(&self, name: &str, schema: &Value) -> Vec<ApiType> {
        let parts = array(schema, "allOf");
        if let [base, own] = parts {
            let base = referred(base).map(str::to_owned);
            let body = TypeBody::Fields { base, fields: self.fields(own) };
            return vec![api_type(name, schema, body)];
        }
        if schema["properties"].is_object() {
            let body = TypeBody::Fields { base: None, fields: self.fields(schema) };
            return vec![api_type(name, schema, body)];
        }
        let choices = array(schema, "oneOf");
        let (mut types, mut kinds) = (Vec::new(), Vec::new());
        for choice in choices {
            match record_name(name, choice) {
                Some(inner) => {
                    kinds.push(ValueKind::Named(inner.clone()));
                    types.extend(self.named(&inner, choice));
                }
                None => kinds.push(self.kind(choice)),
            }
        }
        let kind = if choices.is_empty() { self.kind(schema) } else { either(kinds, false) };
        types.push(api_type(name, schema, TypeBody::Alias(kind)));
        types
    }
}

/// Returns the description of a schema, on one line.
pub(crate) fn about(schema: &Value) -> String {
    let text = schema["description"].as_str().or_else(|| schema["summary"].as_str()).unwrap_or_default();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns the name of the referenced schema.
pub(crate) fn referred(schema: &Value) -> Option<&str> {
    schema["$ref"].as_str()?.rsplit('/').next()
}

fn api_type(name: &str, schema: &Value, body: TypeBody) -> ApiType {
    ApiType { name: name.to_owned(), about: about(schema), body }
}

fn array<'a>(schema: &'a Value, name: &str) -> &'a [Value] {
    schema[name].as_array().map(Vec::as_slice).unwrap_or_default()
}

fn words(schema: &Value) -> Vec<String> {
    array(schema, "enum").iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// Returns true if a schema is nothing but text to a program.
fn is_text(schema: &Value) -> bool {
    let count = array(schema, "enum").len();
    schema["type"] == "string" && (count == 0 || count > WORDS_MAX)
}

/// Names an inline record of a choice after its first field.
fn record_name(outer: &str, choice: &Value) -> Option<String> {
    let field = choice["properties"].as_object()?.keys().next()?;
    let (first, rest) = field.split_at_checked(1)?;
    Some(format!("{outer}{}{rest}", first.to_uppercase()))
}

fn has_null(choices: &[Value]) -> bool {
    choices.iter().any(|one| one["type"] == "null")
}

fn either(mut kinds: Vec<ValueKind>, with_null: bool) -> ValueKind {
    if with_null {
        // The null itself was read as an object of no known content.
        kinds.retain(|kind| *kind != ValueKind::Object);
    }
    let kind = match kinds.len() {
        1 => kinds.remove(0),
        _ => ValueKind::Either(kinds),
    };
    if with_null { or_null(kind) } else { kind }
}

fn or_null(kind: ValueKind) -> ValueKind {
    ValueKind::OrNull(Box::new(kind))
}

fn first_type(types: &[Value]) -> &str {
    types.iter().filter_map(Value::as_str).find(|kind| *kind != "null").unwrap_or_default()
}
