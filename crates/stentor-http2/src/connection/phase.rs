//! How far a connection is.

use tokio::time::Instant;

/// How far a connection is: it only ever goes down this list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ConnectionPhase {
    /// Waits for the peer's SETTINGS, no longer than until the instant, and counts as opening.
    Settling { until: Instant },
    /// Takes requests.
    Serving,
    /// Takes no more requests, and leaves when the last stream has ended.
    Retired,
}

impl ConnectionPhase {
    /// Returns whether the peer's SETTINGS have come.
    pub(super) const fn has_settled(self) -> bool {
        !matches!(self, Self::Settling { .. })
    }
}
