//! REST calls built from its own description: OpenAPI defines which names belong to the path and the query.

use std::sync::OnceLock;

use reqwest::Method;
use serde_json::{Map, Value};

use super::{HttpReply, HttpRequest, Refused};

/// Turns a record into a request: names of the path, names of the query, and the rest as the body.
pub(super) fn request(operation: &str, record: &Value) -> HttpRequest {
    if operation == "apps.put_credential" {
        return credential(record);
    }
    let (path, method, described) = found(operation);
    let mut record = record.as_object().cloned().unwrap_or_default();
    let repeat = record.remove("idempotency_key").map(|key| text(&key));
    let mut target = path.to_owned();
    let mut query = Vec::new();
    for parameter in described["parameters"].as_array().into_iter().flatten() {
        let name = parameter["name"].as_str().expect("a name");
        let Some(value) = record.remove(name) else { continue };
        match parameter["in"].as_str() {
            Some("path") => target = target.replace(&format!("{{{name}}}"), &encoded(&text(&value))),
            _ => query.push(format!("{name}={}", encoded(&text(&value)))),
        }
    }
    if !query.is_empty() {
        target = format!("{target}?{}", query.join("&"));
    }
    let (content_type, body) = body(operation, record, described.get("requestBody").is_some());
    let method = Method::from_bytes(method.to_uppercase().as_bytes()).expect("a method");
    HttpRequest { method, path: target, content_type, repeat, body }
}

/// The credential itself is the body, and each push service has an address of its own.
fn credential(record: &Value) -> HttpRequest {
    let path = format!("/v1/apps/{}/credentials/{}", text(&record["app"]), text(&record["provider"]));
    let body = record["credential"].to_string().into_bytes();
    HttpRequest { method: Method::PUT, path, content_type: "application/json", repeat: None, body }
}

fn body(operation: &str, mut record: Map<String, Value>, has_body: bool) -> (&'static str, Vec<u8>) {
    if operation == "devices.import" {
        return ("application/x-ndjson", text(&record.remove("lines").unwrap_or_default()).into_bytes());
    }
    match has_body || !record.is_empty() {
        true => ("application/json", Value::Object(record).to_string().into_bytes()),
        false => ("", Vec::new()),
    }
}

/// Writes a text as a part of a URL: all but letters and digits as their bytes.
fn encoded(text: &str) -> String {
    let one = |byte: u8| match byte.is_ascii_alphanumeric() {
        true => char::from(byte).to_string(),
        false => format!("%{byte:02X}"),
    };
    text.bytes().map(one).collect()
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Returns path, method and description of an operation.
fn found(operation: &str) -> (&'static str, &'static str, &'static Value) {
    let id = operation.replace('.', "_");
    let paths = openapi()["paths"].as_object().expect("paths");
    let all = paths.iter().flat_map(|(path, methods)| {
        methods.as_object().into_iter().flatten().map(move |(method, one)| (path, method, one))
    });
    let mut of_id = all.filter(|(_, _, one)| one["operationId"] == id.as_str());
    let (path, method, one) = of_id.next().unwrap_or_else(|| panic!("REST has no {operation}"));
    (path, method, one)
}

fn openapi() -> &'static Value {
    static OPENAPI: OnceLock<Value> = OnceLock::new();
    OPENAPI.get_or_init(|| {
        serde_json::from_str(&stentor_server::face::rest::openapi_json()).expect("a description")
    })
}

pub(super) fn read(reply: &HttpReply) -> Result<Value, Refused> {
    let body: Value = serde_json::from_slice(&reply.body).unwrap_or_default();
    if reply.headers.get("content-type").is_some_and(|kind| kind == "application/problem+json") {
        let code = body["code"].as_str().expect("a code").to_owned();
        return Err((code, body["field"].as_str().map(str::to_owned)));
    }
    Ok(body)
}
