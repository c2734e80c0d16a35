//! Refusals as gRPC statuses, with machine-readable details.

use axum::body::Body;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::Response;
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD_NO_PAD;
use stentor_wire::protobuf::fields::{put_field, put_number};

use super::{GRPC, encoding};
use crate::contract::{ErrorCode, Problem};

/// Domain of the reasons in `ErrorInfo`.
const DOMAIN: &str = "stentor";

/// Returns the gRPC status code of an error code.
const fn status_of(code: ErrorCode) -> u16 {
    match code {
        ErrorCode::InvalidRequest | ErrorCode::InvalidField | ErrorCode::AddressRefused => 3,
        ErrorCode::RequestTimeout => 4,
        ErrorCode::NotFound => 5,
        ErrorCode::Forbidden | ErrorCode::ApprovalRequired => 7,
        ErrorCode::PayloadTooLarge | ErrorCode::LimitReached | ErrorCode::RateLimited => 8,
        ErrorCode::Conflict
        | ErrorCode::IdempotencyKeyReused
        | ErrorCode::CredentialUnusable
        | ErrorCode::PreconditionFailed => 9,
        ErrorCode::MethodNotAllowed
        | ErrorCode::UnsupportedMediaType
        | ErrorCode::UnsupportedEncoding
        | ErrorCode::NotAcceptable => 12,
        ErrorCode::Internal => 13,
        ErrorCode::QueueFull | ErrorCode::Unavailable => 14,
        ErrorCode::Unauthorized => 16,
    }
}

/// Writes a refusal into a response that has only headers.
pub(super) fn write(response: &mut Response, problem: &Problem, request_id: &str) {
    *response.status_mut() = StatusCode::OK;
    *response.body_mut() = Body::empty();
    let headers = response.headers_mut();
    headers.remove(header::CONTENT_LENGTH);
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(GRPC));
    headers.insert(encoding::ACCEPTED, HeaderValue::from_static(encoding::KNOWN));
    headers.extend(refused(problem, request_id));
}

/// Returns the trailers of a successful call.
pub(super) fn served() -> HeaderMap {
    HeaderMap::from_iter([(HeaderName::from_static("grpc-status"), HeaderValue::from_static("0"))])
}

/// Returns the trailers of a refused call.
pub(super) fn refused(problem: &Problem, request_id: &str) -> HeaderMap {
    let status = status_of(problem.code);
    let details = BASE64_STANDARD_NO_PAD.encode(details(status, problem, request_id));
    let values = [
        ("grpc-status", status.to_string()),
        ("grpc-message", percent_encoded(&problem.detail)),
        ("grpc-status-details-bin", details),
    ];
    let values =
        values.into_iter().filter_map(|(name, text)| Some((name, HeaderValue::from_str(&text).ok()?)));
    values.map(|(name, value)| (HeaderName::from_static(name), value)).collect()
}

/// Encodes a `google.rpc.Status` with the details of a refusal.
fn details(status: u16, problem: &Problem, request_id: &str) -> Vec<u8> {
    let mut out = Vec::new();
    put_number(1, u64::from(status), &mut out);
    put_field(2, problem.detail.as_bytes(), &mut out);
    let mut add = |kind: &str, value: Vec<u8>| {
        let mut any = Vec::new();
        put_field(1, format!("type.googleapis.com/google.rpc.{kind}").as_bytes(), &mut any);
        put_field(2, &value, &mut any);
        put_field(3, &any, &mut out);
    };
    add("ErrorInfo", error_info(problem));
    if let Some(field) = problem.field.as_deref().filter(|field| !field.is_empty()) {
        add("BadRequest", one(1, &pair(field, &problem.detail)));
    }
    if let Some(seconds) = problem.retry_after_seconds {
        let mut duration = Vec::new();
        put_number(1, u64::from(seconds), &mut duration);
        add("RetryInfo", one(1, &duration));
    }
    if !request_id.is_empty() {
        add("RequestInfo", one(1, request_id.as_bytes()));
    }
    out
}

/// Encodes an `ErrorInfo`. The reason is the error code, the same word as in all faces; the hint is in the metadata.
fn error_info(problem: &Problem) -> Vec<u8> {
    let mut info = pair(problem.code.as_str(), DOMAIN);
    if let Some(hint) = problem.hint_with(str::to_owned) {
        put_field(3, &pair("hint", &hint), &mut info);
    }
    info
}

fn one(number: u32, value: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    put_field(number, value, &mut out);
    out
}

fn pair(first: &str, second: &str) -> Vec<u8> {
    let mut out = one(1, first.as_bytes());
    put_field(2, second.as_bytes(), &mut out);
    out
}

/// Percent-encodes a text for a header: all bytes but visible ASCII and the space.
fn percent_encoded(text: &str) -> String {
    let one = |byte: u8| match byte {
        b' '..=b'~' if byte != b'%' => char::from(byte).to_string(),
        byte => format!("%{byte:02X}"),
    };
    text.bytes().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_the_status_of_each_code() {
        let page = include_str!("../../../../../docs/faces/grpc.md");
        for code in ErrorCode::ALL {
            let (status, word) = (format!("| {} `", status_of(*code)), format!("`{}`", code.as_str()));
            assert!(
                page.lines().any(|row| row.starts_with(&status) && row.contains(&word)),
                "{status}{word}"
            );
        }
    }

    #[test]
    fn messages_are_written_as_headers_may_carry_them() {
        assert_eq!(percent_encoded("50 % größer\n"), "50 %25 gr%C3%B6%C3%9Fer%0A");
    }
}
