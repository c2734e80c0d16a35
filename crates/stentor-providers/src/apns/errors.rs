//! Interpretation of APNs' responses. Sources: Apple, "Handling notification responses from APNs" and "Handling error responses from Apple
//! Push Notification service", which is about channels.
//!
//! Design decision: Apple writes "After 15 minutes, you can retry JSON payloads that receive response status codes that begin with 5XX". A
//! 5xx with `Retry-After` is obeyed as it says. One without:
//! - The first one of a delivery is tried again by our own backoff, after about a second. Most are the failure of one of Apple's servers,
//!   and another one answers the retry. A quarter of an hour would be too late for many messages.
//! - The second one shows that this push fails at Apple: its delivery waits for the 15 minutes, and so after each further one. Its ten
//!   attempts then last hours. By our own backoff they would be over after some six minutes, before Apple's time has passed once. Any
//!   earlier answer, such as a 429, counts as the first one; an attempt that was lost without an answer does not.
//! - The sentence is about a payload. So the wait concerns its delivery alone (`OutcomeScope::Delivery`) and parks no lane. Whether the
//!   service fails is decided by the answers to first attempts: when most are 5xx, the circuit breaker opens, and no delivery waits for 15
//!   minutes on account of that.
//! - A message that ends within twice this time is tried again by our own backoff: it would end unsent.
//! - `Shutdown` is about one server that closes, and `IdleTimeout` about a connection. Neither is about the push.

use std::time::Duration;

use serde::Deserialize;
use stentor_core::outcome::{Outcome, OutcomeScope, Reason};
use stentor_core::time::Timestamp;

use crate::{Attempt, replies};

/// Delay after `TooManyProviderTokenUpdates` if APNs states none.
pub const TOKEN_UPDATES_WAIT_DEFAULT_SECONDS: u64 = 60;

/// Delay of a delivery whose earlier attempt was answered, after a 5xx for which APNs states none.
pub const FAILED_AGAIN_WAIT: Duration = Duration::from_secs(15 * 60);

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

/// Returns the outcome of a response to an attempt; `retry_after` is from its header.
#[must_use]
pub fn outcome(status: u16, body: &[u8], retry_after: Option<Duration>, attempt: Attempt) -> Outcome {
    if (200..300).contains(&status) {
        return Outcome::Accepted;
    }
    let refusal = parse(body);
    by_reason(&refusal, retry_after, attempt)
        .unwrap_or_else(|| by_status(status, &refusal, retry_after, attempt))
}

fn by_reason(refusal: &ApnsErrorBody, retry_after: Option<Duration>, attempt: Attempt) -> Option<Outcome> {
    Some(match refusal.reason.as_str() {
        "Unregistered" => dead(Reason::Unregistered, refusal),
        "ExpiredToken" => dead(Reason::TokenExpired, refusal),
        // A deleted channel never comes back.
        "ChannelNotRegistered" => dead(Reason::Unregistered, refusal),
        "BadChannelId" | "BadDeviceToken" | "MissingChannelId" | "MissingDeviceToken" => {
            rejected(Reason::InvalidToken, OutcomeScope::Device)
        }
        "DeviceTokenNotForTopic" => rejected(Reason::SenderMismatch, OutcomeScope::Device),
        "PayloadTooLarge" => rejected(Reason::PayloadTooLarge, OutcomeScope::Payload),
        "BadCollapseId" | "BadExpirationDate" | "BadMessage" | "BadMessageId" | "BadPriority"
        | "BadRequestParams" | "BadRequestPayload" | "DuplicateHeaders" | "InvalidPushType"
        | "MissingPushType" | "PayloadEmpty" => rejected(Reason::InvalidPayload, OutcomeScope::Payload),
        // Topic and key belong to the credential: the device is not the cause.
        "BadCertificate"
        | "BadCertificateEnvironment"
        | "BadEnvironmentKeyIdInToken"
        | "BadEnvironmentKeyInToken"
        | "BadTopic"
        | "FeatureNotEnabled"
        | "Forbidden"
        | "InvalidProviderToken"
        | "MissingProviderToken"
        | "MissingTopic"
        | "TopicDisallowed"
        | "TopicMismatch"
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
        "InternalServerError" | "ServiceUnavailable" => failed(retry_after, attempt),
        "IdleTimeout" | "Shutdown" => unavailable(Reason::Unavailable, retry_after),
        _ => return None,
    })
}

/// Returns the outcome of a response without a known reason.
fn by_status(
    status: u16,
    refusal: &ApnsErrorBody,
    retry_after: Option<Duration>,
    attempt: Attempt,
) -> Outcome {
    match status {
        400 => rejected(Reason::UnknownAnswer, OutcomeScope::Payload),
        403 => rejected(Reason::CredentialRefused, OutcomeScope::Credential),
        404 | 405 => rejected(Reason::UnknownAnswer, OutcomeScope::Credential),
        410 => dead(Reason::Unregistered, refusal),
        413 => rejected(Reason::PayloadTooLarge, OutcomeScope::Payload),
        429 => Outcome::Throttled { scope: OutcomeScope::Device, retry_after },
        500.. => failed(retry_after, attempt),
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

/// Returns the outcome of a failure within APNs.
fn failed(retry_after: Option<Duration>, attempt: Attempt) -> Outcome {
    if retry_after.is_none() && attempt.answered_before && attempt.can_wait(FAILED_AGAIN_WAIT) {
        return Outcome::Unavailable {
            reason: Reason::Unavailable,
            scope: OutcomeScope::Delivery,
            retry_after: Some(FAILED_AGAIN_WAIT),
        };
    }
    unavailable(Reason::Unavailable, retry_after)
}

fn unavailable(reason: Reason, retry_after: Option<Duration>) -> Outcome {
    Outcome::Unavailable { reason, scope: OutcomeScope::Service, retry_after }
}

#[cfg(test)]
mod tests;
