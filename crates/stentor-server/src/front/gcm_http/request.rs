//! Requests of the legacy API.

use serde::Deserialize;
use serde_json::{Map, Value};
use stentor_core::limits::TTL_MAX_SECONDS;

use crate::contract::{ErrorCode, Problem, ServiceResult};

/// Most tokens of one request, as documented.
pub(super) const TOKENS_MAX_COUNT: usize = 1_000;
const TOPIC_PREFIX: &str = "/topics/";

/// A request in JSON; unknown fields are ignored, as in the original.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct LegacySendRequest {
    registration_ids: Option<Vec<String>>,
    to: Option<String>,
    notification_key: Option<String>,
    condition: Option<String>,
    pub(super) collapse_key: Option<String>,
    pub(super) time_to_live: Option<i64>,
    pub(super) restricted_package_name: Option<String>,
    pub(super) dry_run: bool,
    pub(super) priority: Option<String>,
    pub(super) content_available: bool,
    pub(super) mutable_content: bool,
    pub(super) data: Map<String, Value>,
    pub(super) notification: Map<String, Value>,
}

/// The recipients of a request.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum SendTarget {
    /// No recipient is named.
    Missing,
    /// Tokens, in order.
    Tokens(Vec<String>),
    /// A topic by its name.
    Topic(String),
    /// A condition over topics.
    Condition(String),
    /// A device group by its key.
    Group(String),
}

impl LegacySendRequest {
    /// Sets the single token of a plain-text request.
    pub(super) fn set_token(&mut self, token: String) {
        self.registration_ids = Some(vec![token]);
    }

    /// Removes the recipients from the request. Fails if they are named in more than one way.
    pub(super) fn send_target(&mut self) -> ServiceResult<SendTarget> {
        let to = self.to.take().or(self.notification_key.take());
        let named = (self.registration_ids.take(), to, self.condition.take());
        match named {
            (None, None, None) => Ok(SendTarget::Missing),
            (Some(tokens), None, None) => some(tokens),
            (None, Some(to), None) => Ok(one(to)),
            (None, None, Some(condition)) => Ok(SendTarget::Condition(condition)),
            _ => Err(unreadable("only one of registration_ids, to and condition may be given")),
        }
    }

    /// Returns the TTL of the message; `None` if it is out of range.
    pub(super) fn ttl(&self) -> Option<u64> {
        let given = self.time_to_live.map_or(Ok(TTL_MAX_SECONDS), u64::try_from);
        given.ok().filter(|seconds| *seconds <= TTL_MAX_SECONDS)
    }
}

fn some(tokens: Vec<String>) -> ServiceResult<SendTarget> {
    match tokens.len() {
        0 => Ok(SendTarget::Missing),
        count if count > TOKENS_MAX_COUNT => Err(unreadable(&format!(
            "registration_ids has {count} tokens, at most {TOKENS_MAX_COUNT} may be given"
        ))),
        _ => Ok(SendTarget::Tokens(tokens)),
    }
}

fn one(to: String) -> SendTarget {
    if let Some(topic) = to.strip_prefix(TOPIC_PREFIX) {
        return SendTarget::Topic(topic.to_owned());
    }
    if super::groups::is_key(&to) { SendTarget::Group(to) } else { SendTarget::Tokens(vec![to]) }
}

/// Returns the refusal of a request that cannot be parsed.
pub(super) fn unreadable(detail: &str) -> Problem {
    Problem::new(ErrorCode::InvalidRequest, detail.to_owned())
}
