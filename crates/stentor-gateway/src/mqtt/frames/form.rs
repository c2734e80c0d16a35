//! Rules of the standard that the library leaves to its user: flags, texts, names of topics, filters.
//!
//! Every text of a packet is checked by [`text`], even if it is not used.

use mqtt_protocol_core::mqtt::connection::RawPacket;
use mqtt_protocol_core::mqtt::packet::Property;
use mqtt_protocol_core::mqtt::prelude::PropertyValueAccess;
use mqtt_protocol_core::mqtt::result_code::MqttError;

use super::super::request::MqttVersion;
use super::CONNECT_FLAGS_AT_BYTE;

const CONNECT_RESERVED: u8 = 0x01;
const CONNECT_HAS_WILL: u8 = 0x04;
const CONNECT_WILL_QOS: u8 = 0x18;
/// The QoS and the retain flag of a will.
const CONNECT_OF_WILL: u8 = 0x38;
/// Set if there is a password.
pub(super) const CONNECT_HAS_PASSWORD: u8 = 0x40;
const CONNECT_HAS_NAME: u8 = 0x80;
const PUBLISH_QOS: u8 = 0x06;
const PUBLISH_DUP: u8 = 0x08;

type Formed<T> = Result<T, MqttError>;

fn demand(is_fulfilled: bool) -> Formed<()> {
    if is_fulfilled { Ok(()) } else { Err(MqttError::MalformedPacket) }
}

/// Checks the flags of a CONNECT (3.1.2.3 to 3.1.2.9 of both versions).
pub(super) fn connect_flags(packet: &RawPacket, version: MqttVersion) -> Formed<()> {
    let flags = *packet.data_as_slice().get(CONNECT_FLAGS_AT_BYTE).ok_or(MqttError::MalformedPacket)?;
    demand(flags & CONNECT_RESERVED == 0)?;
    demand(flags & CONNECT_WILL_QOS != CONNECT_WILL_QOS)?;
    demand(flags & CONNECT_HAS_WILL != 0 || flags & CONNECT_OF_WILL == 0)?;
    demand(version == MqttVersion::V5 || !is_nameless(flags))
}

/// Returns true if there is a password without a user name, which MQTT 5 allows and 3.1.1 does not.
pub(super) const fn is_nameless(flags: u8) -> bool {
    flags & (CONNECT_HAS_NAME | CONNECT_HAS_PASSWORD) == CONNECT_HAS_PASSWORD
}

/// Checks the flags of a PUBLISH: QoS 3 does not exist, and QoS 0 is never repeated (3.3.1 of both versions).
pub(super) fn publish_flags(flags: u8) -> Formed<()> {
    demand(flags & PUBLISH_QOS != PUBLISH_QOS)?;
    demand(flags & PUBLISH_QOS != 0 || flags & PUBLISH_DUP == 0)
}

/// Returns a text; fails if it contains U+0000, which no text of MQTT may have (1.5.3 of 3.1.1, 1.5.4 of MQTT 5).
pub(super) fn text(text: &str) -> Formed<&str> {
    demand(!text.contains('\0')).map(|()| text)
}

/// Returns a filter; fails if it is empty or its wildcards are misplaced (4.7.1 and 4.7.3 of both versions).
pub(super) fn filter(filter: &str) -> Formed<&str> {
    let levels = text(filter)?.split('/').count();
    let is_level = |(place, level): (usize, &str)| match level {
        "+" => true,
        "#" => place + 1 == levels,
        level => !level.contains(['+', '#']),
    };
    demand(!filter.is_empty() && filter.split('/').enumerate().all(is_level)).map(|()| filter)
}

/// Checks the texts of properties, and the rules for single properties.
pub(super) fn properties(properties: &[Property]) -> Formed<()> {
    for property in properties {
        if let Some((key, value)) = property.as_key_value() {
            text(key).and_then(|_| text(value))?;
        }
        if let Some(value) = property.as_str() {
            text(value)?;
        }
        if let Property::ResponseTopic(topic) = property
            && (topic.val().is_empty() || topic.val().contains(['+', '#']))
        {
            return Err(MqttError::ProtocolError);
        }
    }
    Ok(())
}

/// Fails if a property is present that a client may not send in this packet, or not in this combination.
pub(super) fn has_none(properties: &[Property], is_refused: impl Fn(&Property) -> bool) -> Formed<()> {
    if properties.iter().any(is_refused) { Err(MqttError::ProtocolError) } else { Ok(()) }
}
