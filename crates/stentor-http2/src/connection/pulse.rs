//! Whether the other end still lives: silence, PING, and the wait for its answer.

use std::time::Duration;

use tokio::time::Instant;

/// What a look at the pulse found.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Sign {
    Fine,
    /// The peer is to be asked with a PING now.
    Ask,
    Dead,
}

/// Knows when the peer was last heard, and whether it was asked since.
pub(super) struct Pulse {
    timeout: Duration,
    received_at: Instant,
    asked_at: Option<Instant>,
}

impl Pulse {
    pub(super) const fn new(timeout: Duration, now: Instant) -> Self {
        Self { timeout, received_at: now, asked_at: None }
    }

    /// Notes that bytes came: any of them is a sign of life.
    pub(super) const fn listen(&mut self, now: Instant) {
        (self.received_at, self.asked_at) = (now, None);
    }

    pub(super) fn silence(&self, now: Instant) -> Duration {
        now.duration_since(self.received_at)
    }

    /// Returns for how long the peer has not answered.
    pub(super) fn asked_for(&self, now: Instant) -> Duration {
        self.asked_at.map_or(Duration::ZERO, |asked_at| now.duration_since(asked_at))
    }

    pub(super) const fn is_probing(&self) -> bool {
        self.asked_at.is_some()
    }

    /// Asks when `ask` is set and nothing was asked yet; finds the peer dead when it has not answered in time.
    pub(super) fn check(&mut self, ask: bool, now: Instant) -> Sign {
        match self.asked_at {
            Some(asked_at) if now.duration_since(asked_at) >= self.timeout => Sign::Dead,
            None if ask => {
                self.asked_at = Some(now);
                Sign::Ask
            }
            _ => Sign::Fine,
        }
    }
}
