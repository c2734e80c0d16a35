//! Liveness of the peer: silence, PING, and the wait for its reply.

use std::time::Duration;

use tokio::time::Instant;

/// The result of a liveness check.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Sign {
    Fine,
    /// A PING must be sent now.
    Ask,
    Dead,
}

/// The time of the last sign of life, and of the PING sent since.
pub(super) struct Pulse {
    timeout: Duration,
    received_at: Instant,
    asked_at: Option<Instant>,
}

impl Pulse {
    pub(super) const fn new(timeout: Duration, now: Instant) -> Self {
        Self { timeout, received_at: now, asked_at: None }
    }

    /// Records received bytes: any of them is a sign of life.
    pub(super) const fn listen(&mut self, now: Instant) {
        (self.received_at, self.asked_at) = (now, None);
    }

    pub(super) fn silence(&self, now: Instant) -> Duration {
        now.duration_since(self.received_at)
    }

    /// Returns the age of an unanswered PING; zero if there is none.
    pub(super) fn asked_for(&self, now: Instant) -> Duration {
        self.asked_at.map_or(Duration::ZERO, |asked_at| now.duration_since(asked_at))
    }

    pub(super) const fn is_probing(&self) -> bool {
        self.asked_at.is_some()
    }

    /// Requests a PING if `ask` is set and none is outstanding. Reports the peer as dead if a PING was not answered in time.
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
