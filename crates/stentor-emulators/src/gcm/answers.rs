//! HTTP encoding of the responses.

use super::backend::{GcmAnswer, GcmVerdict};
use super::errors::{self, INTERNAL, UNAVAILABLE};
use super::request::GcmForm;
use crate::policy::{ServiceError, Wait};
use crate::service::{PendingCount, ServiceReply, WireAnswer};
use bytes::Bytes;
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, Response, StatusCode};
use serde_json::{Value, json};
use stentor_http2_codec::frame::ErrorCode;

const JSON: HeaderValue = HeaderValue::from_static("application/json; charset=UTF-8");
const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=UTF-8");

/// The results for all addresses of one request.
#[derive(Default)]
pub(super) struct GcmResults {
    pub(super) verdicts: Vec<GcmVerdict>,
    counts: Vec<PendingCount>,
    wait: Wait,
}

impl GcmResults {
    /// Adds the next address. The whole response waits as long as the latest of them.
    pub(super) fn push(&mut self, answer: GcmAnswer) {
        self.verdicts.push(answer.verdict);
        self.counts.extend(answer.count);
        self.wait = self.wait.later(answer.wait);
    }

    /// Builds the reply. `word` encodes the response of a request that is not rejected as a whole.
    pub(super) fn reply(self, word: impl FnOnce(&[GcmVerdict]) -> WireAnswer) -> ServiceReply {
        let wait = self.wait;
        // One reset resets the whole request, and nothing of it is counted.
        if let Some(code) = self.reset() {
            return ServiceReply::new(WireAnswer::Reset(code), wait, None);
        }
        let mut answer = match self.refused_whole() {
            Some((status, _)) => text_answer(status, ""),
            None => word(&self.verdicts),
        };
        if let (WireAnswer::Response(response, _), Some(seconds)) = (&mut answer, self.retry_after_s()) {
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
        }
        // A request that is rejected as a whole has reached no device, in spite of the decisions about its addresses.
        let counts = match self.refused_whole() {
            Some(_) => self.counts.into_iter().map(PendingCount::rejected).collect(),
            None => self.counts,
        };
        ServiceReply::counting(answer, wait, counts)
    }

    fn reset(&self) -> Option<ErrorCode> {
        self.verdicts.iter().find_map(|verdict| match verdict {
            GcmVerdict::Reset(code) => Some(*code),
            _ => None,
        })
    }

    fn refusals(&self) -> impl Iterator<Item = &ServiceError> {
        self.verdicts.iter().filter_map(|verdict| match verdict {
            GcmVerdict::Refused(refusal) => Some(refusal),
            _ => None,
        })
    }

    /// Returns the status with which the policy rejects the whole request.
    fn refused_whole(&self) -> Option<(StatusCode, &ServiceError)> {
        self.refusals().find_map(|refusal| Some((errors::status(&refusal.code)?, refusal)))
    }

    fn retry_after_s(&self) -> Option<u32> {
        self.refusals().filter_map(|refusal| refusal.retry_after_s).max()
    }
}

/// Encodes the results of tokens, in request order, with a number of the request.
pub(super) fn multicast(verdicts: &[GcmVerdict], multicast_id: u64) -> WireAnswer {
    let is_sent = |verdict: &&GcmVerdict| matches!(verdict, GcmVerdict::Sent { .. });
    let is_replaced = |verdict: &&GcmVerdict| matches!(verdict, GcmVerdict::Sent { canonical: Some(_), .. });
    let success = verdicts.iter().filter(is_sent).count();
    json_answer(&json!({
        "multicast_id": multicast_id,
        "success": success,
        "failure": verdicts.len() - success,
        "canonical_ids": verdicts.iter().filter(is_replaced).count(),
        "results": verdicts.iter().map(result).collect::<Vec<Value>>(),
    }))
}

fn result(verdict: &GcmVerdict) -> Value {
    match verdict {
        GcmVerdict::Sent { id, canonical: Some(token) } => {
            json!({"message_id": id, "registration_id": token})
        }
        GcmVerdict::Sent { id, canonical: None } => json!({"message_id": id}),
        GcmVerdict::Refused(refusal) => json!({"error": refusal.code}),
        GcmVerdict::Reset(_) => json!({}),
    }
}

/// Encodes the result of a topic or condition, with a number as its id.
pub(super) fn wide(verdicts: &[GcmVerdict]) -> WireAnswer {
    json_answer(&match verdicts.first() {
        // The id is a number in JSON; a dry run has a word as its id.
        Some(GcmVerdict::Sent { id, .. }) => match id.parse::<u64>() {
            Ok(number) => json!({"message_id": number}),
            Err(_) => json!({"message_id": id}),
        },
        Some(other) => result(other),
        None => json!({}),
    })
}

/// Encodes the result of a device group.
pub(super) fn group(verdicts: &[GcmVerdict], members: &[String]) -> WireAnswer {
    let pairs = verdicts.iter().zip(members);
    let failed: Vec<&String> = pairs
        .filter(|(verdict, _)| !matches!(verdict, GcmVerdict::Sent { .. }))
        .map(|(_, member)| member)
        .collect();
    let mut body = json!({"success": members.len() - failed.len(), "failure": failed.len()});
    if !failed.is_empty() {
        body["failed_registration_ids"] = json!(failed);
    }
    json_answer(&body)
}

/// Encodes the result of one token as plain text, which never reports that the service is unavailable or failed.
pub(super) fn plain(verdicts: &[GcmVerdict]) -> WireAnswer {
    match verdicts.first() {
        Some(GcmVerdict::Sent { id, canonical: None }) => text_answer(StatusCode::OK, &format!("id={id}\n")),
        Some(GcmVerdict::Sent { id, canonical: Some(token) }) => {
            text_answer(StatusCode::OK, &format!("id={id}\nregistration_id={token}\n"))
        }
        Some(GcmVerdict::Refused(refusal)) if matches!(refusal.code.as_str(), UNAVAILABLE | INTERNAL) => {
            text_answer(StatusCode::INTERNAL_SERVER_ERROR, "")
        }
        Some(GcmVerdict::Refused(refusal)) => plain_error(&refusal.code),
        Some(GcmVerdict::Reset(_)) | None => text_answer(StatusCode::INTERNAL_SERVER_ERROR, ""),
    }
}

fn plain_error(code: &str) -> WireAnswer {
    text_answer(StatusCode::OK, &format!("Error={code}\n"))
}

/// Encodes a code that concerns no address.
pub(super) fn without_address(form: GcmForm, code: &'static str, multicast_id: u64) -> WireAnswer {
    match form {
        GcmForm::Json => multicast(&[GcmVerdict::Refused(ServiceError::new(code))], multicast_id),
        GcmForm::PlainText => plain_error(code),
    }
}

/// Returns a response with a JSON body.
pub(super) fn json_answer(value: &Value) -> WireAnswer {
    with_body(StatusCode::OK, JSON, value.to_string())
}

/// Returns a response with a JSON body that names the error.
pub(super) fn json_error(status: StatusCode, error: &str) -> WireAnswer {
    with_body(status, JSON, json!({ "error": error }).to_string())
}

/// Returns a response with a text.
pub(super) fn text_answer(status: StatusCode, body: &str) -> WireAnswer {
    with_body(status, TEXT, body.to_owned())
}

fn with_body(status: StatusCode, kind: HeaderValue, body: String) -> WireAnswer {
    let mut response = Response::new(());
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, kind);
    WireAnswer::Response(response, Bytes::from(body))
}
