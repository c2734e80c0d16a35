//! Captures in the classic pcap format: micro- and nanoseconds, either byte order, raw IP, Ethernet or Linux "cooked" (`tcpdump -i any`).

mod segment;

use super::trace::{Direction, PacketTrace, TracePacket};
use super::{EnergyError, SECOND_NS};
use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

pub use segment::TcpSegment;

/// Maximum size of a file: an hour of 2 Mbit/s.
pub const FILE_MAX_BYTES: u64 = 1 << 30;
/// Maximum captured size of a packet.
const KEPT_MAX_BYTES: usize = 256 * 1024;
const FILE_HEADER_BYTES: usize = 24;
const PACKET_HEADER_BYTES: usize = 16;
const ETHERNET_HEADER_BYTES: usize = 14;
const VLAN_TAG_BYTES: usize = 4;
/// LINKTYPE_LINUX_SLL and LINKTYPE_LINUX_SLL2 (tcpdump.org, "Link-Layer Header Types").
const COOKED_HEADER_BYTES: usize = 16;
const COOKED_2_HEADER_BYTES: usize = 20;

/// The contents of a capture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaptureContents {
    /// Its IP packets, in the order of the file.
    pub packets: Vec<CapturedPacket>,
    /// Frames of other protocols.
    pub others: u64,
    /// True if the file ends within a packet, for instance because the capture was killed.
    pub is_cut: bool,
}

/// One IP packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CapturedPacket {
    /// Time of capture, in nanoseconds since the file's epoch, usually 1970.
    pub at_ns: i64,
    /// The sender's address.
    pub source: IpAddr,
    /// The receiver's address.
    pub destination: IpAddr,
    /// Bytes of the IP packet.
    pub bytes: u32,
    /// Its segment, if it is a packet of TCP.
    pub segment: Option<TcpSegment>,
}

/// One direction of a connection: addresses and ports of the sender and the receiver.
type Way = (IpAddr, u16, IpAddr, u16);

impl CapturedPacket {
    /// Returns the direction of its connection, and true if it only acknowledges; `None` if it is no packet of TCP.
    fn way(&self) -> Option<(Way, bool)> {
        let segment = self.segment?;
        Some(((self.source, segment.source, self.destination, segment.destination), segment.is_bare))
    }
}

impl CaptureContents {
    /// Parses a file.
    pub fn read(file: &[u8]) -> Result<Self, EnergyError> {
        let (form, mut rest) = PcapFormat::read(file)?;
        let mut capture = Self { packets: Vec::new(), others: 0, is_cut: false };
        while !rest.is_empty() {
            let Some((header, behind)) = rest.split_at_checked(PACKET_HEADER_BYTES) else {
                capture.is_cut = true;
                break;
            };
            let number = |place: usize| (form.number)(four(&header[place * 4..]));
            let (seconds, fraction, captured_bytes, whole) =
                (number(0), number(1), number(2) as usize, number(3));
            if captured_bytes > KEPT_MAX_BYTES {
                let at = file.len() - rest.len();
                let problem =
                    format!("the packet at byte {at} claims {captured_bytes} bytes: the file is damaged");
                return Err(EnergyError::Capture(problem));
            }
            let Some((frame, behind)) = behind.split_at_checked(captured_bytes) else {
                capture.is_cut = true;
                break;
            };
            rest = behind;
            let at_ns = i64::from(seconds) * SECOND_NS + i64::from(fraction) * form.fraction_ns;
            match form.packet(frame, whole, at_ns) {
                Some(packet) => capture.packets.push(packet),
                None => capture.others += 1,
            }
        }
        Ok(capture)
    }

    /// Guesses the device: the sender of the first packet, because phones send requests and servers respond.
    #[must_use]
    pub fn first_sender(&self) -> Option<IpAddr> {
        self.packets.first().map(|packet| packet.source)
    }

    /// Returns the packets from and to a device; all others are dropped. A bare acknowledgement confirms the last packet before it that went
    /// the other way on its connection and was none itself.
    #[must_use]
    pub fn trace(&self, device: IpAddr) -> PacketTrace {
        let mut in_order: Vec<&CapturedPacket> = self.packets.iter().collect();
        in_order.sort_by_key(|packet| packet.at_ns);
        let mut carried: HashMap<Way, i64> = HashMap::new();
        let seen = in_order.into_iter().filter_map(|packet| {
            let direction = match (packet.source == device, packet.destination == device) {
                (true, _) => Direction::Up,
                (false, true) => Direction::Down,
                (false, false) => return None,
            };
            let confirms_ns = packet.way().and_then(|(way, is_bare)| {
                let (source, source_port, destination, destination_port) = way;
                if is_bare {
                    return carried.get(&(destination, destination_port, source, source_port)).copied();
                }
                carried.insert(way, packet.at_ns);
                None
            });
            Some(TracePacket { confirms_ns, ..TracePacket::new(packet.at_ns, direction, packet.bytes) })
        });
        PacketTrace::new(seen.collect())
    }
}

struct PcapFormat {
    /// Decodes a number of the file's headers in its byte order.
    number: fn([u8; 4]) -> u32,
    fraction_ns: i64,
    /// Returns the offset of the IP packet in a frame; `None` for another protocol.
    header: fn(&[u8]) -> Option<usize>,
}

impl PcapFormat {
    fn read(file: &[u8]) -> Result<(Self, &[u8]), EnergyError> {
        let wrong = |problem: String| Err(EnergyError::Capture(problem));
        let Some((header, rest)) = file.split_at_checked(FILE_HEADER_BYTES) else {
            return wrong(format!("{} bytes are no pcap file", file.len()));
        };
        let (number, fraction_ns): (fn([u8; 4]) -> u32, i64) = match header.first_chunk() {
            Some([0xd4, 0xc3, 0xb2, 0xa1]) => (u32::from_le_bytes, 1_000),
            Some([0xa1, 0xb2, 0xc3, 0xd4]) => (u32::from_be_bytes, 1_000),
            Some([0x4d, 0x3c, 0xb2, 0xa1]) => (u32::from_le_bytes, 1),
            Some([0xa1, 0xb2, 0x3c, 0x4d]) => (u32::from_be_bytes, 1),
            Some([0x0a, 0x0d, 0x0d, 0x0a]) => {
                return wrong("this is pcapng: turn it into pcap with `editcap -F nsecpcap IN OUT`".into());
            }
            _ => return wrong("this is no pcap file: it does not begin with pcap's number".into()),
        };
        // The upper bits state if frames end with a check sequence.
        let header: fn(&[u8]) -> Option<usize> = match number(four(&header[20..])) & 0xffff {
            12 | 101 => |_| Some(0),
            1 => ethernet_header,
            113 => |frame| cooked_header(frame, COOKED_HEADER_BYTES - 2, COOKED_HEADER_BYTES),
            276 => |frame| cooked_header(frame, 0, COOKED_2_HEADER_BYTES),
            other => {
                return wrong(format!(
                    "link type {other}: raw IP (101), Ethernet (1) and Linux cooked (113, 276) are understood; \
                     capture again with `tcpdump -i any`"
                ));
            }
        };
        Ok((Self { number, fraction_ns, header }, rest))
    }

    fn packet(&self, frame: &[u8], whole: u32, at_ns: i64) -> Option<CapturedPacket> {
        let header = (self.header)(frame)?;
        let ip = frame.get(header..)?;
        let on_wire = whole.checked_sub(u32::try_from(header).ok()?)?;
        let (source, destination, stated_bytes) = addresses(ip)?;
        // Ethernet pads short frames. A length of zero marks a packet that the network card segments later.
        let bytes = if stated_bytes == 0 { on_wire } else { stated_bytes.min(on_wire) };
        Some(CapturedPacket { at_ns, source, destination, bytes, segment: TcpSegment::read(ip, bytes) })
    }
}

/// Returns the first four bytes, or zeros if there are fewer. Callers ensure that there are enough.
fn four(bytes: &[u8]) -> [u8; 4] {
    bytes.first_chunk().copied().unwrap_or_default()
}

fn ethernet_header(frame: &[u8]) -> Option<usize> {
    let kind = |at: usize| Some([*frame.get(at)?, *frame.get(at + 1)?]);
    let (kind, bytes) = match kind(ETHERNET_HEADER_BYTES - 2)? {
        [0x81, 0x00] => {
            let bytes = ETHERNET_HEADER_BYTES + VLAN_TAG_BYTES;
            (kind(bytes - 2)?, bytes)
        }
        other => (other, ETHERNET_HEADER_BYTES),
    };
    matches!(kind, [0x08, 0x00] | [0x86, 0xdd]).then_some(bytes)
}

/// Returns the offset of the packet in a "cooked" frame of Linux with the protocol number at `kind`.
fn cooked_header(frame: &[u8], kind: usize, bytes: usize) -> Option<usize> {
    let kind = [*frame.get(kind)?, *frame.get(kind + 1)?];
    matches!(kind, [0x08, 0x00] | [0x86, 0xdd]).then_some(bytes)
}

/// Returns both addresses and the length in the packet's header.
fn addresses(ip: &[u8]) -> Option<(IpAddr, IpAddr, u32)> {
    let four = |at: usize| ip.get(at..at + 4)?.first_chunk::<4>().copied();
    let sixteen = |at: usize| ip.get(at..at + 16)?.first_chunk::<16>().copied();
    let length = |at: usize| Some(u32::from(u16::from_be_bytes([*ip.get(at)?, *ip.get(at + 1)?])));
    match ip.first()? >> 4 {
        4 => Some((Ipv4Addr::from(four(12)?).into(), Ipv4Addr::from(four(16)?).into(), length(2)?)),
        6 => {
            let payload = length(4)?;
            let stated_bytes = if payload == 0 { 0 } else { payload + 40 };
            Some((Ipv6Addr::from(sixteen(8)?).into(), Ipv6Addr::from(sixteen(24)?).into(), stated_bytes))
        }
        _ => None,
    }
}
