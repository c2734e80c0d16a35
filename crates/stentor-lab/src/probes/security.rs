//! Security: a list of trials, each with a verdict on the face, and the mechanisms in specifications.

use super::face::{FaceResponse, TrialFace};
use super::{PaperProtocol, ProbeContext, ProbeReply, ProbeWord};
use crate::subject::SubjectError;
use crate::subject::certificate;
use crate::subject::reference::Op;
use std::collections::BTreeMap;
use stentor_wire::soap::{Envelope, HeaderBlock, SoapBody, SoapFaultCode, Version};
use stentor_wire::xml::dom::Element;
use stentor_wire::{Content, DocumentLimits, WireError, soap};

/// Placeholder in an honest request that is replaced by harmful content.
const PLACE: &str = "placeholder";
/// The status of a response, and in XML-RPC of a fault too.
const OK: u16 = 200;
/// Nesting levels of a document that is too deep.
const LEVELS: usize = 10_000;
/// A file that exists on every server and must not be disclosed.
const FILE: &str = "/etc/passwd";
/// The namespace of the WS-Security header.
const WSSE: &str = "http://docs.oasis-open.org/wss/2004/01/oasis-200401-wss-wssecurity-secext-1.0.xsd";

/// Sends ten levels of entities, each of which doubles the previous one.
pub(super) async fn laughs(face: &mut TrialFace) -> Result<ProbeReply, SubjectError> {
    let entities: String = (1..10).map(|n| format!("<!ENTITY l{n} \"&l{0};&l{0};\">", n - 1)).collect();
    let definition = format!("<!DOCTYPE x [<!ENTITY l0 \"ha\">{entities}]>");
    harm(face, &definition, PLACE, "&l9;", &"ha".repeat(1 << 9)).await
}

/// Sends an entity that refers to a file of the server.
pub(super) async fn external(face: &mut TrialFace) -> Result<ProbeReply, SubjectError> {
    let definition = format!("<!DOCTYPE x [<!ENTITY f SYSTEM \"file://{FILE}\">]>");
    harm(face, &definition, PLACE, "&f;", stentor_machine::facts::line(FILE).trim()).await
}

/// Sends nested elements.
pub(super) async fn depth(face: &mut TrialFace) -> Result<ProbeReply, SubjectError> {
    // In formats with arrays only arrays may be nested; elsewhere the first invalid element ends the parsing.
    let (place, inside) = match face.protocol {
        PaperProtocol::XmlRpc => {
            let arrays = nested("<array><data><value>", "</value></data></array>");
            (format!("<string>{PLACE}</string>"), arrays)
        }
        PaperProtocol::Rest if !face.is_of_xml() => (format!("\"{PLACE}\""), nested("[", "]")),
        PaperProtocol::Soap | PaperProtocol::Rest => (PLACE.to_owned(), nested("<a>", "</a>")),
    };
    harm(face, "", &place, &inside, "").await
}

fn nested(open: &str, close: &str) -> String {
    format!("{}{}", open.repeat(LEVELS), close.repeat(LEVELS))
}

/// Parses a document that is one byte larger than the limit.
pub(super) fn size(protocol: PaperProtocol) -> Result<ProbeReply, SubjectError> {
    let max_bytes = DocumentLimits::default().document_max_bytes;
    let read = protocol.dialect()?.read_request(Op::Echo, &vec![b' '; max_bytes + 1]);
    let is_refused = matches!(read, Err(WireError::TooLarge { .. }));
    let refused = if is_refused { "refused before it is looked at" } else { "looked at" };
    Ok(ProbeReply::is(is_refused, format!("a document of {} bytes is {refused}", max_bytes + 1)))
}

/// Makes an exchange over TLS with a self-signed certificate.
pub(super) async fn tls(face: &mut TrialFace, context: &ProbeContext) -> Result<ProbeReply, SubjectError> {
    if !face.encrypts {
        return Ok(ProbeReply::not_probed("its definition does not say that it encrypts"));
    }
    certificate::make(&context.directory).map_err(|error| SubjectError::Exchange(error.to_string()))?;
    let mut factors = BTreeMap::from([("tls".to_owned(), "on".to_owned())]);
    certificate::add(&mut factors, &context.directory);
    let content = Content::Payload("over TLS".into());
    Ok(match face.exchange(Op::Echo, factors, &content).await {
        Ok(answer) => ProbeReply::is(
            answer == content,
            "an exchange over TLS, with a certificate that the client checks",
        ),
        Err(error) => ProbeReply::no(format!("no exchange over TLS: {error}")),
    })
}

/// Sends a WS-Security header that must be understood.
pub(super) async fn message_served(face: &mut TrialFace) -> Result<ProbeReply, SubjectError> {
    if face.protocol != PaperProtocol::Soap {
        return Ok(ProbeReply::word(
            ProbeWord::Untestable,
            "the format has no header in which a message could be secured",
        ));
    }
    let namespace = crate::subject::dialect::NAMESPACE;
    let content = Content::Payload(PLACE.into());
    let mut envelope = Envelope::request(Version::V11, namespace, Op::Echo.word(), &content);
    envelope.headers.push(HeaderBlock { element: Element::of(WSSE, "Security"), must_understand: true });
    let answer = face.post(Op::Echo, &soap::write(&envelope)?).await?;
    Ok(match soap::read(&answer.body, &DocumentLimits::default(), &[])?.body {
        SoapBody::Fault(fault) if fault.code == SoapFaultCode::MustUnderstand => {
            ProbeReply::no(format!("the face does not speak it and says so: {}", fault.reason))
        }
        SoapBody::Fault(fault) => ProbeReply::no(format!("the face does not speak it: {}", fault.reason)),
        SoapBody::Elements(_) => ProbeReply::yes("a header that must be understood is taken"),
    })
}

/// Returns the mechanisms in specifications for securing a message independently of its transport.
pub(super) fn message_specified(protocol: PaperProtocol) -> ProbeReply {
    match protocol {
        PaperProtocol::Soap => {
            ProbeReply::yes("OASIS, Web Services Security: SOAP Message Security 1.0 (2004) and 1.1 (2006)")
        }
        PaperProtocol::XmlRpc => ProbeReply::no("the XML-RPC specification (Winer, 1999) has nothing for it"),
        PaperProtocol::Rest => ProbeReply::yes(
            "RFC 9421, HTTP Message Signatures (2024); when the paper was written there was no such standard",
        ),
    }
}

/// Replaces a part of an honest request by harmful content. The face must refuse it, and must answer an honest request correctly
/// afterwards. `done` is the text in a response if the harm was done.
async fn harm(
    face: &mut TrialFace,
    definition: &str,
    place: &str,
    inside: &str,
    done: &str,
) -> Result<ProbeReply, SubjectError> {
    if !face.is_of_xml() && !definition.is_empty() {
        return Ok(ProbeReply::not_probed("the format has no entities"));
    }
    let content = Content::Payload(PLACE.into());
    let honest = face.dialect.write_request(Op::Echo, &content)?;
    face.post(Op::Echo, &honest).await?;
    let harmful = poisoned(&honest, definition, place, inside);
    let (is_refused, said) = match face.post(Op::Echo, &harmful).await {
        Ok(answer) => judged(face, &answer, &harmful, done),
        Err(error) => (true, format!("not answered: {error}")),
    };
    let again =
        face.post(Op::Echo, &honest).await.and_then(|again| face.dialect.read_answer(Op::Echo, &again.body));
    let is_alive = again.is_ok_and(|back| back == content);
    let after = if is_alive { "is answered" } else { "is not answered" };
    Ok(ProbeReply::is(is_refused && is_alive, format!("it is {said}; an honest request afterwards {after}")))
}

/// Returns true if a response is a refusal, with a description of the outcome.
fn judged(face: &TrialFace, answer: &FaceResponse, harmful: &[u8], done: &str) -> (bool, String) {
    let status = answer.status;
    match face.dialect.read_answer(Op::Echo, &answer.body) {
        // Accepted content may be returned in a form that our reader refuses.
        Err(error) if status == OK && !matches!(error, SubjectError::Fault(_)) => {
            (false, format!("accepted with {status}, and the response cannot be read: {error}"))
        }
        Ok(_) => {
            let is_done = !done.is_empty() && String::from_utf8_lossy(&answer.body).contains(done);
            let done = if is_done { ", and the response contains its expansion" } else { "" };
            (false, format!("accepted with {status}{done}"))
        }
        Err(refusal) => {
            // Not every dialect can state the reason of a refusal; for our own faces our reader provides it.
            let ours = face.dialect.read_request(Op::Echo, harmful).err().map(|error| error.to_string());
            let why = ours.filter(|_| face.is_ours).unwrap_or_else(|| refusal.to_string());
            (true, format!("refused with {status}: {why}"))
        }
    }
}

fn poisoned(honest: &[u8], definition: &str, place: &str, inside: &str) -> Vec<u8> {
    let text = String::from_utf8_lossy(honest).replace(place, inside);
    match text.split_once("?>") {
        Some((declaration, rest)) => format!("{declaration}?>{definition}{rest}").into_bytes(),
        None => format!("{definition}{text}").into_bytes(),
    }
}
