//! Limits of an MCS connection.

use std::time::Duration;

/// Timeouts and size limits of an MCS connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct McsLimits {
    /// Timeout from the first byte to the complete login.
    pub login_timeout: Duration,
    /// Silence of a device after which the server sends a heartbeat; a device may request a shorter interval.
    pub heartbeat: Duration,
    /// Shortest heartbeat interval that a device may request.
    pub heartbeat_min: Duration,
    /// Timeout of the reply to a heartbeat.
    pub heartbeat_ack_timeout: Duration,
    /// Longest connection of a program without a registration.
    pub lonely_max: Duration,
    /// Timeout of a write to a device.
    pub write_timeout: Duration,
    /// Largest stanza of a device, in bytes.
    pub stanza_max_bytes: usize,
    /// Most unacknowledged deliveries of one channel.
    pub window_max_count: usize,
}

impl Default for McsLimits {
    /// Heartbeats every four minutes, as mobile networks require; stanzas of 64 KiB, enough for some 2,000 persistent ids.
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

/// Bytes gathered before a write.
pub(super) const FLUSH_BYTES: usize = 16 << 10;
/// Messages of a device that are acknowledged together, as in Chromium.
pub(super) const UPSTREAM_ACK_MAX_COUNT: usize = 10;
