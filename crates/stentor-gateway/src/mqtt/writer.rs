//! Writing of packets in the device's version.

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

/// Most unacknowledged messages of QoS 1 from a device; each is stored before the next is read.
const RECEIVE_MAX_COUNT: u16 = 100;

/// The contents of the reply to a successful login.
pub(super) struct MqttAdmission<'a> {
    pub(super) is_resumed: bool,
    pub(super) assigned: Option<&'a str>,
    pub(super) keep_alive_seconds: Option<u16>,
    /// Largest packet of the device.
    pub(super) packet_max_bytes: u32,
}

/// The output of a connection.
pub(super) struct MqttWriter {
    version: MqttVersion,
    /// The largest packet that the client accepts (3.1.2-24 and 3.1.2-25 of MQTT 5).
    packet_max_bytes: u32,
    bytes: Vec<u8>,
}

/// An encoded PUBLISH, without its packet identifier.
#[derive(Debug)]
pub(super) struct EncodedDelivery {
    bytes: Vec<u8>,
    /// Offset of the packet identifier, with QoS 1.
    packet_id_at: Option<usize>,
}

impl EncodedDelivery {
    /// Encodes a delivery; `None` on failure.
    pub(super) fn encode(version: MqttVersion, delivery: &MqttDelivery, is_numbered: bool) -> Option<Self> {
        // A placeholder, which is overwritten for each device.
        let placeholder = is_numbered.then_some(1);
        let written = match version {
            MqttVersion::V3 => publish_v3(delivery, placeholder),
            MqttVersion::V5 => publish_v5(delivery, placeholder),
        };
        match written {
            Ok(bytes) => {
                // After the fixed header, whose length ends with the first byte below 128, and the topic with its length.
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

/// The retain bit of a PUBLISH.
const RETAIN: u8 = 1;

/// Gathers a built packet, or logs its failure; evaluates to false if it failed or exceeds the device's limit.
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

    /// Sets the device's limit for packets.
    pub(super) const fn set_packet_max_bytes(&mut self, packet_max_bytes: u32) {
        self.packet_max_bytes = packet_max_bytes;
    }

    /// Gathers a packet; returns false, and drops it, if it exceeds the device's limit.
    fn put(&mut self, packet: &[u8]) -> bool {
        let fits = packet.len() <= self.packet_max_bytes as usize;
        if fits {
            self.bytes.extend_from_slice(packet);
        }
        fits
    }

    /// Returns the number of bytes to be written.
    pub(super) const fn waiting_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Takes the output, so that a connection without output has no buffer.
    pub(super) fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.bytes)
    }

    /// Writes the CONNACK of a successful login.
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

    /// Writes the CONNACK of a rejected login, with the reason.
    pub(super) fn refuse(&mut self, code: ConnectReasonCode, text: &str) {
        match self.version {
            MqttVersion::V3 => {
                let packet = v3_1_1::Connack::builder().session_present(false);
                put!(self, packet.return_code(return_code(code)));
            }
            MqttVersion::V5 => {
                let packet = || v5_0::Connack::builder().session_present(false).reason_code(code);
                // The reason string is sent only if it fits the device's limit (3.2.2-19).
                let _fits = put!(self, packet().props(reason(text))) || put!(self, packet());
            }
        }
    }

    /// Writes the CONNACK for an unsupported version (3.1.2.2 of MQTT 3.1.1).
    pub(super) fn refuse_version(&mut self) {
        let packet = v3_1_1::Connack::builder().session_present(false);
        put!(self, packet.return_code(ConnectReturnCode::UnacceptableProtocolVersion));
    }

    /// Returns the version of the output.
    pub(super) const fn version(&self) -> MqttVersion {
        self.version
    }

    /// Writes a delivery, with its packet identifier for QoS 1, and the retain flag for a last state. Returns false, and writes nothing, if
    /// it exceeds the device's limit.
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

    /// Acknowledges a message of the device; MQTT 3.1.1 can only report success.
    pub(super) fn confirm(&mut self, packet_id: u16, code: PubackReasonCode) {
        match self.version {
            MqttVersion::V3 => {
                put!(self, v3_1_1::Puback::builder().packet_id(packet_id));
            }
            // A PUBACK without a reason code means success, and is shorter (3.4.2.1 of MQTT 5).
            MqttVersion::V5 if code == PubackReasonCode::Success => {
                put!(self, v5_0::Puback::builder().packet_id(packet_id));
            }
            MqttVersion::V5 => {
                put!(self, v5_0::Puback::builder().packet_id(packet_id).reason_code(code));
            }
        }
    }

    /// Answers a SUBSCRIBE, one code per filter.
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

    /// Answers an UNSUBSCRIBE, one code per filter.
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

    /// Answers a ping.
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

    /// Writes the DISCONNECT with the reason; MQTT 3.1.1 has none from the server.
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
