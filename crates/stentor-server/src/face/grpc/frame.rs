//! Frames of messages: a mark whether it is compressed, four bytes of length, and the message.

use bytes::Bytes;

use crate::contract::{ErrorCode, Problem, ServiceResult};

/// Bytes before a message.
pub(super) const HEAD_BYTES: usize = 5;

/// Returns the one message of a call whose body is whole.
pub(super) fn only(body: &Bytes) -> ServiceResult<Bytes> {
    let broken = || Problem::new(ErrorCode::InvalidRequest, "the body is not one frame with one message");
    let (head, message) = body.split_first_chunk::<HEAD_BYTES>().ok_or_else(broken)?;
    let [mark, length @ ..] = *head;
    check_mark(mark)?;
    if u32::from_be_bytes(length) as usize != message.len() {
        return Err(broken());
    }
    Ok(body.slice(HEAD_BYTES..))
}

/// Returns the frame of a message.
pub(super) fn of(message: &[u8]) -> Bytes {
    let length = u32::try_from(message.len()).unwrap_or(u32::MAX);
    [&[0][..], &length.to_be_bytes(), message].concat().into()
}

/// Refuses a message that is compressed.
pub(super) fn check_mark(mark: u8) -> ServiceResult<()> {
    match mark {
        0 => Ok(()),
        1 => Err(Problem::new(ErrorCode::UnsupportedMediaType, "compressed messages are not read")),
        _ => Err(Problem::new(ErrorCode::InvalidRequest, "a frame begins with 0 or 1")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_frame_is_read_and_all_else_is_refused() {
        assert_eq!(only(&of(b"abc")), Ok(Bytes::from_static(b"abc")));
        assert_eq!(only(&of(b"")), Ok(Bytes::new()));
        let code = |bytes: &'static [u8]| only(&Bytes::from_static(bytes)).map_err(|problem| problem.code);
        let invalid = Err(ErrorCode::InvalidRequest);
        assert_eq!(code(b""), invalid);
        assert_eq!(code(&[0, 0, 0, 0]), invalid);
        assert_eq!(code(&[0, 0xff, 0xff, 0xff, 0xff, 1]), invalid);
        assert_eq!(code(&[0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0]), invalid);
        assert_eq!(code(&[2, 0, 0, 0, 0]), invalid);
        assert_eq!(code(&[1, 0, 0, 0, 0]), Err(ErrorCode::UnsupportedMediaType));
    }
}
