//! Import of devices: its body is streamed, so that it is bound to its operation by hand.

use axum::Json;
use axum::body::{Body, HttpBody as _};
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use utoipa::PartialSchema;
use utoipa::openapi::content::ContentBuilder;
use utoipa::openapi::request_body::RequestBodyBuilder;
use utoipa::openapi::{HttpMethod, Required};

use super::ApiResult;
use super::extract::QueryParams;
use super::records::Schemas;
use super::row::{Row, bind, describe};
use crate::contract::import::{ImportQuery, ImportResult};
use crate::contract::table::ImportDevices;
use crate::contract::{ErrorCode, Problem, ServiceResult};
use crate::face::Api;
use crate::face::http::auth::AppCaller;
use crate::face::http::with_timeout;
use crate::service::{Format, ImportOptions};

/// Returns the row of the import.
pub(super) fn row(path: &'static str) -> Row {
    let mut schemas = Schemas::new();
    let text = || ContentBuilder::new().schema(Some(String::schema())).build();
    let body = RequestBodyBuilder::new()
        .content("application/x-ndjson", text())
        .content("text/csv", text())
        .required(Some(Required::True));
    let operation = describe::<ImportDevices>(StatusCode::OK, &mut schemas).request_body(Some(body.build()));
    bind((HttpMethod::Post, path), (operation, schemas), import)
}

async fn import(
    State(api): State<Api>,
    AppCaller(caller): AppCaller,
    QueryParams(query): QueryParams<ImportQuery>,
    headers: HeaderMap,
    body: Body,
) -> ApiResult<Json<ImportResult>> {
    if body.is_end_stream() && !headers.contains_key(header::CONTENT_TYPE) {
        return Err(Problem::new(ErrorCode::InvalidRequest, "there is no body").into());
    }
    let format = format(query.format.as_deref(), &headers)?;
    let pieces = with_timeout(body.into_data_stream(), *api.import_timeout());
    let options = ImportOptions { format, dry_run: query.dry_run };
    let report = api.service().import(caller, options, Box::pin(pieces)).await?;
    Ok(Json(report.into()))
}

fn format(asked: Option<&str>, headers: &HeaderMap) -> ServiceResult<Format> {
    let asked = asked.map(str::parse::<Format>).transpose()?;
    match (asked, told(headers)) {
        (Some(asked), Some(told)) if asked != told => {
            let detail = "`format` and the content type say different things; one of them is enough";
            Err(Problem::new(ErrorCode::Conflict, detail).at("format"))
        }
        (asked, told) => asked.or(told).ok_or_else(|| {
            Problem::new(
                ErrorCode::UnsupportedMediaType,
                "the content type must be application/x-ndjson or text/csv, or `format` must say which",
            )
        }),
    }
}

/// Returns the format that the content type names, if it is one of ours.
fn told(headers: &HeaderMap) -> Option<Format> {
    let given = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    match given.split(';').next().unwrap_or_default().trim().to_ascii_lowercase().as_str() {
        "application/x-ndjson" | "application/ndjson" | "application/jsonl" => Some(Format::Ndjson),
        "text/csv" => Some(Format::Csv),
        _ => None,
    }
}
