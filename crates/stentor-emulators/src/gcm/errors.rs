//! The error codes of the legacy API, in HTTP and in XMPP.

use crate::policy::{Dialect, ServiceError, WeightedMix, WeightedRefusal};
use http::StatusCode;

/// No address was given.
pub(crate) const MISSING_REGISTRATION: &str = "MissingRegistration";
/// The token does not look like one, or was never issued.
pub(crate) const INVALID_REGISTRATION: &str = "InvalidRegistration";
/// The token is dead.
pub(crate) const NOT_REGISTERED: &str = "NotRegistered";
/// The token belongs to another app than the one that the message is restricted to.
pub(crate) const INVALID_PACKAGE_NAME: &str = "InvalidPackageName";
/// Keys and values of the data exceed the limit.
pub(crate) const MESSAGE_TOO_BIG: &str = "MessageTooBig";
/// A key of the data is reserved.
pub(crate) const INVALID_DATA_KEY: &str = "InvalidDataKey";
/// The time to live is out of range.
pub(crate) const INVALID_TTL: &str = "InvalidTtl";

/// The service is unavailable for now.
pub(super) const UNAVAILABLE: &str = "Unavailable";
/// The service failed.
pub(super) const INTERNAL: &str = "InternalServerError";

/// The codes of results.
const CODES: &[&str] = &[
    MISSING_REGISTRATION,
    INVALID_REGISTRATION,
    NOT_REGISTERED,
    INVALID_PACKAGE_NAME,
    "MismatchSenderId",
    MESSAGE_TOO_BIG,
    INVALID_DATA_KEY,
    INVALID_TTL,
    UNAVAILABLE,
    INTERNAL,
    "DeviceMessageRateExceeded",
    "TopicsMessageRateExceeded",
    "InvalidApnsCredential",
];

pub(super) const DIALECT: Dialect = Dialect { knows, quota_code: "DeviceMessageRateExceeded", realistic };

/// Returns true if the HTTP API has this code, as the code of a result or as the status of a whole request.
fn knows(code: &str) -> bool {
    CODES.contains(&code) || status(code).is_some()
}

/// Returns the HTTP status of a code of three digits from 400 on.
pub(super) fn status(code: &str) -> Option<StatusCode> {
    let status = StatusCode::from_bytes(code.as_bytes()).ok()?;
    (status.is_client_error() || status.is_server_error()).then_some(status)
}

fn realistic() -> WeightedMix {
    let row = |code, weight, per_token| WeightedRefusal { error: ServiceError::new(code), weight, per_token };
    WeightedMix {
        accept: 9650,
        errors: vec![
            row(NOT_REGISTERED, 270, true),
            row("MismatchSenderId", 20, true),
            row(INVALID_REGISTRATION, 10, true),
            row("DeviceMessageRateExceeded", 20, false),
            row(UNAVAILABLE, 20, false),
            row(INTERNAL, 10, false),
        ],
    }
}
