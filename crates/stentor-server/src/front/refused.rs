//! Refusals in foreign shapes.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;

use crate::contract::Problem;
use crate::face::rest::address_of;

/// Writes a refusal into a response: status, body and Retry-After.
pub(super) fn put(
    response: &mut Response,
    problem: &Problem,
    status: StatusCode,
    media_type: &'static str,
    body: String,
) {
    *response.status_mut() = status;
    *response.body_mut() = body.into();
    let headers = response.headers_mut();
    // The header holds the length of the replaced body.
    headers.remove(header::CONTENT_LENGTH);
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
    if let Some(seconds) = problem.retry_after_seconds {
        headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
}

/// Returns a problem as one line: the field, the reason and the remedy.
pub(super) fn line(problem: &Problem) -> String {
    let field = problem.field.as_deref().map(|field| format!("{field}: ")).unwrap_or_default();
    let hint = problem.hint_with(address_of).map(|hint| format!(" ({hint})")).unwrap_or_default();
    format!("{field}{}{hint}", problem.detail)
}
