//! Overhead, and the names that a caller must know, counted in the bytes of one fixed request.

use super::face::TrialFace;
use super::shapes::names;
use super::{PaperProtocol, ProbeReply};
use crate::subject::SubjectError;
use crate::subject::reference::Op;
use std::collections::BTreeSet;
use stentor_wire::xml::dom::{Element, parse};
use stentor_wire::{Content, DocumentLimits};

/// Letters of the payload.
const PAYLOAD: usize = 64;

/// Counts the bytes of a request besides its payload.
pub(super) fn overhead(protocol: PaperProtocol) -> Result<ProbeReply, SubjectError> {
    let bytes = request(protocol)?.len();
    let evidence =
        format!("a request with {PAYLOAD} letters takes {bytes} bytes, without HTTP's own headers");
    Ok(ProbeReply::count(bytes - PAYLOAD, "bytes", evidence))
}

/// Counts the bytes of a face's response besides its payload, which is the payload of the request.
pub(super) async fn overhead_of(face: &mut TrialFace) -> Result<ProbeReply, SubjectError> {
    let payload = Content::Payload("x".repeat(PAYLOAD));
    let body = face.post(Op::Echo, &face.dialect.write_request(Op::Echo, &payload)?).await?.body;
    if face.dialect.read_answer(Op::Echo, &body)? != payload {
        return Err(SubjectError::Wrong("the payload did not come back".into()));
    }
    let bytes = body.len();
    let evidence =
        format!("its answer with {PAYLOAD} letters takes {bytes} bytes, without HTTP's own headers");
    Ok(ProbeReply::count(bytes.saturating_sub(PAYLOAD), "bytes", evidence))
}

/// Counts the distinct names that the caller of one operation writes: elements, namespaces, headers of the format.
pub(super) fn names_known(protocol: PaperProtocol) -> Result<ProbeReply, SubjectError> {
    let root = parse(&request(protocol)?, &DocumentLimits::default())?;
    let mut known: BTreeSet<String> = names(&root).into_iter().collect();
    known.extend(namespaces(&root));
    if protocol.dialect()?.soap_action(Op::Echo).is_some() {
        known.insert("SOAPAction".into());
    }
    let evidence = known.iter().cloned().collect::<Vec<_>>().join(", ");
    Ok(ProbeReply::count(known.len(), "names", evidence))
}

fn request(protocol: PaperProtocol) -> Result<Vec<u8>, SubjectError> {
    Ok(protocol.dialect()?.write_request(Op::Echo, &Content::Payload("x".repeat(PAYLOAD)))?)
}

fn namespaces(element: &Element) -> Vec<String> {
    element.namespace.clone().into_iter().chain(element.elements().flat_map(namespaces)).collect()
}
