//! Interpretation of GCM's responses. Source: Google, "GCM HTTP connection server" and the server reference, as copied into the sources of
//! Android (`docs/html/google/gcm/http.jd`, `server-ref.jd`).

use std::time::Duration;

use serde::Deserialize;
use stentor_core::device::PushToken;
use stentor_core::outcome::{Outcome, OutcomeScope, Reason};

use crate::replies;

/// The body of a response to a list of tokens.
#[derive(Debug, Default, Deserialize)]
pub struct MulticastResult {
    /// One result for each token, in the order of the request.
    pub results: Vec<TokenResult>,
}

/// The result of one token.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct TokenResult {
    /// The id of a message that was taken over.
    pub message_id: Option<String>,
    /// The token to use from now on, in place of the one that was used.
    pub registration_id: Option<String>,
    /// The error of a message that was refused.
    pub error: Option<String>,
}

/// Parses a body; `None` if it is not the result of a list of tokens.
#[must_use]
pub fn parse(body: &[u8]) -> Option<MulticastResult> {
    serde_json::from_slice(body).ok()
}

/// Returns the words of a refused key, fit for a log.
pub(super) fn words(body: &[u8]) -> Option<String> {
    // A page for people may follow the sentence.
    let line = body.split(|byte| *byte == b'\n').next().unwrap_or_default();
    Some(replies::printable(&String::from_utf8_lossy(line)))
}

/// Returns the outcome of each token of a request, in their order; `retry_after` is from the response's header.
#[must_use]
pub fn outcomes(status: u16, body: &[u8], retry_after: Option<Duration>, tokens: usize) -> Vec<Outcome> {
    if !(200..300).contains(&status) {
        return vec![outcome(status, body, retry_after); tokens];
    }
    match parse(body).filter(|result| result.results.len() == tokens) {
        Some(result) => result.results.into_iter().map(|result| of_token(result, retry_after)).collect(),
        None if tokens == 1 => vec![of_group(body, retry_after)],
        // Taken over in part or in full; the list that says which is missing.
        None => vec![Outcome::Unknown; tokens],
    }
}

/// The result of a device group, which names no messages.
#[derive(Deserialize)]
struct GroupResult {
    success: u64,
    failure: u64,
}

/// Returns the outcome of a device group. Members that failed are not tried again if others got the message, which would get it twice.
fn of_group(body: &[u8], retry_after: Option<Duration>) -> Outcome {
    match serde_json::from_slice(body) {
        Ok(GroupResult { success: 1.., .. }) => Outcome::Accepted,
        Ok(GroupResult { failure: 1.., .. }) => {
            unavailable(Reason::Unavailable, OutcomeScope::Device, retry_after)
        }
        _ => Outcome::Unknown,
    }
}

/// Returns the outcome of a response that holds for each token of its request.
#[must_use]
pub fn outcome(status: u16, _body: &[u8], retry_after: Option<Duration>) -> Outcome {
    match status {
        200..300 => Outcome::Unknown,
        // "The request could not be parsed as JSON, or it contained invalid fields."
        400 => rejected(Reason::InvalidPayload, OutcomeScope::Payload),
        401 | 403 => rejected(Reason::CredentialRefused, OutcomeScope::Credential),
        413 => rejected(Reason::PayloadTooLarge, OutcomeScope::Payload),
        404 | 405 | 410 => rejected(Reason::UnknownAnswer, OutcomeScope::Credential),
        429 => Outcome::Throttled { scope: OutcomeScope::Credential, retry_after },
        500.. | 408 => unavailable(Reason::Unavailable, OutcomeScope::Service, retry_after),
        _ => unavailable(Reason::UnknownAnswer, OutcomeScope::Service, retry_after),
    }
}

fn of_token(result: TokenResult, retry_after: Option<Duration>) -> Outcome {
    match result {
        TokenResult { error: Some(error), .. } => of_error(&error, retry_after),
        TokenResult { message_id: Some(_), registration_id, .. } => {
            match registration_id.map(PushToken::new) {
                Some(Ok(token)) => Outcome::Replaced { token },
                // The message was taken over, whatever the new token is.
                Some(Err(_)) | None => Outcome::Accepted,
            }
        }
        TokenResult { .. } => Outcome::Unknown,
    }
}

fn of_error(error: &str, retry_after: Option<Duration>) -> Outcome {
    match error {
        "NotRegistered" => Outcome::Unregistered { reason: Reason::Unregistered, since: None },
        "InvalidRegistration" | "MissingRegistration" => rejected(Reason::InvalidToken, OutcomeScope::Device),
        "MismatchSenderId" | "InvalidPackageName" => rejected(Reason::SenderMismatch, OutcomeScope::Device),
        "MessageTooBig" => rejected(Reason::PayloadTooLarge, OutcomeScope::Payload),
        "InvalidDataKey" | "InvalidTtl" | "InvalidParameters" => {
            rejected(Reason::InvalidPayload, OutcomeScope::Payload)
        }
        "Unavailable" | "InternalServerError" => {
            unavailable(Reason::Unavailable, OutcomeScope::Service, retry_after)
        }
        "DeviceMessageRateExceeded" | "TopicsMessageRateExceeded" => {
            Outcome::Throttled { scope: OutcomeScope::Device, retry_after }
        }
        // The server's own credential for Apple's service, which concerns Apple's devices only.
        "InvalidApnsCredential" => unavailable(Reason::ThirdPartyAuth, OutcomeScope::Device, retry_after),
        _ => unavailable(Reason::UnknownAnswer, OutcomeScope::Service, retry_after),
    }
}

fn rejected(reason: Reason, scope: OutcomeScope) -> Outcome {
    Outcome::Rejected { reason, scope }
}

fn unavailable(reason: Reason, scope: OutcomeScope, retry_after: Option<Duration>) -> Outcome {
    Outcome::Unavailable { reason, scope, retry_after }
}

#[cfg(test)]
mod tests;
