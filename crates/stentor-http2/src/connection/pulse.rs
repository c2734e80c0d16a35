//! Whether the other end still lives: silence, PING, and the wait for its answer.

use std::task::{Context, Poll};
use std::time::Duration;

use h2::{Ping, PingPong};
use tokio::time::Instant;

use crate::limits::Limits;

/// What a look at the pulse found.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Sign {
    Fine,
    /// A PING was queued; the connection must be driven to send it.
    Asked,
    Dead,
}

/// Knows when the peer was last heard, and whether it was asked since.
pub(super) struct Pulse {
    ping: Option<PingPong>,
    timeout: Duration,
    read: u64,
    heard_at: Instant,
    asked_at: Option<Instant>,
    pong_due: bool,
}

impl Pulse {
    pub(super) fn new(ping: Option<PingPong>, limits: &Limits, now: Instant) -> Self {
        Self { ping, timeout: limits.ping_timeout(), read: 0, heard_at: now, asked_at: None, pong_due: false }
    }

    /// Notes how many bytes were read so far; any byte is a sign of life.
    pub(super) fn listen(&mut self, read: u64, now: Instant, cx: &mut Context<'_>) {
        if read != self.read {
            (self.read, self.heard_at, self.asked_at) = (read, now, None);
        }
        let Some(ping) = self.ping.as_mut().filter(|_| self.pong_due) else { return };
        if let Poll::Ready(Ok(_)) = ping.poll_pong(cx) {
            self.pong_due = false;
        }
    }

    pub(super) fn silence(&self, now: Instant) -> Duration {
        now.duration_since(self.heard_at)
    }

    pub(super) fn is_asking(&self) -> bool {
        self.asked_at.is_some()
    }

    /// Tells whether an unused connection waits to hear that it lives.
    pub(super) fn is_asking_unused(&self, unused: bool) -> bool {
        unused && self.is_asking()
    }

    /// Asks when `ask` is set and nothing was asked yet; finds the peer dead when it has not answered in time.
    pub(super) fn check(&mut self, ask: bool, now: Instant) -> Sign {
        match self.asked_at {
            Some(asked_at) if now.duration_since(asked_at) >= self.timeout => Sign::Dead,
            None if ask => {
                self.asked_at = Some(now);
                self.send()
            }
            _ => Sign::Fine,
        }
    }

    fn send(&mut self) -> Sign {
        let Some(ping) = self.ping.as_mut().filter(|_| !self.pong_due) else { return Sign::Asked };
        self.pong_due = ping.send_ping(Ping::opaque()).is_ok();
        Sign::Asked
    }
}
