//! Replies of the legacy API.

use serde::Serialize;
use stentor_core::id::MessageId;

use crate::contract::messages::Sent;
use crate::contract::{ErrorCode, Problem};
use crate::front::sending::id_of;

/// Largest integer that is exact in every client's language.
const NUMBER_MAX: u64 = (1 << 53) - 1;

/// The error of one token, in the documented words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GcmError {
    MissingRegistration,
    InvalidRegistration,
    NotRegistered,
    InvalidPackageName,
    MismatchSenderId,
    MessageTooBig,
    InvalidDataKey,
    InvalidTtl,
    Unavailable,
    InternalServerError,
}

/// A reply in JSON.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum SendReply {
    /// To tokens.
    Tokens {
        /// The same for a repeated request.
        multicast_id: u64,
        success: usize,
        failure: usize,
        canonical_ids: usize,
        /// In the order of the request.
        results: Vec<TokenResult>,
    },
    /// To a topic or a condition.
    Audience {
        /// A number here, unlike the id in a token's result.
        message_id: u64,
    },
    /// To a topic or a condition, refused.
    Refused { error: &'static str },
    /// To a device group.
    Group {
        success: usize,
        failure: usize,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        failed_registration_ids: Vec<String>,
    },
}

/// The result of one token.
#[derive(Serialize)]
#[serde(untagged)]
pub(super) enum TokenResult {
    /// The message is stored.
    Sent {
        message_id: String,
        /// The canonical id: the token to use from now on, if it is another one.
        #[serde(skip_serializing_if = "Option::is_none")]
        registration_id: Option<String>,
    },
    /// The message will not be sent.
    Failed { error: &'static str },
}

impl TokenResult {
    /// Returns the error of the token, if any.
    pub(super) const fn error(&self) -> Option<&'static str> {
        match self {
            Self::Sent { .. } => None,
            Self::Failed { error } => Some(error),
        }
    }
}

impl GcmError {
    /// Returns the documented word.
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::MissingRegistration => "MissingRegistration",
            Self::InvalidRegistration => "InvalidRegistration",
            Self::NotRegistered => "NotRegistered",
            Self::InvalidPackageName => "InvalidPackageName",
            Self::MismatchSenderId => "MismatchSenderId",
            Self::MessageTooBig => "MessageTooBig",
            Self::InvalidDataKey => "InvalidDataKey",
            Self::InvalidTtl => "InvalidTtl",
            Self::Unavailable => "Unavailable",
            Self::InternalServerError => "InternalServerError",
        }
    }

    /// Returns the word for a refusal of one message; `None` if the request cannot be parsed.
    pub(super) fn of(problem: &Problem) -> Option<Self> {
        let field = problem.field.as_deref().unwrap_or_default();
        let is_within = |name: &str| field == name || field.starts_with(&format!("{name}."));
        Some(match problem.code {
            ErrorCode::Internal => Self::InternalServerError,
            ErrorCode::RateLimited | ErrorCode::QueueFull | ErrorCode::Unavailable => Self::Unavailable,
            // The app has no credential for the push service of this token.
            ErrorCode::Conflict => Self::MismatchSenderId,
            ErrorCode::InvalidField if is_within("ttl_seconds") => Self::InvalidTtl,
            ErrorCode::InvalidField if is_within("target") => Self::InvalidRegistration,
            ErrorCode::InvalidField if is_within("android.restrictedPackageName") => Self::InvalidPackageName,
            // Reserved keys and excessive sizes are refused at the same field; only the detail distinguishes them.
            ErrorCode::InvalidField if problem.detail.contains("reserved") => Self::InvalidDataKey,
            ErrorCode::InvalidField
                if ["data", "notification", "message", "apns.payload"].contains(&field) =>
            {
                Self::MessageTooBig
            }
            _ => return None,
        })
    }
}

/// Returns the id of a message as a number; 1 for a dry run.
pub(super) fn id_number(sent: &Sent) -> u64 {
    id_of(sent).map_or(1, MessageId::raw)
}

/// Combines the results of tokens into a reply.
pub(super) fn of_tokens(results: Vec<TokenResult>) -> SendReply {
    let mut hasher = blake3::Hasher::new();
    let sent = results.iter().filter_map(|result| match result {
        TokenResult::Sent { message_id, .. } => Some(message_id),
        TokenResult::Failed { .. } => None,
    });
    let success = sent.inspect(|id| _ = hasher.update(id.as_bytes())).count();
    let is_canonical =
        |result: &&TokenResult| matches!(result, TokenResult::Sent { registration_id: Some(_), .. });
    let canonical_ids = results.iter().filter(is_canonical).count();
    let first = hasher.finalize().as_bytes().first_chunk().copied().unwrap_or_default();
    SendReply::Tokens {
        multicast_id: u64::from_le_bytes(first) & NUMBER_MAX,
        success,
        failure: results.len() - success,
        canonical_ids,
        results,
    }
}
