//! What is written to a device, in its version.

use mqtt_protocol_core::mqtt::packet::{
    AssignedClientIdentifier, ContentType, MaximumPacketSize, MaximumQos, MessageExpiryInterval,
    PayloadFormat, PayloadFormatIndicator, Property, Qos, ReasonString, ReceiveMaximum, ServerKeepAlive,
    SharedSubscriptionAvailable, SubscriptionIdentifierAvailable, UserProperty, v3_1_1, v5_0,
};
use mqtt_protocol_core::mqtt::result_code::{
    ConnectReasonCode, ConnectReturnCode, MqttError, PubackReasonCode, SubackReasonCode, SubackReturnCode,
    UnsubackReasonCode,
};

use super::content::{MqttDelivery, MqttPayloadKind};
use super::fault::MqttFault;
use super::request::MqttVersion;

/// Messages of QoS 1 that a device may have on their way to us; each is kept before the next is read.
const RECEIVE_MAX_COUNT: u16 = 100;

/// What a login that succeeded is told.
pub(super) struct MqttAdmission<'a> {
    pub(super) is_resumed: bool,
    pub(super) assigned: Option<&'a str>,
    pub(super) keep_alive_seconds: Option<u16>,
    /// Largest packet that the device may send.
    pub(super) packet_max_bytes: u32,
}

/// Gathers what is written next.
pub(super) struct MqttWriter {
    version: MqttVersion,
    /// The largest packet that the client takes (3.1.2-24 and 3.1.2-25 of MQTT 5).
    packet_max_bytes: u32,
    bytes: Vec<u8>,
}

/// A PUBLISH as it is written, but for its packet identifier.
#[derive(Debug)]
pub(super) struct EncodedDelivery {
    bytes: Vec<u8>,
    /// Where the packet identifier is, with QoS 1.
    packet_id_at: Option<usize>,
}

impl EncodedDelivery {
    /// Writes a delivery; `None` when that cannot be.
    pub(super) fn encode(version: MqttVersion, delivery: &MqttDelivery, is_numbered: bool) -> Option<Self> {
        // Any number does: its place is written over for each device.
        let placeholder = is_numbered.then_some(1);
        let written = match version {
            MqttVersion::V3 => publish_v3(delivery, placeholder),
            MqttVersion::V5 => publish_v5(delivery, placeholder),
        };
        match written {
            Ok(bytes) => {
                // Behind the fixed header, whose length ends with the first byte below 128, and the topic with its length.
                let topic_at = 2 + bytes.iter().skip(1).take_while(|byte| **byte >= 0x80).count();
                let packet_id_at = is_numbered.then(|| topic_at + 2 + delivery.topic.len());
                Some(Self { bytes, packet_id_at })
            }
            Err(error) => {
                tracing::error!(%error, "a message could not be written as MQTT");
                None
            }
        }
    }
}

/// The bit of a PUBLISH that says that it is kept, or was.
const RETAIN: u8 = 1;

/// Takes a packet that was built, or notes why it could not be; says whether it is small enough for the device.
macro_rules! put {
    ($writer:expr, $packet:expr) => {
        match $packet.build() {
            Ok(packet) => $writer.put(&packet.to_continuous_buffer()),
            Err(error) => {
                tracing::error!(?error, "a packet of MQTT could not be written");
                false
            }
        }
    };
}

impl MqttWriter {
    pub(super) const fn new() -> Self {
        Self { version: MqttVersion::V3, packet_max_bytes: u32::MAX, bytes: Vec::new() }
    }

    pub(super) const fn set_version(&mut self, version: MqttVersion) {
        self.version = version;
    }

    /// Sets how large a packet the device takes.
    pub(super) const fn set_packet_max_bytes(&mut self, packet_max_bytes: u32) {
        self.packet_max_bytes = packet_max_bytes;
    }

    /// Gathers a packet; leaves it out, and returns false, where it is larger than the device takes.
    fn put(&mut self, packet: &[u8]) -> bool {
        let fits = packet.len() <= self.packet_max_bytes as usize;
        if fits {
            self.bytes.extend_from_slice(packet);
        }
        fits
    }

    /// Returns how many bytes wait to be written.
    pub(super) const fn waiting_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Takes what waits out; a connection that has nothing to write has no buffer.
    pub(super) fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.bytes)
    }

    /// Writes the CONNACK by which a device is let in.
    pub(super) fn admit(&mut self, admission: &MqttAdmission<'_>) {
        let code = ConnectReturnCode::Accepted;
        match self.version {
            MqttVersion::V3 => {
                let packet = v3_1_1::Connack::builder().session_present(admission.is_resumed);
                put!(self, packet.return_code(code));
            }
            MqttVersion::V5 => match admission_properties(admission) {
                Ok(properties) => {
                    let packet = v5_0::Connack::builder().session_present(admission.is_resumed);
                    put!(self, packet.reason_code(ConnectReasonCode::Success).props(properties));
                }
                Err(error) => tracing::error!(%error, "an admission of MQTT could not be written"),
            },
        }
    }

    /// Writes the CONNACK that refuses a device, with the reason.
    pub(super) fn refuse(&mut self, code: ConnectReasonCode, text: &str) {
        match self.version {
            MqttVersion::V3 => {
                let packet = v3_1_1::Connack::builder().session_present(false);
                put!(self, packet.return_code(return_code(code)));
            }
            MqttVersion::V5 => {
                let packet = || v5_0::Connack::builder().session_present(false).reason_code(code);
                // The reason in words is only for whoever takes so much (3.2.2-19).
                let _fits = put!(self, packet().props(reason(text))) || put!(self, packet());
            }
        }
    }

    /// Writes the CONNACK that refuses a version which we do not speak (3.1.2.2 of MQTT 3.1.1).
    pub(super) fn refuse_version(&mut self) {
        let packet = v3_1_1::Connack::builder().session_present(false);
        put!(self, packet.return_code(ConnectReturnCode::UnacceptableProtocolVersion));
    }

    /// Returns the version in which it writes.
    pub(super) const fn version(&self) -> MqttVersion {
        self.version
    }

    /// Writes a delivery, with this packet identifier where it has one, and the retain flag where it is a last state. Returns false, and writes nothing, when it is larger than the
    /// device takes.
    pub(super) fn publish(
        &mut self,
        delivery: &EncodedDelivery,
        packet_id: Option<u16>,
        is_retained: bool,
    ) -> bool {
        let begin = self.bytes.len();
        if !self.put(&delivery.bytes) {
            return false;
        }
        if is_retained {
            self.bytes[begin] |= RETAIN;
        }
        if let Some((at, packet_id)) = delivery.packet_id_at.zip(packet_id) {
            self.bytes[begin + at..begin + at + 2].copy_from_slice(&packet_id.to_be_bytes());
        }
        true
    }

    /// Confirms a message of the device; MQTT 3.1.1 can only say that it is kept.
    pub(super) fn confirm(&mut self, packet_id: u16, code: PubackReasonCode) {
        match self.version {
            MqttVersion::V3 => {
                put!(self, v3_1_1::Puback::builder().packet_id(packet_id));
            }
            // A PUBACK that names no reason says success, and is shorter (3.4.2.1 of MQTT 5).
            MqttVersion::V5 if code == PubackReasonCode::Success => {
                put!(self, v5_0::Puback::builder().packet_id(packet_id));
            }
            MqttVersion::V5 => {
                put!(self, v5_0::Puback::builder().packet_id(packet_id).reason_code(code));
            }
        }
    }

    /// Answers filters, one by one.
    pub(super) fn subscribed(&mut self, packet_id: u16, codes: Vec<SubackReasonCode>) {
        match self.version {
            MqttVersion::V3 => {
                let codes = codes.into_iter().map(suback_return_code).collect();
                put!(self, v3_1_1::Suback::builder().packet_id(packet_id).return_codes(codes));
            }
            MqttVersion::V5 => {
                put!(self, v5_0::Suback::builder().packet_id(packet_id).reason_codes(codes));
            }
        }
    }

    /// Answers filters that were taken back, one by one.
    pub(super) fn unsubscribed(&mut self, packet_id: u16, codes: Vec<UnsubackReasonCode>) {
        match self.version {
            MqttVersion::V3 => {
                put!(self, v3_1_1::Unsuback::builder().packet_id(packet_id));
            }
            MqttVersion::V5 => {
                put!(self, v5_0::Unsuback::builder().packet_id(packet_id).reason_codes(codes));
            }
        }
    }

    /// Answers that we are there.
    pub(super) fn pong(&mut self) {
        match self.version {
            MqttVersion::V3 => {
                put!(self, v3_1_1::Pingresp::builder());
            }
            MqttVersion::V5 => {
                put!(self, v5_0::Pingresp::builder());
            }
        }
    }

    /// Writes the DISCONNECT with the reason; MQTT 3.1.1 has no words for it.
    pub(super) fn leave(&mut self, fault: MqttFault) {
        if self.version == MqttVersion::V5 {
            let packet = || v5_0::Disconnect::builder().reason_code(fault.code);
            // 3.14.2-3, as above.
            let _fits = put!(self, packet().props(reason(fault.text))) || put!(self, packet());
        }
    }
}

fn reason(text: &str) -> Vec<Property> {
    ReasonString::new(text).map(Property::from).into_iter().collect()
}

fn admission_properties(admission: &MqttAdmission<'_>) -> Result<Vec<Property>, MqttError> {
    let mut properties = vec![
        MaximumQos::new(1)?.into(),
        ReceiveMaximum::new(RECEIVE_MAX_COUNT)?.into(),
        MaximumPacketSize::new(admission.packet_max_bytes)?.into(),
        SubscriptionIdentifierAvailable::new(0)?.into(),
        SharedSubscriptionAvailable::new(0)?.into(),
    ];
    if let Some(assigned) = admission.assigned {
        properties.push(AssignedClientIdentifier::new(assigned)?.into());
    }
    if let Some(seconds) = admission.keep_alive_seconds {
        properties.push(ServerKeepAlive::new(seconds)?.into());
    }
    Ok(properties)
}

const fn qos_of(packet_id: Option<u16>) -> Qos {
    if packet_id.is_some() { Qos::AtLeastOnce } else { Qos::AtMostOnce }
}

fn publish_v3(delivery: &MqttDelivery, packet_id: Option<u16>) -> Result<Vec<u8>, MqttError> {
    let packet = v3_1_1::Publish::builder().topic_name(delivery.topic.as_str())?.qos(qos_of(packet_id));
    let packet = packet.packet_id(packet_id).payload(delivery.payload.as_slice());
    Ok(packet.build()?.to_continuous_buffer())
}

fn publish_v5(delivery: &MqttDelivery, packet_id: Option<u16>) -> Result<Vec<u8>, MqttError> {
    let packet = v5_0::Publish::builder().topic_name(delivery.topic.as_str())?.qos(qos_of(packet_id));
    let packet = packet.packet_id(packet_id).payload(delivery.payload.as_slice());
    Ok(packet.props(delivery_properties(delivery)?).build()?.to_continuous_buffer())
}

fn delivery_properties(delivery: &MqttDelivery) -> Result<Vec<Property>, MqttError> {
    let mut properties = match delivery.kind {
        MqttPayloadKind::Json => vec![
            PayloadFormatIndicator::new(PayloadFormat::String)?.into(),
            ContentType::new("application/json")?.into(),
        ],
        MqttPayloadKind::Raw => vec![ContentType::new("application/octet-stream")?.into()],
        MqttPayloadKind::Sealed(by) => vec![
            ContentType::new("application/octet-stream")?.into(),
            UserProperty::new("encoding", "aes128gcm")?.into(),
            UserProperty::new("sealed_by", by.as_str())?.into(),
        ],
    };
    if let Some(seconds) = delivery.expiry_seconds {
        properties.push(MessageExpiryInterval::new(seconds)?.into());
    }
    if let Some(id) = &delivery.message_id {
        properties.push(UserProperty::new("message_id", id.as_str())?.into());
    }
    Ok(properties)
}

const fn return_code(code: ConnectReasonCode) -> ConnectReturnCode {
    match code {
        ConnectReasonCode::BadUserNameOrPassword => ConnectReturnCode::BadUserNameOrPassword,
        ConnectReasonCode::ClientIdentifierNotValid => ConnectReturnCode::IdentifierRejected,
        ConnectReasonCode::ServerUnavailable => ConnectReturnCode::ServerUnavailable,
        _ => ConnectReturnCode::NotAuthorized,
    }
}

const fn suback_return_code(code: SubackReasonCode) -> SubackReturnCode {
    match code {
        SubackReasonCode::GrantedQos0 => SubackReturnCode::SuccessMaximumQos0,
        SubackReasonCode::GrantedQos1 => SubackReturnCode::SuccessMaximumQos1,
        _ => SubackReturnCode::Failure,
    }
}

#[cfg(test)]
mod tests;
