//! Replies to HTTP requests of programs.

use serde_json::{Value, json};
use stentor_core::ports::store::StoreError;

/// The reply to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct McsReply {
    /// The HTTP status.
    pub status: u16,
    /// The `Content-Type`.
    pub content_type: &'static str,
    /// The body.
    pub body: Vec<u8>,
}

impl McsReply {
    pub(super) const fn protobuf(body: Vec<u8>) -> Self {
        Self { status: 200, content_type: "application/x-protobuf", body }
    }

    pub(super) fn text(status: u16, text: &str) -> Self {
        Self { status, content_type: "text/plain; charset=utf-8", body: text.as_bytes().to_vec() }
    }

    pub(super) fn json(status: u16, value: &Value) -> Self {
        Self { status, content_type: "application/json; charset=utf-8", body: value.to_string().into_bytes() }
    }

    /// Creates an error in the format of Google's APIs (google.rpc.Status).
    pub(super) fn error(code: u16, status: &str, message: &str) -> Self {
        Self::json(code, &json!({"error": {"code": code, "message": message, "status": status}}))
    }

    pub(super) fn invalid(message: &str) -> Self {
        Self::error(400, "INVALID_ARGUMENT", message)
    }

    pub(super) fn unauthenticated(message: &str) -> Self {
        Self::error(401, "UNAUTHENTICATED", message)
    }

    pub(super) fn store(error: &StoreError) -> Self {
        match error {
            StoreError::NotFound(_) => Self::error(404, "NOT_FOUND", "there is no such app"),
            StoreError::LimitReached(why) => Self::error(429, "RESOURCE_EXHAUSTED", why),
            _ => Self::error(503, "UNAVAILABLE", "the request cannot be served now; try it again"),
        }
    }
}
