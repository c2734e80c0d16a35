//! A packet as it was seen at one end of a link.

use crate::side::Side;
use serde::Serialize;
use std::sync::Arc;

/// One packet at one end of the link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    /// The end where it was seen.
    pub at: Side,
    /// The side that sent it.
    pub from: Side,
    /// The time of the packet by `CLOCK_MONOTONIC`, in nanoseconds.
    pub time_ns: u64,
    /// The outcome of the packet.
    pub note: Note,
    /// The packet from its IP header on.
    pub bytes: Arc<[u8]>,
}

/// The outcome of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "fate")]
pub enum Note {
    /// Seen where it entered, and later at the other end.
    Sent {
        /// The queueing time, in nanoseconds.
        queued_ns: u64,
    },
    /// Seen where it entered, and lost on the way.
    Lost,
    /// Seen where it entered, and dropped since the queue was full.
    Overflowed,
    /// Seen where it left.
    Received {
        /// The lateness, in nanoseconds.
        late_ns: u64,
    },
}
