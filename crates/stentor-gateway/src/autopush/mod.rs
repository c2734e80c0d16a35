//! The WebSocket protocol between Firefox and its push service, also used by UnifiedPush distributors: JSON in text frames.
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
/// Largest frame of a device: an acknowledgement of a whole window fits.
pub const FRAME_MAX_BYTES: usize = 32 * 1_024;
/// Most unconfirmed deliveries of a channel; autopush stores 150 for an agent.
const WINDOW_COUNT: usize = 50;
/// Most updates in one acknowledgement.
const UPDATES_MAX_COUNT: usize = 256;
/// Most registrations over one connection.
const REGISTRATIONS_MAX_COUNT: usize = 1_000;

/// Timeouts of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AutopushTimeouts {
    /// Wait for the first message.
    pub hello: Duration,
    /// Interval of the server's pings.
    pub ping_interval: Duration,
    /// Wait for the reply to a ping.
    pub pong: Duration,
    /// Longest write of a frame.
    pub write: Duration,
    /// Wait for a subscription. An agent without one has nothing to receive.
    pub subscription: Duration,
}

impl Default for AutopushTimeouts {
    /// The values of autopush, except `subscription`: there an agent without a subscription may stay.
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
