//! Interpretation of APNs' responses. Source: Apple, "Handling notification responses from APNs".

use std::time::Duration;

use serde::Deserialize;
use stentor_core::outcome::{Outcome, OutcomeScope, Reason};
use stentor_core::time::Timestamp;

use crate::replies;

/// Delay after `TooManyProviderTokenUpdates` if APNs states none.
pub const TOKEN_UPDATES_WAIT_DEFAULT_SECONDS: u64 = 60;

/// An error body.
#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct ApnsErrorBody {
    /// Apple's reason code.
    pub reason: String,
    /// With status 410: time since which the token is dead, in milliseconds since 1970.
    pub timestamp: Option<i64>,
}

/// Parses an error body; the reason is empty if it is not one.
#[must_use]
pub fn parse(body: &[u8]) -> ApnsErrorBody {
    #[derive(Deserialize)]
    struct Loose {
        #[serde(default)]
        reason: String,
        // The reason counts even if the timestamp is malformed.
        #[serde(default)]
        timestamp: serde_json::Value,
    }
    match serde_json::from_slice::<Loose>(body) {
        Ok(Loose { reason, timestamp }) => ApnsErrorBody { reason, timestamp: timestamp.as_i64() },
        Err(_) => ApnsErrorBody::default(),
    }
}

/// Reduces an error body to the fields that [`parse`] reads.
#[must_use]
pub fn excerpt(body: &[u8]) -> Vec<u8> {
    if body.len() <= replies::BRIEF_MAX_BYTES {
        return body.to_vec();
    }
    let ApnsErrorBody { reason, timestamp } = parse(body);
    serde_json::json!({ "reason": replies::code(&reason), "timestamp": timestamp }).to_string().into_bytes()
}

/// Returns true if a request was refused because its provider token is too old.
#[must_use]
pub fn is_expired(status: u16, body: &[u8]) -> bool {
    status == 403 && parse(body).reason == "ExpiredProviderToken"
}

/// Returns the outcome of a response; `retry_after` is from its header.
#[must_use]
pub fn outcome(status: u16, body: &[u8], retry_after: Option<Duration>) -> Outcome {
    if (200..300).contains(&status) {
        return Outcome::Accepted;
    }
    let refusal = parse(body);
    by_reason(&refusal, retry_after).unwrap_or_else(|| by_status(status, &refusal, retry_after))
}

fn by_reason(refusal: &ApnsErrorBody, retry_after: Option<Duration>) -> Option<Outcome> {
    Some(match refusal.reason.as_str() {
        "Unregistered" => dead(Reason::Unregistered, refusal),
        "ExpiredToken" => dead(Reason::TokenExpired, refusal),
        "BadDeviceToken" | "MissingDeviceToken" => rejected(Reason::InvalidToken, OutcomeScope::Device),
        "DeviceTokenNotForTopic" => rejected(Reason::SenderMismatch, OutcomeScope::Device),
        "PayloadTooLarge" => rejected(Reason::PayloadTooLarge, OutcomeScope::Payload),
        "BadCollapseId" | "BadExpirationDate" | "BadMessage" | "BadMessageId" | "BadPriority"
        | "DuplicateHeaders" | "InvalidPushType" | "PayloadEmpty" => {
            rejected(Reason::InvalidPayload, OutcomeScope::Payload)
        }
        // Topic and key belong to the credential: the device is not the cause.
        "BadCertificate"
        | "BadCertificateEnvironment"
        | "BadEnvironmentKeyIdInToken"
        | "BadEnvironmentKeyInToken"
        | "BadTopic"
        | "Forbidden"
        | "InvalidProviderToken"
        | "MissingProviderToken"
        | "MissingTopic"
        | "TopicDisallowed"
        | "UnrelatedKeyIdInToken" => rejected(Reason::CredentialRefused, OutcomeScope::Credential),
        // The token is the cause, not the key: a newer token will be accepted.
        "ExpiredProviderToken" => Outcome::Unavailable {
            reason: Reason::CredentialRefused,
            scope: OutcomeScope::Credential,
            retry_after,
        },
        // Apple sends it for a single device.
        "TooManyRequests" => Outcome::Throttled { scope: OutcomeScope::Device, retry_after },
        "TooManyProviderTokenUpdates" => token_updates(retry_after),
        "IdleTimeout" | "InternalServerError" | "ServiceUnavailable" | "Shutdown" => {
            unavailable(Reason::Unavailable, retry_after)
        }
        _ => return None,
    })
}

/// Returns the outcome of a response without a known reason.
fn by_status(status: u16, refusal: &ApnsErrorBody, retry_after: Option<Duration>) -> Outcome {
    match status {
        400 => rejected(Reason::UnknownAnswer, OutcomeScope::Payload),
        403 => rejected(Reason::CredentialRefused, OutcomeScope::Credential),
        404 | 405 => rejected(Reason::UnknownAnswer, OutcomeScope::Credential),
        410 => dead(Reason::Unregistered, refusal),
        413 => rejected(Reason::PayloadTooLarge, OutcomeScope::Payload),
        429 => Outcome::Throttled { scope: OutcomeScope::Device, retry_after },
        500.. => unavailable(Reason::Unavailable, retry_after),
        _ => unavailable(Reason::UnknownAnswer, retry_after),
    }
}

fn dead(reason: Reason, refusal: &ApnsErrorBody) -> Outcome {
    Outcome::Unregistered { reason, since: refusal.timestamp.map(Timestamp::from_millis) }
}

fn rejected(reason: Reason, scope: OutcomeScope) -> Outcome {
    Outcome::Rejected { reason, scope }
}

fn token_updates(retry_after: Option<Duration>) -> Outcome {
    let wait = retry_after.unwrap_or(Duration::from_secs(TOKEN_UPDATES_WAIT_DEFAULT_SECONDS));
    Outcome::Throttled { scope: OutcomeScope::Credential, retry_after: Some(wait) }
}

fn unavailable(reason: Reason, retry_after: Option<Duration>) -> Outcome {
    Outcome::Unavailable { reason, scope: OutcomeScope::Service, retry_after }
}

#[cfg(test)]
mod tests;
