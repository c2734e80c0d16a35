//! Links: the conditions for packets on their way, and profiles of them with their sources.

mod profile;
mod shaper;
mod trace;

pub use profile::{PROFILES, Profile};
pub use shaper::{PacketOutcome, Shaper};
pub use trace::{LINES_MAX, OPPORTUNITY_BYTES, Trace, TraceError};

use serde::Serialize;
use std::sync::Arc;

/// The default length of a queue, in packets.
pub const USUAL_QUEUE_PACKETS: usize = 1000;

/// The conditions for packets in one direction.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Path {
    /// Time on the way, in nanoseconds.
    pub delay_ns: u64,
    /// The maximum additional delay, evenly spread, in nanoseconds; packets do not overtake each other.
    pub jitter_ns: u64,
    /// The rate at which packets leave the queue.
    pub rate: Rate,
    /// The share of packets that is lost, 0 to 1.
    pub loss: f64,
    /// Packets that may wait for their turn; more are dropped.
    pub queue_packets: usize,
}

impl Path {
    /// A way that delays nothing and loses nothing.
    #[must_use]
    pub const fn open() -> Self {
        Self {
            delay_ns: 0,
            jitter_ns: 0,
            rate: Rate::Unlimited,
            loss: 0.0,
            queue_packets: USUAL_QUEUE_PACKETS,
        }
    }
}

/// The rate at which packets leave a queue; a packet counts with its IP header.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Rate {
    /// At once.
    Unlimited,
    /// A rate in bits per second.
    BitsPerSecond(u64),
    /// The rate of a recorded link.
    Trace(#[serde(skip)] Arc<Trace>),
}

/// A link: a path each way, under a name.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Link {
    /// The profile's name, or the user's.
    pub name: String,
    /// The path from the device to the server.
    pub up: Path,
    /// The path from the server to the device.
    pub down: Path,
    /// The source of its figures.
    pub source: String,
}

impl Link {
    /// A link that only carries.
    #[must_use]
    pub fn open() -> Self {
        Self {
            name: "open".to_owned(),
            up: Path::open(),
            down: Path::open(),
            source: "no shaping: the cost of the engine itself".to_owned(),
        }
    }

    /// Returns the profile of this name: `open`, `lan`, `wan`, `wifi`, `4g`, `3g` or `2g`.
    #[must_use]
    pub fn profile(name: &str) -> Option<Self> {
        if name == "open" {
            return Some(Self::open());
        }
        PROFILES.iter().find(|profile| profile.name == name).map(profile::Profile::link)
    }

    /// The mean time of a small packet there and back, in nanoseconds, without queues.
    #[must_use]
    pub const fn round_trip_ns(&self) -> u64 {
        self.up.delay_ns + self.up.jitter_ns / 2 + self.down.delay_ns + self.down.jitter_ns / 2
    }
}
