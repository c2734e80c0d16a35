//! The phase of a connection.

use tokio::time::Instant;

/// The phase of a connection. It only advances, in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ConnectionPhase {
    /// Waits for the peer's SETTINGS until the instant, and counts as opening.
    Settling { until: Instant },
    /// Takes requests.
    Serving,
    /// Takes no more requests, and leaves after the end of its last stream.
    Retired,
}

impl ConnectionPhase {
    /// Returns true if the peer's SETTINGS have come.
    pub(super) const fn has_settled(self) -> bool {
        !matches!(self, Self::Settling { .. })
    }
}
