//! The rows of this face in two older forms: WADL, and WSDL 2.0 with its binding to HTTP. Both are made from what the
//! OpenAPI document is made of.

use serde_json::Value;

use super::openapi;
use crate::contract::table::OPERATIONS;
use crate::face::markup::{Markup, markup};
use crate::face::record::xml::NAMESPACE;
use crate::face::soap::{SCHEMA, schema};

/// Where the server is, as long as nobody says otherwise.
const ADDRESS: &str = "http://127.0.0.1:8686";
const WADL: &str = "http://wadl.dev.java.net/2009/02";
const WSDL: &str = "http://www.w3.org/ns/wsdl";
const WSDL_HTTP: &str = "http://www.w3.org/ns/wsdl/http";
const WSDL_EXTENSIONS: &str = "http://www.w3.org/ns/wsdl-extensions";
const IN_OUT: &str = "http://www.w3.org/ns/wsdl/in-out";
const INTERFACE: &str = "StentorRest";
const PROBLEM: &str = "Problem";

/// Returns the description as WADL.
#[must_use]
pub fn wadl() -> String {
    let document = document();
    let resources = paths(&document).map(|(path, item)| resource(path, item));
    let resources = markup("resources").set("base", format!("{ADDRESS}/")).with_all(resources);
    markup("application")
        .set("xmlns", WADL)
        .set("xmlns:xsd", SCHEMA)
        .with(markup("doc").set("title", "Stentor"))
        .with(resources)
        .document()
}

/// Returns the description as WSDL 2.0. What is asked is an element as the SOAP face has it, whose fields stand in the path,
/// in the query and in the body; what is replied is JSON.
#[must_use]
pub fn wsdl2() -> String {
    let document = document();
    let rows: Vec<_> = paths(&document).flat_map(|(path, item)| rows(path, item)).collect();
    let fault = markup("fault").set("name", PROBLEM).set("element", "#other");
    let interface = markup("interface").set("name", INTERFACE).with(fault);
    let binding = markup("binding").set("name", format!("{INTERFACE}Http"));
    let binding = binding.set("interface", format!("tns:{INTERFACE}")).set("type", WSDL_HTTP);
    let endpoint = markup("endpoint").set("name", "Http").set("binding", format!("tns:{INTERFACE}Http"));
    let service =
        markup("service").set("name", "StentorService").set("interface", format!("tns:{INTERFACE}"));
    markup("description")
        .set("xmlns", WSDL)
        .set("xmlns:whttp", WSDL_HTTP)
        .set("xmlns:wsdlx", WSDL_EXTENSIONS)
        .set("xmlns:xsd", SCHEMA)
        .set("xmlns:tns", NAMESPACE)
        .set("targetNamespace", NAMESPACE)
        .with(markup("types").with(schema()))
        .with(interface.with_all(rows.iter().map(operation)))
        .with(binding.with_all(rows.iter().map(bound)))
        .with(service.with(endpoint.set("address", ADDRESS)))
        .document()
}

/// An operation with its address.
struct DescribedRow<'a> {
    name: &'static str,
    method: String,
    path: &'a str,
    about: &'a Value,
}

fn document() -> Value {
    serde_json::to_value(openapi::document()).unwrap_or_default()
}

fn paths(document: &Value) -> impl Iterator<Item = (&String, &Value)> {
    document["paths"].as_object().into_iter().flatten()
}

fn methods(item: &Value) -> impl Iterator<Item = (&String, &Value)> {
    let known = item.as_object().into_iter().flatten();
    known.filter(|(method, _)| ["get", "put", "post", "delete", "patch"].contains(&method.as_str()))
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap_or_default()
}

/// Lists what is asked beside the body, in the path or in the query.
fn parameters<'a>(about: &'a Value, place: &'a str) -> impl Iterator<Item = &'a Value> {
    let all = about["parameters"].as_array().into_iter().flatten();
    all.filter(move |one| one["in"] == place)
}

/// Lists the media types of a request or a response.
fn media(about: &Value) -> impl Iterator<Item = &str> {
    about["content"].as_object().into_iter().flatten().map(|(kind, _)| kind.as_str())
}

fn resource(path: &str, item: &Value) -> Markup {
    let first = methods(item).next().map(|(_, about)| about);
    let template = first.into_iter().flat_map(|about| parameters(about, "path"));
    markup("resource")
        .set("path", path.trim_start_matches('/'))
        .with_all(template.map(|one| parameter(one, "template")))
        .with_all(methods(item).map(|(name, about)| method(name, about)))
}

fn parameter(one: &Value, style: &str) -> Markup {
    let kind = if one["schema"]["type"] == "integer" { "xsd:long" } else { "xsd:string" };
    let param = markup("param").set("name", text(one, "name")).set("style", style).set("type", kind);
    if one["required"] == true { param.set("required", "true") } else { param }
}

fn representation(kind: &str) -> Markup {
    markup("representation").set("mediaType", kind)
}

fn method(name: &str, about: &Value) -> Markup {
    let query: Vec<_> = parameters(about, "query").map(|one| parameter(one, "query")).collect();
    let bodies: Vec<_> = media(&about["requestBody"]).map(representation).collect();
    let is_asked = !query.is_empty() || !bodies.is_empty();
    let request = is_asked.then(|| markup("request").with_all(query).with_all(bodies));
    let responses = about["responses"].as_object().into_iter().flatten();
    markup("method")
        .set("name", name.to_uppercase())
        .set("id", text(about, "operationId"))
        .with(markup("doc").say(text(about, "summary")))
        .with_all(request)
        .with_all(responses.map(|(status, about)| response(status, about)))
}

/// Returns what is answered with a status, or with any other.
fn response(status: &str, about: &Value) -> Markup {
    if status == "default" {
        return markup("response").with(representation(super::PROBLEM_JSON));
    }
    markup("response").set("status", status).with_all(media(about).map(representation))
}

/// Lists the operations of the contract at a path; what needs no key is none.
fn rows<'a>(path: &'a str, item: &'a Value) -> Vec<DescribedRow<'a>> {
    let one = |(method, about): (&'a String, &'a Value)| {
        let id = text(about, "operationId");
        let facts = OPERATIONS.iter().find(|facts| facts.name.replacen('.', "_", 1) == id)?;
        Some(DescribedRow { name: facts.type_name, method: method.to_uppercase(), path, about })
    };
    methods(item).filter_map(one).collect()
}

fn operation(row: &DescribedRow) -> Markup {
    let operation = markup("operation").set("name", row.name).set("pattern", IN_OUT);
    let is_safe = if row.method == "GET" { "true" } else { "false" };
    let output = if row.about["responses"]["204"].is_object() { "#none" } else { "#other" };
    operation
        .set("wsdlx:safe", is_safe)
        .with(markup("documentation").say(text(row.about, "summary")))
        .with(markup("input").set("element", format!("tns:{}", row.name)))
        .with(markup("output").set("element", output))
        .with(markup("outfault").set("ref", format!("tns:{PROBLEM}")))
}

fn bound(row: &DescribedRow) -> Markup {
    let operation = markup("operation").set("ref", format!("tns:{}", row.name));
    let operation = operation.set("whttp:method", &row.method).set("whttp:location", row.path);
    match media(&row.about["requestBody"]).next() {
        Some(kind) => operation.set("whttp:inputSerialization", kind),
        None => operation,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stentor_wire::DocumentLimits;
    use stentor_wire::xml::dom::parse;

    #[test]
    fn every_operation_stands_in_both_descriptions() {
        for (name, text) in [("wadl", wadl()), ("wsdl2", wsdl2())] {
            parse(text.as_bytes(), &DocumentLimits::default()).expect(name);
            for facts in OPERATIONS {
                let sought = match name {
                    "wadl" => format!("id=\"{}\"", facts.name.replacen('.', "_", 1)),
                    _ => format!("ref=\"tns:{}\"", facts.type_name),
                };
                assert!(text.contains(&sought), "{} in {name}", facts.name);
            }
        }
    }
}
