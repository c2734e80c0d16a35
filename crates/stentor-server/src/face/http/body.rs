//! Reads a body whole: so many bytes at most, in so much time at most, within the memory that all bodies share.

use axum::body::Body;
use axum::extract::Request;
use axum::http::{Extensions, header};
use bytes::{Bytes, BytesMut};
use futures_util::StreamExt;
use tokio::time::{Instant, timeout_at};

use super::middleware::RequestLimits;
use super::request_permit::RequestPermit;
use crate::face::Api;
use crate::service::{ErrorCode, Problem, ServiceResult};

/// Reads the body of a request whose key is known.
pub(crate) async fn read(request: Request, api: &Api, max_bytes: usize) -> ServiceResult<Bytes> {
    let announced = request.headers().get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok());
    let announced = announced.and_then(|text| text.parse::<u64>().ok()).unwrap_or_default();
    let Some(announced) = usize::try_from(announced).ok().filter(|bytes| *bytes <= max_bytes) else {
        return Err(too_large(max_bytes));
    };
    let (parts, body) = request.into_parts();
    let deadline = Instant::now() + api.limits().body_timeout;
    let (announced, limits) = (Announced { bytes: announced, max_bytes }, api.limits());
    match timeout_at(deadline, collect(body, &parts.extensions, limits, announced)).await {
        Ok(read) => read,
        Err(_) => Err(too_slow(api)),
    }
}

/// How long a body is by its header, zero when that is not said, and how long it may be.
#[derive(Clone, Copy)]
struct Announced {
    bytes: usize,
    max_bytes: usize,
}

async fn collect(
    body: Body,
    extensions: &Extensions,
    limits: &RequestLimits,
    Announced { bytes, max_bytes }: Announced,
) -> ServiceResult<Bytes> {
    let mut pieces = body.into_data_stream();
    let (mut first, mut all) = (Bytes::new(), BytesMut::new());
    while let Some(piece) = pieces.next().await {
        let piece = piece.map_err(|_| Problem::new(ErrorCode::InvalidRequest, "the body broke off"))?;
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
