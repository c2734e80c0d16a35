//! Transport: does a document contain all information that HTTP would carry, so that it can travel without HTTP?

use super::{PaperProtocol, ProbeReply};
use crate::subject::SubjectError;
use crate::subject::reference::Op;
use stentor_wire::frame::{self, Frames};
use stentor_wire::{Content, DocumentLimits};

/// Sends a request and its response in bare frames, and checks if the document alone identifies the operation.
pub(super) fn independent(protocol: PaperProtocol) -> Result<ProbeReply, SubjectError> {
    let dialect = protocol.dialect()?;
    let content = Content::Numbers(vec![3, 1, 2]);
    let request = framed(&dialect.write_request(Op::Sort, &content)?)?;
    let read = dialect.read_request(Op::Sort, &request)?;
    let worked = Op::Sort.answer(read).unwrap_or(content);
    let answer = dialect.read_answer(Op::Sort, &framed(&dialect.write_answer(Op::Sort, &worked)?)?)?;
    let is_carried = answer == Content::Numbers(vec![1, 2, 3]);
    // The same numbers could be meant for echo: a document that is valid for both operations does not identify one.
    let is_told = dialect.read_request(Op::Echo, &request).is_err();
    let carried = if is_carried { "is complete" } else { "is lost" };
    let location = if is_told { "is named in the document" } else { "is named in the address only" };
    Ok(ProbeReply::is(
        is_carried && is_told,
        format!("an exchange over frames without HTTP {carried}; the operation {location}"),
    ))
}

/// Passes bytes through a frame.
fn framed(bytes: &[u8]) -> Result<Vec<u8>, SubjectError> {
    let mut frames = Frames::new(DocumentLimits::default());
    frames.feed(&frame::write(bytes)?);
    frames.frame()?.ok_or_else(|| SubjectError::Exchange("half a frame".into()))
}
