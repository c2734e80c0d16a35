//! Bounds of an MCS connection.

use std::time::Duration;

/// How long an MCS connection may take, and how much it may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct McsLimits {
    /// From the first byte to the whole login.
    pub login_timeout: Duration,
    /// Silence of a device before it is asked whether it is there; a device may ask for less.
    pub heartbeat: Duration,
    /// The least that a device may ask for.
    pub heartbeat_min: Duration,
    /// How long the answer to a heartbeat may take.
    pub heartbeat_ack_timeout: Duration,
    /// Longest connection of a program without a registration.
    pub lonely_max: Duration,
    /// How long a device may leave what is written to it unread.
    pub write_timeout: Duration,
    /// Largest stanza of a device, in bytes.
    pub stanza_max_bytes: usize,
    /// Deliveries of one channel that may be unacknowledged.
    pub window_max_count: usize,
}

impl Default for McsLimits {
    /// Heartbeats every four minutes, as mobile networks need them; stanzas of 64 KiB, which are some 2,000 persistent ids.
    fn default() -> Self {
        Self {
            login_timeout: Duration::from_secs(15),
            heartbeat: Duration::from_secs(240),
            heartbeat_min: Duration::from_secs(5),
            heartbeat_ack_timeout: Duration::from_secs(30),
            lonely_max: Duration::from_secs(60),
            write_timeout: Duration::from_secs(30),
            stanza_max_bytes: 64 << 10,
            window_max_count: crate::limits::WINDOW_MAX_COUNT,
        }
    }
}

/// Bytes that are gathered before they are written.
pub(super) const FLUSH_BYTES: usize = 16 << 10;
/// Messages of a device that are acknowledged together, as Chromium does it.
pub(super) const UPSTREAM_ACK_MAX_COUNT: usize = 10;
