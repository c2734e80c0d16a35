//! Import of devices. The body is streamed in the format of its content type, and decompressed as it arrives.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::body::HttpBody as _;
use axum::extract::{FromRequestParts as _, Request};
use axum::http::{HeaderMap, header};
use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::stream::BoxStream;
use utoipa::openapi::Required;
use utoipa::openapi::content::ContentBuilder;
use utoipa::openapi::path::{OperationBuilder, ParameterIn};
use utoipa::openapi::request_body::RequestBodyBuilder;
use utoipa::{IntoParams, PartialSchema};

use super::extract::QueryParams;
use super::records::{BodySize, NamedSchemas, RequestRecord};
use crate::contract::import::{ImportQuery, ImportRequest, Lines};
use crate::contract::{ErrorCode, Problem, ServiceResult};
use crate::face::Api;
use crate::face::http::coding::{ContentCoding, ZstdWindow, not_unpacked};
use crate::face::http::refusal::Refusal;
use crate::face::read_timeout::with_timeout;

/// Decompressed size that an import may always have.
const UNPACKED_MIN_BYTES: u64 = 1_024 * 1_024;
/// Maximum compression ratio beyond that size. Lines of devices reach a tenth of it.
const UNPACKED_MAX_FOLD: u64 = 200;

impl RequestRecord for ImportRequest {
    const BODY: Option<BodySize> = None;

    async fn read(request: Request, api: &Api, _: &'static str) -> Result<Self, Refusal> {
        let (mut parts, body) = request.into_parts();
        let query = QueryParams::<ImportQuery>::from_request_parts(&mut parts, api).await?.0;
        if body.is_end_stream() && !parts.headers.contains_key(header::CONTENT_TYPE) {
            return Err(Problem::new(ErrorCode::InvalidRequest, "there is no body").into());
        }
        let format = Some(format(query.format.as_deref(), &parts.headers)?);
        let coding = ContentCoding::of_request(&parts.headers)?;
        let pieces = with_timeout(body.into_data_stream(), *api.import_timeout()).boxed();
        let lines = if coding == ContentCoding::Identity { pieces } else { unpacked(coding, pieces) };
        Ok(Self { query: ImportQuery { format, ..query }, lines })
    }

    fn describe(operation: OperationBuilder, _: &mut NamedSchemas) -> OperationBuilder {
        let parameters = ImportQuery::into_params(|| Some(ParameterIn::Query));
        let operation = parameters.into_iter().fold(operation, OperationBuilder::parameter);
        let text = || ContentBuilder::new().schema(Some(String::schema())).build();
        let body = RequestBodyBuilder::new()
            .content("application/x-ndjson", text())
            .content("text/csv", text())
            .required(Some(Required::True));
        operation.request_body(Some(body.build()))
    }
}

/// Decompresses a body of any length. Fails if its compression ratio is far beyond that of device lines.
fn unpacked(coding: ContentCoding, pieces: BoxStream<'static, ServiceResult<Bytes>>) -> Lines {
    let came = Arc::new(AtomicU64::new(0));
    let counter = Arc::clone(&came);
    let counted = pieces.map(move |piece| {
        let piece = piece.map_err(io::Error::other)?;
        counter.fetch_add(piece.len() as u64, Ordering::Relaxed);
        Ok(piece)
    });
    let mut made = 0;
    let checked = coding.unpacked(counted, ZstdWindow::OF_STREAM).map(move |piece| {
        let piece = piece.map_err(|error| cause(&error))?;
        made += piece.len() as u64;
        let most = UNPACKED_MIN_BYTES + UNPACKED_MAX_FOLD * came.load(Ordering::Relaxed);
        if made > most { Err(bomb()) } else { Ok(piece) }
    });
    checked.boxed()
}

/// Returns the reason for the end of a body during decompression: an earlier refusal, or invalid compressed data.
fn cause(error: &io::Error) -> Problem {
    let before = error.get_ref().and_then(|inner| inner.downcast_ref::<Problem>());
    before.cloned().unwrap_or_else(not_unpacked)
}

fn bomb() -> Problem {
    let detail = format!("the body unpacks to more than {UNPACKED_MAX_FOLD} times its size");
    Problem::new(ErrorCode::PayloadTooLarge, detail)
}

/// Returns the format in the query or, without it, the one of the content type.
fn format(requested: Option<&str>, headers: &HeaderMap) -> ServiceResult<String> {
    match (requested, format_of(headers)) {
        (Some(requested), Some(declared)) if !requested.eq_ignore_ascii_case(declared) => {
            // An unknown format has an error of its own.
            requested.parse::<crate::service::Format>()?;
            let detail = "`format` and the content type contradict each other; one of them is enough";
            Err(Problem::new(ErrorCode::Conflict, detail).at("format"))
        }
        (Some(requested), _) => Ok(requested.to_owned()),
        (None, declared) => declared.map(str::to_owned).ok_or_else(|| {
            Problem::new(
                ErrorCode::UnsupportedMediaType,
                "the content type must be application/x-ndjson or text/csv, or `format` must say which",
            )
        }),
    }
}

/// Returns the format of the content type, if it is one of ours.
fn format_of(headers: &HeaderMap) -> Option<&'static str> {
    let given = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    match given.split(';').next().unwrap_or_default().trim().to_ascii_lowercase().as_str() {
        "application/x-ndjson" | "application/ndjson" | "application/jsonl" => Some("ndjson"),
        "text/csv" => Some("csv"),
        _ => None,
    }
}
