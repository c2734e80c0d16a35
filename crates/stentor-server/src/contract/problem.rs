//! The small vocabulary in which a request is refused.

use std::borrow::Cow;

use stentor_core::error::Invalid;
use stentor_core::ports::store::StoreError;

use super::Operation;

/// When to come back to a full queue: it empties at the pace of push services, not of requests.
const QUEUE_FULL_RETRY_SECONDS: u32 = 5;
/// So much of a reason is told: what a caller has sent may stand in it, once for each message of a thousand.
const DETAIL_MAX_CHARS: usize = 512;
/// So much of a field's path is told; its names may be the caller's own.
const FIELD_MAX_CHARS: usize = 256;

/// What kind of refusal it is; every face translates these words in one place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorCode {
    /// The request is not what its format promises (malformed JSON, a missing header).
    InvalidRequest,
    /// One field breaks a rule; `field` names it.
    InvalidField,
    /// The server may not connect to an address that the request names; `field` says where.
    AddressRefused,
    /// The body is larger than allowed.
    PayloadTooLarge,
    /// The body did not come in time.
    RequestTimeout,
    /// No key, or a key that is not known.
    Unauthorized,
    /// The key is known but lacks the scope.
    Forbidden,
    /// There is no such thing in this app.
    NotFound,
    /// The address exists, this method does not.
    MethodNotAllowed,
    /// The body's content type is not understood here.
    UnsupportedMediaType,
    /// What the body is compressed with is not understood here.
    UnsupportedEncoding,
    /// The reply can be written in no format that is accepted.
    NotAcceptable,
    /// The thing is not as the caller believes; nothing was changed.
    PreconditionFailed,
    /// The thing is in a state that forbids it.
    Conflict,
    /// The idempotency key was used for another request.
    IdempotencyKeyReused,
    /// The texts of a credential are as they should be, but no key or certificate can be read from them.
    CredentialUnusable,
    /// A limit of what may be kept is reached.
    LimitReached,
    /// Too many requests at once; come back as soon as `retry_after_seconds` says.
    RateLimited,
    /// As much waits to be sent as is allowed; nothing was kept. Come back as soon as `retry_after_seconds` says.
    QueueFull,
    /// Cannot be kept now; nothing was kept. Come back as soon as `retry_after_seconds` says.
    Unavailable,
    /// A defect of the server; the log has it under the request id.
    Internal,
}

impl ErrorCode {
    /// All of them, in the order of the documentation.
    pub const ALL: &'static [Self] = &[
        Self::InvalidRequest,
        Self::InvalidField,
        Self::AddressRefused,
        Self::PayloadTooLarge,
        Self::RequestTimeout,
        Self::Unauthorized,
        Self::Forbidden,
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

    /// Returns the stable word that callers may compare with.
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

    /// Returns the number that stands for the word in formats whose errors have numbers; it never changes.
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
        }
    }

    /// Returns a short title in plain words.
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

/// What is asked for: a value, or a refusal.
pub type ServiceResult<T> = Result<T, Problem>;

/// A refusal: what kind, why, which field, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// What kind.
    pub code: ErrorCode,
    /// Why, for a person.
    pub detail: Cow<'static, str>,
    /// Path of the offending field.
    pub field: Option<String>,
    /// What to do about it.
    pub hint: Option<Cow<'static, str>>,
    /// The operation that would help, by its name in the table; each face says how it is called there.
    pub helps: Option<&'static str>,
    /// When to come back, in seconds.
    pub retry_after_seconds: Option<u32>,
}

impl Problem {
    /// Returns what kind and why.
    pub fn new(code: ErrorCode, detail: impl Into<Cow<'static, str>>) -> Self {
        let retry = match code {
            ErrorCode::RateLimited | ErrorCode::Unavailable | ErrorCode::RequestTimeout => Some(1),
            ErrorCode::QueueFull => Some(QUEUE_FULL_RETRY_SECONDS),
            _ => None,
        };
        let detail = shortened(detail.into(), DETAIL_MAX_CHARS);
        Self { code, detail, field: None, hint: None, helps: None, retry_after_seconds: retry }
    }

    /// Refuses one field.
    pub fn field(field: impl Into<String>, problem: impl Into<Cow<'static, str>>) -> Self {
        Self::new(ErrorCode::InvalidField, problem).at(field)
    }

    /// Returns that there is no such thing.
    pub fn not_found(what: &str) -> Self {
        Self::new(ErrorCode::NotFound, format!("there is no such {what} in this app"))
    }

    /// Names the field that it is about.
    #[must_use]
    pub fn at(mut self, field: impl Into<String>) -> Self {
        self.field = Some(shortened(field.into().into(), FIELD_MAX_CHARS).into_owned());
        self
    }

    /// Names the operation that would help, in a hint that ends where the operation is named.
    #[must_use]
    pub fn helped_by<O: Operation>(self, hint: impl Into<Cow<'static, str>>) -> Self {
        Self { helps: Some(O::FACTS.name), ..self.with_hint(hint) }
    }

    /// Returns how many bytes its texts have.
    #[must_use]
    pub fn text_bytes(&self) -> usize {
        let hint = self.hint.as_deref().map_or(0, str::len);
        self.detail.len() + self.field.as_deref().map_or(0, str::len) + hint
    }

    /// Returns what to do about it; `called` says how a face calls the operation that helps.
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

    /// Adds what to do about it.
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
                Self::new(ErrorCode::PreconditionFailed, "it is not, or no longer, as the condition says")
                    .with_hint("read it again: what is shown of it has the tag of its present state")
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

/// Cuts a text that nobody would read to its end.
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
