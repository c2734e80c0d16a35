//! What tools need that make clients or pages of the document: a description of each answer, names that stay apart in every
//! language, and where the server is.

use serde_json::{Map, Value, json};

/// Records whose names would be those of other things in a client: in Go, `NewKey` makes a `Key`.
const RENAMED: &[(&str, &str)] = &[
    ("NewKey", "KeyWithSecret"),
    ("NewServiceAccount", "ServiceAccountWithFile"),
    ("NewUpstreamWebhook", "UpstreamWebhookWithSecret"),
];
const SCHEMAS: &str = "#/components/schemas/";
/// The address of a server that was started as the first page says.
const USUAL_ADDRESS: &str = "http://127.0.0.1:8686";

/// Adds to the document what tools need.
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

/// Puts 200, where 202 is the usual answer and another record, in the place of any other success: many clients know one type of
/// answer, which is that of the first.
fn put_last(answers: &mut Map<String, Value>) {
    if answers.contains_key("200") && answers.contains_key("202") {
        let other = answers.remove("200");
        answers.extend(other.map(|answer| ("2XX".to_owned(), answer)));
    }
}

/// Describes an answer by its record; one without a body says that it was done.
fn describe(answer: &mut Value, schemas: &Map<String, Value>) {
    let is_described = answer["description"].as_str().is_some_and(|text| !text.is_empty());
    if is_described || answer.get("$ref").is_some() {
        return;
    }
    let bodies = answer["content"].as_object().into_iter().flatten();
    let referred = bodies.filter_map(|(_, body)| body["schema"]["$ref"].as_str()?.strip_prefix(SCHEMAS));
    let told = referred.filter_map(|name| schemas.get(name)?["description"].as_str()).next();
    let usual = if answer.get("content").is_some() { "The answer." } else { "Done." };
    answer["description"] = told.unwrap_or(usual).into();
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
