//! The headers of a packet, parsed from untrusted bytes.

use etherparse::{NetSlice, SlicedPacket, TransportSlice};
use std::net::{IpAddr, SocketAddr};

/// A packet of TCP or UDP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TransportPacket<'a> {
    pub(super) from: SocketAddr,
    pub(super) to: SocketAddr,
    pub(super) transport: TransportHeader,
    /// The payload of the packet.
    pub(super) payload: &'a [u8],
}

/// The transport header of the packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TransportHeader {
    Udp,
    Tcp { sequence: u32, is_syn: bool, is_ack: bool, is_end: bool },
}

/// The reason why there is no segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoSegment {
    /// Another protocol.
    Other,
    /// No packet at all.
    NotUnderstood,
}

/// Reads a packet from its IP header on.
pub(super) fn read(bytes: &[u8]) -> Result<TransportPacket<'_>, NoSegment> {
    let packet = SlicedPacket::from_ip(bytes).map_err(|_| NoSegment::NotUnderstood)?;
    let (from, to) = addresses(packet.net.as_ref().ok_or(NoSegment::NotUnderstood)?)?;
    let (ports, transport, payload) = match &packet.transport {
        Some(TransportSlice::Udp(udp)) => {
            ((udp.source_port(), udp.destination_port()), TransportHeader::Udp, udp.payload())
        }
        Some(TransportSlice::Tcp(tcp)) => {
            let transport = TransportHeader::Tcp {
                sequence: tcp.sequence_number(),
                is_syn: tcp.syn(),
                is_ack: tcp.ack(),
                is_end: tcp.fin() || tcp.rst(),
            };
            ((tcp.source_port(), tcp.destination_port()), transport, tcp.payload())
        }
        _ => return Err(NoSegment::Other),
    };
    let (from, to) = (SocketAddr::new(from, ports.0), SocketAddr::new(to, ports.1));
    Ok(TransportPacket { from, to, transport, payload })
}

fn addresses(net: &NetSlice<'_>) -> Result<(IpAddr, IpAddr), NoSegment> {
    match net {
        NetSlice::Ipv4(ip) => Ok((ip.header().source_addr().into(), ip.header().destination_addr().into())),
        NetSlice::Ipv6(ip) => Ok((ip.header().source_addr().into(), ip.header().destination_addr().into())),
        NetSlice::Arp(_) => Err(NoSegment::Other),
    }
}
