//! Descriptors: each adapter's folder describes itself in one of these.

use std::sync::Arc;

use serde_json::{Map, Value};
use stentor_core::device::{Platform, ProviderKind, PushToken, TokenForm};
use stentor_core::error::Invalid;
use stentor_core::message::{Message, MessageSpec};
use stentor_core::ports::provider::{CredentialError, Provider};

use crate::Setup;
use crate::preview::RequestPreview;
use crate::schema::CredentialSchema;

/// Hosts used by a credential, each after the name of its field.
pub type Hosts = Vec<(String, String)>;

/// An adapter, or the problem of its credential.
pub type OpenedProvider = Result<Arc<dyn Provider>, CredentialError>;

/// Completes the fields of a credential: those given, and those of the credential before.
pub type CompleteCredential =
    fn(Map<String, Value>, Option<&Map<String, Value>>) -> Result<Map<String, Value>, CredentialError>;

/// Shows the request that a message causes: takes the credential's JSON and the message.
pub type PreviewRequest = fn(&str, &Message) -> Result<RequestPreview, CredentialError>;

/// The descriptor of an adapter.
#[derive(Debug)]
pub struct Descriptor {
    /// Its name and its persisted code.
    pub kind: ProviderKind,
    /// Name of its push service in prose.
    pub title: &'static str,
    /// The same, short.
    pub label: &'static str,
    /// True if it only pretends to send.
    pub is_for_trials: bool,
    /// Platforms of devices that it reaches if their registration names no provider.
    pub platforms: &'static [Platform],
    /// The part of a message in this push service's own format.
    pub overrides: Option<Overrides>,
    /// Default quota of a credential in messages per minute, as set by the push service; `None` if there is no such rule.
    pub quota_per_minute: Option<u32>,
    /// Returns true if a text has the form of a token of the push service.
    pub can_be_token: fn(&str) -> bool,
    /// The form of a token, in words that follow *must be*.
    pub token_form: &'static str,
    /// The spellings of one token.
    pub token_spelling: TokenSpelling,
    /// True if each device names the host of its push service.
    pub names_hosts: bool,
    /// Most tokens in one request.
    pub tokens_per_request: usize,
    /// The kinds of tokens, if the push service replaces one kind by another.
    pub token_kinds: Option<TokenKinds>,
    /// True if the push service reports tokens of another environment as invalid.
    pub confuses_environments: bool,
    /// The schema of its credential.
    pub credential: CredentialSchema,
    /// Checks a message against the documented limits of the push service; the error names the field.
    pub check: fn(&MessageSpec) -> Result<(), Invalid>,
    /// Returns the size of a message in bytes, without its token.
    pub payload_bytes: fn(&Message) -> usize,
    /// Shows the request that a message causes with a credential; `None` if there is none.
    pub preview: Option<PreviewRequest>,
    /// Completes the fields of a new credential from those of the one before, if the push service needs that.
    pub complete: Option<CompleteCredential>,
    /// Lists the hosts used by a credential.
    pub hosts: fn(&str) -> Result<Hosts, CredentialError>,
    /// Builds the adapter for a credential's JSON; connects to nothing yet.
    pub open: fn(&str, &Setup) -> OpenedProvider,
}

/// The spellings of one token.
#[derive(Debug, Clone, Copy)]
pub enum TokenSpelling {
    /// There is one.
    Exact,
    /// Capitals and small letters are alike.
    IgnoresCase,
    /// Every spelling leads to one that is stored; `None` for a text that is no token.
    Canonical(fn(&str) -> Option<String>),
}

/// Two kinds of tokens of a push service, of which one replaces the other.
#[derive(Debug)]
pub struct TokenKinds {
    /// The word for the newer kind.
    pub newer: &'static str,
    /// The form of the newer kind, by which tokens are told apart.
    pub form: TokenForm,
    /// The word for the older kind.
    pub older: &'static str,
}

/// A part of a message that is passed to one push service unchanged.
#[derive(Debug)]
pub struct Overrides {
    /// The request field that holds it.
    pub field: &'static str,
    /// Its description, for the API reference.
    pub about: &'static str,
    /// Its description, for the command's help.
    pub help: &'static str,
}

impl Descriptor {
    /// Returns a token in its canonical spelling, as it is stored and looked up: two spellings of one token are one device.
    #[must_use]
    pub fn spelled(&self, token: PushToken) -> PushToken {
        match self.token_spelling {
            TokenSpelling::IgnoresCase if (self.can_be_token)(token.expose()) => token.in_small_letters(),
            TokenSpelling::Canonical(spelled) => {
                spelled(token.expose()).and_then(|text| PushToken::new(text).ok()).unwrap_or(token)
            }
            TokenSpelling::IgnoresCase | TokenSpelling::Exact => token,
        }
    }

    /// Returns the other spelling under which an earlier version may have stored a token, if there is one.
    #[must_use]
    pub fn older_spelling(&self, token: &PushToken) -> Option<PushToken> {
        let is_one = self.ignores_case() && (self.can_be_token)(token.expose());
        let older = is_one.then(|| token.clone().in_capitals())?;
        (older != *token).then_some(older)
    }

    /// Returns true if capitals and small letters of tokens are alike.
    #[must_use]
    pub const fn ignores_case(&self) -> bool {
        matches!(self.token_spelling, TokenSpelling::IgnoresCase)
    }

    /// Returns the request field with the override for this push service, if there is one.
    #[must_use]
    pub fn override_field(&self) -> Option<&'static str> {
        self.overrides.as_ref().map(|overrides| overrides.field)
    }
}
