//! The WebSocket that Firefox speaks to its push service, and UnifiedPush distributors after it: JSON in text frames.
//!
//! [`AutopushState`] is the protocol without IO, [`serve`] one connection over any stream of frames.

mod apps;
mod connection;
mod frames;
mod handshake;
mod session;

pub use apps::{OpenApps, VapidClaim};
pub use connection::{AutopushFrame, AutopushServing, serve};
pub use frames::{AutopushRequest, AutopushResult, AutopushUpdate, FrameError};
pub use session::{AutopushClose, AutopushState, AutopushStep};

use std::time::Duration;

/// The subprotocol of the WebSocket.
pub const SUBPROTOCOL: &str = "push-notification";
/// Largest frame that a device may send: an acknowledgement of a whole window fits.
pub const FRAME_MAX_BYTES: usize = 32 * 1_024;
/// Deliveries that a channel may have unconfirmed; autopush stores 150 for an agent.
const WINDOW_COUNT: usize = 50;
/// Updates that one acknowledgement may hold.
const UPDATES_MAX_COUNT: usize = 256;
/// Registrations that one connection may make.
const REGISTRATIONS_MAX_COUNT: usize = 1_000;

/// How long a connection waits for what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AutopushTimeouts {
    /// For the first message.
    pub hello: Duration,
    /// Between pings of ours.
    pub ping_interval: Duration,
    /// For the answer to a ping.
    pub pong: Duration,
    /// For a frame to be written.
    pub write: Duration,
    /// For a subscription: whoever has none waits for nothing.
    pub subscription: Duration,
}

impl Default for AutopushTimeouts {
    /// As autopush has them, and one of our own: there an agent without a subscription may stay.
    fn default() -> Self {
        Self {
            hello: Duration::from_secs(5),
            ping_interval: Duration::from_secs(300),
            pong: Duration::from_secs(4),
            write: Duration::from_secs(10),
            subscription: Duration::from_secs(60),
        }
    }
}
