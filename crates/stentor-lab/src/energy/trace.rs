//! Packets as a device's radio saw them: when, which way, how many bytes.

use super::EnergyError;

/// Which way a packet went, as the device sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// From the device.
    Up,
    /// To the device.
    Down,
}

/// One packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packet {
    /// When it was seen, in nanoseconds of the capture's clock.
    pub at_ns: i64,
    /// Which way it went.
    pub direction: Direction,
    /// Bytes of the IP packet.
    pub bytes: u32,
}

/// Packets in the order of time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Trace(Vec<Packet>);

impl Trace {
    /// Puts packets in the order of time; those of one instant keep theirs.
    #[must_use]
    pub fn new(mut packets: Vec<Packet>) -> Self {
        packets.sort_by_key(|packet| packet.at_ns);
        Self(packets)
    }

    /// Lists the packets.
    #[must_use]
    pub fn packets(&self) -> &[Packet] {
        &self.0
    }

    /// Gives the instants of the first and the last packet.
    #[must_use]
    pub fn span_ns(&self) -> Option<(i64, i64)> {
        Some((self.0.first()?.at_ns, self.0.last()?.at_ns))
    }

    /// Gives the bytes that went one way.
    #[must_use]
    pub fn bytes(&self, direction: Direction) -> u64 {
        let all = self.0.iter().filter(|packet| packet.direction == direction);
        all.map(|packet| u64::from(packet.bytes)).sum()
    }

    /// Cuts at an instant: what comes before it, and the rest.
    #[must_use]
    pub fn split_at(&self, at_ns: i64) -> (Self, Self) {
        let (before, after) = self.0.split_at(self.0.partition_point(|packet| packet.at_ns < at_ns));
        (Self(before.to_vec()), Self(after.to_vec()))
    }

    /// Refuses a trace without packets.
    pub fn not_empty(self) -> Result<Self, EnergyError> {
        if self.0.is_empty() {
            return Err(EnergyError::Missing(
                "no packet to or from the device: name its address with --device-address".into(),
            ));
        }
        Ok(self)
    }
}
