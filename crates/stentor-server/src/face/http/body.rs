//! Reads a body whole: so many bytes at most, in so much time at most, within the memory that all bodies share. One that is
//! compressed is unpacked while it comes, and what it unpacks to is what counts.

use std::io;
use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use axum::http::{Extensions, header};
use bytes::{Bytes, BytesMut};
use futures_util::{Stream, StreamExt as _};
use tokio::time::{Instant, timeout, timeout_at};

use super::coding::{ContentCoding, PackedBody, ZstdWindow, not_unpacked, pass_over};
use super::middleware::RequestLimits;
use super::request_permit::RequestPermit;
use crate::face::Api;
use crate::service::{ErrorCode, Problem, ServiceResult};

/// How long the rest of a body that is too large is waited for.
const PASS_OVER_MAX: Duration = Duration::from_secs(1);

/// Reads the body of a request whose key is known.
pub(crate) async fn read(request: Request, api: &Api, max_bytes: usize) -> ServiceResult<Bytes> {
    let announced = request.headers().get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok());
    let announced = announced.and_then(|text| text.parse::<u64>().ok()).unwrap_or_default();
    let announced = usize::try_from(announced).unwrap_or(usize::MAX);
    if announced > max_bytes {
        return Err(refuse_unread(request, announced, max_bytes).await);
    }
    let coding = ContentCoding::of_request(request.headers())?;
    let (parts, body) = request.into_parts();
    let deadline = Instant::now() + api.limits().body_timeout;
    let announced = Announced { bytes: announced, max_bytes };
    let read = read_as(coding, body, &parts.extensions, api.limits(), announced);
    timeout_at(deadline, read).await.unwrap_or_else(|_| Err(too_slow(api)))
}

/// Refuses a body by the length that it announces. One that is less than twice as long as it may be is passed over first; of a longer
/// one too much would have to be read, and who waits for a word before it sends (`Expect`) sends nothing.
async fn refuse_unread(request: Request, announced: usize, max_bytes: usize) -> Problem {
    if announced / 2 < max_bytes && !request.headers().contains_key(header::EXPECT) {
        pass_over_rest(request.into_body().into_data_stream(), announced).await;
    }
    too_large(max_bytes)
}

/// Passes over what is left of a body, for a while: a connection that is closed with bytes unread can take the answer away from a
/// peer that is still writing (RFC 9112, section 9.6).
async fn pass_over_rest<E>(pieces: impl Stream<Item = Result<Bytes, E>> + Unpin, max_bytes: usize) {
    let _who_writes_for_longer_may_miss_it = timeout(PASS_OVER_MAX, pass_over(pieces, max_bytes)).await;
}

async fn read_as(
    coding: ContentCoding,
    body: Body,
    extensions: &Extensions,
    limits: &RequestLimits,
    announced: Announced,
) -> ServiceResult<Bytes> {
    let broke_off = || Problem::new(ErrorCode::InvalidRequest, "the body broke off");
    if coding == ContentCoding::Identity {
        let mut pieces = body.into_data_stream();
        let read = collect(&mut pieces, extensions, limits, announced, |_| broke_off()).await;
        if matches!(&read, Err(problem) if problem.code == ErrorCode::PayloadTooLarge) {
            pass_over_rest(pieces, announced.max_bytes).await;
        }
        return read;
    }
    if coding == ContentCoding::Zstd {
        // Its window is not among the bytes that are counted while they come.
        RequestPermit::grow(extensions, limits, ZstdWindow::OF_BODY.bytes())?;
    }
    let max_bytes = announced.max_bytes;
    let body = PackedBody::new(at_most(max_bytes, body));
    let pieces = coding.unpacked(&body, ZstdWindow::OF_BODY);
    let refused = |error: io::Error| match error.kind() {
        io::ErrorKind::FileTooLarge => too_large(max_bytes),
        _ => not_unpacked(),
    };
    let read = collect(pieces, extensions, limits, Announced { bytes: 0, max_bytes }, refused).await;
    if read.is_err() {
        body.pass_over(max_bytes).await;
    }
    read
}

/// Ends a body that is longer than allowed while it is still packed: packed frames may hold nothing at all.
fn at_most(max_bytes: usize, body: Body) -> impl Stream<Item = io::Result<Bytes>> + Send + Unpin {
    let mut left = max_bytes;
    body.into_data_stream().map(move |piece| {
        let piece = piece.map_err(io::Error::other)?;
        left = left.checked_sub(piece.len()).ok_or(io::ErrorKind::FileTooLarge)?;
        Ok(piece)
    })
}

/// How long a body is by its header, zero when that is not said, and how long it may be.
#[derive(Clone, Copy)]
struct Announced {
    bytes: usize,
    max_bytes: usize,
}

async fn collect<E>(
    mut pieces: impl Stream<Item = Result<Bytes, E>> + Unpin,
    extensions: &Extensions,
    limits: &RequestLimits,
    Announced { bytes, max_bytes }: Announced,
    refused: impl Fn(E) -> Problem,
) -> ServiceResult<Bytes> {
    let (mut first, mut all) = (Bytes::new(), BytesMut::new());
    while let Some(piece) = pieces.next().await {
        let piece = piece.map_err(&refused)?;
        if piece.len() > max_bytes - first.len().max(all.len()) {
            return Err(too_large(max_bytes));
        }
        RequestPermit::grow(extensions, limits, piece.len())?;
        if first.is_empty() && all.is_empty() {
            first = piece;
            continue;
        }
        if all.is_empty() {
            all.reserve(bytes.max(first.len() + piece.len()));
        }
        // Copied, so that a small piece does not keep the buffer that it came in.
        all.extend_from_slice(&std::mem::take(&mut first));
        all.extend_from_slice(&piece);
    }
    Ok(if all.is_empty() { first } else { all.freeze() })
}

fn too_large(max_bytes: usize) -> Problem {
    Problem::new(ErrorCode::PayloadTooLarge, format!("a body may have at most {max_bytes} bytes here"))
}

fn too_slow(api: &Api) -> Problem {
    let seconds = api.limits().body_timeout.as_secs();
    Problem::new(ErrorCode::RequestTimeout, format!("the body did not come within {seconds} seconds"))
}
