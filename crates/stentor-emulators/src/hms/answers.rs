//! HTTP encoding of the responses, and the results of all tokens of a request.

use super::errors::{self, INVALID_TOKENS, PARTIAL, SUCCESS};
use crate::policy::{ServiceError, Wait};
use crate::service::{PendingCount, ServiceReply, WireAnswer};
use bytes::Bytes;
use http::header::{CONTENT_TYPE, RETRY_AFTER};
use http::{HeaderValue, Response, StatusCode};
use serde_json::{Value, json};
use stentor_http2_codec::frame::ErrorCode;

const JSON: HeaderValue = HeaderValue::from_static("application/json;charset=UTF-8");

/// The decision about one addressee.
pub(super) enum HmsVerdict {
    /// Taken over.
    Sent,
    /// No token of this project.
    Invalid,
    /// The whole request is refused with an error of the service.
    Refused(ServiceError),
    /// The request is not answered.
    Reset(ErrorCode),
}

/// The decisions about all addressees of one request.
#[derive(Default)]
pub(super) struct HmsResults {
    verdicts: Vec<HmsVerdict>,
    counts: Vec<PendingCount>,
    wait: Wait,
}

impl HmsResults {
    /// Adds the next addressee. The response waits as long as the latest of them.
    pub(super) fn push(&mut self, verdict: HmsVerdict, wait: Wait, count: PendingCount) {
        self.verdicts.push(verdict);
        self.counts.push(count);
        self.wait = self.wait.later(wait);
    }

    /// Builds the reply to a request with these names; `request_id` is its number.
    pub(super) fn reply(self, names: &[&str], request_id: u64) -> ServiceReply {
        // One reset resets the whole request, and nothing of it is counted.
        if let Some(code) = self.reset() {
            return ServiceReply::new(WireAnswer::Reset(code), self.wait, None);
        }
        if let Some(refusal) = self.refusal() {
            let answer = refused(refusal, request_id);
            // A request that is refused as a whole has reached no device, in spite of the decisions about its tokens.
            let counts = self.counts.into_iter().map(PendingCount::rejected).collect();
            return ServiceReply::counting(answer, self.wait, counts);
        }
        let verdicts = self.verdicts.iter().zip(names);
        let invalid: Vec<&str> = verdicts
            .filter(|(verdict, _)| matches!(verdict, HmsVerdict::Invalid))
            .map(|(_, name)| *name)
            .collect();
        let answer = match invalid.len() {
            0 => answer(SUCCESS, None, request_id),
            count if count == self.verdicts.len() => answer(INVALID_TOKENS, None, request_id),
            count => {
                let sent = self.verdicts.len() - count;
                let listed = json!({"success": sent, "failure": count, "illegal_tokens": invalid});
                answer(PARTIAL, Some(&listed.to_string()), request_id)
            }
        };
        ServiceReply::counting(answer, self.wait, self.counts)
    }

    fn reset(&self) -> Option<ErrorCode> {
        self.verdicts.iter().find_map(|verdict| match verdict {
            HmsVerdict::Reset(code) => Some(*code),
            _ => None,
        })
    }

    fn refusal(&self) -> Option<&ServiceError> {
        self.verdicts.iter().find_map(|verdict| match verdict {
            HmsVerdict::Refused(refusal) => Some(refusal),
            _ => None,
        })
    }
}

fn refused(refusal: &ServiceError, request_id: u64) -> WireAnswer {
    let mut answer = match errors::bare_status(&refusal.code) {
        Some(status) => bare(status),
        None => answer(&refusal.code, None, request_id),
    };
    if let (WireAnswer::Response(response, _), Some(seconds)) = (&mut answer, refusal.retry_after_s) {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    answer
}

/// Returns the response with a result code, and its own message or another one.
pub(super) fn answer(code: &str, message: Option<&str>, request_id: u64) -> WireAnswer {
    let Some((status, usual)) = errors::find(code) else {
        // Never sent: a policy with a code that is unknown was refused when it was set.
        return bare(StatusCode::INTERNAL_SERVER_ERROR);
    };
    let body = json!({
        "code": code, "msg": message.unwrap_or(usual), "requestId": request_id.to_string(),
    });
    json_answer(status, &body)
}

/// Returns a response with a JSON body.
pub(super) fn json_answer(status: StatusCode, body: &Value) -> WireAnswer {
    let mut response = Response::new(());
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, JSON);
    WireAnswer::Response(response, Bytes::from(body.to_string()))
}

/// Returns a response without a body.
pub(super) fn bare(status: StatusCode) -> WireAnswer {
    let mut response = Response::new(());
    *response.status_mut() = status;
    WireAnswer::Response(response, Bytes::new())
}
