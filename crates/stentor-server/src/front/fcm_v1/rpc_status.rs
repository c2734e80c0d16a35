//! Refusals in this API's form: `google.rpc.Status` with an `FcmError` or a `BadRequest` among its details. SDKs check the `FcmError`
//! first, then the status. Source: FCM's reference of error codes.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use crate::contract::{ErrorCode, Problem};
use crate::face::http::refusal::Refusal;

const FCM_ERROR: &str = "type.googleapis.com/google.firebase.fcm.v1.FcmError";
const BAD_REQUEST: &str = "type.googleapis.com/google.rpc.BadRequest";
const MEDIA_TYPE: &str = "application/json; charset=UTF-8";

/// A refusal in this API's form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::front) struct RpcStatus {
    code: StatusCode,
    status: &'static str,
    message: String,
    /// The `errorCode` of an `FcmError`.
    error_code: Option<&'static str>,
    /// The field of a `BadRequest`.
    field: Option<String>,
}

/// The reason why a request is refused: in this API's form, or as a problem of ours, which the middleware translates and logs.
#[derive(Debug)]
pub(in crate::front) enum SendRefusal {
    /// In this API's form.
    Status(RpcStatus),
    /// As a problem of ours.
    Problem(Problem),
}

impl RpcStatus {
    const fn new(code: StatusCode, status: &'static str, message: String) -> Self {
        Self { code, status, message, error_code: None, field: None }
    }

    fn with_code(self, error_code: &'static str) -> Self {
        Self { error_code: Some(error_code), ..self }
    }

    /// A field of the request is malformed.
    pub(super) fn violation(field: impl Into<String>, message: impl Into<String>) -> Self {
        let status = Self::new(StatusCode::BAD_REQUEST, "INVALID_ARGUMENT", message.into());
        Self { field: Some(field.into()), ..status }
    }

    /// The request cannot be parsed.
    pub(super) fn unreadable(message: &str) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "INVALID_ARGUMENT", message.to_owned())
    }

    /// The message is well-formed, and a value of it is not allowed.
    pub(super) fn invalid_argument(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self::violation(field, message).with_code("INVALID_ARGUMENT")
    }

    /// The token is unregistered.
    pub(super) fn unregistered() -> Self {
        let message = "Requested entity was not found.".to_owned();
        Self::new(StatusCode::NOT_FOUND, "NOT_FOUND", message).with_code("UNREGISTERED")
    }

    /// The thing does not exist.
    pub(super) fn not_found() -> Self {
        Self::new(StatusCode::NOT_FOUND, "NOT_FOUND", "Requested entity was not found.".to_owned())
    }

    /// The thing exists already.
    pub(super) fn already_exists() -> Self {
        Self::new(StatusCode::CONFLICT, "ALREADY_EXISTS", "Requested entity already exists.".to_owned())
    }

    /// The caller belongs to another project.
    pub(super) fn foreign_project() -> Self {
        let message = "the access token belongs to another project: the project is the app's id".to_owned();
        Self::new(StatusCode::FORBIDDEN, "PERMISSION_DENIED", message)
    }

    /// Translates a problem of ours.
    pub(in crate::front) fn of(problem: &Problem) -> Self {
        let (code, status, error_code) = words_of(problem.code);
        // A `BadRequest` goes with this status only.
        let field = problem.field.as_deref().map(field_of);
        let field = field.filter(|_| status == "INVALID_ARGUMENT");
        Self { code, status, message: crate::front::refused::line(problem), error_code, field }
    }

    /// Returns the HTTP status.
    pub(in crate::front) const fn http(&self) -> StatusCode {
        self.code
    }

    /// Returns the body.
    pub(in crate::front) fn body(&self) -> String {
        let mut error = json!({"code": self.code.as_u16(), "message": self.message, "status": self.status});
        let own = self.error_code.map(|code| json!({"@type": FCM_ERROR, "errorCode": code}));
        let field = self.field.as_ref().map(|field| {
            json!({"@type": BAD_REQUEST, "fieldViolations": [{"field": field, "description": self.message}]})
        });
        let details: Vec<Value> = own.into_iter().chain(field).collect();
        if !details.is_empty() {
            error["details"] = details.into();
        }
        json!({"error": error}).to_string()
    }
}

/// Returns status and `errorCode` for a problem of ours.
const fn words_of(code: ErrorCode) -> (StatusCode, &'static str, Option<&'static str>) {
    match code {
        ErrorCode::Unauthorized => (StatusCode::UNAUTHORIZED, "UNAUTHENTICATED", None),
        ErrorCode::Forbidden | ErrorCode::ApprovalRequired => {
            (StatusCode::FORBIDDEN, "PERMISSION_DENIED", None)
        }
        ErrorCode::NotFound | ErrorCode::MethodNotAllowed => (StatusCode::NOT_FOUND, "NOT_FOUND", None),
        // The app has no credential for the push service of this token.
        ErrorCode::Conflict | ErrorCode::CredentialUnusable => {
            (StatusCode::UNAUTHORIZED, "UNAUTHENTICATED", Some("THIRD_PARTY_AUTH_ERROR"))
        }
        ErrorCode::IdempotencyKeyReused => (StatusCode::CONFLICT, "ABORTED", None),
        ErrorCode::RateLimited | ErrorCode::QueueFull => {
            (StatusCode::TOO_MANY_REQUESTS, "RESOURCE_EXHAUSTED", Some("QUOTA_EXCEEDED"))
        }
        // Such a limit stays reached: `QUOTA_EXCEEDED` would promise that waiting helps.
        ErrorCode::LimitReached => (StatusCode::TOO_MANY_REQUESTS, "RESOURCE_EXHAUSTED", None),
        ErrorCode::Unavailable => (StatusCode::SERVICE_UNAVAILABLE, "UNAVAILABLE", Some("UNAVAILABLE")),
        ErrorCode::RequestTimeout => (StatusCode::GATEWAY_TIMEOUT, "DEADLINE_EXCEEDED", None),
        ErrorCode::Internal => (StatusCode::INTERNAL_SERVER_ERROR, "INTERNAL", Some("INTERNAL")),
        ErrorCode::InvalidField => (StatusCode::BAD_REQUEST, "INVALID_ARGUMENT", Some("INVALID_ARGUMENT")),
        ErrorCode::InvalidRequest
        | ErrorCode::AddressRefused
        | ErrorCode::PayloadTooLarge
        | ErrorCode::UnsupportedEncoding
        | ErrorCode::NotAcceptable
        | ErrorCode::PreconditionFailed
        | ErrorCode::UnsupportedMediaType => (StatusCode::BAD_REQUEST, "INVALID_ARGUMENT", None),
    }
}

/// Returns this API's name of a field of ours.
fn field_of(ours: &str) -> String {
    match ours {
        "message" => "message".to_owned(),
        "ttl_seconds" => "message.android.ttl".to_owned(),
        "collapse_key" => "message.android.collapse_key".to_owned(),
        "target" => "message".to_owned(),
        other => match other.strip_prefix("target.") {
            Some(target) if target.starts_with("token") => "message.token".to_owned(),
            Some(target) => format!("message.{target}"),
            None => format!("message.{other}"),
        },
    }
}

impl From<Problem> for SendRefusal {
    fn from(problem: Problem) -> Self {
        Self::Problem(problem)
    }
}

impl From<RpcStatus> for SendRefusal {
    fn from(status: RpcStatus) -> Self {
        Self::Status(status)
    }
}

impl IntoResponse for SendRefusal {
    fn into_response(self) -> Response {
        match self {
            Self::Status(status) => status.into_response(),
            Self::Problem(problem) => Refusal(problem).into_response(),
        }
    }
}

impl IntoResponse for RpcStatus {
    fn into_response(self) -> Response {
        let media_type = (header::CONTENT_TYPE, HeaderValue::from_static(MEDIA_TYPE));
        (self.http(), [media_type], self.body()).into_response()
    }
}

/// Writes a problem of ours in this API's form.
pub(in crate::front) fn write(response: &mut Response, problem: &Problem, _: &str) {
    let status = RpcStatus::of(problem);
    crate::front::refused::put(response, problem, status.http(), MEDIA_TYPE, status.body());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn details(status: &RpcStatus) -> Value {
        let body: Value = serde_json::from_str(&status.body()).expect("JSON");
        body["error"]["details"].clone()
    }

    #[test]
    fn what_is_malformed_names_its_field_and_no_error_code() {
        let status = RpcStatus::violation("message.ttl", "must be seconds");
        let named = json!([{"@type": BAD_REQUEST, "fieldViolations": [{"field": "message.ttl", "description": "must be seconds"}]}]);
        assert_eq!((status.http().as_u16(), details(&status)), (400, named));
    }

    #[test]
    fn a_missing_credential_is_the_third_partys_and_a_full_queue_the_quotas() {
        let of = |code| RpcStatus::of(&Problem::new(code, "why"));
        let conflict = of(ErrorCode::Conflict);
        assert_eq!(details(&conflict)[0]["errorCode"], "THIRD_PARTY_AUTH_ERROR");
        let full = of(ErrorCode::QueueFull);
        assert_eq!(
            (full.http().as_u16(), details(&full)[0]["errorCode"].as_str()),
            (429, Some("QUOTA_EXCEEDED"))
        );
        assert_eq!(
            details(&of(ErrorCode::Unauthorized)),
            Value::Null,
            "a wrong token is not the third party's"
        );
    }

    #[test]
    fn a_field_of_ours_is_named_as_callers_know_it() {
        let of = |field: &str| RpcStatus::of(&Problem::field(field.to_owned(), "why")).field;
        assert_eq!(of("target.token.token").as_deref(), Some("message.token"));
        assert_eq!(of("target.condition").as_deref(), Some("message.condition"));
        assert_eq!(of("android.notification").as_deref(), Some("message.android.notification"));
    }
}
