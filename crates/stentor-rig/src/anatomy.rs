//! The bytes of an exchange by purpose, and the overhead figures of albertengo-2020.

mod connection;
mod content;
mod segment;
mod stream;

use crate::packet::Packet;
use crate::side::Side;
use connection::ConnectionTable;
use segment::{TransportHeader, TransportPacket};
use serde::Serialize;
use std::ops::AddAssign;

/// The bytes of one direction, by purpose. All but framing, TLS and payload count whole packets from the IP header on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PurposeBytes {
    /// The number of packets.
    pub packets: u64,
    /// Packets that carry something of the application for the first time.
    pub data_packets: u64,
    /// Packets that open a connection: SYN, SYN-ACK and the acknowledgement of it.
    pub handshake_bytes: u64,
    /// Packets that close it: FIN, RST, and bare acknowledgements after the first of them.
    pub close_bytes: u64,
    /// Packets that only acknowledge.
    pub bare_ack_bytes: u64,
    /// IP and TCP or UDP headers of data packets.
    pub header_bytes: u64,
    /// Bytes that the application sends around its payload: start lines and headers of HTTP/1, sizes of chunks, headers of TLS records.
    pub framing_bytes: u64,
    /// TLS records other than application data. The encrypted part of a TLS 1.3 handshake looks like application data and is in
    /// `payload_bytes`.
    pub tls_bytes: u64,
    /// Bodies of HTTP/1 messages; of other protocols everything that the application sends.
    pub payload_bytes: u64,
    /// Packets that carry nothing new, and the repeated bytes of data packets.
    pub repeated_bytes: u64,
    /// Packets that are neither TCP nor UDP, or cannot be understood.
    pub other_bytes: u64,
}

impl PurposeBytes {
    /// All bytes from the IP header on.
    #[must_use]
    pub const fn wire_bytes(&self) -> u64 {
        let control = self.handshake_bytes + self.close_bytes + self.bare_ack_bytes;
        control + self.data_bytes() + self.repeated_bytes + self.other_bytes
    }

    /// Data packets, each byte once.
    #[must_use]
    pub const fn data_bytes(&self) -> u64 {
        self.header_bytes + self.framing_bytes + self.tls_bytes + self.payload_bytes
    }
}

impl AddAssign for PurposeBytes {
    fn add_assign(&mut self, other: Self) {
        self.packets += other.packets;
        self.data_packets += other.data_packets;
        self.handshake_bytes += other.handshake_bytes;
        self.close_bytes += other.close_bytes;
        self.bare_ack_bytes += other.bare_ack_bytes;
        self.header_bytes += other.header_bytes;
        self.framing_bytes += other.framing_bytes;
        self.tls_bytes += other.tls_bytes;
        self.payload_bytes += other.payload_bytes;
        self.repeated_bytes += other.repeated_bytes;
        self.other_bytes += other.other_bytes;
    }
}

/// A request and its response: the packets of one side, and those of the other until the first sends again. Opening a connection counts for
/// its first exchange, closing it for its last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Exchange {
    /// The index of the connection, from 0.
    pub connection: usize,
    /// The time of its first packet, in nanoseconds of `CLOCK_MONOTONIC`.
    pub first_ns: u64,
    /// The time of its last packet.
    pub last_ns: u64,
    /// Bytes sent by the device.
    pub up: PurposeBytes,
    /// Bytes sent by the server.
    pub down: PurposeBytes,
}

impl Exchange {
    /// Returns the overhead of this exchange, given the payload of each direction in bytes.
    #[must_use]
    pub fn overhead(&self, payload_up_bytes: u64, payload_down_bytes: u64) -> Overhead {
        Overhead::of(&self.up, &self.down, payload_up_bytes, payload_down_bytes)
    }

    pub(crate) fn part(&mut self, from: Side) -> &mut PurposeBytes {
        match from {
            Side::Device => &mut self.up,
            Side::Server => &mut self.down,
        }
    }
}

/// Overhead as albertengo-2020 counts it, from data packets only, and everything that was on the wire beside it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Overhead {
    /// Network data usage, 2p + x + y: data packets of both directions.
    pub ndu_bytes: u64,
    /// Protocol overhead, (x + y) / 2: the mean per direction of the bytes in data packets beside the payload.
    pub poh_bytes: f64,
    /// Its share of such a direction, overhead / (overhead + payload).
    pub poh_share: f64,
    /// Every byte of both directions: handshake, acknowledgements, closing and repetitions included.
    pub full_bytes: u64,
}

impl Overhead {
    /// Works it out from the bytes of both directions and the payload that they carried.
    #[must_use]
    pub fn of(
        up: &PurposeBytes,
        down: &PurposeBytes,
        payload_up_bytes: u64,
        payload_down_bytes: u64,
    ) -> Self {
        let ndu_bytes = up.data_bytes() + down.data_bytes();
        let payload = payload_up_bytes + payload_down_bytes;
        let overhead = ndu_bytes.saturating_sub(payload);
        Self {
            ndu_bytes,
            poh_bytes: overhead as f64 / 2.0,
            poh_share: overhead as f64 / (overhead + payload).max(1) as f64,
            full_bytes: up.wire_bytes() + down.wire_bytes(),
        }
    }
}

/// Every exchange, and all bytes together.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Anatomy {
    /// In the order of their first packets.
    pub exchanges: Vec<Exchange>,
    /// All that the device sent.
    pub up: PurposeBytes,
    /// All that the server sent.
    pub down: PurposeBytes,
    /// Packets that could not be understood; their bytes are in `other_bytes`.
    pub not_understood: u64,
}

/// Returns true if a packet carries data of TCP.
pub(crate) fn has_data(bytes: &[u8]) -> bool {
    let is_tcp = |packet: &TransportPacket<'_>| matches!(packet.transport, TransportHeader::Tcp { .. });
    segment::read(bytes).is_ok_and(|packet| is_tcp(&packet) && !packet.payload.is_empty())
}

impl Anatomy {
    /// Analyses the packets seen at one end, in the order of their times.
    pub fn of<'a>(packets: impl Iterator<Item = &'a Packet>) -> Self {
        let mut anatomy = Self::default();
        let mut connections = ConnectionTable::default();
        for packet in packets {
            match segment::read(&packet.bytes) {
                Ok(segment) => connections.take(packet, &segment),
                Err(segment::NoSegment::Other) => anatomy.count_other(packet),
                Err(segment::NoSegment::NotUnderstood) => {
                    anatomy.not_understood += 1;
                    anatomy.count_other(packet);
                }
            }
        }
        anatomy.exchanges = connections.into_exchanges();
        for exchange in &anatomy.exchanges {
            anatomy.up += exchange.up;
            anatomy.down += exchange.down;
        }
        anatomy
    }

    fn count_other(&mut self, packet: &Packet) {
        let other_bytes = packet.bytes.len() as u64;
        let part = if packet.from == Side::Device { &mut self.up } else { &mut self.down };
        *part += PurposeBytes { packets: 1, other_bytes, ..PurposeBytes::default() };
    }
}

#[cfg(test)]
mod tests;
