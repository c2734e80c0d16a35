//! Reads a complete body of limited size. The body's deadline and the shared memory budget apply in every case. A compressed body is
//! decompressed as it arrives, and its decompressed size counts.

use std::io;
use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use axum::http::header;
use bytes::{Bytes, BytesMut};
use futures_util::stream::iter;
use futures_util::{Stream, StreamExt as _};
use tokio::time::timeout;

use super::coding::{ContentCoding, PackedBody, ZstdWindow, not_unpacked, pass_over};
use super::limited_body::problem_of;
use super::request_permit::RequestPermit;
use super::zstd_header::{self, ZstdHeader};
use crate::contract::{ErrorCode, Problem, ServiceResult};

/// Maximum time to wait for the rest of a body that is too large.
const PASS_OVER_MAX: Duration = Duration::from_secs(1);
/// Memory of a decoder beside its window: tables and buffers.
const GZIP_BYTES: usize = 64 * 1_024;
const ZSTD_BYTES: usize = 192 * 1_024;

/// Reads the body of a request.
pub(crate) async fn read(request: Request, max_bytes: usize) -> ServiceResult<Bytes> {
    let announced = request.headers().get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok());
    let announced = announced.and_then(|text| text.parse::<u64>().ok()).unwrap_or_default();
    let announced = usize::try_from(announced).unwrap_or(usize::MAX);
    if announced > max_bytes {
        return Err(refuse_unread(request, announced, max_bytes).await);
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

/// Rejects a body by its announced length. A body of less than twice the limit is discarded first. A longer one would take too much
/// reading, and a client that sent `Expect` sends nothing before it gets a response.
async fn refuse_unread(request: Request, announced: usize, max_bytes: usize) -> Problem {
    if announced / 2 < max_bytes && !request.headers().contains_key(header::EXPECT) {
        pass_over_rest(request.into_body().into_data_stream(), announced).await;
    }
    too_large(max_bytes)
}

/// Discards the rest of a body for a limited time. Closing a connection with unread bytes can destroy the response for a peer that is still
/// writing (RFC 9112, section 9.6).
async fn pass_over_rest<E>(pieces: impl Stream<Item = Result<Bytes, E>> + Unpin, max_bytes: usize) {
    let _who_writes_for_longer_may_miss_it = timeout(PASS_OVER_MAX, pass_over(pieces, max_bytes)).await;
}

async fn read_plain(body: Body, announced: Announced) -> ServiceResult<Bytes> {
    let mut pieces = body.into_data_stream();
    let read = collect(&mut pieces, announced, problem_of, |_| Ok(())).await;
    if matches!(&read, Err(problem) if problem.code == ErrorCode::PayloadTooLarge) {
        pass_over_rest(pieces, announced.max_bytes).await;
    }
    read
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
    let body = PackedBody::new(iter([Ok(head)]).chain(packed));
    let pieces = coding.unpacked(&body, window.unwrap_or(ZstdWindow::OF_BODY));
    let read = collect(pieces, Announced { bytes: 0, max_bytes }, refused, |bytes| permit.grow(bytes)).await;
    permit.shrink(taken);
    if read.is_err() {
        let _who_writes_for_longer_may_miss_it = timeout(PASS_OVER_MAX, body.pass_over(max_bytes)).await;
    }
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
