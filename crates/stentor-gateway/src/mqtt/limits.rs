//! Limits of a connection.

use std::time::Duration;

/// Limits of one connection; the defaults suit devices.
#[derive(Debug, Clone, Copy)]
pub struct MqttLimits {
    /// Largest packet of a device.
    pub packet_max_bytes: u32,
    /// Largest packet of a device that has not logged in.
    pub login_packet_max_bytes: u32,
    /// Timeout from the connection to the end of the login.
    pub login_timeout: Duration,
    /// Timeout of a write to a device.
    pub write_timeout: Duration,
    /// Longest keep alive in seconds, which is announced to a device of MQTT 5; zero counts as too long.
    pub keep_alive_max_seconds: u16,
    /// Longest silence of a device of MQTT 3.1.1 without keep alive.
    pub silence_max: Duration,
    /// Most unconfirmed deliveries of a device.
    pub window_max_count: u16,
    /// Most filters of one connection.
    pub filters_max_count: u16,
    /// Longest delay of a will.
    pub will_delay_max: Duration,
}

impl Default for MqttLimits {
    fn default() -> Self {
        Self {
            packet_max_bytes: 64 * 1_024,
            login_packet_max_bytes: 16 * 1_024,
            login_timeout: Duration::from_secs(10),
            write_timeout: Duration::from_secs(20),
            keep_alive_max_seconds: 1_800,
            silence_max: Duration::from_hours(24),
            window_max_count: 100,
            filters_max_count: 256,
            will_delay_max: Duration::from_mins(5),
        }
    }
}

/// Longest client id.
pub(super) const CLIENT_ID_MAX_BYTES: usize = 256;
/// Filters of one SUBSCRIBE or UNSUBSCRIBE that are processed; each one may cost a transaction.
pub(super) const FILTERS_PER_PACKET_MAX_COUNT: usize = 64;
/// Bytes read at once, into a buffer on the stack, so that an idle connection has no buffer.
pub(super) const READ_BYTES: usize = 4_096;
/// Bytes gathered before a write.
pub(super) const WRITE_BYTES: usize = 16 * 1_024;
