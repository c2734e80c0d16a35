//! The part of TCP that assigns a bare acknowledgement to the packet that it confirms.

/// Protocol number of TCP (IANA, "Assigned Internet Protocol Numbers").
const TCP: u8 = 6;
const IPV6_HEADER_BYTES: usize = 40;
/// SYN, FIN and RST among the flags.
const OPENS_OR_ENDS: u8 = 0x07;

/// A packet of TCP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TcpSegment {
    /// The sender's port.
    pub source: u16,
    /// The receiver's port.
    pub destination: u16,
    /// True if it only acknowledges: it has no payload, and neither opens nor ends a connection.
    pub is_bare: bool,
}

impl TcpSegment {
    /// Reads the segment of an IP packet of `bytes`; `None` for other protocols, later fragments, and headers that are cut off.
    pub(super) fn read(ip: &[u8], bytes: u32) -> Option<Self> {
        let at = start(ip)?;
        let header = ip.get(at..at + 14)?;
        let port = |place: usize| u16::from_be_bytes([header[place], header[place + 1]]);
        let headers_bytes = at + usize::from(header[12] >> 4) * 4;
        let is_bare = bytes as usize == headers_bytes && header[13] & OPENS_OR_ENDS == 0;
        Some(Self { source: port(0), destination: port(2), is_bare })
    }
}

/// Returns the offset of the header of TCP.
fn start(ip: &[u8]) -> Option<usize> {
    match ip.first()? >> 4 {
        4 => {
            let is_first = u16::from_be_bytes([*ip.get(6)?, *ip.get(7)?]) & 0x1fff == 0;
            (*ip.get(9)? == TCP && is_first).then(|| usize::from(ip[0] & 0x0f) * 4)
        }
        6 => (*ip.get(6)? == TCP).then_some(IPV6_HEADER_BYTES),
        _ => None,
    }
}
