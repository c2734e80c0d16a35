//! Message frames: a byte that marks compression, four bytes of length, and the message.

use bytes::Bytes;

use crate::contract::{ErrorCode, Problem, ServiceResult};

/// Bytes before a message.
pub(super) const HEAD_BYTES: usize = 5;

/// Returns the mark and the message of a complete body with exactly one frame.
pub(super) fn only(body: &Bytes) -> ServiceResult<(u8, Bytes)> {
    let broken = || Problem::new(ErrorCode::InvalidRequest, "the body is not one frame with one message");
    let (head, message) = body.split_first_chunk::<HEAD_BYTES>().ok_or_else(broken)?;
    let [mark, length @ ..] = *head;
    if u32::from_be_bytes(length) as usize != message.len() {
        return Err(broken());
    }
    Ok((mark, body.slice(HEAD_BYTES..)))
}

/// Returns the frame of a message. A mark of 1 means that the message is compressed.
pub(super) fn of(mark: u8, message: &[u8]) -> Bytes {
    let length = u32::try_from(message.len()).unwrap_or(u32::MAX);
    [&[mark][..], &length.to_be_bytes(), message].concat().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_frame_is_read_and_all_else_is_refused() {
        assert_eq!(only(&of(1, b"abc")), Ok((1, Bytes::from_static(b"abc"))));
        assert_eq!(only(&of(0, b"")), Ok((0, Bytes::new())));
        let code = |bytes: &'static [u8]| only(&Bytes::from_static(bytes)).map_err(|problem| problem.code);
        let invalid = Err(ErrorCode::InvalidRequest);
        assert_eq!(code(b""), invalid);
        assert_eq!(code(&[0, 0, 0, 0]), invalid);
        assert_eq!(code(&[0, 0xff, 0xff, 0xff, 0xff, 1]), invalid);
        assert_eq!(code(&[0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0]), invalid);
    }
}
