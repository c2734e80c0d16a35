//! What an operation is.

use stentor_core::app::Scope;

use super::shape::Described;
use super::{CallerKnowledge, ErrorCode, ServiceResult};

/// One operation of the contract: who may ask for what, and what is replied.
pub trait Operation: 'static {
    /// What a face finds out about who asks, before it reads the rest.
    type By: CallerKnowledge;
    /// What it is about: the names of things, in order.
    type Subject: Send;
    /// The record of what is asked.
    type Request: Send + Described;
    /// The record of what is replied.
    type Reply: Send + Described;
    /// What the table says of it.
    const FACTS: Facts;
}

/// Whoever does what an operation says.
pub trait Serve<O: Operation> {
    /// Does it, or refuses.
    fn serve(
        &self,
        by: O::By,
        subject: O::Subject,
        request: O::Request,
    ) -> impl Future<Output = ServiceResult<O::Reply>> + Send;
}

/// What the table says of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Facts {
    /// Its name: a noun and a verb, such as `messages.send`.
    pub name: &'static str,
    /// The same as formats name it that know no dots: `SendMessage`.
    pub type_name: &'static str,
    /// What it does, in sentences; lines may begin with spaces.
    pub about: &'static str,
    /// What the parts of its subject are called.
    pub subject: &'static [&'static str],
    /// Which keys may ask.
    pub access: Access,
    /// Whether it may be repeated under an idempotency key.
    pub repeatable: bool,
    /// How it may be refused, beside what any operation may answer.
    pub errors: &'static [ErrorCode],
}

/// Which keys may ask.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// The operator's only.
    Root,
    /// Any key of the app that is named.
    AnyKey,
    /// One with any of these scopes, and the operator's.
    Scopes(&'static [Scope]),
}

/// Refusals that any operation may answer: of the request's form, of the key, of an app or a name that does not exist, and
/// of a server that cannot do it now.
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
    /// Returns whether it may be refused in this way.
    #[must_use]
    pub fn may_refuse(&self, code: ErrorCode) -> bool {
        self.errors.contains(&code) || ANY_OPERATION.contains(&code)
    }

    /// Returns whether its reply is a list that may be as long as a reply may be.
    #[must_use]
    pub fn is_list(&self) -> bool {
        self.type_name.starts_with("List") || self.name == "devices.history"
    }

    /// Returns noun and verb of its name.
    #[must_use]
    pub fn noun_and_verb(&self) -> (&'static str, &'static str) {
        self.name.split_once('.').unwrap_or((self.name, ""))
    }

    /// Returns what it does, its lines without the spaces before them.
    #[must_use]
    pub fn sentences(&self) -> String {
        let lines: Vec<_> = self.about.trim().lines().map(str::trim).collect();
        lines.join("\n")
    }
}
