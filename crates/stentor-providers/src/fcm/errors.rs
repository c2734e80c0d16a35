//! Interpretation of FCM's responses. Source: FCM v1 `ErrorCode` reference and the `google.rpc.Status` error model.
//!
//! Design decision: `UNREGISTERED` is not final for a young installation id. An app gets its installation id at once, and FCM knows the
//! device behind it later: on Apple's systems when the app has its device token. Until then FCM answers `UNREGISTERED`
//! (firebase-ios-sdk#16638, react-native-firebase#9112). Therefore:
//! - The first attempt at an installation id that is answered so is tried again after a minute, if the message lives that long.
//! - The next such answer ends the delivery. It retires the device only if its registration is older than a day: it is passed on as an
//!   answer about registrations up to that time, by which the store decides.
//!
//! How old a registration is, is known to the store alone, and reading it for each delivery would cost every campaign something. A device
//! that is gone costs one request more, once. Registration tokens are retired by the first answer, as ever.

use std::time::Duration;

use serde::Deserialize;
use serde_json::json;
use stentor_core::outcome::{Outcome, OutcomeScope, Reason};
use stentor_core::time::Timestamp;

use crate::{Attempt, replies};

/// Delay after `QUOTA_EXCEEDED` if FCM states none (its quota is counted per minute).
pub const QUOTA_WAIT_DEFAULT_SECONDS: u64 = 60;

/// Delay of a delivery to an installation id that FCM does not know yet.
pub const UNKNOWN_WAIT: Duration = Duration::from_secs(60);
/// Age up to which the registration of an installation id outlives the answer that FCM does not know it.
pub const YOUNG_MAX_AGE: Duration = Duration::from_secs(24 * 3_600);

/// The fields of a message that name the device.
const TOKEN_FIELD: &str = "message.token";
const FID_FIELD: &str = "message.fid";
/// FCM's message for a payload beyond its limit.
const TOO_BIG: &str = "too big";
/// Prefix of the subject if the quota of the whole project is exceeded.
const PROJECT: &str = "project:";

/// The relevant parts of an error body.
#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Status {
    /// The general status, for example `INVALID_ARGUMENT`.
    pub status: String,
    /// The message for people.
    pub message: String,
    details: Vec<Detail>,
}

#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Detail {
    error_code: String,
    field_violations: Vec<FieldViolation>,
    /// From a `google.rpc.QuotaFailure`.
    violations: Vec<ExceededQuota>,
}

#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct FieldViolation {
    field: String,
}

/// `google.rpc.QuotaFailure.FieldViolation`: `subject` is, for example, `project:` and the project's name.
#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct ExceededQuota {
    subject: String,
}

/// Parses an error body; the status is empty if it is not one.
#[must_use]
pub fn parse(body: &[u8]) -> Status {
    #[derive(Default, Deserialize)]
    struct ErrorReply {
        #[serde(default)]
        error: Status,
    }
    serde_json::from_slice::<ErrorReply>(body).unwrap_or_default().error
}

/// Reduces an error body to the parts needed by [`outcome`] and a log: the codes, the beginning of the message, and the named culprit.
#[must_use]
pub fn excerpt(body: &[u8]) -> Vec<u8> {
    if body.len() <= replies::BRIEF_MAX_BYTES {
        return body.to_vec();
    }
    let error = parse(body);
    let mut details = Vec::new();
    if error.has_own_code() {
        details.push(json!({ "errorCode": replies::code(error.code()) }));
    }
    if error.blames_token() {
        details.push(json!({ "fieldViolations": [{ "field": TOKEN_FIELD }] }));
    }
    if error.names_project() {
        details.push(json!({ "violations": [{ "subject": PROJECT }] }));
    }
    let mut message = replies::printable(&error.message);
    if error.is_too_big() {
        message.push_str(TOO_BIG);
    }
    let status = replies::code(&error.status);
    let error = json!({ "status": status, "message": message, "details": details });
    json!({ "error": error }).to_string().into_bytes()
}

impl Status {
    /// Returns FCM's own code, or the general status if there is none.
    fn code(&self) -> &str {
        let own = self.details.iter().map(|detail| detail.error_code.as_str()).find(|code| !code.is_empty());
        own.unwrap_or(&self.status)
    }

    fn has_own_code(&self) -> bool {
        self.details.iter().any(|detail| !detail.error_code.is_empty())
    }

    /// Returns true if the error is an invalid token.
    fn blames_token(&self) -> bool {
        let mut violations = self.details.iter().flat_map(|detail| &detail.field_violations);
        let by_field =
            violations.any(|violation| matches!(violation.field.as_str(), TOKEN_FIELD | FID_FIELD));
        // Without a named field only the message is left.
        by_field || self.message.contains("registration token")
    }

    /// Returns true if the error names the project's quota as exceeded.
    fn names_project(&self) -> bool {
        let mut quotas = self.details.iter().flat_map(|detail| &detail.violations);
        quotas.any(|quota| quota.subject.starts_with(PROJECT))
    }

    fn is_too_big(&self) -> bool {
        self.message.contains(TOO_BIG)
    }
}

/// Returns FCM's message about a refused credential, fit for a log.
pub(super) fn words(body: &[u8]) -> Option<String> {
    let error = parse(body);
    let about_device = error.code() == "SENDER_ID_MISMATCH";
    (!about_device).then(|| replies::printable(&format!("{} {}", error.code(), error.message)))
}

/// Returns true if a request was refused because its access token is not valid (any more).
#[must_use]
pub fn lacks_access_token(status: u16, body: &[u8]) -> bool {
    status == 401 && !parse(body).has_own_code()
}

/// The request that a response answers.
#[derive(Debug, Clone, Copy)]
pub struct Sent {
    /// The attempt.
    pub attempt: Attempt,
    /// True if the device was named by its installation id, and not by a registration token.
    pub to_installation: bool,
    /// Start of the attempt.
    pub now: Timestamp,
}

/// Returns the outcome of a response; `retry_after` is from its header.
#[must_use]
pub fn outcome(status: u16, body: &[u8], retry_after: Option<Duration>, sent: &Sent) -> Outcome {
    if (200..300).contains(&status) {
        return Outcome::Accepted;
    }
    let error = parse(body);
    by_code(&error, retry_after, sent).unwrap_or_else(|| by_http_status(status, retry_after))
}

/// Returns the outcome of a response to an attempt, whatever address it was sent to.
pub(super) fn outcome_at_once(
    status: u16,
    body: &[u8],
    retry_after: Option<Duration>,
    attempt: Attempt,
) -> Outcome {
    let sent = Sent { attempt, to_installation: false, now: Timestamp::default() };
    outcome(status, body, retry_after, &sent)
}

fn by_code(error: &Status, retry_after: Option<Duration>, sent: &Sent) -> Option<Outcome> {
    Some(match error.code() {
        "UNREGISTERED" => unregistered(sent),
        "INVALID_ARGUMENT" => invalid_argument(error),
        "SENDER_ID_MISMATCH" => rejected(Reason::SenderMismatch, OutcomeScope::Device),
        "QUOTA_EXCEEDED" | "RESOURCE_EXHAUSTED" if error.names_project() => {
            throttled(OutcomeScope::Service, retry_after)
        }
        // Either the device's or the project's quota: FCM does not specify it, so the share of such responses decides.
        "QUOTA_EXCEEDED" | "RESOURCE_EXHAUSTED" => throttled(OutcomeScope::Credential, retry_after),
        "UNAVAILABLE" | "INTERNAL" | "DEADLINE_EXCEEDED" | "ABORTED" => {
            unavailable(Reason::Unavailable, retry_after)
        }
        // Concerns only devices behind a third party, so the others must not wait for it.
        "THIRD_PARTY_AUTH_ERROR" | "APNS_AUTH_ERROR" => {
            Outcome::Unavailable { reason: Reason::ThirdPartyAuth, scope: OutcomeScope::Device, retry_after }
        }
        "UNAUTHENTICATED" | "PERMISSION_DENIED" => {
            rejected(Reason::CredentialRefused, OutcomeScope::Credential)
        }
        _ => return None,
    })
}

/// Returns the outcome of an address that FCM does not know.
fn unregistered(sent: &Sent) -> Outcome {
    let reason = Reason::Unregistered;
    if !sent.to_installation {
        return Outcome::Unregistered { reason, since: None };
    }
    if !sent.attempt.answered_before && sent.attempt.can_wait(UNKNOWN_WAIT) {
        let (scope, retry_after) = (OutcomeScope::Device, Some(UNKNOWN_WAIT));
        return Outcome::Unavailable { reason, scope, retry_after };
    }
    Outcome::Unregistered { reason, since: Some(sent.now.minus(YOUNG_MAX_AGE)) }
}

/// Returns the outcome of an invalid argument. The token is kept unless the error names it as the culprit.
fn invalid_argument(error: &Status) -> Outcome {
    if error.blames_token() {
        return rejected(Reason::InvalidToken, OutcomeScope::Device);
    }
    let reason = if error.is_too_big() { Reason::PayloadTooLarge } else { Reason::InvalidPayload };
    rejected(reason, OutcomeScope::Payload)
}

/// Returns the outcome of a response without a known code, such as a proxy's.
fn by_http_status(status: u16, retry_after: Option<Duration>) -> Outcome {
    match status {
        400 | 422 => rejected(Reason::InvalidPayload, OutcomeScope::Payload),
        413 => rejected(Reason::PayloadTooLarge, OutcomeScope::Payload),
        401 | 403 => rejected(Reason::CredentialRefused, OutcomeScope::Credential),
        // Without its own code this does not concern the token: the project does not exist.
        404 => rejected(Reason::UnknownAnswer, OutcomeScope::Credential),
        429 => throttled(OutcomeScope::Credential, retry_after),
        500.. | 408 => unavailable(Reason::Unavailable, retry_after),
        _ => unavailable(Reason::UnknownAnswer, retry_after),
    }
}

fn rejected(reason: Reason, scope: OutcomeScope) -> Outcome {
    Outcome::Rejected { reason, scope }
}

fn throttled(scope: OutcomeScope, retry_after: Option<Duration>) -> Outcome {
    let wait = retry_after.unwrap_or(Duration::from_secs(QUOTA_WAIT_DEFAULT_SECONDS));
    Outcome::Throttled { scope, retry_after: Some(wait) }
}

fn unavailable(reason: Reason, retry_after: Option<Duration>) -> Outcome {
    Outcome::Unavailable { reason, scope: OutcomeScope::Service, retry_after }
}

#[cfg(test)]
mod tests;
