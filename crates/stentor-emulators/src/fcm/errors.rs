//! The errors of FCM: codes, statuses and bodies.

use crate::policy::{Dialect, ServiceError, WeightedMix, WeightedRefusal};
use bytes::Bytes;
use http::StatusCode;
use serde_json::{Value, json};

const FCM_ERROR: &str = "type.googleapis.com/google.firebase.fcm.v1.FcmError";
const BAD_REQUEST: &str = "type.googleapis.com/google.rpc.BadRequest";

/// One documented error.
pub(super) struct Row {
    pub(super) code: &'static str,
    pub(super) http: StatusCode,
    pub(super) status: &'static str,
    message: &'static str,
    /// True if the body names the code in an `FcmError` detail; otherwise it only has the general status.
    detailed: bool,
}

const fn row(code: &'static str, http: StatusCode, status: &'static str, message: &'static str) -> Row {
    Row { code, http, status, message, detailed: true }
}

const fn plain(status: &'static str, http: StatusCode, message: &'static str) -> Row {
    Row { code: status, http, status, message, detailed: false }
}

const ROWS: &[Row] = &[
    row("UNREGISTERED", StatusCode::NOT_FOUND, "NOT_FOUND", "Requested entity was not found."),
    row(
        "INVALID_ARGUMENT",
        StatusCode::BAD_REQUEST,
        "INVALID_ARGUMENT",
        "The request has an invalid argument.",
    ),
    row(
        "SENDER_ID_MISMATCH",
        StatusCode::FORBIDDEN,
        "PERMISSION_DENIED",
        "The token belongs to another sender.",
    ),
    row("QUOTA_EXCEEDED", StatusCode::TOO_MANY_REQUESTS, "RESOURCE_EXHAUSTED", "The quota is used up."),
    row("UNAVAILABLE", StatusCode::SERVICE_UNAVAILABLE, "UNAVAILABLE", "The service is unavailable for now."),
    row("INTERNAL", StatusCode::INTERNAL_SERVER_ERROR, "INTERNAL", "Internal error."),
    row(
        "THIRD_PARTY_AUTH_ERROR",
        StatusCode::UNAUTHORIZED,
        "UNAUTHENTICATED",
        "Credentials for APNs or Web Push fail.",
    ),
    row("APNS_AUTH_ERROR", StatusCode::UNAUTHORIZED, "UNAUTHENTICATED", "Credentials for APNs fail."),
    plain("UNAUTHENTICATED", StatusCode::UNAUTHORIZED, "The request has no valid OAuth 2 access token."),
    plain("PERMISSION_DENIED", StatusCode::FORBIDDEN, "The caller may not send for this project."),
    plain("NOT_FOUND", StatusCode::NOT_FOUND, "Not found."),
    plain("ALREADY_EXISTS", StatusCode::CONFLICT, "The resource exists already."),
];

pub(super) const DIALECT: Dialect =
    Dialect { knows: |code| find(code).is_some(), quota_code: "QUOTA_EXCEEDED", realistic };

/// Returns the row of an error code; `None` when FCM has no such code.
pub(super) fn find(code: &str) -> Option<&'static Row> {
    ROWS.iter().find(|row| row.code == code)
}

impl Row {
    /// Returns the body of this error, blaming a field if there is one.
    pub(super) fn body(&self, field: Option<&str>) -> Bytes {
        self.body_saying(self.message, field)
    }

    /// Returns the body of this error with another message.
    pub(super) fn body_saying(&self, message: &str, field: Option<&str>) -> Bytes {
        let own = self.detailed.then(|| json!({"@type": FCM_ERROR, "errorCode": self.code}));
        let blame = field.map(|field| violation(field, message));
        let details: Vec<Value> = own.into_iter().chain(blame).collect();
        status_body(self.http, self.status, message, &details)
    }
}

/// Returns the body for a request that is malformed at a field.
pub(super) fn violation_body(field: &str, description: &str) -> Bytes {
    let details = [violation(field, description)];
    status_body(StatusCode::BAD_REQUEST, "INVALID_ARGUMENT", description, &details)
}

fn violation(field: &str, description: &str) -> Value {
    json!({"@type": BAD_REQUEST, "fieldViolations": [{"field": field, "description": description}]})
}

/// Returns a `google.rpc.Status` as JSON.
fn status_body(http: StatusCode, status: &str, message: &str, details: &[Value]) -> Bytes {
    let mut error = json!({"code": http.as_u16(), "message": message, "status": status});
    if !details.is_empty() {
        error["details"] = details.into();
    }
    Bytes::from(json!({ "error": error }).to_string())
}

fn realistic() -> WeightedMix {
    let row = |code, weight, per_token| WeightedRefusal { error: ServiceError::new(code), weight, per_token };
    // A realistic sender's payload is valid, so the invalid field is the token.
    let invalid_token =
        ServiceError { field: Some("message.token".to_owned()), ..ServiceError::new("INVALID_ARGUMENT") };
    WeightedMix {
        accept: 9650,
        errors: vec![
            row("UNREGISTERED", 270, true),
            row("SENDER_ID_MISMATCH", 20, true),
            WeightedRefusal { error: invalid_token, weight: 10, per_token: true },
            row("QUOTA_EXCEEDED", 20, false),
            row("UNAVAILABLE", 20, false),
            row("INTERNAL", 10, false),
        ],
    }
}
