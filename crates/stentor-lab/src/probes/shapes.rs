//! Structs and arrays: are they returned intact, do they have names, may they be user-defined, and is a wrong type detected outside the
//! application?

use super::contract::{WsdlReading, described, specification};
use super::face::TrialFace;
use super::{PaperProtocol, ProbeReply};
use crate::subject::SubjectError;
use crate::subject::reference::Op;
use std::collections::BTreeMap;
use stentor_wire::soap::{Envelope, SoapBody, Version};
use stentor_wire::xml::dom::{Element, parse};
use stentor_wire::{Content, DocumentLimits, Item, WireError, soap, xmlrpc};

/// Entries of the requested arrays.
const ITEMS: &str = "3";
/// Integer types of XML Schema.
const WHOLE: [&str; 3] = ["long", "int", "integer"];
/// A unique namespace.
const OWN: &str = "urn:of:ones:own";

/// Requests an array of numbers and one of structs, and compares each entry.
pub(super) async fn structs(face: &mut TrialFace) -> Result<ProbeReply, SubjectError> {
    let mut came = Vec::new();
    for kind in ["Int", "Object"] {
        let factors =
            BTreeMap::from([("type".to_owned(), kind.to_owned()), ("items".to_owned(), ITEMS.to_owned())]);
        let exchange = Op::Array.exchange(&factors, 1);
        let exchange = exchange.ok_or_else(|| SubjectError::Exchange("the cell makes no sense".into()))?;
        came.push(face.exchange(Op::Array, factors, &exchange.request).await? == exchange.answer);
    }
    let evidence = format!(
        "{} of 2 arrays of {ITEMS} (numbers, structs) came as they were made",
        came.iter().filter(|is| **is).count()
    );
    Ok(ProbeReply::is(came.iter().all(|is| *is), evidence))
}

/// Encodes a struct and checks if its name is the name of an element.
pub(super) fn named(protocol: PaperProtocol) -> Result<ProbeReply, SubjectError> {
    let items = vec![Item { id: 1, name: "one".into(), price: 0.25 }];
    let bytes = protocol.dialect()?.write_request(Op::Echo, &Content::Objects(items))?;
    Ok(has_names(&names(&parse(&bytes, &DocumentLimits::default())?)))
}

/// Requests an array of structs from a face and checks if its response contains their names.
pub(super) async fn named_by(face: &mut TrialFace) -> Result<ProbeReply, SubjectError> {
    let factors = BTreeMap::from([("type", "Object"), ("items", ITEMS)].map(|(n, l)| (n.into(), l.into())));
    let exchange = Op::Array.exchange(&factors, 1);
    let exchange = exchange.ok_or_else(|| SubjectError::Exchange("the cell makes no sense".into()))?;
    let request = face.dialect.write_request(Op::Array, &exchange.request)?;
    let body = face.post(Op::Array, &request).await?.body;
    if face.dialect.read_answer(Op::Array, &body)? != exchange.answer {
        return Ok(ProbeReply::no("the array did not come as it was made"));
    }
    let wrong = |error: serde_json::Error| SubjectError::Exchange(error.to_string());
    let names = if face.is_of_xml() {
        names(&parse(&body, &DocumentLimits::default())?)
    } else {
        keys(&serde_json::from_slice(&body).map_err(wrong)?)
    };
    Ok(has_names(&names))
}

/// Lists the keys of an object and of all nested objects.
fn keys(value: &serde_json::Value) -> Vec<String> {
    match value {
        serde_json::Value::Object(fields) => {
            fields.iter().flat_map(|(key, value)| std::iter::once(key.clone()).chain(keys(value))).collect()
        }
        serde_json::Value::Array(entries) => entries.iter().flat_map(keys).collect(),
        _ => Vec::new(),
    }
}

fn has_names(names: &[String]) -> ProbeReply {
    let has = |name: &str| names.iter().any(|one| one == name);
    let (array, record) = (has("objects"), has("object"));
    let evidence = format!(
        "the array is {}, a struct in it is {}",
        element("objects", array),
        element("object", record)
    );
    ProbeReply::is(array && record, evidence)
}

fn element(name: &str, is_there: bool) -> String {
    if is_there { format!("an element named {name}") } else { format!("in no element named {name}") }
}

/// Lists the names of an element and of all nested elements.
pub(super) fn names(element: &Element) -> Vec<String> {
    std::iter::once(element.name.clone()).chain(element.elements().flat_map(names)).collect()
}

/// Sends an element of a user-defined vocabulary through the format.
pub(super) fn customized(protocol: PaperProtocol) -> Result<ProbeReply, SubjectError> {
    let own = Element::of(OWN, "invoice").with(Element::of(OWN, "total").with_text("12"));
    Ok(match carried(protocol, &own) {
        Ok(back) => ProbeReply::is(
            back.as_ref() == Some(&own),
            "an element of a vocabulary of one's own comes back as it was",
        ),
        Err(error) => ProbeReply::no(format!("an element of a vocabulary of one's own is refused: {error}")),
    })
}

fn carried(protocol: PaperProtocol, own: &Element) -> Result<Option<Element>, WireError> {
    let limits = DocumentLimits::default();
    match protocol {
        PaperProtocol::Rest => parse(&own.to_bytes()?, &limits).map(Some),
        PaperProtocol::Soap => {
            let bytes = soap::write(&Envelope::around(Version::V11, vec![own.clone()]))?;
            match soap::read(&bytes, &limits, &[])?.body {
                SoapBody::Elements(mut elements) => Ok(elements.pop()),
                SoapBody::Fault(_) => Ok(None),
            }
        }
        PaperProtocol::XmlRpc => {
            let inside = own.clone();
            let value = Element::new("value").with(inside);
            let params = Element::new("params").with(Element::new("param").with(value));
            let call = Element::new("methodCall")
                .with(Element::new("methodName").with_text("lab.echo"))
                .with(params);
            xmlrpc::read_call(&call.to_bytes()?, &limits).map(|_| None)
        }
    }
}

/// Sends text in place of a number: the face must refuse it, and the format or a contract must identify it as wrong.
pub(super) async fn strict(face: &mut TrialFace) -> Result<ProbeReply, SubjectError> {
    let honest = face.dialect.write_request(Op::Sort, &Content::Numbers(vec![77]))?;
    let text = if face.is_of_xml() { "abc" } else { "\"abc\"" };
    let wrong = String::from_utf8_lossy(&honest).replace("77", text).into_bytes();
    let answer = face.post(Op::Sort, &wrong).await?;
    let is_refused = face.dialect.read_answer(Op::Sort, &answer.body).is_err();
    let (outside, says) = said_outside(face, &wrong).await?;
    let refused = if is_refused { "is refused" } else { "is taken" };
    let evidence = format!("text where a number belongs {refused}; {says}");
    Ok(match outside {
        None if is_refused => ProbeReply::not_probed(evidence),
        outside => ProbeReply::is(is_refused && outside == Some(true), evidence),
    })
}

/// Returns true if anything outside the application states that a number is expected, with a description; `None` if the contract cannot be
/// read.
async fn said_outside(face: &mut TrialFace, wrong: &[u8]) -> Result<(Option<bool>, String), SubjectError> {
    let limits = DocumentLimits::default();
    if !face.is_of_xml() {
        let contract = specification(face).await?;
        let says = format!("nothing but the application minds: it is JSON, and {}", contract.evidence);
        return Ok((Some(false), says));
    }
    Ok(match face.protocol {
        PaperProtocol::XmlRpc => match xmlrpc::read_call(wrong, &limits) {
            Err(error) => (Some(true), format!("the format itself minds: {error}")),
            Ok(_) => (Some(false), "the format does not mind".to_owned()),
        },
        PaperProtocol::Rest => match parse(wrong, &limits) {
            Ok(_) => {
                let contract = specification(face).await?;
                (
                    Some(false),
                    format!(
                        "nothing but the application minds: it is well formed, and {}",
                        contract.evidence
                    ),
                )
            }
            Err(error) => (Some(true), format!("the format itself minds: {error}")),
        },
        PaperProtocol::Soap => match described(face).await? {
            WsdlReading::Whole(_, root) => {
                let is_declared = is_declared(&root, "n");
                let declares = if is_declared { "declares" } else { "does not declare" };
                (Some(is_declared), format!("the contract {declares} it as a whole number"))
            }
            WsdlReading::Partly(why) => (None, why),
            WsdlReading::Nothing(why) => (Some(false), why),
        },
    })
}

/// Returns true if an element of this name is declared as an integer at any depth.
fn is_declared(element: &Element, name: &str) -> bool {
    let kind = element.attribute("type").and_then(|kind| kind.split(':').next_back());
    let is_here = element.attribute("name") == Some(name) && kind.is_some_and(|kind| WHOLE.contains(&kind));
    is_here || element.elements().any(|inner| is_declared(inner, name))
}
