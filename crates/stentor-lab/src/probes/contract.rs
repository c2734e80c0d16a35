//! Specification and tools: does a face provide a machine-readable description of itself, and is it sufficient for a client?

use super::face::TrialFace;
use super::{PaperProtocol, ProbeReply, ProbeWord};
use crate::subject::SubjectError;
use crate::subject::reference::Op;
use stentor_wire::soap::{Envelope, Version};
use stentor_wire::wsdl::Service;
use stentor_wire::xml::dom::{Element, parse};
use stentor_wire::xmlrpc::{Call, RpcOutcome, read_response, write_call};
use stentor_wire::{DocumentLimits, Value, soap, wsdl};

/// The operation of our trials.
const OP: Op = Op::Echo;
/// Paths at which REST services may offer descriptions.
const PLACES: [&str; 4] = ["/echo", "/openapi.json", "/application.wadl", "/"];
/// The text that must be returned.
const TEXT: &str = "from the contract alone";

/// The WSDL of a face.
pub(super) enum WsdlReading {
    /// A contract with everything that a caller needs.
    Whole(Service, Element),
    /// WSDL that our reader does not understand completely; for instance, imports are not followed.
    Partly(String),
    /// No contract was found.
    Nothing(String),
}

/// Requests the face's description of itself.
pub(super) async fn specification(face: &mut TrialFace) -> Result<ProbeReply, SubjectError> {
    match face.protocol {
        PaperProtocol::Soap => Ok(match described(face).await? {
            WsdlReading::Whole(service, _) => ProbeReply::is(
                service.operations.iter().any(|one| one.name == OP.word()),
                format!(
                    "GET ?wsdl gives WSDL 1.1 of service {} with {} operations",
                    service.name,
                    service.operations.len()
                ),
            ),
            WsdlReading::Partly(why) => ProbeReply::yes(why),
            WsdlReading::Nothing(why) => ProbeReply::no(why),
        }),
        PaperProtocol::XmlRpc => introspection(face).await,
        PaperProtocol::Rest => rest(face).await,
    }
}

/// Makes a client from the description alone, and makes a call with it.
pub(super) async fn tools(face: &mut TrialFace) -> Result<ProbeReply, SubjectError> {
    match face.protocol {
        PaperProtocol::Soap => soap_client(face).await,
        PaperProtocol::XmlRpc => signature_client(face).await,
        PaperProtocol::Rest => {
            let contract = rest(face).await?;
            Ok(ProbeReply::no(format!("nothing to make a client from: {}", contract.evidence)))
        }
    }
}

/// Requests the WSDL of a face.
pub(super) async fn described(face: &mut TrialFace) -> Result<WsdlReading, SubjectError> {
    let answer = face.get(OP, "/echo?wsdl").await?;
    if answer.status != 200 {
        return Ok(WsdlReading::Nothing(format!("GET ?wsdl is answered with {}", answer.status)));
    }
    let limits = DocumentLimits::default();
    let root = parse(&answer.body, &limits);
    Ok(match (wsdl::read(&answer.body, &limits), root) {
        (Ok(service), Ok(root)) => WsdlReading::Whole(service, root),
        (Err(error), Ok(root)) if root.is(wsdl::WSDL, "definitions") => WsdlReading::Partly(format!(
            "GET ?wsdl returns WSDL 1.1; its rest is in another document, or in a form that this probe does not read: {error}"
        )),
        (Err(error), _) | (_, Err(error)) => {
            WsdlReading::Nothing(format!("GET ?wsdl gives no WSDL: {error}"))
        }
    })
}

async fn rest(face: &mut TrialFace) -> Result<ProbeReply, SubjectError> {
    let mut seen = Vec::new();
    for place in PLACES {
        let answer = face.get(OP, place).await?;
        let is_readable = parse(&answer.body, &DocumentLimits::default()).is_ok()
            || serde_json::from_slice::<serde_json::Value>(&answer.body).is_ok();
        if answer.status == 200 && is_readable {
            return Ok(ProbeReply::yes(format!("GET {place} gives a document that a machine can read")));
        }
        seen.push(format!("{place} {}", answer.status));
    }
    Ok(ProbeReply::no(format!("GET gives no description ({})", seen.join(", "))))
}

async fn introspection(face: &mut TrialFace) -> Result<ProbeReply, SubjectError> {
    let names = match call(face, "system.listMethods", vec![]).await? {
        Ok(Value::List(names)) => names,
        Ok(_) => return Ok(ProbeReply::no("system.listMethods gives no list")),
        Err(why) => {
            return Ok(ProbeReply::no(format!("system.listMethods is refused: {why}")));
        }
    };
    let Some(method) = names.iter().filter_map(Value::as_text).find(|name| name.ends_with(OP.word())) else {
        return Ok(ProbeReply::no("system.listMethods does not name the operation"));
    };
    let reply = call(face, "system.methodSignature", vec![method.into()]).await?;
    Ok(match reply {
        Ok(signature) => ProbeReply::yes(format!(
            "system.listMethods names {method}, system.methodSignature says {}: the face offers them, the format does not require them",
            signature_text(&signature)
        )),
        Err(why) => ProbeReply::no(format!("{method} is listed, but its signature is refused: {why}")),
    })
}

/// Formats the first of a method's signatures: the return type, then the parameters.
fn signature_text(signature: &Value) -> String {
    let Value::List(all) = signature else { return "nothing".to_owned() };
    let Some(Value::List(words)) = all.first() else { return "nothing".to_owned() };
    words.iter().filter_map(Value::as_text).collect::<Vec<_>>().join(" from ")
}

/// Makes a call with an empty struct: a signature states that a struct is expected, but not its fields.
async fn signature_client(face: &mut TrialFace) -> Result<ProbeReply, SubjectError> {
    let listed = introspection(face).await?;
    if listed.answer != super::ProbeAnswer::Word(ProbeWord::Yes) {
        return Ok(ProbeReply::no(format!("nothing to make a client from: {}", listed.evidence)));
    }
    let method = format!("lab.{}", OP.word());
    Ok(match call(face, &method, vec![Value::Record(Vec::new())]).await? {
        Ok(_) => ProbeReply::yes("a struct as the signature wants it is answered"),
        Err(why) => ProbeReply::no(format!(
            "a signature says struct and not which fields; a struct without them: {why}"
        )),
    })
}

async fn soap_client(face: &mut TrialFace) -> Result<ProbeReply, SubjectError> {
    let (service, root) = match described(face).await? {
        WsdlReading::Whole(service, root) => (service, root),
        WsdlReading::Partly(why) => return Ok(ProbeReply::not_probed(why)),
        WsdlReading::Nothing(why) => {
            return Ok(ProbeReply::no(format!("nothing to make a client from: {why}")));
        }
    };
    let Some(request) = request_of(&service, &root) else {
        // The form of our own contracts is known; a foreign contract may state the same in another form.
        let word = if face.is_ours { ProbeWord::No } else { ProbeWord::NotProbed };
        return Ok(ProbeReply::word(
            word,
            "the WSDL names no element of text that this probe could call with",
        ));
    };
    let answer = face.post(OP, &soap::write(&Envelope::around(Version::V11, vec![request]))?).await?;
    let back =
        soap::read(&answer.body, &DocumentLimits::default(), &[]).is_ok_and(|envelope| {
            match &envelope.body {
                soap::SoapBody::Elements(elements) => {
                    elements.iter().any(|one| one.elements().any(|leaf| leaf.text() == TEXT))
                }
                soap::SoapBody::Fault(_) => false,
            }
        });
    Ok(ProbeReply::is(
        back,
        format!("a call made of names from the WSDL alone is answered with {}", answer.status),
    ))
}

/// Makes a request from the WSDL: the operation's element, and in it the first element declared as text.
fn request_of(service: &Service, root: &Element) -> Option<Element> {
    let operation = service.operations.first()?;
    let schema = root.element("types")?.element("schema")?;
    let choice = schema.elements().find(|one| one.name == "group")?.element("choice")?;
    let text =
        choice.elements().find(|one| one.attribute("type") == Some("xsd:string"))?.attribute("name")?;
    let leaf = Element::of(&service.namespace, text).with_text(TEXT);
    Some(Element::of(&service.namespace, &operation.name).with(leaf))
}

/// Calls a method. Returns its value, or the reason for a failure in a sentence.
pub(super) async fn call(
    face: &mut TrialFace,
    method: &str,
    params: Vec<Value>,
) -> Result<Result<Value, String>, SubjectError> {
    let body = write_call(&Call { method: method.to_owned(), params })?;
    let answer = face.post(OP, &body).await?;
    let read: Result<RpcOutcome, _> = read_response(&answer.body, &DocumentLimits::default());
    Ok(match read {
        Ok(outcome) => outcome.map_err(|fault| fault.to_string()),
        Err(error) => Err(format!("status {}, {error}", answer.status)),
    })
}
