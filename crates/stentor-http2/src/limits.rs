//! The limits of the client, with the unit in each name.

use std::time::Duration;

/// Limits of one [`Client`](crate::Client).
#[derive(Debug, Clone)]
pub struct Limits {
    /// Most connections open or opening; retired connections that wait for their last responses do not count.
    pub max_connections: usize,
    /// Most streams on one connection; the peer may set a lower limit.
    pub max_streams_per_connection: usize,
    /// Requests after which a connection is replaced; 1 means a connection for each request.
    pub max_requests_per_connection: u32,
    /// Requests in flight at the start, over all connections.
    pub initial_inflight_requests: usize,
    /// Most requests in flight before the first response, in slow start. A silent peer is distant, and every 10 ms gets as many requests
    /// again as at the start.
    pub slow_start_inflight_requests: usize,
    /// Fewest requests in flight after slowing down.
    pub min_inflight_requests: usize,
    /// Most requests in flight, over all connections.
    pub max_inflight_requests: usize,
    /// Most resends of a request that the peer certainly did not process.
    pub max_resends: u8,
    /// Timeout of name resolution, TCP, TLS and the peer's first SETTINGS together.
    pub connect_timeout_ms: u64,
    /// Timeout from opening the stream to the end of the response.
    pub request_timeout_ms: u64,
    /// Age at which an overtaken request gives up its stream, if no other stream is free.
    pub late_timeout_ms: u64,
    /// Timeout from submitting a request to opening its stream.
    pub queue_timeout_ms: u64,
    /// Silence on a connection with open streams after which a PING is sent.
    pub ping_interval_ms: u64,
    /// Timeout of a PING, after which the connection is dead.
    pub ping_timeout_ms: u64,
    /// Silence on an unused connection after which a PING precedes the next request. A connection that dies within a shorter silence loses
    /// its requests.
    pub probe_after_idle_ms: u64,
    /// Silence on an unused connection after which it is closed.
    pub idle_close_ms: u64,
    /// Most body bytes kept of one response.
    pub max_reply_body_bytes: usize,
    /// Most body bytes read of one response before its stream is reset.
    pub max_reply_drain_bytes: usize,
    /// Most header bytes of one response (SETTINGS_MAX_HEADER_LIST_SIZE).
    pub max_reply_header_bytes: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_connections: 64,
            max_streams_per_connection: 1_500,
            // As many as the stream ids of one connection allow.
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

    /// Returns the interval of the clock on a busy connection.
    pub(crate) fn tick(&self) -> Duration {
        let shortest = self.request_timeout().min(self.ping_interval()).min(self.ping_timeout());
        (shortest / 8).clamp(Duration::from_millis(1), Duration::from_millis(20))
    }
}
