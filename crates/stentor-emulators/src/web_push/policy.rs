//! The errors of the push service: a reason for each refusal, with its status and a sentence.

use crate::policy::{Dialect, ServiceError, WeightedMix, WeightedRefusal};
use bytes::Bytes;
use http::StatusCode;
use serde_json::json;

pub(super) const BAD_TTL: &str = "BadTtl";
pub(super) const BAD_URGENCY: &str = "BadUrgency";
pub(super) const BAD_TOPIC: &str = "BadTopic";
pub(super) const BAD_ENCODING: &str = "BadEncoding";
pub(super) const BAD_CONTENT: &str = "BadContent";
pub(super) const UNAUTHORIZED: &str = "Unauthorized";
pub(super) const BAD_JWT: &str = "BadJwt";
pub(super) const BAD_SIGNATURE: &str = "BadSignature";
pub(super) const BAD_AUDIENCE: &str = "BadAudience";
pub(super) const BAD_EXPIRATION: &str = "BadExpiration";
pub(super) const BAD_SUBJECT: &str = "BadSubject";
pub(super) const WRONG_KEY: &str = "WrongKey";
pub(super) const NOT_FOUND: &str = "NotFound";
pub(super) const METHOD_NOT_ALLOWED: &str = "MethodNotAllowed";
pub(super) const GONE: &str = "Gone";
pub(super) const TOO_LARGE: &str = "TooLarge";
pub(super) const THROTTLED: &str = "Throttled";
const INTERNAL_ERROR: &str = "InternalError";
const UNAVAILABLE: &str = "Unavailable";

/// A reason with its status and its sentence.
struct Row(&'static str, StatusCode, &'static str);

const ROWS: &[Row] = &[
    Row(BAD_TTL, StatusCode::BAD_REQUEST, "the header TTL is missing, or is not a number of seconds"),
    Row(BAD_URGENCY, StatusCode::BAD_REQUEST, "Urgency is very-low, low, normal or high, once"),
    Row(BAD_TOPIC, StatusCode::BAD_REQUEST, "Topic has at most 32 letters of base64url"),
    Row(BAD_ENCODING, StatusCode::BAD_REQUEST, "Content-Encoding must be aes128gcm"),
    Row(
        BAD_CONTENT,
        StatusCode::BAD_REQUEST,
        "the body is not the content coding aes128gcm with a key of 65 bytes",
    ),
    Row(UNAUTHORIZED, StatusCode::UNAUTHORIZED, "the request does not identify its sender by VAPID"),
    Row("Forbidden", StatusCode::FORBIDDEN, "the sender may not send"),
    Row(BAD_JWT, StatusCode::FORBIDDEN, "t is not a JWT signed with ES256, or k is not a key in 65 bytes"),
    Row(BAD_SIGNATURE, StatusCode::FORBIDDEN, "the key k has not signed the JWT"),
    Row(BAD_AUDIENCE, StatusCode::FORBIDDEN, "aud is not the origin of this push service"),
    Row(BAD_EXPIRATION, StatusCode::FORBIDDEN, "exp is missing, past, or more than 24 hours ahead"),
    Row(BAD_SUBJECT, StatusCode::FORBIDDEN, "sub is neither a mailto: nor an https: address"),
    Row(WRONG_KEY, StatusCode::FORBIDDEN, "the subscription was made for the key of another sender"),
    Row(NOT_FOUND, StatusCode::NOT_FOUND, "there is no such subscription"),
    Row(
        "NotAcceptable",
        StatusCode::NOT_ACCEPTABLE,
        "there were too many messages, as the service of Edge says",
    ),
    Row(METHOD_NOT_ALLOWED, StatusCode::METHOD_NOT_ALLOWED, "messages are sent with POST"),
    Row(GONE, StatusCode::GONE, "the subscription has ended"),
    Row(TOO_LARGE, StatusCode::PAYLOAD_TOO_LARGE, "the body has more than 4096 bytes"),
    Row(THROTTLED, StatusCode::TOO_MANY_REQUESTS, "there were too many messages"),
    Row(INTERNAL_ERROR, StatusCode::INTERNAL_SERVER_ERROR, "the push service has failed"),
    Row(UNAVAILABLE, StatusCode::SERVICE_UNAVAILABLE, "the push service is unavailable for now"),
];

pub(super) const DIALECT: Dialect =
    Dialect { knows: |reason| row(reason).is_some(), quota_code: THROTTLED, realistic };

fn row(reason: &str) -> Option<&'static Row> {
    ROWS.iter().find(|row| row.0 == reason)
}

/// Returns the status and the body of a refusal.
pub(super) fn encode(reason: &str) -> (StatusCode, Bytes) {
    // A policy with an unknown reason was refused when it was set.
    let (status, sentence) =
        row(reason).map_or((StatusCode::INTERNAL_SERVER_ERROR, ""), |row| (row.1, row.2));
    (status, Bytes::from(json!({"reason": reason, "description": sentence}).to_string()))
}

fn realistic() -> WeightedMix {
    let row =
        |reason, weight, per_token| WeightedRefusal { error: ServiceError::new(reason), weight, per_token };
    WeightedMix {
        accept: 9650,
        errors: vec![
            row(GONE, 270, true),
            row(NOT_FOUND, 30, true),
            row(THROTTLED, 20, false),
            row(INTERNAL_ERROR, 10, false),
            row(UNAVAILABLE, 20, false),
        ],
    }
}
