//! Connections, and the exchanges on them.

use super::segment::{TransportHeader, TransportPacket};
use super::stream::ByteStream;
use super::{Exchange, PurposeBytes};
use crate::packet::Packet;
use crate::side::Side;
use std::collections::HashMap;
use std::net::SocketAddr;

/// Two addresses, and true for TCP; the same for both directions.
type ConnectionKey = (SocketAddr, SocketAddr, bool);

/// Every connection that was seen.
#[derive(Debug, Default)]
pub(super) struct ConnectionTable {
    all: Vec<TracedConnection>,
    /// The index of the latest connection between two addresses.
    latest: HashMap<ConnectionKey, usize>,
}

/// The state of one connection.
#[derive(Debug)]
struct TracedConnection {
    /// The side that sent its first packet.
    opener: Side,
    /// By the side that sends.
    streams: [ByteStream; 2],
    exchanges: Vec<Exchange>,
    is_opened: bool,
    is_closing: bool,
    /// True if the other side has answered in the current exchange.
    is_answered: bool,
}

impl ConnectionTable {
    /// Takes a packet.
    pub(super) fn take(&mut self, packet: &Packet, segment: &TransportPacket<'_>) {
        let is_tcp = matches!(segment.transport, TransportHeader::Tcp { .. });
        let key = (segment.from.min(segment.to), segment.from.max(segment.to), is_tcp);
        let known = self.latest.get(&key).copied().filter(|at| !self.all[*at].is_followed_by(segment));
        let at = known.unwrap_or_else(|| {
            self.all.push(TracedConnection::new(self.all.len(), packet));
            self.latest.insert(key, self.all.len() - 1);
            self.all.len() - 1
        });
        self.all[at].take(packet, segment);
    }

    /// Returns all exchanges in the order of their beginnings.
    pub(super) fn into_exchanges(self) -> Vec<Exchange> {
        let mut exchanges: Vec<Exchange> =
            self.all.into_iter().flat_map(TracedConnection::into_exchanges).collect();
        exchanges.sort_by_key(|exchange| (exchange.first_ns, exchange.connection));
        exchanges
    }
}

impl TracedConnection {
    fn new(number: usize, packet: &Packet) -> Self {
        let exchange = Exchange { connection: number, first_ns: packet.time_ns, ..Exchange::default() };
        Self {
            opener: packet.from,
            streams: Default::default(),
            exchanges: vec![exchange],
            is_opened: false,
            is_closing: false,
            is_answered: false,
        }
    }

    /// Returns true if a packet begins a new connection between the same two addresses.
    fn is_followed_by(&self, segment: &TransportPacket<'_>) -> bool {
        let is_first = matches!(segment.transport, TransportHeader::Tcp { is_syn: true, is_ack: false, .. });
        is_first && (self.is_opened || self.is_closing)
    }

    fn take(&mut self, packet: &Packet, segment: &TransportPacket<'_>) {
        let from = packet.from;
        if !segment.payload.is_empty() {
            self.turn(packet);
        }
        let length = packet.bytes.len() as u64;
        let headers = length - segment.payload.len() as u64;
        let part = match segment.transport {
            TransportHeader::Udp => PurposeBytes {
                data_packets: 1,
                header_bytes: headers,
                payload_bytes: segment.payload.len() as u64,
                ..PurposeBytes::default()
            },
            TransportHeader::Tcp { sequence, is_syn: false, .. } if !segment.payload.is_empty() => {
                self.data(from, sequence, segment.payload, headers)
            }
            TransportHeader::Tcp { sequence, is_syn, is_end, .. } => {
                self.control(from, sequence, is_syn, is_end, length)
            }
        };
        self.is_closing |= matches!(segment.transport, TransportHeader::Tcp { is_end: true, .. });
        if let Some(exchange) = self.exchanges.last_mut() {
            exchange.last_ns = packet.time_ns;
            *exchange.part(from) += PurposeBytes { packets: 1, ..part };
        }
    }

    /// Begins a new exchange when the opener sends again after a response.
    fn turn(&mut self, packet: &Packet) {
        if packet.from != self.opener {
            self.is_answered = true;
        } else if self.is_answered {
            self.is_answered = false;
            let connection = self.exchanges[0].connection;
            let first_ns = packet.time_ns;
            self.exchanges.push(Exchange { connection, first_ns, ..Exchange::default() });
        }
    }

    fn data(&mut self, from: Side, sequence: u32, payload: &[u8], headers: u64) -> PurposeBytes {
        self.is_opened = true;
        let taken = self.streams[from.index()].take(sequence, payload);
        if taken.fresh == 0 {
            return PurposeBytes { repeated_bytes: headers + taken.repeated, ..PurposeBytes::default() };
        }
        PurposeBytes {
            data_packets: 1,
            header_bytes: headers,
            framing_bytes: taken.kinds.framing,
            tls_bytes: taken.kinds.tls,
            payload_bytes: taken.kinds.payload,
            repeated_bytes: taken.repeated,
            ..PurposeBytes::default()
        }
    }

    fn control(
        &mut self,
        from: Side,
        sequence: u32,
        is_syn: bool,
        is_end: bool,
        length: u64,
    ) -> PurposeBytes {
        if is_syn {
            // A SYN counts as one byte.
            self.streams[from.index()].begin(sequence.wrapping_add(1));
            return PurposeBytes { handshake_bytes: length, ..PurposeBytes::default() };
        }
        if is_end || self.is_closing {
            return PurposeBytes { close_bytes: length, ..PurposeBytes::default() };
        }
        if !self.is_opened && from == self.opener {
            self.is_opened = true;
            return PurposeBytes { handshake_bytes: length, ..PurposeBytes::default() };
        }
        PurposeBytes { bare_ack_bytes: length, ..PurposeBytes::default() }
    }

    fn into_exchanges(mut self) -> Vec<Exchange> {
        for side in Side::BOTH {
            let unread = self.streams[side.index()].unread_bytes();
            if let Some(exchange) = self.exchanges.last_mut() {
                exchange.part(side).payload_bytes += unread;
            }
        }
        self.exchanges
    }
}
