//! Error codes, and the refusals that carry them.

use std::borrow::Cow;

use stentor_core::error::Invalid;
use stentor_core::ports::store::StoreError;

use super::Operation;

/// Retry delay for a full queue, which drains at the pace of push services, not of requests.
const QUEUE_FULL_RETRY_SECONDS: u32 = 5;
/// Maximum length of a refusal's text: it may quote the caller's input, and a batch may contain a thousand refusals.
const DETAIL_MAX_CHARS: usize = 512;
/// Maximum length of a field's path, in which names may come from the caller.
const FIELD_MAX_CHARS: usize = 256;

/// Kind of a refusal. Each face translates the codes in one place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorCode {
    /// The request does not conform to its format (malformed JSON, a missing header).
    InvalidRequest,
    /// One field breaks a rule; `field` names it.
    InvalidField,
    /// The server may not connect to an address in the request; `field` names it.
    AddressRefused,
    /// The body is larger than allowed.
    PayloadTooLarge,
    /// The body did not arrive in time.
    RequestTimeout,
    /// The key is missing or unknown.
    Unauthorized,
    /// The key is known but lacks a required scope.
    Forbidden,
    /// Somebody else has to approve the message.
    ApprovalRequired,
    /// The app has no such object.
    NotFound,
    /// The URL exists, but not with this method.
    MethodNotAllowed,
    /// The content type of the body is not supported.
    UnsupportedMediaType,
    /// The compression of the body is not supported.
    UnsupportedEncoding,
    /// No accepted format is available for the reply.
    NotAcceptable,
    /// The precondition does not hold; nothing was changed.
    PreconditionFailed,
    /// The state of the object forbids the change.
    Conflict,
    /// The idempotency key was used for another request.
    IdempotencyKeyReused,
    /// The fields of a credential are well-formed, but contain no readable key or certificate.
    CredentialUnusable,
    /// A limit on stored objects is reached.
    LimitReached,
    /// Too many concurrent requests; retry after `retry_after_seconds`.
    RateLimited,
    /// The backlog is full; nothing was stored. Retry after `retry_after_seconds`.
    QueueFull,
    /// The server cannot store the request at present; nothing was stored. Retry after `retry_after_seconds`.
    Unavailable,
    /// A defect of the server, logged under the request id.
    Internal,
}

impl ErrorCode {
    /// All codes, in the order of the documentation.
    pub const ALL: &'static [Self] = &[
        Self::InvalidRequest,
        Self::InvalidField,
        Self::AddressRefused,
        Self::PayloadTooLarge,
        Self::RequestTimeout,
        Self::Unauthorized,
        Self::Forbidden,
        Self::ApprovalRequired,
        Self::NotFound,
        Self::MethodNotAllowed,
        Self::UnsupportedMediaType,
        Self::UnsupportedEncoding,
        Self::NotAcceptable,
        Self::PreconditionFailed,
        Self::Conflict,
        Self::IdempotencyKeyReused,
        Self::CredentialUnusable,
        Self::LimitReached,
        Self::RateLimited,
        Self::QueueFull,
        Self::Unavailable,
        Self::Internal,
    ];

    /// Returns the stable word for programs.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::InvalidRequest => "invalid_request",
            Self::InvalidField => "invalid_field",
            Self::AddressRefused => "address_refused",
            Self::PayloadTooLarge => "payload_too_large",
            Self::RequestTimeout => "request_timeout",
            Self::Unauthorized => "unauthorized",
            Self::Forbidden => "forbidden",
            Self::ApprovalRequired => "approval_required",
            Self::NotFound => "not_found",
            Self::MethodNotAllowed => "method_not_allowed",
            Self::UnsupportedMediaType => "unsupported_media_type",
            Self::UnsupportedEncoding => "unsupported_encoding",
            Self::NotAcceptable => "not_acceptable",
            Self::PreconditionFailed => "precondition_failed",
            Self::Conflict => "conflict",
            Self::IdempotencyKeyReused => "idempotency_key_reused",
            Self::CredentialUnusable => "credential_unusable",
            Self::LimitReached => "limit_reached",
            Self::RateLimited => "rate_limited",
            Self::QueueFull => "queue_full",
            Self::Unavailable => "unavailable",
            Self::Internal => "internal",
        }
    }

    /// Returns the stable number of the code, for formats with numeric errors.
    #[must_use]
    pub const fn number(self) -> i32 {
        match self {
            Self::InvalidRequest => 1,
            Self::InvalidField => 2,
            Self::AddressRefused => 3,
            Self::PayloadTooLarge => 4,
            Self::RequestTimeout => 5,
            Self::Unauthorized => 6,
            Self::Forbidden => 7,
            Self::NotFound => 8,
            Self::MethodNotAllowed => 9,
            Self::UnsupportedMediaType => 10,
            Self::Conflict => 11,
            Self::IdempotencyKeyReused => 12,
            Self::CredentialUnusable => 13,
            Self::LimitReached => 14,
            Self::RateLimited => 15,
            Self::QueueFull => 16,
            Self::Unavailable => 17,
            Self::Internal => 18,
            Self::UnsupportedEncoding => 19,
            Self::NotAcceptable => 20,
            Self::PreconditionFailed => 21,
            Self::ApprovalRequired => 22,
        }
    }

    /// Returns a short title.
    #[must_use]
    pub const fn title(self) -> &'static str {
        match self {
            Self::InvalidRequest => "The request cannot be read",
            Self::InvalidField => "A field breaks a rule",
            Self::AddressRefused => "The server may not connect there",
            Self::PayloadTooLarge => "The body is too large",
            Self::RequestTimeout => "The body did not come in time",
            Self::Unauthorized => "A valid API key is needed",
            Self::Forbidden => "The API key lacks the scope",
            Self::ApprovalRequired => "Somebody else must approve it",
            Self::NotFound => "There is no such thing",
            Self::MethodNotAllowed => "The method is not allowed here",
            Self::UnsupportedMediaType => "The content type is not understood here",
            Self::UnsupportedEncoding => "The content encoding is not understood here",
            Self::NotAcceptable => "No accepted format can be written here",
            Self::PreconditionFailed => "A precondition does not hold",
            Self::Conflict => "The present state forbids it",
            Self::IdempotencyKeyReused => "The Idempotency-Key was used for another request",
            Self::CredentialUnusable => "The credential cannot be used",
            Self::LimitReached => "A limit is reached",
            Self::RateLimited => "Too many requests at once",
            Self::QueueFull => "The queue is full",
            Self::Unavailable => "Cannot be done now",
            Self::Internal => "A defect of the server",
        }
    }
}

/// The result of an operation: a value or a refusal.
pub type ServiceResult<T> = Result<T, Problem>;

/// A refusal: its code, reason, field and suggested remedy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Error code.
    pub code: ErrorCode,
    /// Reason in plain words.
    pub detail: Cow<'static, str>,
    /// Path of the offending field.
    pub field: Option<String>,
    /// Suggested remedy.
    pub hint: Option<Cow<'static, str>>,
    /// Name in the table of the operation that would help. Each face replaces it by its own name for the operation.
    pub helps: Option<&'static str>,
    /// Seconds to wait before a retry.
    pub retry_after_seconds: Option<u32>,
}

impl Problem {
    /// Creates a refusal with the retry delay of its code.
    pub fn new(code: ErrorCode, detail: impl Into<Cow<'static, str>>) -> Self {
        let retry = match code {
            ErrorCode::RateLimited | ErrorCode::Unavailable | ErrorCode::RequestTimeout => Some(1),
            ErrorCode::QueueFull => Some(QUEUE_FULL_RETRY_SECONDS),
            _ => None,
        };
        let detail = shortened(detail.into(), DETAIL_MAX_CHARS);
        Self { code, detail, field: None, hint: None, helps: None, retry_after_seconds: retry }
    }

    /// Creates a refusal of one field.
    pub fn field(field: impl Into<String>, problem: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ErrorCode::InvalidField, problem).at(field)
    }

    /// Creates a refusal for an unknown object.
    pub fn not_found(what: &str) -> Self {
        Self::new(ErrorCode::NotFound, format!("there is no such {what} in this app"))
    }

    /// Sets the field concerned.
    #[must_use]
    pub fn at(mut self, field: impl Into<String>) -> Self {
        self.field = Some(shortened(field.into().into(), FIELD_MAX_CHARS).into_owned());
        self
    }

    /// Puts `parent.` before the field of an error found inside a nested value.
    #[must_use]
    pub fn within(self, parent: &str) -> Self {
        match &self.field {
            Some(field) => {
                let field = format!("{parent}.{field}");
                self.at(field)
            }
            None => self,
        }
    }

    /// Adds a hint that ends with the name of the operation that would help.
    #[must_use]
    pub fn helped_by<O: Operation>(self, hint: impl Into<Cow<'static, str>>) -> Self {
        Self { helps: Some(O::FACTS.name), ..self.with_hint(hint) }
    }

    /// Returns the total length of its texts in bytes.
    #[must_use]
    pub fn text_bytes(&self) -> usize {
        let hint = self.hint.as_deref().map_or(0, str::len);
        self.detail.len() + self.field.as_deref().map_or(0, str::len) + hint
    }

    /// Returns the suggested remedy. `called` maps an operation to its name in the face.
    pub fn hint_with(&self, called: impl FnOnce(&'static str) -> String) -> Option<Cow<'_, str>> {
        let hint = self.hint.as_deref()?;
        Some(match self.helps {
            Some(operation) => format!("{hint}: {}", called(operation)).into(),
            None => hint.into(),
        })
    }

    /// Returns the failure of something that cannot be written as JSON; its cause goes to the log.
    pub(crate) fn unwritten(error: serde_json::Error) -> Self {
        tracing::error!(%error, "something cannot be written as JSON");
        Self::new(ErrorCode::Internal, "the server cannot write this as JSON")
    }

    /// Adds a suggested remedy.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<Cow<'static, str>>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl From<Invalid> for Problem {
    fn from(invalid: Invalid) -> Self {
        let problem = Self::new(ErrorCode::InvalidField, invalid.problem);
        if invalid.field.is_empty() { problem } else { problem.at(invalid.field) }
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::NotFound(what) => Self::not_found(what),
            StoreError::Conflict(why) => Self::new(ErrorCode::Conflict, why),
            StoreError::PreconditionFailed => {
                Self::new(ErrorCode::PreconditionFailed, "the current state does not meet the condition")
                    .with_hint("read the object again: the reply has the tag of its current state")
            }
            StoreError::LimitReached(why) => Self::new(ErrorCode::LimitReached, why),
            StoreError::Unavailable(why) | StoreError::Unreadable(why) => {
                tracing::warn!(%why, "the store refuses to write");
                Self::new(ErrorCode::Unavailable, "the store cannot write now; nothing was kept")
            }
            StoreError::Damaged(why) => {
                tracing::error!(%why, "the store is damaged");
                Self::new(ErrorCode::Internal, "the stored data is damaged")
            }
        }
    }
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.code.as_str(), self.detail)
    }
}

impl std::error::Error for Problem {}

/// Truncates a long text.
fn shortened(text: Cow<'static, str>, max_chars: usize) -> Cow<'static, str> {
    match text.char_indices().nth(max_chars) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()).into(),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_a_caller_has_sent_a_refusal_stays_short() {
        let long = "ä\"".repeat(100_000);
        let problem = Problem::field(long.clone(), long.clone()).at(long.clone());
        assert!(problem.text_bytes() < 2_000, "{} bytes", problem.text_bytes());
        let problem: Problem = Invalid::new(long.clone(), long).into();
        assert!(problem.text_bytes() < 2_000, "{} bytes", problem.text_bytes());
        assert_eq!(Problem::field("name", "is missing").field.as_deref(), Some("name"));
    }
}
