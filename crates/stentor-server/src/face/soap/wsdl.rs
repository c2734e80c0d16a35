//! The description of this face: WSDL 1.1, document style, wrapped, with bindings for SOAP 1.1 and 1.2.

use std::sync::OnceLock;

use super::fault::REFUSAL;
use super::schema::{SCHEMA, schema};
use super::{RESPONSE, reply_name};
use crate::contract::description::{OperationShape, description};
use crate::face::markup::{Markup, markup};
use crate::face::record::xml::NAMESPACE;

/// Default address of the face.
pub(super) const ADDRESS: &str = "http://127.0.0.1:8686/soap";
const WSDL: &str = "http://schemas.xmlsoap.org/wsdl/";
const OVER_HTTP: &str = "http://schemas.xmlsoap.org/soap/http";
/// Prefix, namespace and name of each binding.
const BINDINGS: [(&str, &str, &str); 2] = [
    ("soap11", "http://schemas.xmlsoap.org/wsdl/soap/", "Soap11"),
    ("soap12", "http://schemas.xmlsoap.org/wsdl/soap12/", "Soap12"),
];
const PORT_TYPE: &str = "Stentor";
const SERVICE: &str = "StentorService";
/// Message of a fault; tools name their exceptions after it.
const REFUSED: &str = "OperationRefused";

/// Returns the description of a server on this machine.
#[must_use]
pub fn wsdl() -> String {
    kept().to_owned()
}

/// Returns the description of a server at an address.
pub(super) fn at(address: &str) -> String {
    kept().replace(ADDRESS, address)
}

fn kept() -> &'static str {
    static DOCUMENT: OnceLock<String> = OnceLock::new();
    DOCUMENT.get_or_init(|| definitions().document())
}

fn definitions() -> Markup {
    let operations = &description().operations;
    let root = markup("wsdl:definitions").set("name", SERVICE).set("targetNamespace", NAMESPACE);
    let root = root.set("xmlns:wsdl", WSDL).set("xmlns:xsd", SCHEMA).set("xmlns:tns", NAMESPACE);
    let root = BINDINGS
        .iter()
        .fold(root, |root, (prefix, namespace, _)| root.set(&format!("xmlns:{prefix}"), *namespace));
    root.with(markup("wsdl:types").with(schema()))
        .with_all(operations.iter().flat_map(messages))
        .with(message(REFUSED, "refusal", REFUSAL))
        .with(markup("wsdl:portType").set("name", PORT_TYPE).with_all(operations.iter().map(operation)))
        .with_all(BINDINGS.iter().map(|(prefix, _, name)| binding(prefix, name, operations)))
        .with(service())
}

fn messages(one: &OperationShape) -> [Markup; 2] {
    let name = one.facts.type_name;
    let reply = reply_name(one);
    [message(name, "parameters", name), message(&reply, "parameters", &reply)]
}

fn message(name: &str, part: &str, element: &str) -> Markup {
    let part = markup("wsdl:part").set("name", part).set("element", format!("tns:{element}"));
    markup("wsdl:message").set("name", name).with(part)
}

fn operation(one: &OperationShape) -> Markup {
    let name = one.facts.type_name;
    let message = |kind: &str, name: &str| markup(kind).set("message", format!("tns:{name}"));
    markup("wsdl:operation")
        .set("name", name)
        .with(markup("wsdl:documentation").say(&one.facts.sentences()))
        .with(message("wsdl:input", name))
        .with(message("wsdl:output", &format!("{name}{RESPONSE}")))
        .with(message("wsdl:fault", REFUSED).set("name", REFUSED))
}

fn binding(prefix: &str, name: &str, operations: &[OperationShape]) -> Markup {
    let transport = markup(&format!("{prefix}:binding")).set("style", "document").set("transport", OVER_HTTP);
    markup("wsdl:binding")
        .set("name", format!("{PORT_TYPE}{name}"))
        .set("type", format!("tns:{PORT_TYPE}"))
        .with(transport)
        .with_all(operations.iter().map(|one| bound(prefix, one.facts.type_name)))
}

fn bound(prefix: &str, name: &str) -> Markup {
    let action = markup(&format!("{prefix}:operation")).set("soapAction", format!("{NAMESPACE}:{name}"));
    let body = || markup(&format!("{prefix}:body")).set("use", "literal");
    let fault = markup(&format!("{prefix}:fault")).set("name", REFUSED).set("use", "literal");
    markup("wsdl:operation")
        .set("name", name)
        .with(action.set("style", "document"))
        .with(markup("wsdl:input").with(body()))
        .with(markup("wsdl:output").with(body()))
        .with(markup("wsdl:fault").set("name", REFUSED).with(fault))
}

fn service() -> Markup {
    let port = |(prefix, _, name): &(&str, &str, &str)| {
        let address = markup(&format!("{prefix}:address")).set("location", ADDRESS);
        let port = markup("wsdl:port").set("name", *name).set("binding", format!("tns:{PORT_TYPE}{name}"));
        port.with(address)
    };
    markup("wsdl:service").set("name", SERVICE).with_all(BINDINGS.iter().map(port))
}
