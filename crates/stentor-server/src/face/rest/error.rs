//! Refusals as problem+json (RFC 9457).

use axum::http::{HeaderValue, header};
use axum::response::Response;
use serde::Serialize;
use utoipa::ToSchema;

use crate::face::http::refusal::status_of;
use crate::service::{ErrorCode, Problem};

/// Media type of every refusal.
pub const PROBLEM_JSON: &str = "application/problem+json";
/// Where the documentation of a code is, relative to the server.
const TYPE_PREFIX: &str = "/docs/errors#";

/// Returns what a caller does about a refusal, in the words of HTTP.
const fn advice(code: ErrorCode) -> &'static str {
    match code {
        ErrorCode::InvalidRequest => "Correct the request; repeating it unchanged will not help.",
        ErrorCode::AddressRefused => {
            "Name another address, or have the operator allow its network as `hint` says."
        }
        ErrorCode::InvalidField => "Correct the field that `field` names; `hint` may say how.",
        ErrorCode::PayloadTooLarge => "Send less at once, or use the import for many devices.",
        ErrorCode::RequestTimeout => {
            "Send the body faster, then repeat with the same Idempotency-Key; an import may have kept some lines."
        }
        ErrorCode::Unauthorized => "Send `Authorization: Bearer <key>` or `X-API-Key: <key>`.",
        ErrorCode::Forbidden => "Use a key with the scope that `detail` names.",
        ErrorCode::NotFound => "Check the id, and whether the key belongs to the app that owns it.",
        ErrorCode::MethodNotAllowed => "See the reference for the methods of this address.",
        ErrorCode::UnsupportedMediaType => "Send the content type that `detail` names.",
        ErrorCode::Conflict => "Look at the present state first; `hint` may say what is missing.",
        ErrorCode::IdempotencyKeyReused => "Use a new key for a new request.",
        ErrorCode::CredentialUnusable => {
            "Take the file as the vendor issued it; `field` names what cannot be read."
        }
        ErrorCode::LimitReached => "Remove something first, or split the work.",
        ErrorCode::RateLimited | ErrorCode::QueueFull | ErrorCode::Unavailable => {
            "Wait as long as Retry-After says, then repeat with the same Idempotency-Key."
        }
        ErrorCode::Internal => "Report it with the request id.",
    }
}

/// One code as the reference lists it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ErrorCodeEntry {
    /// The stable word.
    pub code: &'static str,
    /// HTTP status.
    pub status: u16,
    /// Meaning in a few words.
    pub title: &'static str,
    /// What a caller does about it.
    pub advice: &'static str,
}

/// Lists every code that the API answers with.
#[must_use]
pub fn error_codes() -> Vec<ErrorCodeEntry> {
    let entry = |code: &ErrorCode| ErrorCodeEntry {
        code: code.as_str(),
        status: status_of(*code).as_u16(),
        title: code.title(),
        advice: advice(*code),
    };
    ErrorCode::ALL.iter().map(entry).collect()
}

/// Writes the reference of all codes as a page.
#[must_use]
pub fn errors_markdown() -> String {
    let mut page = String::from(
        "# Error codes\n\nEvery refusal is `application/problem+json` (RFC 9457). `code` is stable and made for programs; \
         `detail` is made for people and may change. `field` names the offending field, `hint` says what to do.\n\n\
         | code | status | meaning | what to do |\n|---|---|---|---|\n",
    );
    for entry in error_codes() {
        let ErrorCodeEntry { code, status, title, advice } = entry;
        page.push_str(&format!("| `{code}` | {status} | {title} | {advice} |\n"));
    }
    page
}

/// A refusal as it is answered.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Problem)]
pub(super) struct ProblemBody<'a> {
    /// Address of the documentation of the code.
    #[serde(rename = "type")]
    kind: String,
    /// Meaning of the code.
    title: &'a str,
    /// HTTP status.
    status: u16,
    /// Stable word for programs.
    #[schema(example = "invalid_field")]
    code: &'a str,
    /// Why, for a person.
    detail: &'a str,
    /// Path of the offending field.
    #[serde(skip_serializing_if = "Option::is_none")]
    field: Option<&'a str>,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<&'a str>,
    /// The request, as in the header `X-Request-Id` and in the log.
    request_id: &'a str,
}

/// Writes the body and the headers of a refusal into its response.
pub(in crate::face) fn write(response: &mut Response, problem: &Problem, request_id: &str) {
    let status = status_of(problem.code);
    let hint = problem.hint_with(super::openapi::address_of);
    let body = ProblemBody {
        kind: format!("{TYPE_PREFIX}{}", problem.code.as_str()),
        title: problem.code.title(),
        status: status.as_u16(),
        code: problem.code.as_str(),
        detail: &problem.detail,
        field: problem.field.as_deref(),
        hint: hint.as_deref(),
        request_id,
    };
    *response.status_mut() = status;
    *response.body_mut() = serde_json::to_vec(&body).unwrap_or_default().into();
    let headers = response.headers_mut();
    headers.remove(header::CONTENT_LENGTH);
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(PROBLEM_JSON));
    if let Some(seconds) = problem.retry_after_seconds {
        headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    if problem.code == ErrorCode::Unauthorized {
        headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"stentor\""));
    }
}
