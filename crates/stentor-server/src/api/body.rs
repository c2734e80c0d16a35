//! Reads a body whole: so many bytes at most, in so much time at most, within the memory that all bodies share.

use axum::body::Body;
use axum::extract::Request;
use axum::http::{Extensions, header};
use bytes::{Bytes, BytesMut};
use futures_util::StreamExt;
use tokio::time::{Instant, timeout_at};

use super::Api;
use super::seat::Seat;
use crate::service::{Answer, ErrorCode, Problem};

/// Reads the body of a request whose key is known.
pub(super) async fn read(request: Request, api: &Api, max_bytes: usize) -> Answer<Bytes> {
    let announced = request.headers().get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok());
    if announced.and_then(|text| text.parse().ok()).is_some_and(|bytes: u64| bytes > max_bytes as u64) {
        return Err(too_large(max_bytes));
    }
    let (parts, body) = request.into_parts();
    let deadline = Instant::now() + api.front().body_timeout;
    match timeout_at(deadline, collect(body, &parts.extensions, api, max_bytes)).await {
        Ok(read) => read,
        Err(_) => Err(too_slow(api)),
    }
}

async fn collect(body: Body, extensions: &Extensions, api: &Api, max_bytes: usize) -> Answer<Bytes> {
    let mut pieces = body.into_data_stream();
    let (mut first, mut all) = (Bytes::new(), BytesMut::new());
    while let Some(piece) = pieces.next().await {
        let piece = piece.map_err(|_| Problem::new(ErrorCode::InvalidRequest, "the body broke off"))?;
        if piece.len() > max_bytes - first.len().max(all.len()) {
            return Err(too_large(max_bytes));
        }
        Seat::grow(extensions, api.front(), piece.len())?;
        if first.is_empty() && all.is_empty() {
            first = piece;
            continue;
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
    let seconds = api.front().body_timeout.as_secs();
    Problem::new(ErrorCode::RequestTimeout, format!("the body did not come within {seconds} seconds"))
}
