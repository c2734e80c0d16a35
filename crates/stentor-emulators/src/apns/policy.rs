//! The error reasons of APNs: every documented reason with its status.

use crate::policy::{Dialect, ServiceError, WeightedMix, WeightedRefusal};
use bytes::Bytes;
use http::StatusCode;

const REASONS: &[(u16, &[&str])] = &[
    (
        400,
        &[
            "BadChannelId",
            "BadCollapseId",
            "BadDeviceToken",
            "BadExpirationDate",
            "BadMessage",
            "BadMessageId",
            "BadPriority",
            "BadRequestParams",
            "BadRequestPayload",
            "BadTopic",
            "CannotCreateChannelConfig",
            "ChannelNotRegistered",
            "DeviceTokenNotForTopic",
            "DuplicateHeaders",
            "FeatureNotEnabled",
            "IdleTimeout",
            "InvalidPushType",
            "MissingChannelId",
            "MissingDeviceToken",
            "MissingPushType",
            "MissingTopic",
            "PayloadEmpty",
            "TopicDisallowed",
        ],
    ),
    (
        403,
        &[
            "BadCertificate",
            "BadCertificateEnvironment",
            "BadEnvironmentKeyIdInToken",
            "ExpiredProviderToken",
            "Forbidden",
            "InvalidProviderToken",
            "MissingProviderToken",
            "TopicMismatch",
            "UnrelatedKeyIdInToken",
        ],
    ),
    (404, &["BadPath"]),
    (405, &["MethodNotAllowed"]),
    (410, &["ExpiredToken", "Unregistered"]),
    (413, &["PayloadTooLarge"]),
    (429, &["TooManyProviderTokenUpdates", "TooManyRequests"]),
    (500, &["InternalServerError"]),
    (503, &["ServiceUnavailable", "Shutdown"]),
];

pub(super) const DIALECT: Dialect =
    Dialect { knows: |reason| status(reason).is_some(), quota_code: "TooManyRequests", realistic };

/// Returns the status of a reason; `None` when APNs has no such reason.
pub(super) fn status(reason: &str) -> Option<StatusCode> {
    let row = REASONS.iter().find(|(_, reasons)| reasons.contains(&reason))?;
    StatusCode::from_u16(row.0).ok()
}

/// Returns the error body; 410 carries the time since which the token is dead, in milliseconds.
pub(super) fn body(reason: &str, status: StatusCode, timestamp_ms: Option<u64>) -> Bytes {
    match timestamp_ms.filter(|_| status == StatusCode::GONE) {
        Some(timestamp) => Bytes::from(format!(r#"{{"reason":"{reason}","timestamp":{timestamp}}}"#)),
        None => Bytes::from(format!(r#"{{"reason":"{reason}"}}"#)),
    }
}

fn realistic() -> WeightedMix {
    let row =
        |reason, weight, per_token| WeightedRefusal { error: ServiceError::new(reason), weight, per_token };
    WeightedMix {
        accept: 9650,
        errors: vec![
            row("Unregistered", 200, true),
            row("BadDeviceToken", 80, true),
            row("DeviceTokenNotForTopic", 20, true),
            row("TooManyRequests", 20, false),
            row("InternalServerError", 10, false),
            row("ServiceUnavailable", 20, false),
        ],
    }
}
