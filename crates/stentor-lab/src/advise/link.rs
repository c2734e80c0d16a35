//! Link presets, and the time that messages take on them.

use serde::Serialize;

/// Approximate bytes of the HTTP headers of a request and a response together, as sent by the laboratory's own subjects.
pub(super) const HTTP_BYTES: u64 = 260;
/// Payload and headers of a packet, in bytes.
const PACKET_BYTES: (u64, u64) = (1448, 52);
/// Bits of a byte.
const BITS: f64 = 8.0;
/// Milliseconds of a second.
const MS: f64 = 1000.0;

/// A link.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct LinkPreset {
    /// Its name.
    pub name: &'static str,
    /// Round-trip time without load, in milliseconds.
    pub round_trip_ms: f64,
    /// Upstream rate, in megabits per second, which is the slower direction.
    pub megabits_per_second: f64,
    /// True if the radio stays awake for seconds after each message.
    pub has_tail: bool,
    /// The source of the numbers.
    pub source: &'static str,
}

/// The available links, the fastest first.
pub const LINKS: [LinkPreset; 5] = [
    link("lan", 0.5, 100.0, false, "100 Mbit/s, 0.5 ms"),
    link("wifi", 2.0, 15.0, false, "Firefox's profile: 15 Mbit/s up, 2 ms"),
    link("4g", 70.0, 12.0, true, "WebPageTest's LTE: 12 Mbit/s, 70 ms"),
    link("3g", 300.0, 0.768, true, "WebPageTest's 3G: 768 kbit/s up, 300 ms"),
    link("2g", 800.0, 0.256, true, "WebPageTest's 2G: 256 kbit/s up, 800 ms"),
];

const fn link(
    name: &'static str,
    round_trip_ms: f64,
    megabits_per_second: f64,
    has_tail: bool,
    source: &'static str,
) -> LinkPreset {
    LinkPreset { name, round_trip_ms, megabits_per_second, has_tail, source }
}

impl LinkPreset {
    /// Finds a link by its name.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Self> {
        LINKS.iter().find(|link| link.name == name)
    }

    /// Computes the time of a message of `bytes` on an open connection.
    #[must_use]
    pub fn message_ms(&self, bytes: u64) -> f64 {
        self.round_trip_ms + MS * wire_bits(bytes) / (self.megabits_per_second * 1e6)
    }

    /// Computes the share of the link taken by `per_second` messages of `bytes`.
    #[must_use]
    pub fn share(&self, bytes: u64, per_second: f64) -> f64 {
        wire_bits(bytes) * per_second / (self.megabits_per_second * 1e6)
    }
}

fn wire_bits(bytes: u64) -> f64 {
    let packets = bytes.div_ceil(PACKET_BYTES.0).max(1);
    (bytes + packets * PACKET_BYTES.1) as f64 * BITS
}
