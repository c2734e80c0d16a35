//! Packets of MQTT 5.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use mqtt_protocol_core::mqtt::connection::RawPacket;
use mqtt_protocol_core::mqtt::packet::Property;
use mqtt_protocol_core::mqtt::packet::v5_0::{Connect, Disconnect, Puback, Publish, Subscribe, Unsubscribe};
use mqtt_protocol_core::mqtt::result_code::{DisconnectReasonCode, MqttError};

use super::super::fault::MqttFault;
use super::super::request::{MqttConnect, MqttPublish, MqttRequest, MqttVersion, MqttWill};
use super::{
    CONNECT, DISCONNECT, PINGREQ, PUBACK, PUBLISH, SUBSCRIBE, UNSUBSCRIBE, not_for_us, numbered, shared,
};

type ReadV5 = Result<MqttRequest, MqttError>;

/// The user property by which a device names its message.
const KEY_PROPERTY: &str = "message_id";

/// Reads a packet whole.
pub(super) fn read(packet: &RawPacket) -> Result<ReadV5, MqttFault> {
    Ok(match packet.packet_type() {
        CONNECT => packet.parse_exact(Connect::parse).map(|packet| connect(&packet)),
        PUBLISH => return publish(packet),
        PUBACK => packet.parse_exact(Puback::parse).map(|packet| MqttRequest::Puback(packet.packet_id())),
        SUBSCRIBE => match packet.parse_exact(Subscribe::parse) {
            Ok(packet) => return subscribe(&packet).map(Ok),
            Err(error) => Err(error),
        },
        UNSUBSCRIBE => packet.parse_exact(Unsubscribe::parse).and_then(|packet| unsubscribe(&packet)),
        PINGREQ if packet.remaining_length() == 0 => Ok(MqttRequest::Ping),
        PINGREQ => Err(MqttError::MalformedPacket),
        DISCONNECT => packet.parse_exact(Disconnect::parse).map(|packet| disconnect(&packet)),
        _ => return Err(not_for_us()),
    })
}

fn connect(packet: &Connect) -> MqttRequest {
    // A password may be any bytes (3.1.3.6); a secret is text, so that others fit no device.
    let secret = packet.password().map(|secret| String::from_utf8_lossy(secret).into_owned().into());
    let mut connect = MqttConnect {
        version: MqttVersion::V5,
        client_id: packet.client_id().to_owned(),
        is_clean: packet.clean_start(),
        session_expiry_seconds: 0,
        keep_alive_seconds: packet.keep_alive(),
        token: packet.user_name().map(str::to_owned),
        secret,
        will: will(packet),
        receive_max_count: u16::MAX,
        packet_max_bytes: u32::MAX,
        has_method: false,
    };
    for property in packet.props() {
        match property {
            Property::SessionExpiryInterval(seconds) => connect.session_expiry_seconds = seconds.val(),
            Property::ReceiveMaximum(count) => connect.receive_max_count = count.val().max(1),
            Property::MaximumPacketSize(bytes) => connect.packet_max_bytes = bytes.val(),
            Property::AuthenticationMethod(_) => connect.has_method = true,
            _ => {}
        }
    }
    MqttRequest::Connect(Box::new(connect))
}

fn will(packet: &Connect) -> Option<MqttWill> {
    let (topic, payload) = (packet.will_topic()?.to_owned(), packet.will_payload()?.to_vec());
    let publish = with_properties(packet.will_props(), topic, payload, packet.will_qos() as u8, 0);
    let delay = packet.will_props().iter().find_map(|property| match property {
        Property::WillDelayInterval(seconds) => Some(seconds.val()),
        _ => None,
    });
    Some(MqttWill { publish, delay_seconds: delay.unwrap_or_default() })
}

fn publish(packet: &RawPacket) -> Result<ReadV5, MqttFault> {
    let parsed = shared(packet).and_then(|bytes| Publish::parse(packet.flags(), bytes));
    let packet = match parsed {
        Ok((packet, _)) => packet,
        Err(error) => return Ok(Err(error)),
    };
    // We allow no aliases: an empty topic could only be one.
    let is_alias = |property: &Property| matches!(property, Property::TopicAlias(_));
    if packet.topic_name().is_empty() || packet.props().iter().any(is_alias) {
        let code = DisconnectReasonCode::TopicAliasInvalid;
        return Err(MqttFault::new(code, "topic aliases are not allowed to the server"));
    }
    let publish = with_properties(
        packet.props(),
        packet.topic_name().to_owned(),
        packet.payload().as_slice().to_vec(),
        packet.qos() as u8,
        packet.packet_id().unwrap_or_default(),
    );
    Ok(Ok(MqttRequest::Publish(Box::new(publish))))
}

fn with_properties(
    properties: &[Property],
    topic: String,
    payload: Vec<u8>,
    qos: u8,
    packet_id: u16,
) -> MqttPublish {
    let (mut expiry_seconds, mut named, mut correlated) = (None, None, None);
    for property in properties {
        match property {
            Property::MessageExpiryInterval(seconds) => expiry_seconds = Some(seconds.val()),
            Property::UserProperty(pair) if pair.key() == KEY_PROPERTY => named = Some(pair.val().to_owned()),
            // Any bytes become letters that a key may have.
            Property::CorrelationData(data) => correlated = Some(URL_SAFE_NO_PAD.encode(data.val())),
            _ => {}
        }
    }
    let correlated = correlated.filter(|key| !key.is_empty());
    MqttPublish { topic, payload, qos, packet_id, expiry_seconds, key: named.or(correlated) }
}

fn subscribe(packet: &Subscribe) -> Result<MqttRequest, MqttFault> {
    if packet.props().iter().any(|property| matches!(property, Property::SubscriptionIdentifier(_))) {
        let code = DisconnectReasonCode::SubscriptionIdentifiersNotSupported;
        return Err(MqttFault::new(code, "subscription identifiers are not supported"));
    }
    let entry = |entry: &mqtt_protocol_core::mqtt::packet::SubEntry| {
        (entry.topic_filter().to_owned(), entry.sub_opts().qos() as u8)
    };
    let packet_id = numbered(packet.packet_id()).map_err(MqttFault::unreadable)?;
    Ok(MqttRequest::Subscribe { packet_id, filters: packet.entries().iter().map(entry).collect() })
}

fn unsubscribe(packet: &Unsubscribe) -> ReadV5 {
    let filters = packet.entries().iter().map(|filter| filter.as_str().to_owned()).collect();
    Ok(MqttRequest::Unsubscribe { packet_id: numbered(packet.packet_id())?, filters })
}

fn disconnect(packet: &Disconnect) -> MqttRequest {
    let with_will =
        packet.reason_code().is_some_and(|code| code != DisconnectReasonCode::NormalDisconnection);
    let session_expiry_seconds = packet.props().iter().flatten().find_map(|property| match property {
        Property::SessionExpiryInterval(seconds) => Some(seconds.val()),
        _ => None,
    });
    MqttRequest::Disconnect { with_will, session_expiry_seconds }
}
