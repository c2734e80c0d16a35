//! Credentials in the document: one path and one schema for each push service, as its adapter describes itself.

use serde_json::{Map, Value, json};
use stentor_providers::Descriptor;
use stentor_providers::schema::{
    CONNECTIONS_MAX_COUNT, Choice, CredentialField, CredentialFieldKind, CredentialSchema,
    QUOTA_MAX_PER_MINUTE, TextForm,
};

use super::super::format::MEDIA_TYPES;
use super::exact::{nullable, reference};
use super::xml;

/// The route of all credentials.
pub(in crate::face::rest) const ROUTE: &str = "/v1/apps/{app}/credentials/{provider}";

/// Replaces the route by a path for each push service.
pub(super) fn describe_paths(document: &mut Value) {
    let Some(paths) = document["paths"].as_object_mut() else { return };
    let Some(route) = paths.remove(ROUTE) else { return };
    for adapter in stentor_providers::all() {
        paths.insert(ROUTE.replace("{provider}", adapter.kind.as_str()), path(adapter, route.clone()));
    }
}

/// Adds the schemas of credentials.
pub(super) fn describe_schemas(schemas: &mut Map<String, Value>) {
    for shown in stentor_providers::shown() {
        let text = json!({"type": ["string", "null"], "description": shown.about});
        schemas["CredentialSummary"]["properties"][shown.name] = text;
    }
    schemas.insert("Quota".into(), quota());
    for adapter in stentor_providers::all() {
        let credential = &adapter.credential;
        schemas.extend(credential.fields.iter().filter_map(|field| named(&field.kind)));
        schemas.insert(credential.name.to_owned(), schema(credential));
    }
}

fn quota() -> Value {
    json!({
        "description": "The quota: messages per minute, or the word `none`.",
        "oneOf": [
            {"type": "integer", "minimum": 1, "maximum": QUOTA_MAX_PER_MINUTE, "description": "Messages per minute."},
            {"type": "string", "enum": ["none"], "description": "No quota: only the push service's own answers limit the rate."},
        ],
    })
}

fn path(adapter: &Descriptor, mut route: Value) -> Value {
    let operations = route.as_object_mut().into_iter().flatten();
    for (_, operation) in operations {
        if let Some(parameters) = operation["parameters"].as_array_mut() {
            parameters.retain(|parameter| parameter["name"] != "provider");
        }
        let name = operation["operationId"].as_str().unwrap_or_default();
        operation["operationId"] = name.replace("credential", adapter.kind.as_str()).into();
    }
    route["put"]["requestBody"] = json!({"content": forms(adapter.credential.name), "required": true});
    route["put"]["summary"] = adapter.credential.put.into();
    let removes =
        format!("Removes the credential for {}; deliveries that are queued for it wait.", adapter.title);
    route["delete"]["summary"] = removes.into();
    route
}

/// Returns the formats of a request: in JSON the credential itself, in the others a record with its text.
fn forms(name: &str) -> Value {
    let [json, in_xml, protobuf] = MEDIA_TYPES;
    let credential = reference(name);
    let record = xml::of_credential(&credential);
    json!({json: {"schema": credential}, in_xml: {"schema": record}, protobuf: {}})
}

fn schema(credential: &CredentialSchema) -> Value {
    let mut schema = json!({
        "type": "object", "additionalProperties": false, "description": credential.about,
    });
    if !credential.fields.is_empty() {
        let described = |field: &CredentialField| {
            let mut property = property(field);
            property["description"] = description(field).into();
            (field.name.to_owned(), property)
        };
        schema["properties"] = credential.fields.iter().map(described).collect::<Map<_, _>>().into();
        schema["required"] = required(credential.fields);
    }
    schema
}

fn required(fields: &[CredentialField]) -> Value {
    fields.iter().filter(|field| field.is_required).map(|field| field.name).collect::<Vec<_>>().into()
}

fn description(field: &CredentialField) -> String {
    match field.when_absent {
        Some(usual) => format!("{}; {usual} when absent.", field.about),
        None => format!("{}.", field.about),
    }
}

fn property(field: &CredentialField) -> Value {
    let name = match &field.kind {
        CredentialFieldKind::Text => "NotBlank",
        CredentialFieldKind::Pem => "Pem",
        CredentialFieldKind::Endpoint => "Endpoint",
        CredentialFieldKind::Url => "Url",
        CredentialFieldKind::Quota => "Quota",
        CredentialFieldKind::Form(form) => form.name,
        CredentialFieldKind::Choice(choice) => choice.name,
        CredentialFieldKind::Object(fields) => return object(fields),
        CredentialFieldKind::Connections => {
            return json!({"type": ["integer", "null"], "minimum": 1, "maximum": CONNECTIONS_MAX_COUNT});
        }
        CredentialFieldKind::Flag => return json!({"type": ["boolean", "null"]}),
    };
    if field.is_required { reference(name) } else { nullable(name) }
}

/// Returns the schema of an object with at least these fields. A choice among them is written inline.
fn object(fields: &[CredentialField]) -> Value {
    let one = |field: &CredentialField| {
        let value = match &field.kind {
            CredentialFieldKind::Choice(choice) => json!({"type": "string", "enum": choice.words}),
            _ => property(field),
        };
        (field.name.to_owned(), value)
    };
    let properties: Map<_, _> = fields.iter().map(one).collect();
    json!({"type": "object", "required": required(fields), "properties": properties})
}

/// Returns the name and the schema of a field, if it has a schema of its own.
fn named(kind: &CredentialFieldKind) -> Option<(String, Value)> {
    match kind {
        CredentialFieldKind::Form(form) => Some((form.name.to_owned(), of_form(form))),
        CredentialFieldKind::Choice(Choice { name, words, about }) => {
            Some(((*name).to_owned(), json!({"type": "string", "enum": words, "description": about})))
        }
        _ => None,
    }
}

fn of_form(form: &TextForm) -> Value {
    let mut schema = json!({"type": "string", "pattern": form.pattern});
    if let Some(longest) = form.max_chars {
        schema["minLength"] = 1.into();
        schema["maxLength"] = longest.into();
    }
    let texts = [("example", form.example), ("description", form.about)];
    texts.into_iter().filter_map(|(name, text)| Some((name, text?))).for_each(|(name, text)| {
        schema[name] = text.into();
    });
    schema
}
