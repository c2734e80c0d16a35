//! Reads a complete body of limited size. The body's deadline and the shared memory budget apply in every case. A compressed body is
//! decompressed as it arrives, and its decompressed size counts.

use std::io;

use axum::body::Body;
use axum::extract::Request;
use axum::http::header;
use bytes::{Bytes, BytesMut};
use futures_util::stream::iter;
use futures_util::{Stream, StreamExt as _};

use super::coding::{ContentCoding, ZstdWindow, not_unpacked};
use super::limited_body::problem_of;
use super::request_permit::RequestPermit;
use super::zstd_header::{self, ZstdHeader};
use crate::contract::{ErrorCode, Problem, ServiceResult};

/// Memory of a decoder beside its window: tables and buffers.
const GZIP_BYTES: usize = 64 * 1_024;
const ZSTD_BYTES: usize = 192 * 1_024;

/// Reads the body of a request.
pub(crate) async fn read(request: Request, max_bytes: usize) -> ServiceResult<Bytes> {
    let announced = request.headers().get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok());
    let announced = announced.and_then(|text| text.parse::<u64>().ok()).unwrap_or_default();
    let announced = usize::try_from(announced).unwrap_or(usize::MAX);
    if announced > max_bytes {
        return Err(too_large(max_bytes));
    }
    let coding = ContentCoding::of_request(request.headers())?;
    let permit = RequestPermit::of(request.extensions())?;
    let body = request.into_body();
    match coding {
        ContentCoding::Identity => read_plain(body, Announced { bytes: announced, max_bytes }).await,
        ContentCoding::Gzip | ContentCoding::Zstd => read_packed(coding, body, &permit, max_bytes).await,
    }
}

/// Reads a body without decoding it, for routes that handle further content codings themselves.
pub(crate) async fn read_raw(body: Body, max_bytes: usize) -> ServiceResult<Bytes> {
    read_plain(body, Announced { bytes: 0, max_bytes }).await
}

async fn read_plain(body: Body, announced: Announced) -> ServiceResult<Bytes> {
    collect(body.into_data_stream(), announced, problem_of, |_| Ok(())).await
}

async fn read_packed(
    coding: ContentCoding,
    body: Body,
    permit: &RequestPermit,
    max_bytes: usize,
) -> ServiceResult<Bytes> {
    // Compressed bytes are consumed at once; only the decompressed ones stay in memory.
    permit.count_unpacked();
    let mut packed = at_most(max_bytes, body);
    let refused = |error: io::Error| match error.kind() {
        io::ErrorKind::FileTooLarge => too_large(max_bytes),
        _ => cause(&error),
    };
    let head = head(&mut packed, coding).await.map_err(refused)?;
    let window = match coding {
        ContentCoding::Zstd => Some(ZstdWindow::asked_for(zstd_header::read(&head))),
        ContentCoding::Identity | ContentCoding::Gzip => None,
    };
    // No more of a window is ever used than the decompressed size of the body.
    let taken = window.map_or(GZIP_BYTES, |window| window.bytes().min(max_bytes) + ZSTD_BYTES);
    permit.grow(taken)?;
    let packed = iter([Ok(head)]).chain(packed);
    let pieces = coding.unpacked(packed, window.unwrap_or(ZstdWindow::OF_BODY));
    let read = collect(pieces, Announced { bytes: 0, max_bytes }, refused, |bytes| permit.grow(bytes)).await;
    permit.shrink(taken);
    read
}

/// Reads the first bytes of a compressed body, until the memory for decompression is known. Nothing is allocated for a body that does not
/// arrive.
async fn head(
    packed: &mut (impl Stream<Item = io::Result<Bytes>> + Unpin),
    coding: ContentCoding,
) -> io::Result<Bytes> {
    let mut head = BytesMut::new();
    while let Some(piece) = packed.next().await {
        head.extend_from_slice(&piece?);
        let is_enough = match coding {
            ContentCoding::Zstd => zstd_header::read(&head) != ZstdHeader::TooShort,
            ContentCoding::Identity | ContentCoding::Gzip => !head.is_empty(),
        };
        if is_enough {
            break;
        }
    }
    Ok(head.freeze())
}

/// Returns the reason for the end of a body during decompression: an earlier refusal, or invalid compressed data.
fn cause(error: &io::Error) -> Problem {
    let before = error.get_ref().and_then(|inner| inner.downcast_ref::<Problem>());
    before.cloned().unwrap_or_else(not_unpacked)
}

/// Limits the compressed size of a body too, because compressed frames may be empty.
fn at_most(max_bytes: usize, body: Body) -> impl Stream<Item = io::Result<Bytes>> + Send + Unpin {
    let mut left = max_bytes;
    body.into_data_stream().map(move |piece| {
        let piece = piece.map_err(|error| io::Error::other(problem_of(error)))?;
        left = left.checked_sub(piece.len()).ok_or(io::ErrorKind::FileTooLarge)?;
        Ok(piece)
    })
}

/// Length of a body by its header, zero if absent, and its maximum length.
#[derive(Clone, Copy)]
struct Announced {
    bytes: usize,
    max_bytes: usize,
}

async fn collect<E>(
    mut pieces: impl Stream<Item = Result<Bytes, E>> + Unpin,
    Announced { bytes, max_bytes }: Announced,
    refused: impl Fn(E) -> Problem,
    counted: impl Fn(usize) -> ServiceResult<()>,
) -> ServiceResult<Bytes> {
    let (mut first, mut all) = (Bytes::new(), BytesMut::new());
    while let Some(piece) = pieces.next().await {
        let piece = piece.map_err(&refused)?;
        if piece.len() > max_bytes - first.len().max(all.len()) {
            return Err(too_large(max_bytes));
        }
        counted(piece.len())?;
        if first.is_empty() && all.is_empty() {
            first = piece;
            continue;
        }
        if all.is_empty() {
            // The announced bytes have not arrived: reserve at most twice the bytes received.
            all.reserve(bytes.min(2 * (first.len() + piece.len())));
        }
        // Copied, so that a small piece does not keep its whole receive buffer alive.
        all.extend_from_slice(&std::mem::take(&mut first));
        all.extend_from_slice(&piece);
    }
    Ok(if all.is_empty() { first } else { all.freeze() })
}

fn too_large(max_bytes: usize) -> Problem {
    Problem::new(ErrorCode::PayloadTooLarge, format!("a body may have at most {max_bytes} bytes here"))
}
