//! gRPC over HTTP/2, limited to unary calls: a path, five bytes before each message, a status in the trailers.

use super::SubjectError;
use super::reference::Op;
use bytes::{Bytes, BytesMut};
use http::HeaderMap;

/// The content type of requests and responses.
pub(crate) const CONTENT_TYPE: &str = "application/grpc";
/// The header or trailer with the status of a call.
pub(crate) const STATUS: &str = "grpc-status";
/// The status of an invalid request.
pub(crate) const INVALID_ARGUMENT: &str = "3";
/// The status of an internal error.
pub(crate) const INTERNAL: &str = "13";
/// Length of a message's prefix: the compression flag and the length.
const PREFIX_BYTES: usize = 5;

/// Returns the path of an operation.
pub(crate) fn path(op: Op) -> String {
    format!("/stentor.lab.Lab/{}", op.word())
}

/// Adds the prefix to a message.
pub(crate) fn frame(message: &[u8]) -> Result<Bytes, SubjectError> {
    let length = u32::try_from(message.len());
    let length = length.map_err(|_| SubjectError::Exchange("a message of more than 4 GiB".into()))?;
    let mut bytes = BytesMut::with_capacity(PREFIX_BYTES + message.len());
    bytes.extend_from_slice(&[0]);
    bytes.extend_from_slice(&length.to_be_bytes());
    bytes.extend_from_slice(message);
    Ok(bytes.freeze())
}

/// Removes the prefix from the only message of a body.
pub(crate) fn unframe(body: Bytes) -> Result<Bytes, SubjectError> {
    let wrong = |what: &str| Err(SubjectError::Exchange(format!("gRPC: {what}")));
    let Some((prefix, message)) = body.split_first_chunk::<PREFIX_BYTES>() else {
        return wrong("no message");
    };
    let [compressed, length @ ..] = *prefix;
    if compressed != 0 {
        return wrong("a compressed message, and none was agreed on");
    }
    if u32::from_be_bytes(length) as usize != message.len() {
        return wrong("a length that is not the message's");
    }
    Ok(body.slice(PREFIX_BYTES..))
}

/// Checks that the status is present and 0.
pub(crate) fn check(headers: [&HeaderMap; 2]) -> Result<(), SubjectError> {
    let status = headers.iter().find_map(|headers| headers.get(STATUS));
    match status.map(http::HeaderValue::as_bytes) {
        Some(b"0") => Ok(()),
        Some(other) => {
            Err(SubjectError::Exchange(format!("gRPC: status {}", String::from_utf8_lossy(other))))
        }
        None => Err(SubjectError::Exchange("gRPC: no status".into())),
    }
}
