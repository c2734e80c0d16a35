//! Additions for generators of clients and pages: a description of each response, names that are unique in every language, and the address
//! of the server.

use serde_json::{Map, Value, json};

/// Records with names that a generated client already uses: in Go, `NewKey` is the constructor of `Key`.
const RENAMED: &[(&str, &str)] = &[
    ("NewKey", "KeyWithSecret"),
    ("NewServiceAccount", "ServiceAccountWithFile"),
    ("NewUpstreamWebhook", "UpstreamWebhookWithSecret"),
];
const SCHEMAS: &str = "#/components/schemas/";
/// Address of a server with default settings.
const USUAL_ADDRESS: &str = "http://127.0.0.1:8686";

/// Adds the details that tools need.
pub(super) fn apply(document: &mut Value) {
    document["servers"] = json!([
        {"url": "/", "description": "The server that gave this document."},
        {"url": USUAL_ADDRESS, "description": "A server on this machine, with the usual settings."},
    ]);
    let schemas = document["components"]["schemas"].as_object().cloned().unwrap_or_default();
    let items = document["paths"].as_object_mut().into_iter().flatten();
    let operations = items.filter_map(|(_, item)| item.as_object_mut()).flatten();
    for answers in operations.filter_map(|(_, operation)| operation["responses"].as_object_mut()) {
        put_last(answers);
        answers.values_mut().for_each(|answer| describe(answer, &schemas));
    }
    rename(document);
}

/// Renames a status 200 beside the usual 202 to `2XX`, so that it comes last: many clients have only one response type, taken from the
/// first.
fn put_last(answers: &mut Map<String, Value>) {
    if answers.contains_key("200") && answers.contains_key("202") {
        let other = answers.remove("200");
        answers.extend(other.map(|answer| ("2XX".to_owned(), answer)));
    }
}

/// Describes a response by its record; one without a body as "Done.".
fn describe(answer: &mut Value, schemas: &Map<String, Value>) {
    let is_described = answer["description"].as_str().is_some_and(|text| !text.is_empty());
    if is_described || answer.get("$ref").is_some() {
        return;
    }
    let bodies = answer["content"].as_object().into_iter().flatten();
    let referred = bodies.filter_map(|(_, body)| body["schema"]["$ref"].as_str()?.strip_prefix(SCHEMAS));
    let description = referred.filter_map(|name| schemas.get(name)?["description"].as_str()).next();
    let usual = if answer.get("content").is_some() { "The answer." } else { "Done." };
    answer["description"] = description.unwrap_or(usual).into();
}

fn rename(document: &mut Value) {
    if let Some(schemas) = document["components"]["schemas"].as_object_mut() {
        for (old, new) in RENAMED {
            let schema = schemas.remove(*old);
            schemas.extend(schema.map(|schema| ((*new).to_owned(), schema)));
        }
    }
    rename_references(document);
}

fn rename_references(part: &mut Value) {
    match part {
        Value::Object(fields) => {
            for (name, value) in fields {
                match value {
                    Value::String(text) if name == "$ref" => rename_reference(text),
                    value => rename_references(value),
                }
            }
        }
        Value::Array(parts) => parts.iter_mut().for_each(rename_references),
        _ => {}
    }
}

fn rename_reference(text: &mut String) {
    let named = text.strip_prefix(SCHEMAS).and_then(|name| RENAMED.iter().find(|(old, _)| *old == name));
    if let Some((_, new)) = named {
        *text = format!("{SCHEMAS}{new}");
    }
}
