//! HTTP encoding of the responses.

use super::errors::{self, violation_body};
use crate::policy::ServiceError;
use crate::service::WireAnswer;
use bytes::Bytes;
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, Response, StatusCode};

const JSON: HeaderValue = HeaderValue::from_static("application/json; charset=UTF-8");

/// Builds the response for an FCM error.
pub(super) fn error_answer(refusal: &ServiceError) -> WireAnswer {
    let Some(row) = errors::find(&refusal.code) else {
        // Never sent: a policy with a code that is unknown was refused when it was set.
        return json_answer(StatusCode::INTERNAL_SERVER_ERROR, Bytes::new());
    };
    let mut answer = json_answer(row.http, row.body(refusal.field.as_deref()));
    if let (WireAnswer::Response(response, _), Some(seconds)) = (&mut answer, refusal.retry_after_s) {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    answer
}

/// Builds the response for an FCM error with another message.
pub(super) fn saying(code: &str, message: &str) -> WireAnswer {
    match errors::find(code) {
        Some(row) => json_answer(row.http, row.body_saying(message, None)),
        None => json_answer(StatusCode::INTERNAL_SERVER_ERROR, Bytes::new()),
    }
}

/// Builds the response to a malformed request.
pub(super) fn malformed_answer(field: &str, description: &str) -> WireAnswer {
    json_answer(StatusCode::BAD_REQUEST, violation_body(field, description))
}

/// Returns a response with a JSON body.
pub(super) fn json_answer(status: StatusCode, body: Bytes) -> WireAnswer {
    let mut response = Response::new(());
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, JSON);
    WireAnswer::Response(response, body)
}

pub(super) fn to_json(value: &serde_json::Value) -> Bytes {
    Bytes::from(value.to_string())
}
