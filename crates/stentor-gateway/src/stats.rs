//! What the gateway counts.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// What a connection speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DeviceProtocol {
    /// Server-Sent Events and long poll.
    Stream,
    /// Mobile Connection Server, as Android and Chromium speak it.
    Mcs,
    /// MQTT 3.1.1 and 5.
    Mqtt,
    /// The WebSocket of Firefox.
    Autopush,
}

impl DeviceProtocol {
    /// All of them.
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

/// How a browser failed with a message after it had confirmed it, as it tells by autopush.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AutopushFailure {
    /// The page's handler threw something (301).
    Exception,
    /// The page's handler gave a promise that was rejected (302).
    Rejection,
    /// The browser itself failed (303).
    Internal,
    /// It says something else, or nothing.
    Other,
}

impl AutopushFailure {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Exception, Self::Rejection, Self::Internal, Self::Other];

    /// Reads a code.
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

/// Counters of the gateway, since the process began.
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

/// A picture of the counters.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GatewayStats {
    /// Sessions that are open, by protocol.
    pub sessions: Vec<(&'static str, u64)>,
    /// Deliveries that were given to connections.
    pub deliveries: u64,
    /// Times that all that waits for a device was read.
    pub look_ups: u64,
    /// Receipts that were written.
    pub receipts: u64,
    /// Receipts for what awaited none.
    pub receipts_without_change: u64,
    /// Receipts that were given up because the store does not take them.
    pub receipts_given_up: u64,
    /// How long writing the last receipts took.
    pub receipt_lag: Duration,
    /// Connections whose token or secret was wrong.
    pub refused_logins: u64,
    /// Deliveries that were dropped because too many waited or a newer one took their place.
    pub dropped: u64,
    /// Messages of devices that were kept.
    pub upstream: u64,
    /// Deliveries that a page failed with after its browser had confirmed them, by autopush's code.
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

    /// Counts messages of devices that were kept.
    pub fn note_upstream(&self, count: usize) {
        self.upstream.fetch_add(count as u64, Ordering::Relaxed);
    }

    pub(crate) fn note_autopush_failure(&self, failure: AutopushFailure) {
        self.autopush_failures[failure as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Makes a picture of them.
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
