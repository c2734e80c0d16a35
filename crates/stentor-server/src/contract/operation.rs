//! Operations of the contract and the facts that the table states about each.

use stentor_core::app::Scope;

use super::shape::Described;
use super::{CallerKnowledge, ErrorCode, ServiceResult};

/// One operation of the contract: its caller, request, reply and facts.
pub trait Operation: 'static {
    /// Caller identity that a face resolves before it reads the rest.
    type By: CallerKnowledge;
    /// Subject: the ids or names of the objects concerned, in order.
    type Subject: Send;
    /// Request record.
    type Request: Send + Described;
    /// Reply record.
    type Reply: Send + Described;
    /// Entry in the table.
    const FACTS: Facts;
}

/// Implementation of an operation.
pub trait Serve<O: Operation> {
    /// Performs the operation, or returns a refusal.
    fn serve(
        &self,
        by: O::By,
        subject: O::Subject,
        request: O::Request,
    ) -> impl Future<Output = ServiceResult<O::Reply>> + Send;
}

/// An operation's entry in the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Facts {
    /// Name: a noun and a verb, such as `messages.send`.
    pub name: &'static str,
    /// Name for formats without dots in names: `SendMessage`.
    pub type_name: &'static str,
    /// Description in sentences; lines may begin with spaces.
    pub about: &'static str,
    /// Names of the parts of the subject.
    pub subject: &'static [&'static str],
    /// Keys that may call the operation.
    pub access: Access,
    /// True if a request may be repeated under an idempotency key.
    pub repeatable: bool,
    /// Error codes beside those that any operation may return.
    pub errors: &'static [ErrorCode],
}

/// Keys that may call an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Only the operator's key.
    Root,
    /// Any key of the named app.
    AnyKey,
    /// A key with one of these scopes, and the operator's key.
    Scopes(&'static [Scope]),
    /// The same keys, and any person with a role in the app: the operation changes nothing.
    Reading(&'static [Scope]),
}

/// Error codes that any operation may return: for a malformed request, an invalid key, an unknown app or name, and a server that cannot
/// serve at present.
const ANY_OPERATION: &[ErrorCode] = &[
    ErrorCode::InvalidRequest,
    ErrorCode::InvalidField,
    ErrorCode::PayloadTooLarge,
    ErrorCode::RequestTimeout,
    ErrorCode::Unauthorized,
    ErrorCode::Forbidden,
    ErrorCode::NotFound,
    ErrorCode::RateLimited,
    ErrorCode::Unavailable,
    ErrorCode::Internal,
];

impl Facts {
    /// Returns true if the operation may fail with this code.
    #[must_use]
    pub fn may_refuse(&self, code: ErrorCode) -> bool {
        self.errors.contains(&code) || ANY_OPERATION.contains(&code)
    }

    /// Returns true if the reply is a list, which may be as large as a reply may be.
    #[must_use]
    pub fn is_list(&self) -> bool {
        self.type_name.starts_with("List") || self.name == "devices.history"
    }

    /// Splits the name into noun and verb.
    #[must_use]
    pub fn noun_and_verb(&self) -> (&'static str, &'static str) {
        self.name.split_once('.').unwrap_or((self.name, ""))
    }

    /// Returns the description without leading spaces in its lines.
    #[must_use]
    pub fn sentences(&self) -> String {
        let lines: Vec<_> = self.about.trim().lines().map(str::trim).collect();
        lines.join("\n")
    }
}
