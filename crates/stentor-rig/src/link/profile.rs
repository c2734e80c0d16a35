//! Profiles of links, each with its source. Jitter and queues are ours: no source states them.

use super::{Link, Path, Rate};

const MICROSECOND_NS: u64 = 1_000;

/// A named link as its source gives it.
#[derive(Clone, Copy, Debug)]
pub struct Profile {
    /// The name that `--profile` takes.
    pub name: &'static str,
    /// Bits a second from the device to the server.
    pub up_bits_per_second: u64,
    /// Bits a second from the server to the device.
    pub down_bits_per_second: u64,
    /// The mean round trip, in microseconds.
    pub round_trip_us: u64,
    /// The varying part of each way's delay, evenly spread, in microseconds; the mean stays.
    pub jitter_us: u64,
    /// Packets that may wait in each direction.
    pub queue_packets: usize,
    /// The source of rate and round trip.
    pub source: &'static str,
}

/// Every profile, the fastest first.
pub const PROFILES: &[Profile] = &[
    Profile {
        name: "lan",
        up_bits_per_second: 100_000_000,
        down_bits_per_second: 100_000_000,
        round_trip_us: 500,
        jitter_us: 0,
        queue_packets: 1000,
        source: "100 Mbit/s as the wired side of albertengo-2020; the round trip of 0.5 ms is ours",
    },
    Profile {
        name: "wan",
        up_bits_per_second: 100_000_000,
        down_bits_per_second: 100_000_000,
        round_trip_us: 30_000,
        jitter_us: 2_000,
        queue_packets: 1000,
        source: "100 Mbit/s as the wired side of albertengo-2020; a round trip of 30 ms, as between cities of a continent, and jitter of 2 ms each way are ours",
    },
    Profile {
        name: "wifi",
        up_bits_per_second: 15_000_000,
        down_bits_per_second: 30_000_000,
        round_trip_us: 2_000,
        jitter_us: 1_000,
        queue_packets: 500,
        source: "Wi-Fi of Firefox's throttling profiles: 30/15 Mbit/s, 2 ms; jitter of 1 ms each way is ours",
    },
    Profile {
        name: "4g",
        up_bits_per_second: 12_000_000,
        down_bits_per_second: 12_000_000,
        round_trip_us: 70_000,
        jitter_us: 10_000,
        queue_packets: 500,
        source: "LTE of WebPageTest: 12/12 Mbit/s, 70 ms; jitter of 10 ms each way is ours",
    },
    Profile {
        name: "3g",
        up_bits_per_second: 768_000,
        down_bits_per_second: 1_600_000,
        round_trip_us: 300_000,
        jitter_us: 40_000,
        queue_packets: 100,
        source: "3G of WebPageTest: 1.6 Mbit/s and 768 kbit/s, 300 ms; jitter of 40 ms each way is ours",
    },
    Profile {
        name: "2g",
        up_bits_per_second: 256_000,
        down_bits_per_second: 280_000,
        round_trip_us: 800_000,
        jitter_us: 80_000,
        queue_packets: 50,
        source: "2G of WebPageTest: 280 and 256 kbit/s, 800 ms; jitter of 80 ms each way is ours",
    },
];

impl Profile {
    pub(super) fn link(&self) -> Link {
        Link {
            name: self.name.to_owned(),
            up: self.path(self.up_bits_per_second),
            down: self.path(self.down_bits_per_second),
            source: self.source.to_owned(),
        }
    }

    fn path(&self, bits_per_second: u64) -> Path {
        Path {
            delay_ns: (self.round_trip_us - self.jitter_us) / 2 * MICROSECOND_NS,
            jitter_ns: self.jitter_us * MICROSECOND_NS,
            rate: Rate::BitsPerSecond(bits_per_second),
            loss: 0.0,
            queue_packets: self.queue_packets,
        }
    }
}
