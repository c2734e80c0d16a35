//! Tenants, their keys and their credentials at the push services.

use std::fmt;

use serde::Serialize;

use crate::device::ProviderKind;
use crate::id::{AppId, KeyId};
use crate::name::Label;
use crate::time::Timestamp;
use crate::word::words;

/// A tenant: everything else belongs to exactly one app.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct App {
    /// Its id.
    pub id: AppId,
    /// The name shown to people.
    pub name: Label,
    /// Time of creation.
    pub created_at: Timestamp,
}

/// A permission of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// Send messages and read their results.
    Send,
    /// Register devices, subscriptions, users and groups.
    Register,
    /// Everything in the app, credentials and keys included.
    Admin,
    /// Register a new device of the gateway, nothing else: a key with this scope may be shipped inside an app.
    Join,
}

words! { Scope { Send = "send"; Register = "register"; Admin = "admin"; Join = "join"; } }

/// A set of scopes in one byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Scopes(u8);

impl Scopes {
    /// Builds the set.
    #[must_use]
    pub fn of(scopes: &[Scope]) -> Self {
        Self(scopes.iter().fold(0, |bits, scope| bits | 1 << *scope as u8))
    }

    /// Restores the set from its byte; unknown bits are dropped.
    #[must_use]
    pub const fn from_bits(bits: u8) -> Self {
        Self(bits & 0b1111)
    }

    /// Returns the byte that the engine stores.
    #[must_use]
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// Returns true if the scope is granted; Admin grants all.
    #[must_use]
    pub fn allows(self, scope: Scope) -> bool {
        self.0 & (1 << scope as u8 | 1 << Scope::Admin as u8) != 0
    }

    /// Lists the granted scopes.
    #[must_use]
    pub fn list(self) -> Vec<Scope> {
        [Scope::Send, Scope::Register, Scope::Admin, Scope::Join]
            .into_iter()
            .filter(|scope| self.0 & 1 << *scope as u8 != 0)
            .collect()
    }
}

/// A stored API key: only a keyed hash of the secret.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey {
    /// Its public name.
    pub id: KeyId,
    /// The app it opens; `None` for the operator's root key, which opens all.
    pub app: Option<AppId>,
    /// The name shown to people.
    pub name: Label,
    /// Scopes that the key grants.
    pub scopes: Scopes,
    /// Hash of the secret; the secret itself is shown once and never stored.
    pub hash: [u8; 32],
    /// Time of creation.
    pub created_at: Timestamp,
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ApiKey").field("id", &self.id).field("app", &self.app).finish_non_exhaustive()
    }
}

/// Credential of an app at one push service.
#[derive(Clone, PartialEq, Eq)]
pub struct Credential {
    /// The owning app.
    pub app: AppId,
    /// The adapter that reads it.
    pub provider: ProviderKind,
    /// The adapter's own JSON: opaque here, secret everywhere.
    pub secret: String,
    /// Time of the last change.
    pub updated_at: Timestamp,
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credential")
            .field("app", &self.app)
            .field("provider", &self.provider)
            .field("secret", &"[redacted]")
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn admin_allows_everything_and_send_only_sending() {
        assert!(Scopes::of(&[Scope::Admin]).allows(Scope::Register));
        let send = Scopes::of(&[Scope::Send]);
        assert!(send.allows(Scope::Send) && !send.allows(Scope::Register) && !send.allows(Scope::Admin));
        assert_eq!(Scopes::from_bits(send.bits()), send);
    }
}
