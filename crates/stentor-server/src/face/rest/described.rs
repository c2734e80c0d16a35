//! Two older descriptions of this face: WADL, and WSDL 2.0 with its HTTP binding. Both are generated from the data of the OpenAPI document.

use serde_json::{Map, Value, json};

use super::error::{PROBLEM_JSON, PROBLEM_NAMESPACE, PROBLEM_XML};
use super::format::MEDIA_TYPES;
use super::openapi;
use crate::contract::description::{OperationShape, description};
use crate::face::markup::{Markup, markup};
use crate::face::record::xml::NAMESPACE;
use crate::face::soap::{SCHEMA, schema_of_bodies};

/// Default address of the server.
const ADDRESS: &str = "http://127.0.0.1:8686";
const WADL: &str = "http://wadl.dev.java.net/2009/02";
const WSDL: &str = "http://www.w3.org/ns/wsdl";
const WSDL_HTTP: &str = "http://www.w3.org/ns/wsdl/http";
const WSDL_EXTENSIONS: &str = "http://www.w3.org/ns/wsdl-extensions";
const IN_OUT: &str = "http://www.w3.org/ns/wsdl/in-out";
const INTERFACE: &str = "StentorRest";
const PROBLEM: &str = "Problem";
const PROBLEM_ELEMENT: &str = "problem:problem";
/// The format with an XML schema of its bodies.
const XML: &str = MEDIA_TYPES[1];
/// Name of the field with which the operator's key names an app; never part of a body.
const APP: &str = "app";

/// Returns the description as WADL. Its grammar has an element for each body that may be XML.
#[must_use]
pub fn wadl() -> String {
    let document = document();
    let bodies: Vec<_> = rows(&document).iter().filter_map(DescribedRow::body).collect();
    let resources = paths(&document).map(|(path, item)| resource(path, item));
    let resources = markup("resources").set("base", format!("{ADDRESS}/")).with_all(resources);
    markup("application")
        .set("xmlns", WADL)
        .set("xmlns:xsd", SCHEMA)
        .set("xmlns:tns", NAMESPACE)
        .set("xmlns:problem", PROBLEM_NAMESPACE)
        .with(markup("doc").set("title", "Stentor"))
        .with(markup("grammars").with(schema_of_bodies(&bodies)).with(schema_of_refusals(&document)))
        .with(resources)
        .document()
}

/// Returns the description as WSDL 2.0. The request is the element of the SOAP face, with fields in the path, in the query and in the body;
/// the reply is the element of its record.
#[must_use]
pub fn wsdl2() -> String {
    let document = document();
    let rows = rows(&document);
    let fault = markup("fault").set("name", PROBLEM).set("element", PROBLEM_ELEMENT);
    let interface = markup("interface").set("name", INTERFACE).with(fault);
    let binding = markup("binding").set("name", format!("{INTERFACE}Http"));
    let binding = binding.set("interface", format!("tns:{INTERFACE}")).set("type", WSDL_HTTP);
    let endpoint = markup("endpoint").set("name", "Http").set("binding", format!("tns:{INTERFACE}Http"));
    let service =
        markup("service").set("name", "StentorService").set("interface", format!("tns:{INTERFACE}"));
    let types = markup("types").with(schema_of_bodies(rows.iter().map(|row| row.shape)));
    markup("description")
        .set("xmlns", WSDL)
        .set("xmlns:whttp", WSDL_HTTP)
        .set("xmlns:wsdlx", WSDL_EXTENSIONS)
        .set("xmlns:xsd", SCHEMA)
        .set("xmlns:tns", NAMESPACE)
        .set("xmlns:problem", PROBLEM_NAMESPACE)
        .set("targetNamespace", NAMESPACE)
        .with(types.with(schema_of_refusals(&document)))
        .with(interface.with_all(rows.iter().map(operation)))
        .with(binding.with_all(rows.iter().map(bound)))
        .with(service.with(endpoint.set("address", ADDRESS)))
        .document()
}

/// An operation with its address.
struct DescribedRow<'a> {
    shape: &'static OperationShape,
    method: String,
    path: &'a str,
    about: &'a Value,
}

impl DescribedRow<'_> {
    /// Returns the operation with the fields of its body, if that may be XML. Fields in the path are left out, because the body may omit
    /// them.
    fn body(&self) -> Option<OperationShape> {
        let mut shape =
            media(&self.about["requestBody"]).any(|kind| kind == XML).then(|| self.shape.clone())?;
        let in_path: Vec<_> = parameters(self.about, "path").map(|one| text(one, "name")).collect();
        shape.request.fields.retain(|field| field.name != APP && !in_path.contains(&field.name.as_str()));
        Some(shape)
    }

    /// Returns the element of the reply; `None` if the reply is empty.
    fn reply(&self) -> Option<String> {
        (!self.shape.reply.fields.is_empty()).then(|| element(&self.shape.reply.name))
    }
}

fn document() -> Value {
    let mut document = json!(openapi::document());
    // OpenAPI has a path for each push service, with a schema of its credentials; here all of them share one path.
    let forms: Map<_, _> = MEDIA_TYPES.iter().map(|kind| ((*kind).to_owned(), json!({}))).collect();
    document["paths"][openapi::CREDENTIAL_ROUTE]["put"]["requestBody"] = json!({"content": forms});
    document
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

/// Lists the parameters in the path or in the query.
fn parameters<'a>(about: &'a Value, place: &'a str) -> impl Iterator<Item = &'a Value> {
    let all = about["parameters"].as_array().into_iter().flatten();
    all.filter(move |one| one["in"] == place)
}

/// Lists the media types of a request or a response.
fn media(about: &Value) -> impl Iterator<Item = &str> {
    about["content"].as_object().into_iter().flatten().map(|(kind, _)| kind.as_str())
}

fn element(name: &str) -> String {
    format!("tns:{name}")
}

/// Writes the schema of a refusal, with elements in any order (RFC 9457, appendix B).
fn schema_of_refusals(document: &Value) -> Markup {
    let refusal = &document["components"]["schemas"][PROBLEM];
    let required = refusal["required"].as_array();
    let member = |(name, about): (&String, &Value)| {
        let kind = if about["type"] == "integer" { "xsd:int" } else { "xsd:string" };
        let member = markup("xsd:element").set("name", name).set("type", kind);
        match required.is_some_and(|names| names.iter().any(|known| known == name)) {
            true => member,
            false => member.set("minOccurs", "0"),
        }
    };
    let members = refusal["properties"].as_object().into_iter().flatten().map(member);
    let content = markup("xsd:complexType").with(markup("xsd:all").with_all(members));
    markup("xsd:schema")
        .set("targetNamespace", PROBLEM_NAMESPACE)
        .set("elementFormDefault", "qualified")
        .with(markup("xsd:element").set("name", "problem").with(content))
}

fn resource(path: &str, item: &Value) -> Markup {
    let first = methods(item).next().map(|(_, about)| about);
    let template = first.into_iter().flat_map(|about| parameters(about, "path"));
    markup("resource")
        .set("path", path.trim_start_matches('/'))
        .set("id", resource_name(path))
        .with_all(template.map(|one| parameter(one, "template")))
        .with_all(methods(item).map(|(name, about)| method(name, about)))
}

/// Returns a name for the resource at a path. Tools use it as a class name, and cannot derive one from every path.
fn resource_name(path: &str) -> String {
    let words = path.split(|letter: char| !letter.is_ascii_alphanumeric());
    let words = words.filter(|word| !["", "v1"].contains(word));
    words.map(|word| word[..1].to_ascii_uppercase() + &word[1..]).collect::<String>() + "Resource"
}

fn parameter(one: &Value, style: &str) -> Markup {
    let kind = kind_of(&one["schema"]["type"]);
    let param = markup("param").set("name", text(one, "name")).set("style", style).set("type", kind);
    if one["required"] == true { param.set("required", "true") } else { param }
}

/// Returns the type of a parameter. An optional parameter may also be null.
fn kind_of(kinds: &Value) -> &'static str {
    let is =
        |sought: &str| kinds == sought || kinds.as_array().is_some_and(|all| all.contains(&sought.into()));
    if is("integer") {
        "xsd:long"
    } else if is("boolean") {
        "xsd:boolean"
    } else {
        "xsd:string"
    }
}

/// Describes a body in one format; `in_xml` is its element in XML.
fn representation(kind: &str, in_xml: Option<&str>) -> Markup {
    let written = markup("representation").set("mediaType", kind);
    match in_xml.filter(|_| kind == XML) {
        Some(name) => written.set("element", element(name)),
        None => written,
    }
}

fn method(name: &str, about: &Value) -> Markup {
    let shape = shape_of(about);
    let request_type = shape.map(|shape| shape.facts.type_name);
    let query: Vec<_> = parameters(about, "query").map(|one| parameter(one, "query")).collect();
    let bodies: Vec<_> =
        media(&about["requestBody"]).map(|kind| representation(kind, request_type)).collect();
    let is_asked = !query.is_empty() || !bodies.is_empty();
    let request = is_asked.then(|| markup("request").with_all(query).with_all(bodies));
    let responses = about["responses"].as_object().into_iter().flatten();
    markup("method")
        .set("name", name.to_uppercase())
        .set("id", text(about, "operationId"))
        .with(markup("doc").say(text(about, "summary")))
        .with_all(request)
        .with_all(responses.map(|(status, about)| response(status, about, shape)))
}

/// Describes the response for one status, or the default response.
fn response(status: &str, about: &Value, shape: Option<&OperationShape>) -> Markup {
    if status == "default" {
        let in_xml = markup("representation").set("mediaType", PROBLEM_XML).set("element", PROBLEM_ELEMENT);
        return markup("response").with(representation(PROBLEM_JSON, None)).with(in_xml);
    }
    let replied = shape.map(|shape| shape.reply.name.as_str());
    let bodies = media(about).map(|kind| representation(kind, replied));
    markup("response").set("status", status).with_all(bodies)
}

/// Returns the operation of the contract; `None` for operations without a key, which are not part of it.
fn shape_of(about: &Value) -> Option<&'static OperationShape> {
    let id = text(about, "operationId");
    description().operations.iter().find(|one| one.facts.name.replacen('.', "_", 1) == id)
}

/// Lists the operations of the contract with their addresses.
fn rows(document: &Value) -> Vec<DescribedRow<'_>> {
    paths(document)
        .flat_map(|(path, item)| methods(item).filter_map(move |(method, about)| row(path, method, about)))
        .collect()
}

fn row<'a>(path: &'a str, method: &str, about: &'a Value) -> Option<DescribedRow<'a>> {
    Some(DescribedRow { shape: shape_of(about)?, method: method.to_uppercase(), path, about })
}

fn operation(row: &DescribedRow) -> Markup {
    let name = row.shape.facts.type_name;
    let operation = markup("operation").set("name", name).set("pattern", IN_OUT);
    let is_safe = if row.method == "GET" { "true" } else { "false" };
    let output = row.reply().unwrap_or_else(|| "#none".to_owned());
    operation
        .set("wsdlx:safe", is_safe)
        .with(markup("documentation").say(text(row.about, "summary")))
        .with(markup("input").set("element", element(name)))
        .with(markup("output").set("element", output))
        .with(markup("outfault").set("ref", format!("tns:{PROBLEM}")))
}

fn bound(row: &DescribedRow) -> Markup {
    let operation = markup("operation").set("ref", format!("tns:{}", row.shape.facts.type_name));
    let operation = operation.set("whttp:method", &row.method).set("whttp:location", row.path);
    let media_types: Vec<_> = media(&row.about["requestBody"]).collect();
    let media_type = media_types.iter().find(|kind| **kind == XML).or(media_types.first());
    let operation =
        media_type.into_iter().fold(operation, |made, kind| made.set("whttp:inputSerialization", *kind));
    match row.reply() {
        Some(_) => operation.set("whttp:outputSerialization", XML),
        None => operation,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::table::OPERATIONS;
    use std::collections::BTreeSet;
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

    #[test]
    fn every_name_in_the_wadl_is_there_once_and_every_element_in_its_grammar() {
        let text = wadl();
        let after = |mark: &'static str| {
            text.split(mark).skip(1).map(|rest| rest.split('"').next().unwrap_or_default())
        };
        let names: Vec<_> = after(" id=\"").collect();
        assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len(), "{names:?}");
        assert!(names.contains(&"DevicesDeviceResource"), "{names:?}");
        let elements: BTreeSet<_> = after(" element=\"tns:").collect();
        assert!(elements.contains("RegisterDevice") && elements.contains("Registered"), "{elements:?}");
        for name in elements {
            assert!(text.contains(&format!("      <xsd:element name=\"{name}\"")), "{name}");
        }
    }
}
