//! Settings of the web console.

use std::ops::RangeInclusive;
use std::time::Duration;

use serde::Deserialize;

/// Permitted lifetimes of a session.
const SESSION_SECONDS: RangeInclusive<u64> = 60..=86_400;

/// Settings of the web console.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ConsoleConfig {
    /// True to serve /console.
    pub enabled: bool,
    /// Lifetime of a session.
    pub session_seconds: u64,
    /// Largest audience of a message that is sent without a confirmation.
    pub unconfirmed_devices_max_count: u64,
}

impl ConsoleConfig {
    /// Returns the span.
    #[must_use]
    pub const fn session_life(&self) -> Duration {
        Duration::from_secs(self.session_seconds)
    }

    /// Returns the problem found, if any.
    pub(super) fn problem(&self) -> Option<String> {
        let fits = SESSION_SECONDS.contains(&self.session_seconds);
        (!fits).then(|| "console.session_seconds: must be 60 to 86400".to_owned())
    }
}
