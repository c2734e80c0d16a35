//! Types: the values that keep their type if the document alone describes them.

use super::{PaperProtocol, ProbeReply};
use crate::subject::SubjectError;
use stentor_wire::soap::{Envelope, SoapBody, Version};
use stentor_wire::xml::Attribute;
use stentor_wire::xml::dom::{Element, parse};
use stentor_wire::xmlrpc::{read_response, write_response};
use stentor_wire::{DocumentLimits, Value, WireError, soap};

const XSI: &str = "http://www.w3.org/2001/XMLSchema-instance";
/// Names of XML Schema types that a document may state beside a value.
const DOUBLE: &str = "xsd:double";
const LONG: &str = "xsd:long";
const BOOLEAN: &str = "xsd:boolean";
const STRING: &str = "xsd:string";
const DATE_TIME: &str = "xsd:dateTime";
const BINARY: &str = "xsd:base64Binary";
const ARRAY: &str = "soapenc:Array";

/// A value of each type.
fn samples() -> [(&'static str, Value); 9] {
    [
        ("int", Value::Int(42)),
        ("string", "text".into()),
        ("float", Value::Double(2.5)),
        ("bool", Value::Bool(true)),
        ("date/time", Value::DateTime("20090601T12:00:00".into())),
        ("binary", Value::Bytes(vec![0, 255, 7])),
        ("nil", Value::Nil),
        ("struct", Value::Record(vec![("name".into(), "one".into()), ("size".into(), "two".into())])),
        ("array", Value::List(vec!["one".into(), "two".into()])),
    ]
}

/// Writes and reads a value of each type, and counts those that are unchanged.
pub(super) fn survive(protocol: PaperProtocol) -> Result<ProbeReply, SubjectError> {
    let samples = samples();
    let mut lost = Vec::new();
    for (name, value) in &samples {
        if trip(protocol, value)?.as_ref() != Some(value) {
            lost.push(*name);
        }
    }
    let how = match protocol {
        PaperProtocol::XmlRpc => "the format names types; nil is an extension of it",
        PaperProtocol::Soap => "with xsi:type beside each value",
        PaperProtocol::Rest => "plain XML names no types",
    };
    let lost_text =
        if lost.is_empty() { "none is lost".to_owned() } else { format!("lost: {}", lost.join(", ")) };
    Ok(ProbeReply::count(samples.len() - lost.len(), "of 9 types", format!("{lost_text} ({how})")))
}

fn trip(protocol: PaperProtocol, value: &Value) -> Result<Option<Value>, WireError> {
    let limits = DocumentLimits::default();
    match protocol {
        PaperProtocol::XmlRpc => Ok(read_response(&write_response(&Ok(value.clone()))?, &limits)?.ok()),
        PaperProtocol::Rest => Ok(Some(untyped(&parse(&plain("value", value).to_bytes()?, &limits)?))),
        PaperProtocol::Soap => {
            let bytes = soap::write(&Envelope::around(Version::V11, vec![typed("value", value)]))?;
            match soap::read(&bytes, &limits, &[])?.body {
                SoapBody::Elements(elements) => Ok(elements.first().and_then(of_typed)),
                SoapBody::Fault(_) => Ok(None),
            }
        }
    }
}

/// Writes a value as plain XML: fields become elements, entries become elements of one name.
fn plain(name: &str, value: &Value) -> Element {
    let element = Element::new(name);
    match value {
        Value::Record(fields) => {
            fields.iter().fold(element, |all, (name, value)| all.with(plain(name, value)))
        }
        Value::List(values) => values.iter().fold(element, |all, value| all.with(plain("entry", value))),
        other => element.with_text(&text(other)),
    }
}

/// Reads plain XML without further knowledge: elements of one name form an array, others a struct, and the rest is text.
fn untyped(element: &Element) -> Value {
    let inside: Vec<&Element> = element.elements().collect();
    match inside.first() {
        None => Value::Text(element.text()),
        Some(first) if inside.len() > 1 && inside.iter().all(|one| one.name == first.name) => {
            Value::List(inside.into_iter().map(untyped).collect())
        }
        Some(_) => Value::Record(inside.into_iter().map(|one| (one.name.clone(), untyped(one))).collect()),
    }
}

/// Writes a value with its type, according to section 5 of SOAP 1.1.
fn typed(name: &str, value: &Value) -> Element {
    let (mark, kind) = match value {
        Value::Nil => ("nil", "true"),
        Value::Bool(_) => ("type", BOOLEAN),
        Value::Int(_) => ("type", LONG),
        Value::Double(_) => ("type", DOUBLE),
        Value::Bytes(_) => ("type", BINARY),
        Value::DateTime(_) => ("type", DATE_TIME),
        Value::List(_) => ("type", ARRAY),
        // A struct has no type of its own: its fields are elements.
        Value::Record(fields) => {
            return fields.iter().fold(Element::new(name), |all, (name, value)| all.with(typed(name, value)));
        }
        Value::Text(_) => ("type", STRING),
    };
    let mut element = Element::new(name);
    element.attributes.push(Attribute { namespace: Some(XSI.into()), name: mark.into(), value: kind.into() });
    match value {
        Value::List(values) => values.iter().fold(element, |all, value| all.with(typed("item", value))),
        other => element.with_text(&text(other)),
    }
}

fn of_typed(element: &Element) -> Option<Value> {
    if element.attribute_in(XSI, "nil") == Some("true") {
        return Some(Value::Nil);
    }
    let text = element.text();
    Some(match element.attribute_in(XSI, "type") {
        Some(BOOLEAN) => Value::Bool(text == "true"),
        Some(LONG) => Value::Int(text.parse().ok()?),
        Some(DOUBLE) => Value::Double(text.parse().ok()?),
        Some(BINARY) => Value::Bytes(base64(&text)?),
        Some(DATE_TIME) => Value::DateTime(text),
        Some(ARRAY) => Value::List(element.elements().map(of_typed).collect::<Option<_>>()?),
        Some(_) => Value::Text(text),
        None => {
            let field = |one: &Element| Some((one.name.clone(), of_typed(one)?));
            Value::Record(element.elements().map(field).collect::<Option<_>>()?)
        }
    })
}

/// Formats a scalar as text.
fn text(value: &Value) -> String {
    use base64::Engine;
    match value {
        Value::Bool(flag) => flag.to_string(),
        Value::Int(number) => number.to_string(),
        Value::Double(number) => number.to_string(),
        Value::Text(text) | Value::DateTime(text) => text.clone(),
        Value::Bytes(bytes) => base64::engine::general_purpose::STANDARD.encode(bytes),
        Value::Nil | Value::List(_) | Value::Record(_) => String::new(),
    }
}

fn base64(text: &str) -> Option<Vec<u8>> {
    use base64::Engine;
    base64::engine::general_purpose::STANDARD.decode(text).ok()
}
