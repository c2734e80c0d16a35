//! Packets as seen by a device's radio: time, direction and size.

use super::meter::number;
use super::{EnergyError, nanoseconds};

/// The direction of a packet, as seen by the device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Direction {
    /// From the device.
    Up,
    /// To the device.
    Down,
}

impl Direction {
    /// Returns the other direction.
    #[must_use]
    pub const fn opposite(self) -> Self {
        match self {
            Self::Up => Self::Down,
            Self::Down => Self::Up,
        }
    }
}

/// One packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TracePacket {
    /// Time of capture, in nanoseconds of the capture's clock.
    pub at_ns: i64,
    /// Its direction.
    pub direction: Direction,
    /// Bytes of the IP packet.
    pub bytes: u32,
    /// Time of the packet that this one confirms, if it is a bare acknowledgement of TCP; `None` for any other packet, and where the source
    /// of the trace does not tell.
    pub confirms_ns: Option<i64>,
}

impl TracePacket {
    /// Makes a packet that is no bare acknowledgement.
    #[must_use]
    pub const fn new(at_ns: i64, direction: Direction, bytes: u32) -> Self {
        Self { at_ns, direction, bytes, confirms_ns: None }
    }

    fn parse(line: &str) -> Result<Self, String> {
        let cells: Vec<&str> = line.split([',', ';', '\t']).map(str::trim).collect();
        let &[time, direction, bytes] = cells.as_slice() else {
            return Err("time in seconds, up or down, and bytes are wanted".into());
        };
        let seconds = number(time).filter(|time| (0.0..4e9).contains(time));
        let seconds = seconds.ok_or_else(|| format!("{time:?} is no time in seconds"))?;
        let direction = match direction {
            "up" => Direction::Up,
            "down" => Direction::Down,
            other => return Err(format!("{other:?} is neither up nor down")),
        };
        let bytes = bytes.parse().map_err(|_| format!("{bytes:?} are no bytes"))?;
        Ok(Self::new(nanoseconds(seconds), direction, bytes))
    }
}

/// Packets in the order of time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PacketTrace(Vec<TracePacket>);

impl PacketTrace {
    /// Sorts packets by time; packets of one instant keep their order.
    #[must_use]
    pub fn new(mut packets: Vec<TracePacket>) -> Self {
        packets.sort_by_key(|packet| packet.at_ns);
        Self(packets)
    }

    /// Parses a list with one packet per line: time in seconds, `up` or `down`, bytes. A header and comments (`#`) are allowed.
    pub fn parse(text: &str) -> Result<Self, EnergyError> {
        let mut packets = Vec::new();
        for (place, line) in text.lines().enumerate() {
            let line = line.trim();
            let is_header =
                packets.is_empty() && line.starts_with(|letter: char| letter.is_ascii_alphabetic());
            if line.is_empty() || line.starts_with('#') || is_header {
                continue;
            }
            packets.push(
                TracePacket::parse(line).map_err(|problem| EnergyError::line(place as u64 + 1, problem))?,
            );
        }
        Ok(Self::new(packets))
    }

    /// Lists the packets.
    #[must_use]
    pub fn packets(&self) -> &[TracePacket] {
        &self.0
    }

    /// Returns the times of the first and the last packet.
    #[must_use]
    pub fn span_ns(&self) -> Option<(i64, i64)> {
        Some((self.0.first()?.at_ns, self.0.last()?.at_ns))
    }

    /// Returns the bytes in one direction.
    #[must_use]
    pub fn bytes(&self, direction: Direction) -> u64 {
        let all = self.0.iter().filter(|packet| packet.direction == direction);
        all.map(|packet| u64::from(packet.bytes)).sum()
    }

    /// Splits the trace at an instant into the packets before it and the rest.
    #[must_use]
    pub fn split_at(&self, at_ns: i64) -> (Self, Self) {
        let (before, after) = self.0.split_at(self.0.partition_point(|packet| packet.at_ns < at_ns));
        (Self(before.to_vec()), Self(after.to_vec()))
    }

    /// Fails if the trace has no packets.
    pub fn not_empty(self) -> Result<Self, EnergyError> {
        if self.0.is_empty() {
            return Err(EnergyError::Missing(
                "no packet to or from the device: name its address with --device-address".into(),
            ));
        }
        Ok(self)
    }
}
