//! The reference describes the API as it is served, and needs no other server.

use std::collections::BTreeSet;

use reqwest::Method;
use serde_json::Value;
use stentor_server::config::Engine;
use stentor_server::face::rest::{error_codes, openapi_json};

use crate::harness::{Reading, config, server, server_with};

fn document() -> Value {
    serde_json::from_str(&openapi_json()).expect("JSON")
}

fn operations(document: &Value) -> Vec<(String, String)> {
    let paths = document["paths"].as_object().expect("paths");
    let of = |(path, item): (&String, &Value)| {
        let methods = item.as_object().expect("an object").keys().cloned();
        methods.map(|method| (method.to_uppercase(), path.clone())).collect::<Vec<_>>()
    };
    paths.iter().flat_map(of).collect()
}

#[test]
fn the_committed_reference_is_the_present_one() {
    let committed = include_str!("../../../../docs/openapi.json");
    // The committed one has no indentation.
    let same = committed.lines().eq(openapi_json().lines().map(str::trim_start));
    assert!(same, "docs/openapi.json is old: run `cargo xtask codegen`");
    let errors = include_str!("../../../../docs/errors.md");
    assert!(
        errors == stentor_server::face::rest::errors_markdown(),
        "docs/errors.md is old: run `cargo xtask codegen`"
    );
    let config = include_str!("../../../../docs/config.default.toml");
    assert!(
        config == stentor_server::config::DEFAULT_TOML,
        "docs/config.default.toml is old: run `cargo xtask codegen`"
    );
}

#[test]
fn every_operation_names_its_answers_and_its_refusal() {
    let document = document();
    assert_eq!(document["openapi"], "3.1.0");
    assert_eq!(document["info"]["license"]["identifier"], "Apache-2.0");
    for (method, path) in operations(&document) {
        let operation = &document["paths"][&path][method.to_lowercase()];
        assert!(operation["summary"].is_string(), "{method} {path} has no summary");
        let responses = operation["responses"].as_object().expect("responses");
        assert!(responses.keys().any(|status| status.starts_with('2')), "{method} {path}");
        assert_eq!(responses["default"]["$ref"], "#/components/responses/Problem", "{method} {path}");
    }
    let names: BTreeSet<_> = operations(&document)
        .iter()
        .map(|(method, path)| document["paths"][path][method.to_lowercase()]["operationId"].to_string())
        .collect();
    assert_eq!(names.len(), operations(&document).len(), "every operation has a name of its own");
    let described = document["components"]["responses"]["Problem"]["description"].as_str().expect("text");
    for entry in error_codes() {
        assert!(described.contains(entry.code), "{}", entry.code);
    }
}

#[test]
fn every_reference_inside_the_document_leads_somewhere() {
    let document = document();
    let text = document.to_string();
    let names: BTreeSet<_> = text
        .match_indices("\"#/components/")
        .map(|(at, _)| {
            let rest = &text[at + 2..];
            rest.split('"').next().expect("an end").to_owned()
        })
        .collect();
    assert!(names.len() > 20);
    for name in names {
        let pointer = name.strip_prefix('/').map_or(format!("/{name}"), |rest| format!("/{rest}"));
        assert!(document.pointer(&pointer).is_some(), "{name} is not there");
    }
}

#[tokio::test]
async fn every_described_route_is_served_and_wants_a_key_unless_it_says_otherwise() {
    let server = server().await;
    let document = document();
    for (method, path) in operations(&document) {
        let filled = path
            .split('/')
            .map(|part| if part.starts_with('{') { "x" } else { part })
            .collect::<Vec<_>>()
            .join("/");
        let read =
            server.open(Method::from_bytes(method.as_bytes()).expect("a method"), &filled).read().await;
        let open = document["paths"][&path][method.to_lowercase()]["security"].is_array();
        let expected = if open { 200 } else { 401 };
        assert_eq!(read.status, expected, "{method} {path}: {read:?}");
    }
}

#[test]
fn the_contract_is_covered() {
    let operations_served: BTreeSet<_> =
        operations(&document()).into_iter().map(|(method, path)| format!("{method} {path}")).collect();
    let contract = include_str!("../contract/routes.txt");
    let missing: Vec<_> =
        contract.lines().filter(|line| !line.is_empty() && !operations_served.contains(*line)).collect();
    assert_eq!(missing, Vec::<&str>::new());
    assert_eq!(
        operations_served.len(),
        contract.lines().filter(|line| !line.is_empty()).count(),
        "a new route belongs in contract/routes.txt"
    );
}

#[tokio::test]
async fn the_page_loads_nothing_from_elsewhere() {
    let server = server().await;
    let page = server.open(Method::GET, "/docs").read().await;
    let html = page.body.as_str().expect("a page").to_owned();
    assert!(page.headers["content-security-policy"].contains("default-src 'none'"));
    assert!(html.contains("/docs/scalar.js") && html.contains("\"telemetry\":false"));
    assert!(!html.contains("https://"), "{html}");
    let script = server.open(Method::GET, "/docs/scalar.js").read().await;
    assert_eq!(script.status, 200);
    let response = server.open(Method::GET, "/openapi.json").read().await;
    assert_eq!(response.body, document());
}

#[tokio::test]
async fn the_documentation_is_served_beside_the_reference_and_nothing_outside_of_its_folder_is() {
    let folder = tempfile::tempdir().expect("a folder");
    let site = folder.path().join("site");
    std::fs::create_dir_all(site.join("lab")).expect("made");
    for (file, text) in [("site/index.html", "start"), ("site/lab/link.html", "link"), ("secret", "secret")] {
        std::fs::write(folder.path().join(file), text).expect("written");
    }
    let server = server_with(|config| config.api.docs_dir = site).await;
    for (path, text) in [("/docs", "start"), ("/docs/", "start"), ("/docs/lab/link.html", "link")] {
        let page = server.open(Method::GET, path).read().await;
        assert_eq!(page.body.as_str(), Some(text), "{path}: {page:?}");
        let policy = &page.headers["content-security-policy"];
        assert!(policy.contains("default-src 'none'; script-src 'self';"), "{policy}");
        assert!(page.headers["content-type"].starts_with("text/html"), "{page:?}");
    }
    for path in ["/docs/lab", "/docs/missing.html", "/docs/..%2fsecret", "/docs/lab/..%2f..%2fsecret"] {
        assert_eq!(server.open(Method::GET, path).read().await.refusal().0, 404, "{path}");
    }
    let reference = server.open(Method::GET, "/docs/reference").read().await;
    assert!(reference.body.as_str().is_some_and(|html| html.contains("/docs/scalar.js")));
}

#[tokio::test]
async fn a_folder_without_documentation_keeps_the_server_from_starting() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut config = config(folder.path(), Engine::Memory);
    config.api.docs_dir = folder.path().to_owned();
    let refused = stentor_node::build(config).await.err().expect("a refusal");
    assert!(refused.to_string().contains("api.docs_dir"), "{refused}");
}

#[test]
fn every_answer_is_described_and_the_document_says_where_the_server_is() {
    let document = document();
    for (method, path) in operations(&document) {
        let responses = &document["paths"][&path][method.to_lowercase()]["responses"];
        for (status, response) in responses.as_object().expect("responses") {
            let is_described = response["description"].as_str().is_some_and(|text| !text.is_empty());
            assert!(
                is_described || response["$ref"].is_string(),
                "{method} {path} {status}: OpenAPI 3.1, 4.8.17"
            );
        }
    }
    assert!(document["servers"].as_array().is_some_and(|servers| !servers.is_empty()));
    assert_eq!(document["tags"][0]["name"], "messages", "a reader begins with what the server is for");
}

/// Client generators put these words before names, or drop capitals and punctuation. Names that become equal then would become one type.
#[test]
fn no_two_names_of_the_document_become_one_in_a_client() {
    let document = document();
    let schemas = document["components"]["schemas"].as_object().expect("schemas");
    let folded = |name: &str| {
        let letters = name.chars().filter(char::is_ascii_alphanumeric);
        letters.collect::<String>().to_lowercase()
    };
    let mut known = BTreeSet::new();
    for name in schemas.keys() {
        for made in [name.clone(), format!("New{name}"), format!("Nullable{name}")] {
            assert!(known.insert(folded(&made)), "{made} is the name of two things");
        }
    }
    for (name, schema) in schemas {
        let words: Vec<_> =
            schema["enum"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let apart: BTreeSet<_> = words.iter().map(|word| folded(word)).collect();
        assert_eq!(apart.len(), words.len(), "{name} has words that a program cannot tell apart");
        if schema["properties"].is_object() {
            for word in ["anyOf", "oneOf", "not"] {
                assert!(schema.get(word).is_none(), "{name}: generators lose the properties beside `{word}`");
            }
        }
    }
}

/// The requests shown on the page, in an order in which each finds the objects that it needs.
const SHOWN: [(&str, &str); 17] = [
    ("PUT", "/v1/apps/{app}/credentials/null"),
    ("PUT", "/v1/apps/{app}/credentials/gateway"),
    ("POST", "/v1/devices"),
    ("POST", "/v1/devices/bulk"),
    ("PATCH", "/v1/devices/{device}"),
    ("PUT", "/v1/devices/{device}"),
    ("PUT", "/v1/groups/{group}"),
    ("POST", "/v1/groups/{group}/members"),
    ("POST", "/v1/topics/{topic}/subscriptions"),
    ("POST", "/v1/subscriptions/bulk"),
    ("POST", "/v1/messages"),
    ("POST", "/v1/messages/bulk"),
    ("POST", "/v1/schedules"),
    ("PUT", "/v1/services/{service}"),
    ("POST", "/v1/apps"),
    ("POST", "/v1/apps/{app}/keys"),
    ("POST", "/v1/apps/{app}/service-accounts"),
];

#[tokio::test]
async fn the_examples_of_the_document_are_requests_that_the_server_takes() {
    let server = server().await;
    let tenant = server.tenant().await;
    let document = document();
    let mut device = String::new();
    for (method, path) in SHOWN {
        let operation = &document["paths"][path][method.to_lowercase()];
        let body = &operation["requestBody"]["content"]["application/json"]["example"];
        let filled = path.replace("{app}", &tenant.id).replace("{device}", &device);
        let filled = filled
            .replace("{group}", "family")
            .replace("{topic}", "news")
            .replace("{service}", "hall-sensors");
        let is_operators = path.starts_with("/v1/apps");
        let method_sent = Method::from_bytes(method.as_bytes()).expect("a method");
        let request = match is_operators {
            true => server.root(method_sent, &filled),
            false => server.send(&tenant, method_sent, &filled),
        };
        // The device id of an example does not exist; it is replaced by the registered one.
        let text = body.to_string().replace("dev_01kb2d3v00000", &device);
        let request = if body.is_null() {
            request
        } else {
            request.header("content-type", "application/json").body(text)
        };
        let read = request.read().await;
        assert!((200..300).contains(&read.status), "{method} {path}: {read:?}");
        if (method, path) == ("POST", "/v1/devices") {
            device = read.text("id");
        }
    }
}
