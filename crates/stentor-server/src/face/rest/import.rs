//! Import of devices: its body is streamed, in the format that its content type names.

use axum::body::HttpBody as _;
use axum::extract::{FromRequestParts as _, Request};
use axum::http::{HeaderMap, header};
use futures_util::{StreamExt as _, TryStreamExt as _};
use utoipa::openapi::Required;
use utoipa::openapi::content::ContentBuilder;
use utoipa::openapi::path::{OperationBuilder, ParameterIn};
use utoipa::openapi::request_body::RequestBodyBuilder;
use utoipa::{IntoParams, PartialSchema};

use super::extract::QueryParams;
use super::records::{RequestRecord, Schemas};
use crate::contract::import::{ImportQuery, ImportRequest};
use crate::contract::{ErrorCode, Problem, ServiceResult};
use crate::face::Api;
use crate::face::http::refusal::Refusal;
use crate::face::http::with_timeout;

impl RequestRecord for ImportRequest {
    async fn read(request: Request, api: &Api, _: &'static str) -> Result<Self, Refusal> {
        let (mut parts, body) = request.into_parts();
        let query = QueryParams::<ImportQuery>::from_request_parts(&mut parts, api).await?.0;
        if body.is_end_stream() && !parts.headers.contains_key(header::CONTENT_TYPE) {
            return Err(Problem::new(ErrorCode::InvalidRequest, "there is no body").into());
        }
        let format = Some(format(query.format.as_deref(), &parts.headers)?);
        let lines = with_timeout(body.into_data_stream(), *api.import_timeout());
        let lines = lines.map_err(Into::into).boxed();
        Ok(Self { query: ImportQuery { format, ..query }, lines })
    }

    fn describe(operation: OperationBuilder, _: &mut Schemas) -> OperationBuilder {
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

/// Returns the word of the format: what the query asks for, or what the content type says.
fn format(asked: Option<&str>, headers: &HeaderMap) -> ServiceResult<String> {
    match (asked, told(headers)) {
        (Some(asked), Some(told)) if !asked.eq_ignore_ascii_case(told) => {
            // A word that is no format at all is refused as such.
            asked.parse::<crate::service::Format>()?;
            let detail = "`format` and the content type say different things; one of them is enough";
            Err(Problem::new(ErrorCode::Conflict, detail).at("format"))
        }
        (Some(asked), _) => Ok(asked.to_owned()),
        (None, told) => told.map(str::to_owned).ok_or_else(|| {
            Problem::new(
                ErrorCode::UnsupportedMediaType,
                "the content type must be application/x-ndjson or text/csv, or `format` must say which",
            )
        }),
    }
}

/// Returns the format that the content type names, if it is one of ours.
fn told(headers: &HeaderMap) -> Option<&'static str> {
    let given = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    match given.split(';').next().unwrap_or_default().trim().to_ascii_lowercase().as_str() {
        "application/x-ndjson" | "application/ndjson" | "application/jsonl" => Some("ndjson"),
        "text/csv" => Some("csv"),
        _ => None,
    }
}
