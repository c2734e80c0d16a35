//! Checks that the XML schemas agree with the shapes of the contract's records, by which the server reads and writes.

use std::collections::BTreeMap;

use super::*;
use crate::face::rest::openapi_json;

/// The description, to be compared with the shapes.
struct Described {
    document: Value,
}

impl Described {
    fn new() -> Self {
        Self { document: serde_json::from_str(&openapi_json()).expect("JSON") }
    }

    /// Returns the description of an operation. One with a path for each push service has other names.
    fn operation(&self, name: &str) -> Option<&Value> {
        let paths = self.document["paths"].as_object().expect("paths").values();
        let mut operations = paths.flat_map(|item| item.as_object().expect("methods").values());
        operations.find(|one| one["operationId"] == name.replace('.', "_"))
    }

    fn resolved<'a>(&'a self, schema: &'a Value) -> &'a Value {
        referred(schema, self.document["components"]["schemas"].as_object().expect("schemas"))
            .unwrap_or(schema)
    }

    /// Lists the elements of a schema, its own before those of its parts. A later part only adds rules for a known element.
    fn elements<'a>(&'a self, schema: &'a Value) -> BTreeMap<&'a str, &'a Value> {
        let schema = self.resolved(schema);
        let own = schema["properties"].as_object().into_iter().flatten();
        let mut elements: BTreeMap<_, _> = own.map(|(name, property)| (name.as_str(), property)).collect();
        for part in COMBINED.iter().filter_map(|word| schema[*word].as_array()).flatten() {
            for (name, element) in self.elements(part) {
                elements.entry(name).or_insert(element);
            }
        }
        elements
    }

    fn check_record(&self, schema: &Value, record: &RecordShape, left_out: &[&str]) {
        let elements = self.elements(schema);
        for name in elements.keys() {
            assert!(record.field(name).is_some(), "{}: no element `{name}` is read or written", record.name);
        }
        for field in record.fields.iter().filter(|field| !left_out.contains(&field.name.as_str())) {
            let at = format!("{}.{}", record.name, field.name);
            let element =
                elements.get(field.name.as_str()).unwrap_or_else(|| panic!("{at} is not described"));
            self.check(element, &field.shape, &at);
        }
    }

    fn check(&self, schema: &Value, shape: &Shape, at: &str) {
        let schema = self.resolved(schema);
        let is = |kind: &str| assert_eq!(schema["type"], kind, "{at}: {schema}");
        match shape {
            Shape::Text => is("string"),
            Shape::Int => is("integer"),
            Shape::Double => is("number"),
            Shape::Bool => is("boolean"),
            Shape::Json => assert_eq!(schema["contentMediaType"], "application/json", "{at}: {schema}"),
            Shape::List(inner) => {
                is("array");
                self.check(&schema["items"], inner, at);
            }
            Shape::Map(inner) => {
                let entry = &schema["properties"][ENTRY]["items"]["properties"];
                self.check(&entry[VALUE], inner, at);
                self.check(&entry[KEY], &Shape::Text, at);
            }
            Shape::Record(name) => {
                let absent: &[&str] = match at {
                    "CreateScheduleRequest.message" => &["send_at", "dry_run"],
                    "CreateProposalRequest.message" => &["dry_run"],
                    _ => &[],
                };
                self.check_record(schema, description().record(name).expect("known"), absent);
            }
        }
    }
}

#[test]
fn every_body_is_described_as_it_is_read_and_written() {
    let described = Described::new();
    let mut checked = 0;
    for one in &description().operations {
        let Some(operation) = described.operation(one.facts.name) else { continue };
        let request = &operation["requestBody"]["content"][MEDIA_TYPES[1]]["schema"];
        if request.is_object() {
            assert_eq!(request["xml"]["name"], one.facts.type_name);
            let in_head: Vec<_> =
                one.facts.subject.iter().copied().chain(["app", "idempotency_key"]).collect();
            described.check_record(request, &one.request, &in_head);
            checked += 1;
        }
        for (status, response) in operation["responses"].as_object().expect("responses") {
            let reply = &response["content"][MEDIA_TYPES[1]]["schema"];
            assert_eq!(
                reply.is_object(),
                response["content"][MEDIA_TYPES[0]]["schema"].is_object(),
                "{} {status}: one form is described and the other is not",
                one.facts.name
            );
            if reply.is_object() {
                assert_eq!(reply["xml"]["name"], one.reply.name);
                described.check_record(reply, &one.reply, &[]);
                checked += 1;
            }
        }
    }
    assert!(checked > 50, "{checked} bodies");
}

#[test]
fn the_credential_of_each_push_service_is_described_as_it_is_read() {
    let described = Described::new();
    let name = PutCredential::FACTS.name;
    let one = description().operations.iter().find(|one| one.facts.name == name).expect("an operation");
    for adapter in stentor_providers::all() {
        let operation = described.operation(&name.replace("credential", adapter.kind.as_str()));
        let content = &operation.expect("a path of its own")["requestBody"]["content"];
        let [json, xml, protobuf] = MEDIA_TYPES.map(|kind| &content[kind]);
        assert!(protobuf.is_object(), "{content}");
        assert_eq!(xml["schema"]["xml"]["name"], one.facts.type_name);
        described.check_record(&xml["schema"], &one.request, one.facts.subject);
        assert_eq!(xml["schema"]["properties"]["credential"]["contentSchema"], json["schema"]);
    }
}
