//! The counters of the gateway.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The protocol of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DeviceProtocol {
    /// Server-Sent Events and long poll.
    Stream,
    /// Mobile Connection Server, as spoken by Android and Chromium.
    Mcs,
    /// MQTT 3.1.1 and 5.
    Mqtt,
    /// The WebSocket of Firefox.
    Autopush,
}

impl DeviceProtocol {
    /// All protocols.
    pub const ALL: [Self; 4] = [Self::Stream, Self::Mcs, Self::Mqtt, Self::Autopush];

    /// Returns its name, for metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Stream => "stream",
            Self::Mcs => "mcs",
            Self::Mqtt => "mqtt",
            Self::Autopush => "autopush",
        }
    }
}

/// A browser's failure with a message after its confirmation, as reported over autopush.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AutopushFailure {
    /// The page's handler threw an exception (301).
    Exception,
    /// The page's handler returned a rejected promise (302).
    Rejection,
    /// The browser itself failed (303).
    Internal,
    /// Another code, or none.
    Other,
}

impl AutopushFailure {
    /// All failures.
    pub const ALL: [Self; 4] = [Self::Exception, Self::Rejection, Self::Internal, Self::Other];

    /// Maps a code to its failure.
    pub(crate) const fn of(code: Option<u64>) -> Self {
        match code {
            Some(301) => Self::Exception,
            Some(302) => Self::Rejection,
            Some(303) => Self::Internal,
            _ => Self::Other,
        }
    }

    /// Returns its code, for metrics.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Exception => "301",
            Self::Rejection => "302",
            Self::Internal => "303",
            Self::Other => "other",
        }
    }
}

/// Counters of the gateway, since the start of the process.
#[derive(Debug, Default)]
pub struct GatewayCounts {
    sessions: [AtomicU64; 4],
    deliveries: AtomicU64,
    look_ups: AtomicU64,
    receipts: AtomicU64,
    receipts_without_change: AtomicU64,
    receipt_micros: AtomicU64,
    receipts_given_up: AtomicU64,
    refused_logins: AtomicU64,
    dropped: AtomicU64,
    upstream: AtomicU64,
    autopush_failures: [AtomicU64; 4],
}

/// A snapshot of the counters.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GatewayStats {
    /// Open sessions, by protocol.
    pub sessions: Vec<(&'static str, u64)>,
    /// Deliveries passed to connections.
    pub deliveries: u64,
    /// Look-ups of all waiting deliveries of a device.
    pub look_ups: u64,
    /// Written receipts.
    pub receipts: u64,
    /// Receipts for deliveries that awaited none.
    pub receipts_without_change: u64,
    /// Receipts given up because the store rejects them.
    pub receipts_given_up: u64,
    /// Duration of the last write of receipts.
    pub receipt_lag: Duration,
    /// Logins with a wrong token or secret.
    pub refused_logins: u64,
    /// Deliveries dropped because too many waited or a newer one replaced them.
    pub dropped: u64,
    /// Stored messages of devices.
    pub upstream: u64,
    /// Deliveries with which a page failed after its browser had confirmed them, by autopush's code.
    pub autopush_failures: Vec<(&'static str, u64)>,
}

impl GatewayCounts {
    pub(crate) fn note_opened(&self, protocol: DeviceProtocol) {
        self.sessions[protocol as usize].fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn note_closed(&self, protocol: DeviceProtocol) {
        self.sessions[protocol as usize].fetch_sub(1, Ordering::Relaxed);
    }

    pub(crate) fn note_deliveries(&self, count: usize) {
        self.deliveries.fetch_add(count as u64, Ordering::Relaxed);
    }

    pub(crate) fn note_look_up(&self) {
        self.look_ups.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn note_receipts(&self, written: usize, without_change: usize, took: Duration) {
        self.receipts.fetch_add(written as u64, Ordering::Relaxed);
        self.receipts_without_change.fetch_add(without_change as u64, Ordering::Relaxed);
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        self.receipt_micros.store(micros, Ordering::Relaxed);
    }

    pub(crate) fn note_receipt_given_up(&self) {
        self.receipts_given_up.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn note_refused_login(&self) {
        self.refused_logins.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn note_dropped(&self, count: usize) {
        self.dropped.fetch_add(count as u64, Ordering::Relaxed);
    }

    /// Counts stored messages of devices.
    pub fn note_upstream(&self, count: usize) {
        self.upstream.fetch_add(count as u64, Ordering::Relaxed);
    }

    pub(crate) fn note_autopush_failure(&self, failure: AutopushFailure) {
        self.autopush_failures[failure as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Returns a snapshot of the counters.
    #[must_use]
    pub fn stats(&self) -> GatewayStats {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        GatewayStats {
            sessions: DeviceProtocol::ALL
                .iter()
                .map(|protocol| (protocol.as_str(), load(&self.sessions[*protocol as usize])))
                .collect(),
            deliveries: load(&self.deliveries),
            look_ups: load(&self.look_ups),
            receipts: load(&self.receipts),
            receipts_without_change: load(&self.receipts_without_change),
            receipts_given_up: load(&self.receipts_given_up),
            receipt_lag: Duration::from_micros(load(&self.receipt_micros)),
            refused_logins: load(&self.refused_logins),
            dropped: load(&self.dropped),
            upstream: load(&self.upstream),
            autopush_failures: AutopushFailure::ALL
                .iter()
                .map(|failure| (failure.as_str(), load(&self.autopush_failures[*failure as usize])))
                .collect(),
        }
    }
}
