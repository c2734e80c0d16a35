//! The result codes of Push Kit, with their HTTP statuses and messages.

use crate::policy::{Dialect, ServiceError, WeightedMix, WeightedRefusal};
use http::StatusCode;

/// All tokens were taken over.
pub(super) const SUCCESS: &str = "80000000";
/// Some tokens were taken over.
pub(super) const PARTIAL: &str = "80100000";
/// A parameter cannot be read.
pub(super) const WRONG_PARAMETER: &str = "80100001";
/// The message's structure is wrong.
pub(super) const WRONG_STRUCTURE: &str = "80100003";
/// The time to live has passed.
pub(super) const TTL_PASSED: &str = "80100004";
/// The number of a group of waiting messages is wrong.
pub(super) const WRONG_COLLAPSE_KEY: &str = "80100013";
/// The access token is missing, or another client's.
pub(super) const UNAUTHORIZED: &str = "80200001";
/// The access token has expired.
pub(super) const TOKEN_EXPIRED: &str = "80200003";
/// No token is valid. A policy gives it to a token, which is then listed if others were taken over.
pub(super) const INVALID_TOKENS: &str = "80300007";
/// The message is too large.
pub(super) const TOO_LARGE: &str = "80300008";
/// There is no token, or there are too many.
pub(super) const WRONG_TOKEN_COUNT: &str = "80300010";
/// Push Kit has failed.
const FAILED: &str = "81000001";
/// The status with which Push Kit limits the rate, as a code of a policy.
const TRAFFIC_CONTROL: &str = "503";

/// One documented result. The vendor's pages have the statuses by kinds of failures, not by codes.
struct Row {
    code: &'static str,
    status: StatusCode,
    message: &'static str,
}

const fn row(code: &'static str, status: StatusCode, message: &'static str) -> Row {
    Row { code, status, message }
}

const ROWS: &[Row] = &[
    row(SUCCESS, StatusCode::OK, "Success"),
    row(PARTIAL, StatusCode::OK, ""),
    row(WRONG_PARAMETER, StatusCode::BAD_REQUEST, "Some request parameters are incorrect"),
    row(WRONG_STRUCTURE, StatusCode::BAD_REQUEST, "Incorrect message structure"),
    row(TTL_PASSED, StatusCode::BAD_REQUEST, "The message expiration time is earlier than the current time"),
    row(WRONG_COLLAPSE_KEY, StatusCode::BAD_REQUEST, "The collapse_key message field is invalid"),
    row("80100016", StatusCode::BAD_REQUEST, "The message contains sensitive information"),
    row("80100017", StatusCode::BAD_REQUEST, "Too many topic-based messages at a time"),
    row("80100018", StatusCode::BAD_REQUEST, "Invalid message body"),
    row(UNAUTHORIZED, StatusCode::UNAUTHORIZED, "OAuth authentication error"),
    row(TOKEN_EXPIRED, StatusCode::UNAUTHORIZED, "OAuth token expired"),
    row("80200005", StatusCode::UNAUTHORIZED, "JSON Web Token expired"),
    row("80300002", StatusCode::BAD_REQUEST, "No permission to send messages to these tokens"),
    row(INVALID_TOKENS, StatusCode::BAD_REQUEST, "All the tokens are invalid"),
    row(TOO_LARGE, StatusCode::BAD_REQUEST, "The message body exceeds the maximum size"),
    row(WRONG_TOKEN_COUNT, StatusCode::BAD_REQUEST, "The number of tokens is out of range"),
    row("80300011", StatusCode::BAD_REQUEST, "No permission to send high-priority messages"),
    row("80300013", StatusCode::BAD_REQUEST, "Invalid receipt URL"),
    row("80600003", StatusCode::INTERNAL_SERVER_ERROR, "Failed to request the OAuth service"),
    row(FAILED, StatusCode::INTERNAL_SERVER_ERROR, "System inner error"),
];

pub(super) const DIALECT: Dialect = Dialect { knows, quota_code: TRAFFIC_CONTROL, realistic };

/// Returns true if a policy may answer with this code: a refusal of Push Kit, or the status of a whole request.
fn knows(code: &str) -> bool {
    let is_refusal = !matches!(code, SUCCESS | PARTIAL);
    (is_refusal && ROWS.iter().any(|row| row.code == code)) || bare_status(code).is_some()
}

/// Returns the status and the message of a code.
pub(super) fn find(code: &str) -> Option<(StatusCode, &'static str)> {
    ROWS.iter().find(|row| row.code == code).map(|row| (row.status, row.message))
}

/// Returns the HTTP status of a code of three digits from 400 on, which is answered without a body.
pub(super) fn bare_status(code: &str) -> Option<StatusCode> {
    let status = StatusCode::from_bytes(code.as_bytes()).ok()?;
    (status.is_client_error() || status.is_server_error()).then_some(status)
}

/// Passing errors concern whole requests, each of which is drawn for by up to a thousand tokens: so they are seldom.
fn realistic() -> WeightedMix {
    let row = |code, weight, per_token| WeightedRefusal { error: ServiceError::new(code), weight, per_token };
    WeightedMix {
        accept: 969_950,
        errors: vec![row(INVALID_TOKENS, 30_000, true), row(FAILED, 40, false), row("502", 10, false)],
    }
}
