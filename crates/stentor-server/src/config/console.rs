//! Settings of the web console.

mod oidc;

use std::ops::RangeInclusive;
use std::time::Duration;

use serde::Deserialize;

pub use oidc::{MappedRole, OidcConfig};

/// Permitted lifetimes of a session.
const SESSION_SECONDS: RangeInclusive<u64> = 60..=86_400;

/// Settings of the web console.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConsoleConfig {
    /// True to serve /console.
    pub enabled: bool,
    /// Lifetime of a session.
    pub session_seconds: u64,
    /// Largest audience of a message that is sent without a confirmation.
    pub unconfirmed_devices_max_count: u64,
    /// Largest audience of a message that a person sends without an approval; 0 for any.
    pub unapproved_devices_max_count: u64,
    /// Login of persons by OpenID Connect.
    pub oidc: OidcConfig,
}

impl ConsoleConfig {
    /// Returns the span.
    #[must_use]
    pub const fn session_life(&self) -> Duration {
        Duration::from_secs(self.session_seconds)
    }

    /// Returns the limit; `None` if there is none.
    #[must_use]
    pub fn unapproved_devices_max_count(&self) -> Option<u64> {
        Some(self.unapproved_devices_max_count).filter(|count| *count > 0)
    }

    /// Returns the problems found.
    pub(super) fn problems(&self) -> Vec<String> {
        let fits = SESSION_SECONDS.contains(&self.session_seconds);
        let seconds = (!fits).then(|| "console.session_seconds: must be 60 to 86400".to_owned());
        seconds.into_iter().chain(self.oidc.problems()).collect()
    }
}
