//! Refusals as responses, and the only mapping of error codes to HTTP statuses.

use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};

use crate::contract::{ErrorCode, Problem};

/// Returns the HTTP status of a code.
#[must_use]
pub const fn status_of(code: ErrorCode) -> StatusCode {
    match code {
        ErrorCode::InvalidRequest | ErrorCode::AddressRefused => StatusCode::BAD_REQUEST,
        ErrorCode::InvalidField | ErrorCode::IdempotencyKeyReused => StatusCode::UNPROCESSABLE_ENTITY,
        ErrorCode::PayloadTooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        ErrorCode::RequestTimeout => StatusCode::REQUEST_TIMEOUT,
        ErrorCode::Unauthorized => StatusCode::UNAUTHORIZED,
        ErrorCode::Forbidden | ErrorCode::ApprovalRequired => StatusCode::FORBIDDEN,
        ErrorCode::NotFound => StatusCode::NOT_FOUND,
        ErrorCode::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
        ErrorCode::UnsupportedMediaType | ErrorCode::UnsupportedEncoding => {
            StatusCode::UNSUPPORTED_MEDIA_TYPE
        }
        ErrorCode::NotAcceptable => StatusCode::NOT_ACCEPTABLE,
        ErrorCode::PreconditionFailed => StatusCode::PRECONDITION_FAILED,
        ErrorCode::Conflict | ErrorCode::CredentialUnusable | ErrorCode::LimitReached => StatusCode::CONFLICT,
        ErrorCode::RateLimited => StatusCode::TOO_MANY_REQUESTS,
        ErrorCode::QueueFull | ErrorCode::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        ErrorCode::Internal => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

/// Writes the body and the headers of a refusal into a response, for a request with this id.
pub(crate) type WriteRefusal = fn(&mut Response, &Problem, &str);

/// A refusal as a response. The middleware writes it, because it knows the request id.
#[derive(Debug, Clone)]
pub(crate) struct Refusal(pub(crate) Problem);

impl From<Problem> for Refusal {
    fn from(problem: Problem) -> Self {
        Self(problem)
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let mut response = status_of(self.0.code).into_response();
        response.extensions_mut().insert(self);
        response
    }
}
