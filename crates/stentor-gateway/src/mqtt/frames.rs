//! Parsing of packets into requests.

mod form;
mod v3;
mod v5;

use mqtt_protocol_core::mqtt::common::Cursor;
use mqtt_protocol_core::mqtt::connection::{PacketBuildResult, PacketBuilder, PacketData, RawPacket};
use mqtt_protocol_core::mqtt::result_code::{DisconnectReasonCode, MqttError};

use super::fault::MqttFault;
use super::request::{MqttRequest, MqttVersion};

const CONNECT: u8 = 1;
const PUBLISH: u8 = 3;
const PUBACK: u8 = 4;
/// First bytes of a PUBACK with only a packet identifier: most packets of devices are of this kind.
const SHORT_PUBACK: [u8; 2] = [PUBACK << 4, 2];
const PUBREL: u8 = 6;
const SUBSCRIBE: u8 = 8;
const UNSUBSCRIBE: u8 = 10;
const PINGREQ: u8 = 12;
const DISCONNECT: u8 = 14;
/// Offset of the version in a CONNECT with the protocol name `MQTT`.
const VERSION_AT_BYTE: usize = 6;
/// Offset of its flags.
const CONNECT_FLAGS_AT_BYTE: usize = 7;

/// An incremental parser of requests. It holds at most one packet and the bytes received after it.
pub(super) struct MqttReader {
    /// Holds a partial packet; `None` between two packets.
    builder: Option<Box<PacketBuilder>>,
    packet_max_bytes: u32,
    version: Option<MqttVersion>,
    input: Vec<u8>,
    read_bytes: usize,
}

impl MqttReader {
    /// Starts before the first packet, with its size limit.
    pub(super) fn new(packet_max_bytes: u32) -> Self {
        Self { builder: None, packet_max_bytes, version: None, input: Vec::new(), read_bytes: 0 }
    }

    /// Sets the size limit from the next packet on.
    pub(super) const fn set_packet_max_bytes(&mut self, packet_max_bytes: u32) {
        self.packet_max_bytes = packet_max_bytes;
    }

    /// Returns the version; `None` before a CONNECT.
    pub(super) const fn version(&self) -> Option<MqttVersion> {
        self.version
    }

    /// Adds received bytes.
    pub(super) fn take(&mut self, bytes: &[u8]) {
        self.input.extend_from_slice(bytes);
    }

    /// Returns the next request; `None` if more bytes are needed.
    pub(super) fn next(&mut self) -> Result<Option<MqttRequest>, MqttFault> {
        while let Some(rest) = self.input.get(self.read_bytes..).filter(|rest| !rest.is_empty()) {
            // These bytes are unambiguous only between two packets, and after the login.
            let is_between = self.version.is_some() && self.builder.is_none();
            if let Some(packet_id) = is_between.then(|| short_puback(rest)).flatten() {
                self.read_bytes += SHORT_PUBACK.len() + size_of_val(&packet_id);
                return Ok(Some(MqttRequest::Puback(packet_id)));
            }
            let mut cursor = Cursor::new(rest);
            let new = || Box::new(PacketBuilder::with_maximum_packet_size(self.packet_max_bytes));
            let built = self.builder.get_or_insert_with(new).feed(&mut cursor);
            self.read_bytes += usize::try_from(cursor.position()).unwrap_or(usize::MAX);
            match built {
                PacketBuildResult::Complete(packet) => {
                    self.builder = None;
                    return self.read(&packet).map(Some);
                }
                PacketBuildResult::Error(error) => return Err(MqttFault::unreadable(error)),
                PacketBuildResult::Incomplete => {}
            }
        }
        // An idle connection has no buffer.
        (self.input, self.read_bytes) = (Vec::new(), 0);
        Ok(None)
    }

    fn read(&mut self, packet: &RawPacket) -> Result<MqttRequest, MqttFault> {
        check_flags(packet)?;
        let is_first = self.version.is_none();
        if is_first != (packet.packet_type() == CONNECT) {
            return Err(MqttFault::protocol("a CONNECT comes first, and once"));
        }
        let version = match self.version {
            Some(version) => version,
            None => {
                let version = *self.version.insert(version_of(packet)?);
                form::connect_flags(packet, version).map_err(MqttFault::unreadable)?;
                version
            }
        };
        let read = match version {
            MqttVersion::V5 => v5::read(packet)?,
            MqttVersion::V3 => v3::read(packet)?,
        };
        read.map_err(MqttFault::unreadable)
    }
}

/// Returns the packet identifier of a PUBACK without other content; `None` for any other packet, which the library parses.
fn short_puback(bytes: &[u8]) -> Option<u16> {
    let (number, _) = bytes.strip_prefix(&SHORT_PUBACK)?.split_first_chunk::<2>()?;
    Some(u16::from_be_bytes(*number)).filter(|number| *number > 0)
}

/// Checks the reserved bits of the first byte, which the library leaves to its user (2.2.2 of MQTT 3.1.1, 2.1.3 of MQTT 5).
fn check_flags(packet: &RawPacket) -> Result<(), MqttFault> {
    let expected = match packet.packet_type() {
        PUBLISH => return form::publish_flags(packet.flags()).map_err(MqttFault::unreadable),
        PUBREL | SUBSCRIBE | UNSUBSCRIBE => 2,
        _ => 0,
    };
    match packet.flags() == expected {
        true => Ok(()),
        false => Err(MqttFault::unreadable(MqttError::MalformedPacket)),
    }
}

fn version_of(packet: &RawPacket) -> Result<MqttVersion, MqttFault> {
    match packet.data_as_slice().get(VERSION_AT_BYTE) {
        Some(4) => Ok(MqttVersion::V3),
        Some(5) => Ok(MqttVersion::V5),
        _ => Err(MqttFault::new(
            DisconnectReasonCode::ImplementationSpecificError,
            "MQTT 3.1.1 and 5 are spoken here",
        )),
    }
}

/// Returns the bytes of a PUBLISH, which the library shares instead of copying.
fn shared(packet: &RawPacket) -> Result<mqtt_protocol_core::mqtt::Arc<[u8]>, MqttError> {
    match &packet.data {
        PacketData::Publish(bytes) => Ok(bytes.clone()),
        PacketData::Normal(_) => Err(MqttError::MalformedPacket),
    }
}

/// Returns a packet identifier. Fails if it is zero.
fn numbered(packet_id: u16) -> Result<u16, MqttError> {
    if packet_id == 0 { Err(MqttError::ProtocolError) } else { Ok(packet_id) }
}

const fn not_for_us() -> MqttFault {
    MqttFault::protocol("such a packet is not a client's, or belongs to QoS 2")
}

#[cfg(test)]
mod tests;
