//! What the rest of the house knows of an adapter: each folder describes itself in one of these.

use std::sync::Arc;

use stentor_core::device::{Platform, ProviderKind, PushToken};
use stentor_core::error::Invalid;
use stentor_core::message::{Message, MessageSpec};
use stentor_core::ports::provider::{CredentialError, Provider};

use crate::Setup;
use crate::schema::CredentialSchema;

/// Hosts that a credential leads to, each behind the field that names it.
pub type Hosts = Vec<(String, String)>;

/// An adapter, or what is wrong with its credential.
pub type OpenedProvider = Result<Arc<dyn Provider>, CredentialError>;

/// One adapter.
#[derive(Debug)]
pub struct Descriptor {
    /// Its name and its persisted code.
    pub kind: ProviderKind,
    /// Name of its push service in prose.
    pub title: &'static str,
    /// The same, short.
    pub label: &'static str,
    /// Whether it only seems to send.
    pub is_for_trials: bool,
    /// Platforms whose devices it reaches when their registration names no provider.
    pub platforms: &'static [Platform],
    /// What a message may say in this push service's own words.
    pub overrides: Option<Overrides>,
    /// Messages per minute that the push service allows one credential unless it says otherwise; `None` for no such rule.
    pub quota_per_minute: Option<u32>,
    /// Longest push token.
    pub token_max_bytes: usize,
    /// Returns whether a text can be a token of the push service at all.
    pub can_be_token: fn(&str) -> bool,
    /// What can be one, in words: what follows *must be*.
    pub token_form: &'static str,
    /// Whether capitals and small letters of a token are the same.
    pub token_ignores_case: bool,
    /// Whether the push service says that a token is invalid when it belongs to another environment.
    pub confuses_environments: bool,
    /// What its credential is made of.
    pub credential: CredentialSchema,
    /// Checks a message against the documented limits of the push service; the error names the field.
    pub check: fn(&MessageSpec) -> Result<(), Invalid>,
    /// Returns the bytes of a message, its token apart.
    pub payload_bytes: fn(&Message) -> usize,
    /// Lists the hosts that a credential leads to.
    pub hosts: fn(&str) -> Result<Hosts, CredentialError>,
    /// Builds the adapter for a credential's JSON; connects to nothing yet.
    pub open: fn(&str, &Setup) -> OpenedProvider,
}

/// A part of a message that one push service gets as it is.
#[derive(Debug)]
pub struct Overrides {
    /// Field of the request that holds it.
    pub field: &'static str,
    /// What it is, for the reference of the API.
    pub about: &'static str,
    /// What it is, for the command's help.
    pub help: &'static str,
}

impl Descriptor {
    /// Returns a token as it is kept and looked for: two spellings of one token are one device.
    #[must_use]
    pub fn spelled(&self, token: PushToken) -> PushToken {
        let is_one = self.token_ignores_case && (self.can_be_token)(token.expose());
        if is_one { token.in_small_letters() } else { token }
    }

    /// Returns the other spelling under which an earlier version may have kept a token, if there is one.
    #[must_use]
    pub fn older_spelling(&self, token: &PushToken) -> Option<PushToken> {
        let is_one = self.token_ignores_case && (self.can_be_token)(token.expose());
        let older = is_one.then(|| token.clone().in_capitals())?;
        (older != *token).then_some(older)
    }

    /// Returns the field of a request that overrides what this push service gets, if there is one.
    #[must_use]
    pub fn override_field(&self) -> Option<&'static str> {
        self.overrides.as_ref().map(|overrides| overrides.field)
    }
}
