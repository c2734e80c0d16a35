//! Interpretation of Push Kit's responses. Source: Huawei, "Downlink Message Sending" of the REST API of Push Kit, result codes.

use std::collections::HashSet;
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;
use stentor_core::outcome::{Outcome, OutcomeScope, Reason};

use crate::replies;

/// All tokens were taken over.
const SUCCESS: &str = "80000000";
/// Some tokens were taken over; the message lists the others.
const PARTIAL: &str = "80100000";
/// The access token is not this project's, or has expired.
const WRONG_TOKEN: &str = "80200001";
const EXPIRED_TOKENS: &[&str] = &["80200003", "80200005"];

/// A response's body.
#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct HmsReply {
    /// The result code; empty if the body is not one of Push Kit's.
    pub code: String,
    /// Its description; for a partial success a JSON object with the refused tokens.
    pub msg: String,
}

/// Parses a body; the code is empty if it is not one.
#[must_use]
pub fn parse(body: &[u8]) -> HmsReply {
    serde_json::from_slice(body).unwrap_or_default()
}

/// Returns true if a request was refused because of its access token, and a newer one may be accepted.
#[must_use]
pub fn lacks_access_token(status: u16, body: &[u8]) -> bool {
    let code = parse(body).code;
    code == WRONG_TOKEN || EXPIRED_TOKENS.contains(&code.as_str()) || (status == 401 && code.is_empty())
}

/// Returns Push Kit's words about a refused credential, fit for a log; `None` for a description that may list tokens.
pub(super) fn words(body: &[u8]) -> Option<String> {
    let HmsReply { code, msg } = parse(body);
    (!msg.contains('{')).then(|| replies::printable(&format!("{code} {msg}")))
}

/// Returns the outcome of each token of a request, in their order; `retry_after` is from the response's header.
#[must_use]
pub fn outcomes(status: u16, body: &[u8], retry_after: Option<Duration>, tokens: &[&str]) -> Vec<Outcome> {
    let reply = parse(body);
    if reply.code == PARTIAL
        && let Some(outcomes) = partial(&reply.msg, tokens)
    {
        return outcomes;
    }
    vec![of(status, &reply, retry_after); tokens.len()]
}

/// Returns the outcome of a response that holds for each token of its request.
#[must_use]
pub fn outcome(status: u16, body: &[u8], retry_after: Option<Duration>) -> Outcome {
    of(status, &parse(body), retry_after)
}

fn of(status: u16, reply: &HmsReply, retry_after: Option<Duration>) -> Outcome {
    by_code(&reply.code, retry_after).unwrap_or_else(|| by_status(status, retry_after))
}

/// Returns the outcomes of a partial success; `None` if its description lists no token.
fn partial(msg: &str, tokens: &[&str]) -> Option<Vec<Outcome>> {
    let result: Value = serde_json::from_str(msg).ok()?;
    let mut illegal = HashSet::new();
    // A list of tokens; the newer interface has a list for each cause.
    let lists = ["illegal_tokens", "illegalTokens"];
    lists.iter().filter_map(|name| result.get(name)).for_each(|list| collect(list, &mut illegal));
    if illegal.is_empty() {
        return None;
    }
    let refused = tokens.iter().filter(|token| illegal.contains(**token)).count() as u64;
    let failure = result.get("failure").and_then(Value::as_u64);
    // Refused tokens that are not listed are among the others, which must not be taken for accepted.
    let other = if refused < failure.unwrap_or(refused) { Outcome::Unknown } else { Outcome::Accepted };
    // The project is the right one, because it has reached other tokens: these are dead.
    let dead = Outcome::Unregistered { reason: Reason::Unregistered, since: None };
    let of = |token: &&str| if illegal.contains(*token) { dead.clone() } else { other.clone() };
    Some(tokens.iter().map(of).collect())
}

/// Collects all texts of a list, or of several lists by their causes.
fn collect<'a>(value: &'a Value, texts: &mut HashSet<&'a str>) {
    match value {
        Value::String(text) => {
            texts.insert(text);
        }
        Value::Array(values) => values.iter().for_each(|value| collect(value, texts)),
        Value::Object(lists) => lists.values().for_each(|value| collect(value, texts)),
        _ => {}
    }
}

fn by_code(code: &str, retry_after: Option<Duration>) -> Option<Outcome> {
    Some(match code {
        SUCCESS => Outcome::Accepted,
        // Some were taken over, and nobody can tell which.
        PARTIAL => Outcome::Unknown,
        // Also the answer to tokens of another project. Then it is the answer to all of them, and the cause is the credential.
        "80300007" => rejected(Reason::InvalidToken, OutcomeScope::Device),
        "80300008" => rejected(Reason::PayloadTooLarge, OutcomeScope::Payload),
        // Malformed, expired, with words that are forbidden, with a review that does not fit, of a priority that the app may not use, or
        // with too many tokens.
        "80100001" | "80100003" | "80100004" | "80100013" | "80100016" | "80100018" | "80300010"
        | "80300011" => rejected(Reason::InvalidPayload, OutcomeScope::Payload),
        "80100017" => Outcome::Throttled { scope: OutcomeScope::Credential, retry_after },
        // The app may not push, or its address for receipts is wrong: for the console, not for the message.
        WRONG_TOKEN | "80300002" | "80300013" => {
            rejected(Reason::CredentialRefused, OutcomeScope::Credential)
        }
        // The token is the cause, not the client: a newer token will be accepted.
        expired if EXPIRED_TOKENS.contains(&expired) => Outcome::Unavailable {
            reason: Reason::CredentialRefused,
            scope: OutcomeScope::Credential,
            retry_after,
        },
        // Push Kit could not ask its own token service, or failed: the token was granted a moment ago.
        "80600003" | "81000001" => unavailable(Reason::Unavailable, retry_after),
        _ => return None,
    })
}

/// Returns the outcome of a response without a known code, such as a proxy's.
fn by_status(status: u16, retry_after: Option<Duration>) -> Outcome {
    match status {
        // Taken over in part or in full; the body that says so was lost.
        200..300 => Outcome::Unknown,
        400 => rejected(Reason::UnknownAnswer, OutcomeScope::Payload),
        401 | 403 => rejected(Reason::CredentialRefused, OutcomeScope::Credential),
        404 | 405 => rejected(Reason::UnknownAnswer, OutcomeScope::Credential),
        413 => rejected(Reason::PayloadTooLarge, OutcomeScope::Payload),
        // "Traffic control": the project sends more than its quota.
        429 | 503 => Outcome::Throttled { scope: OutcomeScope::Credential, retry_after },
        500.. | 408 => unavailable(Reason::Unavailable, retry_after),
        _ => unavailable(Reason::UnknownAnswer, retry_after),
    }
}

fn rejected(reason: Reason, scope: OutcomeScope) -> Outcome {
    Outcome::Rejected { reason, scope }
}

fn unavailable(reason: Reason, retry_after: Option<Duration>) -> Outcome {
    Outcome::Unavailable { reason, scope: OutcomeScope::Service, retry_after }
}

#[cfg(test)]
mod tests;
