//! Compression of messages: `gzip` or none, by header (grpc/doc/compression.md).

use std::io::{Read as _, Write as _};

use axum::http::HeaderMap;
use bytes::Bytes;
use flate2::Compression;
use flate2::bufread::GzDecoder;
use flate2::write::GzEncoder;

use super::frame;
use crate::contract::{ErrorCode, Problem, ServiceResult};
use crate::face::http::headers::header_text;

/// Header with the compression of the messages.
pub(super) const ENCODING: &str = "grpc-encoding";
/// Header with the compressions that the sender of the header accepts.
pub(super) const ACCEPTED: &str = "grpc-accept-encoding";
/// Compressions accepted by the server.
pub(super) const KNOWN: &str = "identity,gzip";
/// Minimum size of a compressed reply; below it, compression does not pay.
const REPLY_MIN_BYTES: usize = 1_024;
/// Bytes decompressed between two requests for room.
const STEP_BYTES: usize = 16 * 1_024;

/// Compression of messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MessageEncoding {
    Identity,
    Gzip,
}

impl MessageEncoding {
    /// Returns the compression of a request's messages.
    pub(super) fn of_request(headers: &HeaderMap) -> ServiceResult<Self> {
        match header_text(headers, ENCODING)?.unwrap_or("identity") {
            "identity" => Ok(Self::Identity),
            "gzip" => Ok(Self::Gzip),
            _ => Err(Problem::new(
                ErrorCode::UnsupportedMediaType,
                format!("messages may be encoded as {KNOWN} only"),
            )),
        }
    }

    /// Returns the compression for the reply to a request.
    pub(super) fn of_reply(headers: &HeaderMap) -> Self {
        let accepted = headers.get(ACCEPTED).and_then(|value| value.to_str().ok()).unwrap_or_default();
        if accepted.split(',').any(|one| one.trim() == "gzip") { Self::Gzip } else { Self::Identity }
    }

    /// Returns its name in headers.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Identity => "identity",
            Self::Gzip => "gzip",
        }
    }

    /// Decompresses a message if its frame says so; `grow` reserves room before each step.
    pub(super) fn read(
        self,
        mark: u8,
        message: Bytes,
        max_bytes: usize,
        grow: impl FnMut(usize) -> ServiceResult<()>,
    ) -> ServiceResult<Bytes> {
        match (mark, self) {
            (0, _) => Ok(message),
            (1, Self::Gzip) => unpacked(&message, max_bytes, grow),
            (1, Self::Identity) => {
                Err(broken("a message is compressed, but no header says how (grpc-encoding)"))
            }
            _ => Err(broken("a frame must begin with 0 or 1")),
        }
    }

    /// Returns the frame of a message.
    pub(super) fn framed(self, message: &[u8]) -> Bytes {
        if self == Self::Gzip && message.len() >= REPLY_MIN_BYTES {
            let mut packer = GzEncoder::new(Vec::new(), Compression::fast());
            let packed = packer.write_all(message).and_then(|()| packer.finish());
            return packed.map_or_else(|_| frame::of(0, message), |packed| frame::of(1, &packed));
        }
        frame::of(0, message)
    }
}

fn unpacked(
    packed: &[u8],
    max_bytes: usize,
    mut grow: impl FnMut(usize) -> ServiceResult<()>,
) -> ServiceResult<Bytes> {
    let (mut reader, mut all) = (GzDecoder::new(packed), Vec::new());
    let mut step = [0; STEP_BYTES];
    loop {
        let read = reader.read(&mut step).map_err(|_| broken("a compressed message cannot be unpacked"))?;
        if read == 0 {
            break;
        }
        if all.len() + read > max_bytes {
            let why = format!("a message may have at most {max_bytes} bytes when it is unpacked");
            return Err(Problem::new(ErrorCode::PayloadTooLarge, why));
        }
        grow(read)?;
        all.extend_from_slice(&step[..read]);
    }
    if reader.into_inner().is_empty() {
        return Ok(all.into());
    }
    Err(broken("there are bytes after a compressed message"))
}

fn broken(why: &'static str) -> Problem {
    Problem::new(ErrorCode::InvalidRequest, why)
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    fn packed(message: &[u8]) -> Vec<u8> {
        let mut packer = GzEncoder::new(Vec::new(), Compression::best());
        packer.write_all(message).expect("written");
        packer.finish().expect("packed")
    }

    fn read(packed: &[u8]) -> Result<Bytes, ErrorCode> {
        let read = MessageEncoding::Gzip.read(1, Bytes::copy_from_slice(packed), 100_000, |_| Ok(()));
        read.map_err(|problem| problem.code)
    }

    #[test]
    fn what_is_compressed_is_read_again_and_what_is_broken_is_refused() {
        let message = b"text ".repeat(1_000);
        assert_eq!(read(&packed(&message)).as_deref(), Ok(&message[..]));
        assert_eq!(read(&packed(b"")), Ok(Bytes::new()));
        let framed = MessageEncoding::Gzip.framed(&message);
        assert!(framed[0] == 1 && framed.len() < 200, "{framed:?}");
        assert_eq!(read(&framed[frame::HEAD_BYTES..]).as_deref(), Ok(&message[..]));
        let whole = packed(&message);
        let invalid = Err(ErrorCode::InvalidRequest);
        for broken in [&b""[..], b"text", &whole[..whole.len() - 1], &[&whole[..], b"x"].concat()] {
            assert_eq!(read(broken), invalid, "{broken:?}");
        }
        let mut damaged = whole.clone();
        let checksum = damaged.len() - 8;
        damaged[checksum] ^= 1;
        assert_eq!(read(&damaged), invalid);
    }

    #[test]
    fn a_bomb_is_refused_before_it_unfolds() {
        let bomb = packed(&vec![0; 50_000_000]);
        assert!(bomb.len() < 100_000);
        let mut asked_for = 0;
        let grow = |bytes| {
            asked_for += bytes;
            Ok(())
        };
        let read = MessageEncoding::Gzip.read(1, bomb.clone().into(), 100_000, grow);
        assert_eq!(read.map_err(|problem| problem.code), Err(ErrorCode::PayloadTooLarge));
        assert!(asked_for <= 100_000);
        let no_room = |_| Err(Problem::new(ErrorCode::Unavailable, "no room"));
        let read = MessageEncoding::Gzip.read(1, bomb.into(), usize::MAX, no_room);
        assert_eq!(read.map_err(|problem| problem.code), Err(ErrorCode::Unavailable));
    }

    #[test]
    fn a_mark_must_fit_the_header() {
        let mark = |mark, encoding: MessageEncoding| {
            encoding.read(mark, Bytes::from_static(b"a"), 10, |_| Ok(())).map_err(|problem| problem.code)
        };
        assert_eq!(mark(0, MessageEncoding::Gzip), Ok(Bytes::from_static(b"a")));
        assert_eq!(mark(1, MessageEncoding::Identity), Err(ErrorCode::InvalidRequest));
        assert_eq!(mark(2, MessageEncoding::Identity), Err(ErrorCode::InvalidRequest));
    }

    #[test]
    fn headers_say_how_requests_and_replies_are_compressed() {
        let headers = |name: &'static str, value| {
            HeaderMap::from_iter([(
                axum::http::HeaderName::from_static(name),
                HeaderValue::from_static(value),
            )])
        };
        assert_eq!(MessageEncoding::of_request(&headers(ENCODING, "gzip")), Ok(MessageEncoding::Gzip));
        assert_eq!(MessageEncoding::of_request(&HeaderMap::new()), Ok(MessageEncoding::Identity));
        let unknown =
            MessageEncoding::of_request(&headers(ENCODING, "snappy")).map_err(|problem| problem.code);
        assert_eq!(unknown, Err(ErrorCode::UnsupportedMediaType));
        assert_eq!(
            MessageEncoding::of_reply(&headers(ACCEPTED, "identity, deflate, gzip")),
            MessageEncoding::Gzip
        );
        assert_eq!(MessageEncoding::of_reply(&headers(ACCEPTED, "gzipped")), MessageEncoding::Identity);
    }
}
