//! Structs and arrays: whether they come back, whether they have names, whether they may be of one's own, and whether
//! anybody but the application minds a wrong type.

use super::contract::{described, specification};
use super::face::Face;
use super::{Protocol, Reply};
use crate::subject::SubjectError;
use crate::subject::reference::Op;
use std::collections::BTreeMap;
use stentor_wire::soap::{Body, Envelope, Version};
use stentor_wire::xml::dom::{Element, parse};
use stentor_wire::{Content, Item, Limits, WireError, soap, xmlrpc};

/// Entries of the arrays that are asked for.
const ITEMS: &str = "3";
/// A namespace that nobody else has.
const OWN: &str = "urn:of:ones:own";

/// Asks for an array of numbers and one of structs, and compares each entry.
pub(super) async fn structs(face: &mut Face) -> Result<Reply, SubjectError> {
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
    Ok(Reply::is(came.iter().all(|is| *is), evidence))
}

/// Writes a struct and looks whether its name is that of an element.
pub(super) fn named(protocol: Protocol) -> Result<Reply, SubjectError> {
    let items = vec![Item { id: 1, name: "one".into(), price: 0.25 }];
    let bytes = protocol.dialect()?.write_request(Op::Echo, &Content::Objects(items))?;
    let names = names(&parse(&bytes, &Limits::default())?);
    let has = |name: &str| names.iter().any(|one| one == name);
    let (array, record) = (has("objects"), has("object"));
    let evidence = format!(
        "the array is {}, a struct in it is {}",
        element("objects", array),
        element("object", record)
    );
    Ok(Reply::is(array && record, evidence))
}

fn element(name: &str, is_there: bool) -> String {
    if is_there { format!("an element named {name}") } else { format!("in no element named {name}") }
}

/// Lists the names of an element and all within.
pub(super) fn names(element: &Element) -> Vec<String> {
    std::iter::once(element.name.clone()).chain(element.elements().flat_map(names)).collect()
}

/// Sends an element of one's own vocabulary through the format.
pub(super) fn customized(protocol: Protocol) -> Result<Reply, SubjectError> {
    let own = Element::of(OWN, "invoice").with(Element::of(OWN, "total").with_text("12"));
    Ok(match carried(protocol, &own) {
        Ok(back) => Reply::is(
            back.as_ref() == Some(&own),
            "an element of a vocabulary of one's own comes back as it was",
        ),
        Err(error) => {
            Reply::is(false, format!("an element of a vocabulary of one's own is refused: {error}"))
        }
    })
}

fn carried(protocol: Protocol, own: &Element) -> Result<Option<Element>, WireError> {
    let limits = Limits::default();
    match protocol {
        Protocol::Rest => parse(&own.to_bytes()?, &limits).map(Some),
        Protocol::Soap => {
            let bytes = soap::write(&Envelope::around(Version::V11, vec![own.clone()]))?;
            match soap::read(&bytes, &limits, &[])?.body {
                Body::Elements(mut elements) => Ok(elements.pop()),
                Body::Fault(_) => Ok(None),
            }
        }
        Protocol::XmlRpc => {
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

/// Sends text where a number belongs: the face must refuse it, and the format or a contract must say that it is wrong.
pub(super) async fn strict(face: &mut Face) -> Result<Reply, SubjectError> {
    let honest = face.dialect.write_request(Op::Sort, &Content::Numbers(vec![77]))?;
    let wrong = String::from_utf8_lossy(&honest).replace("77", "abc").into_bytes();
    let answer = face.post(Op::Sort, &wrong).await?;
    let is_refused = face.dialect.read_answer(Op::Sort, &answer.body).is_err();
    let (outside, says) = said_outside(face, &wrong).await?;
    let refused = if is_refused { "is refused" } else { "is taken" };
    Ok(Reply::is(is_refused && outside, format!("text where a number belongs {refused}; {says}")))
}

/// Tells whether anything but the application knows that a number is wanted.
async fn said_outside(face: &mut Face, wrong: &[u8]) -> Result<(bool, String), SubjectError> {
    let limits = Limits::default();
    Ok(match face.protocol {
        Protocol::XmlRpc => match xmlrpc::read_call(wrong, &limits) {
            Err(error) => (true, format!("the format itself minds: {error}")),
            Ok(_) => (false, "the format does not mind".to_owned()),
        },
        Protocol::Rest => match parse(wrong, &limits) {
            Ok(_) => {
                let contract = specification(face).await?;
                (
                    false,
                    format!(
                        "nothing but the application minds: it is well formed, and {}",
                        contract.evidence
                    ),
                )
            }
            Err(error) => (true, format!("the format itself minds: {error}")),
        },
        Protocol::Soap => match described(face).await? {
            Ok((_, root)) => {
                let is_declared = is_declared(&root, "n", "xsd:long");
                (
                    is_declared,
                    format!(
                        "the contract {} it as xsd:long",
                        if is_declared { "declares" } else { "does not declare" }
                    ),
                )
            }
            Err(why) => (false, why),
        },
    })
}

/// Tells whether an element of this name and type is declared somewhere within.
fn is_declared(element: &Element, name: &str, kind: &str) -> bool {
    let is_here = element.attribute("name") == Some(name) && element.attribute("type") == Some(kind);
    is_here || element.elements().any(|inner| is_declared(inner, name, kind))
}
