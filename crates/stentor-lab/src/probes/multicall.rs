//! Multiple requests in one message.

use super::contract::call;
use super::face::TrialFace;
use super::{PaperProtocol, ProbeReply};
use crate::subject::SubjectError;
use crate::subject::reference::Op;
use stentor_wire::soap::{Envelope, SoapBody, Version};
use stentor_wire::xmlrpc::{Call, multicall, results_of_multicall};
use stentor_wire::{Content, DocumentLimits, Value, soap};

/// The operation, requested twice.
const OP: Op = Op::Echo;
const TEXTS: [&str; 2] = ["one", "two"];

/// Sends two requests in one message and expects two responses.
pub(super) async fn several(face: &mut TrialFace) -> Result<ProbeReply, SubjectError> {
    match face.protocol {
        PaperProtocol::XmlRpc => packed(face).await,
        PaperProtocol::Soap => two_in_a_body(face).await,
        PaperProtocol::Rest => two_documents(face).await,
    }
}

/// Sends two calls and one of an unknown method; each must have an outcome of its own.
async fn packed(face: &mut TrialFace) -> Result<ProbeReply, SubjectError> {
    let method = format!("lab.{}", OP.word());
    let payload = |text: &str| Value::Record(vec![("payload".into(), text.into())]);
    let mut calls = TEXTS.map(|text| Call { method: method.clone(), params: vec![payload(text)] }).to_vec();
    calls.push(Call { method: "lab.nothing".into(), params: vec![] });
    let packed = multicall(&calls);
    let answer = match call(face, &packed.method, packed.params).await? {
        Ok(answer) => answer,
        Err(why) => {
            return Ok(ProbeReply::no(format!("system.multicall is refused: {why}")));
        }
    };
    let outcomes = results_of_multicall(&answer)?;
    let right =
        TEXTS.iter().zip(&outcomes).filter(|(text, outcome)| outcome.as_ref() == Ok(&payload(text))).count();
    let faults = outcomes.iter().filter(|outcome| outcome.is_err()).count();
    let is_so = (right, faults) == (TEXTS.len(), 1);
    Ok(ProbeReply::is(
        is_so,
        format!("system.multicall with 3 calls gives {right} right answers and {faults} fault of its own"),
    ))
}

async fn two_in_a_body(face: &mut TrialFace) -> Result<ProbeReply, SubjectError> {
    let namespace = crate::subject::dialect::NAMESPACE;
    let request =
        |text: &str| Envelope::request(Version::V11, namespace, OP.word(), &Content::Payload(text.into()));
    let elements = TEXTS.iter().flat_map(|text| match request(text).body {
        SoapBody::Elements(elements) => elements,
        SoapBody::Fault(_) => Vec::new(),
    });
    let envelope = Envelope::around(Version::V11, elements.collect());
    let answer = face.post(OP, &soap::write(&envelope)?).await?;
    let answers = match soap::read(&answer.body, &DocumentLimits::default(), &[])?.body {
        SoapBody::Elements(elements) => elements.len(),
        SoapBody::Fault(fault) => {
            return Ok(ProbeReply::no(format!("two requests in one body: fault, {}", fault.reason)));
        }
    };
    Ok(ProbeReply::is(answers == TEXTS.len(), format!("two requests in one body get {answers} answers")))
}

async fn two_documents(face: &mut TrialFace) -> Result<ProbeReply, SubjectError> {
    let documents: Result<Vec<_>, _> =
        TEXTS.iter().map(|text| face.dialect.write_request(OP, &Content::Payload((*text).into()))).collect();
    let answer = face.post(OP, &documents?.concat()).await?;
    let has_both = TEXTS.iter().all(|text| String::from_utf8_lossy(&answer.body).contains(text));
    Ok(ProbeReply::is(
        answer.status == 200 && has_both,
        format!("two documents in one body are answered with {}", answer.status),
    ))
}
