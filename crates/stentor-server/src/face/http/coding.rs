//! Content codings of bodies in both directions: gzip (RFC 1952) and zstd (RFC 8878).

use std::io;
use std::pin::Pin;

use async_compression::Level;
use async_compression::tokio::bufread::{GzipDecoder, GzipEncoder, ZstdDecoder, ZstdEncoder};
use async_compression::zstd::DParameter;
use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, header};
use bytes::Bytes;
use futures_util::{FutureExt as _, Stream};
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio_util::io::{ReaderStream, StreamReader};

use super::preferences::Preferences;
use super::zstd_header::ZstdHeader;
use crate::contract::{ErrorCode, Problem, ServiceResult};

/// Accepted codings, as the value of a header.
pub(in crate::face) const TAKEN: &str = "zstd, gzip, identity";
/// Minimum size of a compressed reply. Shorter ones fit into one packet either way.
const COMPRESSED_MIN_BYTES: usize = 1_024;
/// Size of a decompressed piece.
const PIECE_BYTES: usize = 16 * 1_024;

/// Maximum zstd window, as a power of two; it bounds the memory of decompression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::face) struct ZstdWindow(u32);

impl ZstdWindow {
    const MIN_LOG: u32 = 17;

    /// 2 MiB, more than the decompressed size of any body that is read as a whole.
    pub(in crate::face) const OF_BODY: Self = Self(21);
    /// 8 MiB, the maximum in HTTP (RFC 9659); for the few streamed bodies.
    pub(in crate::face) const OF_STREAM: Self = Self(23);

    /// Returns the window for a body: the one of its first frame, between 128 KiB and [`Self::OF_BODY`]. Later frames have the same limit.
    pub(super) const fn asked_for(header: ZstdHeader) -> Self {
        let ZstdHeader::Window(bytes) = header else { return Self::OF_BODY };
        let mut log = Self::MIN_LOG;
        while log < Self::OF_BODY.0 && (1_u64 << log) < bytes {
            log += 1;
        }
        Self(log)
    }

    /// Returns its size in bytes.
    pub(in crate::face) const fn bytes(self) -> usize {
        1 << self.0
    }
}

/// Content coding of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::face) enum ContentCoding {
    /// No coding.
    Identity,
    Gzip,
    Zstd,
}

impl ContentCoding {
    /// Returns the coding of a request's body. Several codings on top of each other are rejected.
    pub(in crate::face) fn of_request(headers: &HeaderMap) -> ServiceResult<Self> {
        let mut lines = headers.get_all(header::CONTENT_ENCODING).iter();
        let Some(line) = lines.next() else { return Ok(Self::Identity) };
        let word = line.to_str().unwrap_or_default().trim().to_ascii_lowercase();
        match word.as_str() {
            _ if lines.next().is_some() => Err(unknown()),
            "" | "identity" => Ok(Self::Identity),
            "gzip" | "x-gzip" => Ok(Self::Gzip),
            "zstd" => Ok(Self::Zstd),
            _ => Err(unknown()),
        }
    }

    /// Returns the coding for a reply of this size: the one that the client prefers most, and among equals the cheapest.
    pub(in crate::face) fn of_reply(wanted: &Preferences, bytes: usize) -> Self {
        if wanted.is_empty() {
            return Self::Identity;
        }
        let weight = |words: &[&str]| wanted.weight(words).unwrap_or_default();
        // The identity coding is always allowed, unless the client excludes it.
        let plain = wanted.weight(&["identity"]).or(wanted.weight(&["*"]).filter(|weight| *weight == 0));
        if bytes < COMPRESSED_MIN_BYTES && plain != Some(0) {
            return Self::Identity;
        }
        let (zstd, gzip) = (weight(&["zstd", "*"]), weight(&["gzip", "x-gzip", "*"]));
        let (best, coding) = if gzip > zstd { (gzip, Self::Gzip) } else { (zstd, Self::Zstd) };
        if best > 0 && best >= plain.unwrap_or_default() { coding } else { Self::Identity }
    }

    /// Returns its name in headers; `None` for the identity coding.
    pub(in crate::face) const fn word(self) -> Option<&'static str> {
        match self {
            Self::Identity => None,
            Self::Gzip => Some("gzip"),
            Self::Zstd => Some("zstd"),
        }
    }

    /// Decompresses a body piece by piece. The reader counts the bytes.
    pub(in crate::face) fn unpacked(
        self,
        packed: impl Stream<Item = io::Result<Bytes>> + Send + Unpin + 'static,
        ZstdWindow(log): ZstdWindow,
    ) -> Unpacked {
        let read = StreamReader::new(packed);
        let reader: Pin<Box<dyn AsyncRead + Send>> = match self {
            Self::Identity => Box::pin(read),
            Self::Gzip => {
                let mut decoder = GzipDecoder::new(read);
                decoder.multiple_members(true);
                Box::pin(decoder)
            }
            Self::Zstd => {
                let window = DParameter::window_log_max(log);
                let mut decoder = ZstdDecoder::with_params(read, &[window]);
                decoder.multiple_members(true);
                Box::pin(decoder)
            }
        };
        ReaderStream::with_capacity(reader, PIECE_BYTES)
    }

    /// Returns the compressed body of a reply and its header. Compression is immediate: the size of a reply is bounded, and an unread reply
    /// would otherwise keep its encoder alive too.
    pub(in crate::face) fn packed(self, bytes: Bytes) -> ServiceResult<(Option<HeaderValue>, Body)> {
        let plain = io::Cursor::new(bytes);
        let body = match self {
            Self::Identity => plain.into_inner(),
            Self::Gzip => whole(GzipEncoder::with_quality(plain, Level::Fastest))?,
            Self::Zstd => whole(ZstdEncoder::with_quality(plain, Level::Fastest))?,
        };
        Ok((self.word().map(HeaderValue::from_static), Body::from(body)))
    }
}

/// The decompressed pieces of a body.
pub(in crate::face) type Unpacked = ReaderStream<Pin<Box<dyn AsyncRead + Send>>>;

/// Reads the complete output of an encoder. Its input is in memory, so it never waits.
fn whole(mut packer: impl AsyncRead + Unpin) -> ServiceResult<Bytes> {
    let mut packed = Vec::new();
    match packer.read_to_end(&mut packed).now_or_never() {
        Some(Ok(_)) => Ok(packed.into()),
        Some(Err(_)) | None => Err(Problem::new(ErrorCode::Internal, "the reply cannot be compressed")),
    }
}

fn unknown() -> Problem {
    let detail = "the content encoding must be one of zstd, gzip, identity, once";
    Problem::new(ErrorCode::UnsupportedEncoding, detail)
}

/// Returns the error for a body that cannot be decompressed.
pub(in crate::face) fn not_unpacked() -> Problem {
    Problem::new(ErrorCode::InvalidRequest, "the body is incomplete, or does not match `Content-Encoding`")
}

#[cfg(test)]
mod tests {
    use futures_util::StreamExt as _;
    use futures_util::stream::iter;

    use super::*;

    fn reply(wanted: &'static str, bytes: usize) -> ContentCoding {
        let headers = [(header::ACCEPT_ENCODING, HeaderValue::from_static(wanted))];
        let wanted = Preferences::of(&HeaderMap::from_iter(headers), &header::ACCEPT_ENCODING);
        ContentCoding::of_reply(&wanted, bytes)
    }

    fn request(lines: &[&'static str]) -> Result<ContentCoding, ErrorCode> {
        let lines = lines.iter().map(|line| (header::CONTENT_ENCODING, HeaderValue::from_static(line)));
        let headers = lines.fold(HeaderMap::new(), |mut headers, (name, line)| {
            headers.append(name, line);
            headers
        });
        ContentCoding::of_request(&headers).map_err(|problem| problem.code)
    }

    #[test]
    fn a_reply_is_compressed_with_what_is_wanted_most_where_it_is_worth_it() {
        use ContentCoding::{Gzip, Identity, Zstd};
        assert_eq!(reply("gzip", 10_000), Gzip);
        assert_eq!(reply("gzip", 100), Identity);
        assert_eq!(reply("gzip, deflate, br, zstd", 10_000), Zstd);
        assert_eq!(reply("gzip, zstd;q=0.5", 10_000), Gzip);
        assert_eq!(reply("gzip;q=0.5, identity", 10_000), Identity);
        assert_eq!(reply("gzip;q=0, *", 10_000), Zstd);
        assert_eq!(reply("gzip, identity;q=0", 10), Gzip);
        assert_eq!(reply("gzip, *;q=0", 10), Gzip);
        assert_eq!(reply("br, deflate", 10_000), Identity);
        assert_eq!(reply("", 10_000), Identity);
    }

    #[test]
    fn a_request_is_compressed_once_with_what_is_known() {
        assert_eq!(request(&[]), Ok(ContentCoding::Identity));
        assert_eq!(request(&["GZIP"]), Ok(ContentCoding::Gzip));
        assert_eq!(request(&["zstd"]), Ok(ContentCoding::Zstd));
        for lines in [&["br"][..], &["gzip, zstd"], &["gzip", "gzip"], &["deflate"]] {
            assert_eq!(request(lines), Err(ErrorCode::UnsupportedEncoding), "{lines:?}");
        }
    }

    #[tokio::test]
    async fn what_is_packed_is_unpacked_again() {
        let text: Bytes = "a line of text\n".repeat(5_000).into();
        for coding in [ContentCoding::Gzip, ContentCoding::Zstd] {
            let (word, body) = coding.packed(text.clone()).expect("packed");
            assert_eq!(word.as_ref().and_then(|word| word.to_str().ok()), coding.word());
            let packed = axum::body::to_bytes(body, usize::MAX).await.expect("packed");
            assert!(packed.len() < text.len() / 10, "{coding:?}: {}", packed.len());
            let whole = coding.unpacked(iter([Ok(packed.clone())]), ZstdWindow::OF_BODY);
            let unpacked: Vec<_> = whole.map(|piece| piece.expect("fits")).collect().await;
            assert_eq!(unpacked.concat(), text);
            let half = packed.slice(..packed.len() / 2);
            let read: Vec<_> = coding.unpacked(iter([Ok(half)]), ZstdWindow::OF_BODY).collect().await;
            assert!(read.iter().any(Result::is_err), "{coding:?} that broke off");
        }
    }
}
