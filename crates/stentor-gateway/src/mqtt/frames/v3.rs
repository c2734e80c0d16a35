//! Packets of MQTT 3.1.1.

use mqtt_protocol_core::mqtt::connection::RawPacket;
use mqtt_protocol_core::mqtt::packet::MqttString;
use mqtt_protocol_core::mqtt::packet::v3_1_1::{Connect, Puback, Publish, Subscribe, Unsubscribe};
use mqtt_protocol_core::mqtt::result_code::MqttError;

use super::super::fault::MqttFault;
use super::super::request::{
    MqttConnect, MqttFilterOptions, MqttPublish, MqttRequest, MqttVersion, MqttWill, WantedLastStates,
};
use super::super::session_record::NEVER_SECONDS;
use super::{
    CONNECT, DISCONNECT, PINGREQ, PUBACK, PUBLISH, SUBSCRIBE, UNSUBSCRIBE, form, not_for_us, numbered, shared,
};

type ReadV3 = Result<MqttRequest, MqttError>;

/// Parses a complete packet.
pub(super) fn read(packet: &RawPacket) -> Result<ReadV3, MqttFault> {
    Ok(match packet.packet_type() {
        CONNECT => packet.parse_exact(Connect::parse).and_then(|packet| connect(&packet)),
        PUBLISH => publish(packet),
        PUBACK if packet.remaining_length() != 2 => Err(MqttError::MalformedPacket),
        PUBACK => packet.parse_exact(Puback::parse).map(|packet| MqttRequest::Puback(packet.packet_id())),
        SUBSCRIBE => packet.parse_exact(Subscribe::parse).and_then(|packet| subscribe(&packet)),
        UNSUBSCRIBE => packet.parse_exact(Unsubscribe::parse).and_then(|packet| unsubscribe(&packet)),
        PINGREQ => empty(packet, MqttRequest::Ping),
        DISCONNECT => {
            empty(packet, MqttRequest::Disconnect { with_will: false, session_expiry_seconds: None })
        }
        _ => return Err(not_for_us()),
    })
}

fn empty(packet: &RawPacket, request: MqttRequest) -> ReadV3 {
    if packet.remaining_length() == 0 { Ok(request) } else { Err(MqttError::MalformedPacket) }
}

fn connect(packet: &Connect) -> ReadV3 {
    // A password may be any bytes (3.1.3.5). Secrets are text, so a lossy conversion matches no device.
    let secret = packet.password().map(|secret| String::from_utf8_lossy(secret).into_owned().into());
    Ok(MqttRequest::Connect(Box::new(MqttConnect {
        version: MqttVersion::V3,
        client_id: form::text(packet.client_id())?.to_owned(),
        // One flag means both: a clean session starts empty and ends with its connection (3.1.2.4).
        is_clean: packet.clean_session(),
        session_expiry_seconds: if packet.clean_session() { 0 } else { NEVER_SECONDS },
        keep_alive_seconds: packet.keep_alive(),
        token: packet.user_name().map(form::text).transpose()?.map(str::to_owned),
        secret,
        will: will(packet)?,
        receive_max_count: u16::MAX,
        packet_max_bytes: u32::MAX,
        has_method: false,
    })))
}

fn will(packet: &Connect) -> Result<Option<MqttWill>, MqttError> {
    let Some((topic, payload)) = packet.will_topic().zip(packet.will_payload()) else { return Ok(None) };
    let publish = MqttPublish {
        topic: form::text(topic)?.to_owned(),
        payload: payload.to_vec(),
        // Not read: 3.1.1 has no way to announce a maximum, and the will is stored in any case.
        qos: 0,
        packet_id: 0,
        expiry_seconds: None,
        key: None,
    };
    Ok(Some(MqttWill { publish, delay_seconds: 0 }))
}

fn publish(packet: &RawPacket) -> ReadV3 {
    let (packet, _) = Publish::parse(packet.flags(), shared(packet)?)?;
    Ok(MqttRequest::Publish(Box::new(MqttPublish {
        topic: form::text(packet.topic_name())?.to_owned(),
        payload: packet.payload().as_slice().to_vec(),
        qos: packet.qos() as u8,
        packet_id: packet.packet_id().unwrap_or_default(),
        expiry_seconds: None,
        key: None,
    })))
}

fn subscribe(packet: &Subscribe) -> ReadV3 {
    let entry = |entry: &mqtt_protocol_core::mqtt::packet::SubEntry| {
        let wanted = MqttFilterOptions {
            qos: entry.sub_opts().qos() as u8,
            is_as_published: false,
            last_states: WantedLastStates::Always,
        };
        // The other bits are reserved here, and the library reads them as those of MQTT 5 (3.8.3.1).
        if *entry.sub_opts().to_buffer() != [wanted.qos] {
            return Err(MqttError::MalformedPacket);
        }
        Ok((form::filter(entry.topic_filter())?.to_owned(), wanted))
    };
    let filters: Result<_, MqttError> = packet.entries().iter().map(entry).collect();
    Ok(MqttRequest::Subscribe { packet_id: numbered(packet.packet_id())?, filters: filters? })
}

fn unsubscribe(packet: &Unsubscribe) -> ReadV3 {
    let filter = |filter: &MqttString| form::filter(filter.as_str()).map(str::to_owned);
    let filters: Result<_, MqttError> = packet.entries().iter().map(filter).collect();
    Ok(MqttRequest::Unsubscribe { packet_id: numbered(packet.packet_id())?, filters: filters? })
}
