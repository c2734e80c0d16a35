//! Import of devices.

use axum::Json;
use axum::body::{Body, HttpBody as _};
use axum::extract::State;
use axum::http::{HeaderMap, header};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::auth::AppCaller;
use super::extract::QueryParams;
use super::read_timeout::with_timeout;
use super::{Api, ApiResult};
use crate::service::{ErrorCode, Format, ImportOptions, ImportReport, Problem, ServiceResult};

/// Returns the routes of this noun.
pub(super) fn routes() -> OpenApiRouter<Api> {
    OpenApiRouter::new().routes(routes!(import))
}

/// How to import.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct ImportQuery {
    /// `ndjson` or `csv`; decided by the content type when absent.
    format: Option<String>,
    /// Check everything, keep nothing.
    #[serde(default)]
    dry_run: bool,
}

/// Why a line was refused.
#[derive(Serialize, ToSchema)]
struct LineError {
    /// Line of the body, from 1.
    line: u64,
    code: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    field: Option<String>,
    detail: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
}

/// What an import came to.
#[derive(Serialize, ToSchema)]
struct ImportResult {
    /// Lines that should hold a device (blank lines and the CSV header do not).
    lines: u64,
    /// Lines without fault.
    valid: u64,
    /// Devices made known.
    created: u64,
    /// Devices known before.
    updated: u64,
    /// Lines refused.
    failed: u64,
    /// Whether nothing was kept on purpose.
    dry_run: bool,
    /// The first 1,000 refusals.
    errors: Vec<LineError>,
    /// Whether there were more.
    errors_truncated: bool,
}

impl From<ImportReport> for ImportResult {
    fn from(report: ImportReport) -> Self {
        let errors = report.errors.into_iter().map(|error| LineError {
            line: error.line,
            code: error.code.as_str(),
            field: error.field,
            detail: error.detail,
            hint: error.hint,
        });
        Self {
            lines: report.lines,
            valid: report.valid,
            created: report.created,
            updated: report.updated,
            failed: report.failed,
            dry_run: report.dry_run,
            errors: errors.collect(),
            errors_truncated: report.errors_truncated,
        }
    }
}

/// Registers devices by the line: NDJSON, or CSV with a header (tags and topics separated by `;`). The body is
/// streamed and may be of any length, a line at most 16 KiB. Good lines stay; importing the same again is harmless.
#[utoipa::path(post, path = "/v1/devices/import", tag = "devices", params(ImportQuery),
    request_body(content((String = "application/x-ndjson"), (String = "text/csv"))), responses((status = 200, body = ImportResult)))]
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
