//! Every limit of the client, with its unit in its name.

use std::time::Duration;

/// Bounds of one [`Client`](crate::Client).
#[derive(Debug, Clone)]
pub struct Limits {
    /// Most connections open or opening; connections that only wait for their last answers do not count.
    pub max_connections: usize,
    /// Most streams on one connection, whatever the peer allows.
    pub max_streams_per_connection: usize,
    /// Requests after which a connection is closed and another opened; 1 means a connection for each.
    pub max_requests_per_connection: u32,
    /// Requests in flight at the start, over all connections.
    pub initial_inflight_requests: usize,
    /// Most requests in flight before the first answer, in slow start: a peer that is silent is far away, and is sent as many again as at
    /// the start every 10 ms.
    pub slow_start_inflight_requests: usize,
    /// Fewest requests in flight that slowing down leads to.
    pub min_inflight_requests: usize,
    /// Most requests in flight, over all connections.
    pub max_inflight_requests: usize,
    /// How often a request goes again after the peer certainly did not process it.
    pub max_resends: u8,
    /// Name look-up, TCP, TLS and the peer's first SETTINGS together.
    pub connect_timeout_ms: u64,
    /// From opening the stream to the end of the answer.
    pub request_timeout_ms: u64,
    /// From opening the stream to when a request that is overtaken gives it back, where no other stream is left.
    pub late_timeout_ms: u64,
    /// From handing a request over to opening its stream.
    pub queue_timeout_ms: u64,
    /// Silence on a connection with open streams after which a PING asks whether it lives.
    pub ping_interval_ms: u64,
    /// Wait for the answer to a PING, after which the connection is dead.
    pub ping_timeout_ms: u64,
    /// Silence on an unused connection after which a PING precedes the next request: what dies in a shorter one takes its
    /// requests along.
    pub probe_after_idle_ms: u64,
    /// Silence on an unused connection after which it is closed.
    pub idle_close_ms: u64,
    /// Body bytes kept of one answer.
    pub max_reply_body_bytes: usize,
    /// Body bytes read of one answer before its stream is reset.
    pub max_reply_drain_bytes: usize,
    /// Header bytes of one answer (SETTINGS_MAX_HEADER_LIST_SIZE).
    pub max_reply_header_bytes: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_connections: 64,
            max_streams_per_connection: 1_500,
            // As many as one connection has stream ids for.
            max_requests_per_connection: 1 << 30,
            initial_inflight_requests: 4_096,
            slow_start_inflight_requests: 16_384,
            min_inflight_requests: 4,
            max_inflight_requests: 65_536,
            max_resends: 5,
            connect_timeout_ms: 10_000,
            request_timeout_ms: 30_000,
            late_timeout_ms: 1_000,
            queue_timeout_ms: 120_000,
            ping_interval_ms: 2_000,
            ping_timeout_ms: 2_000,
            probe_after_idle_ms: 1_000,
            idle_close_ms: 900_000,
            max_reply_body_bytes: 8 * 1_024,
            max_reply_drain_bytes: 1_024 * 1_024,
            max_reply_header_bytes: 16 * 1_024,
        }
    }
}

impl Limits {
    pub(crate) fn connect_timeout(&self) -> Duration {
        Duration::from_millis(self.connect_timeout_ms)
    }

    pub(crate) fn request_timeout(&self) -> Duration {
        Duration::from_millis(self.request_timeout_ms)
    }

    pub(crate) fn late_timeout(&self) -> Duration {
        Duration::from_millis(self.late_timeout_ms)
    }

    pub(crate) fn queue_timeout(&self) -> Duration {
        Duration::from_millis(self.queue_timeout_ms)
    }

    pub(crate) fn ping_interval(&self) -> Duration {
        Duration::from_millis(self.ping_interval_ms)
    }

    pub(crate) fn ping_timeout(&self) -> Duration {
        Duration::from_millis(self.ping_timeout_ms)
    }

    pub(crate) fn probe_after_idle(&self) -> Duration {
        Duration::from_millis(self.probe_after_idle_ms)
    }

    pub(crate) fn idle_close(&self) -> Duration {
        Duration::from_millis(self.idle_close_ms)
    }

    /// Returns the grain of the clock that a busy connection looks at.
    pub(crate) fn tick(&self) -> Duration {
        let shortest = self.request_timeout().min(self.ping_interval()).min(self.ping_timeout());
        (shortest / 8).clamp(Duration::from_millis(1), Duration::from_millis(20))
    }
}
