//! Packets of MQTT 5.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use mqtt_protocol_core::mqtt::connection::RawPacket;
use mqtt_protocol_core::mqtt::packet::v5_0::{Connect, Disconnect, Puback, Publish, Subscribe, Unsubscribe};
use mqtt_protocol_core::mqtt::packet::{MqttString, Property, RetainHandling, SubEntry};
use mqtt_protocol_core::mqtt::result_code::{DisconnectReasonCode, MqttError};

use super::super::fault::MqttFault;
use super::super::request::{
    MqttConnect, MqttFilterOptions, MqttPublish, MqttRequest, MqttVersion, MqttWill, WantedLastStates,
};
use super::{
    CONNECT, CONNECT_FLAGS_AT_BYTE, DISCONNECT, PINGREQ, PUBACK, PUBLISH, SUBSCRIBE, UNSUBSCRIBE, form,
    not_for_us, numbered, shared,
};

type ReadV5 = Result<MqttRequest, MqttError>;

/// The user property with the device's id of its message.
const KEY_PROPERTY: &str = "message_id";

/// Parses a complete packet.
pub(super) fn read(packet: &RawPacket) -> Result<ReadV5, MqttFault> {
    Ok(match packet.packet_type() {
        CONNECT => read_connect(packet),
        PUBLISH => return publish(packet),
        PUBACK => packet.parse_exact(Puback::parse).and_then(|packet| {
            form::properties(packet.props().as_deref().unwrap_or_default())?;
            Ok(MqttRequest::Puback(packet.packet_id()))
        }),
        SUBSCRIBE => match packet.parse_exact(Subscribe::parse) {
            Ok(packet) => return subscribe(&packet).map(Ok),
            Err(error) => Err(error),
        },
        UNSUBSCRIBE => packet.parse_exact(Unsubscribe::parse).and_then(|packet| unsubscribe(&packet)),
        PINGREQ if packet.remaining_length() == 0 => Ok(MqttRequest::Ping),
        PINGREQ => Err(MqttError::MalformedPacket),
        DISCONNECT => packet.parse_exact(Disconnect::parse).and_then(|packet| disconnect(&packet)),
        _ => return Err(not_for_us()),
    })
}

fn read_connect(packet: &RawPacket) -> ReadV5 {
    let data = packet.data_as_slice();
    match data.get(CONNECT_FLAGS_AT_BYTE).is_some_and(|flags| form::is_nameless(*flags)) {
        true => read_nameless(data.to_vec()),
        false => packet.parse_exact(Connect::parse).and_then(|packet| connect(&packet)),
    }
}

/// Parses a CONNECT with a password and no user name, which the library rejects (3.1.2.9 of MQTT 5). The password, which is the last field,
/// is dropped. Such a login is rejected later, like one without both.
fn read_nameless(mut data: Vec<u8>) -> ReadV5 {
    if let Some(flags) = data.get_mut(CONNECT_FLAGS_AT_BYTE) {
        *flags &= !form::CONNECT_HAS_PASSWORD;
    }
    let (packet, read_bytes) = Connect::parse(&data)?;
    let password = data.get(read_bytes..).and_then(|rest| rest.split_first_chunk::<2>());
    match password {
        Some((length, password)) if password.len() == usize::from(u16::from_be_bytes(*length)) => {
            connect(&packet)
        }
        _ => Err(MqttError::MalformedPacket),
    }
}

fn connect(packet: &Connect) -> ReadV5 {
    form::properties(packet.props())?;
    let has_method = packet.props().iter().any(|one| matches!(one, Property::AuthenticationMethod(_)));
    // 3.1.2.11.10 of MQTT 5.
    form::has_none(packet.props(), |one| !has_method && matches!(one, Property::AuthenticationData(_)))?;
    // A password may be any bytes (3.1.3.6). Secrets are text, so a lossy conversion matches no device.
    let secret = packet.password().map(|secret| String::from_utf8_lossy(secret).into_owned().into());
    let mut connect = MqttConnect {
        version: MqttVersion::V5,
        client_id: form::text(packet.client_id())?.to_owned(),
        is_clean: packet.clean_start(),
        session_expiry_seconds: 0,
        keep_alive_seconds: packet.keep_alive(),
        token: packet.user_name().map(form::text).transpose()?.map(str::to_owned),
        secret,
        will: will(packet)?,
        receive_max_count: u16::MAX,
        packet_max_bytes: u32::MAX,
        has_method,
    };
    for property in packet.props() {
        match property {
            Property::SessionExpiryInterval(seconds) => connect.session_expiry_seconds = seconds.val(),
            Property::ReceiveMaximum(count) => connect.receive_max_count = count.val().max(1),
            Property::MaximumPacketSize(bytes) => connect.packet_max_bytes = bytes.val(),
            _ => {}
        }
    }
    Ok(MqttRequest::Connect(Box::new(connect)))
}

fn will(packet: &Connect) -> Result<Option<MqttWill>, MqttError> {
    let Some((topic, payload)) = packet.will_topic().zip(packet.will_payload()) else { return Ok(None) };
    form::properties(packet.will_props())?;
    let (topic, payload) = (form::text(topic)?.to_owned(), payload.to_vec());
    let publish = with_properties(packet.will_props(), topic, payload, packet.will_qos() as u8, 0);
    let delay = packet.will_props().iter().find_map(|property| match property {
        Property::WillDelayInterval(seconds) => Some(seconds.val()),
        _ => None,
    });
    Ok(Some(MqttWill { publish, delay_seconds: delay.unwrap_or_default() }))
}

fn publish(packet: &RawPacket) -> Result<ReadV5, MqttFault> {
    let parsed = shared(packet).and_then(|bytes| Publish::parse(packet.flags(), bytes));
    let sent_bytes = packet.data_as_slice().len();
    let packet = match parsed.and_then(|(packet, _)| check_publish(&packet, sent_bytes).map(|()| packet)) {
        Ok(packet) => packet,
        Err(error) => return Ok(Err(error)),
    };
    if packet.props().iter().any(is_alias) {
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

fn check_publish(packet: &Publish, sent_bytes: usize) -> Result<(), MqttError> {
    // The length of the properties is present even if there are none (3.3.2.3.1).
    let head_bytes = 2 + packet.topic_name().len() + packet.packet_id().map_or(0, |_| 2);
    if sent_bytes <= head_bytes {
        return Err(MqttError::MalformedPacket);
    }
    form::text(packet.topic_name())?;
    form::properties(packet.props())?;
    // Only a server sends subscription identifiers in a PUBLISH (3.3.4-6 of MQTT 5).
    form::has_none(packet.props(), |one| matches!(one, Property::SubscriptionIdentifier(_)))?;
    // An empty topic requires an alias (3.3.2.1).
    let is_named = !packet.topic_name().is_empty() || packet.props().iter().any(is_alias);
    if is_named { Ok(()) } else { Err(MqttError::ProtocolError) }
}

/// Returns true for a topic alias; this server allows none.
const fn is_alias(property: &Property) -> bool {
    matches!(property, Property::TopicAlias(_))
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
            // Encoded, because a key allows only certain letters.
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
    let read = || {
        form::properties(packet.props())?;
        let filters: Result<_, MqttError> = packet.entries().iter().map(filter).collect();
        Ok(MqttRequest::Subscribe { packet_id: numbered(packet.packet_id())?, filters: filters? })
    };
    read().map_err(MqttFault::unreadable)
}

fn filter(entry: &SubEntry) -> Result<(String, MqttFilterOptions), MqttError> {
    let options = entry.sub_opts();
    let filter = form::filter(entry.topic_filter())?;
    // A shared subscription cannot exclude its own messages (3.8.3-4 of MQTT 5).
    if options.nl() && filter.starts_with("$share/") {
        return Err(MqttError::ProtocolError);
    }
    let last_states = match options.rh() {
        RetainHandling::SendRetained => WantedLastStates::Always,
        RetainHandling::SendRetainedIfNotExists => WantedLastStates::WhenNew,
        RetainHandling::DoNotSendRetained => WantedLastStates::Never,
    };
    let options = MqttFilterOptions { qos: options.qos() as u8, is_as_published: options.rap(), last_states };
    Ok((filter.to_owned(), options))
}

fn unsubscribe(packet: &Unsubscribe) -> ReadV5 {
    form::properties(packet.props())?;
    let filter = |filter: &MqttString| form::filter(filter.as_str()).map(str::to_owned);
    let filters: Result<_, MqttError> = packet.entries().iter().map(filter).collect();
    Ok(MqttRequest::Unsubscribe { packet_id: numbered(packet.packet_id())?, filters: filters? })
}

fn disconnect(packet: &Disconnect) -> ReadV5 {
    form::properties(packet.props().as_deref().unwrap_or_default())?;
    let with_will =
        packet.reason_code().is_some_and(|code| code != DisconnectReasonCode::NormalDisconnection);
    let session_expiry_seconds = packet.props().iter().flatten().find_map(|property| match property {
        Property::SessionExpiryInterval(seconds) => Some(seconds.val()),
        _ => None,
    });
    Ok(MqttRequest::Disconnect { with_will, session_expiry_seconds })
}
