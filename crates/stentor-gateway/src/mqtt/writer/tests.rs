//! The output, byte by byte as in the standards.

use mqtt_protocol_core::mqtt::result_code::DisconnectReasonCode;

use super::*;

fn written(version: MqttVersion, write: impl FnOnce(&mut MqttWriter)) -> Vec<u8> {
    let mut writer = MqttWriter::new();
    writer.set_version(version);
    write(&mut writer);
    writer.take()
}

/// Writes the delivery of these tests, of QoS 1 with a packet identifier.
fn publish(writer: &mut MqttWriter, packet_id: Option<u16>, packet_max_bytes: u32) -> bool {
    let encoded = EncodedDelivery::encode(writer.version(), &delivery(), packet_id.is_some());
    writer.set_packet_max_bytes(packet_max_bytes);
    writer.publish(&encoded.expect("it can be written"), packet_id, false)
}

fn delivery() -> MqttDelivery {
    MqttDelivery {
        topic: "t".to_owned(),
        payload: b"{}".to_vec(),
        kind: MqttPayloadKind::Raw,
        expiry_seconds: Some(60),
        message_id: Some("m".to_owned()),
    }
}

#[test]
fn an_admission_says_what_is_and_what_is_not() {
    let admission = MqttAdmission {
        is_resumed: true,
        assigned: Some("a"),
        keep_alive_seconds: Some(1_800),
        packet_max_bytes: 65_536,
    };
    assert_eq!(written(MqttVersion::V3, |writer| writer.admit(&admission)), b"\x20\x02\x01\0");
    let golden = b"\x20\x18\x01\0\x15\x24\x01\x21\0\x64\x27\0\x01\0\0\x29\0\x2A\0\x12\0\x01a\x13\x07\x08";
    assert_eq!(written(MqttVersion::V5, |writer| writer.admit(&admission)), golden);
}

#[test]
fn a_delivery_is_a_publish_with_its_properties() {
    let numbered = |writer: &mut MqttWriter| assert!(publish(writer, Some(7), 1_000));
    assert_eq!(written(MqttVersion::V3, numbered), b"\x32\x07\0\x01t\0\x07{}");
    let plain = |writer: &mut MqttWriter| assert!(publish(writer, None, 1_000));
    assert_eq!(written(MqttVersion::V3, plain), b"\x30\x05\0\x01t{}");
    let mut golden = b"\x32\x38\0\x01t\0\x07\x30\x03\0\x18application/octet-stream".to_vec();
    golden.extend(b"\x02\0\0\0\x3C\x26\0\x0Amessage_id\0\x01m{}");
    // The lengths of the packet and of its properties.
    let properties = golden.len() - 8 - 2;
    (golden[1], golden[7]) = ((golden.len() - 2) as u8, properties as u8);
    assert_eq!(written(MqttVersion::V5, numbered), golden);
}

#[test]
fn one_encoded_delivery_is_written_with_the_packet_identifier_of_each_device() {
    for (version, payload_bytes) in
        [(MqttVersion::V3, 2), (MqttVersion::V5, 2), (MqttVersion::V3, 300), (MqttVersion::V5, 20_000)]
    {
        let delivery = MqttDelivery { payload: vec![b'x'; payload_bytes], ..delivery() };
        let encoded = EncodedDelivery::encode(version, &delivery, true).expect("it can be written");
        let own = |packet_id| match version {
            MqttVersion::V3 => publish_v3(&delivery, Some(packet_id)),
            MqttVersion::V5 => publish_v5(&delivery, Some(packet_id)),
        };
        for packet_id in [1, 0x1234, u16::MAX] {
            let shared = written(version, |writer| assert!(writer.publish(&encoded, Some(packet_id), false)));
            assert_eq!(shared, own(packet_id).expect("it can be written"), "{version:?}, {payload_bytes}");
        }
    }
}

#[test]
fn a_delivery_that_is_too_large_is_not_written() {
    let length = written(MqttVersion::V5, |writer| assert!(publish(writer, None, u32::MAX))).len();
    let limit = u32::try_from(length).expect("fits");
    let exact = |writer: &mut MqttWriter| assert!(publish(writer, None, limit));
    assert_eq!(written(MqttVersion::V5, exact).len(), length);
    let beyond = |writer: &mut MqttWriter| assert!(!publish(writer, None, limit - 1));
    assert!(written(MqttVersion::V5, beyond).is_empty());
}

#[test]
fn only_mqtt_5_has_words_of_farewell() {
    let fault = MqttFault::new(DisconnectReasonCode::SessionTakenOver, "why");
    let golden = b"\xE0\x08\x8E\x06\x1F\0\x03why";
    assert_eq!(written(MqttVersion::V5, |writer| writer.leave(fault)), golden);
    assert!(written(MqttVersion::V3, |writer| writer.leave(fault)).is_empty());
}

#[test]
fn acknowledgements_say_what_their_version_can() {
    let refuse = |writer: &mut MqttWriter| writer.confirm(7, PubackReasonCode::QuotaExceeded);
    assert_eq!(written(MqttVersion::V5, refuse)[..5], *b"\x40\x03\0\x07\x97");
    let keep = |writer: &mut MqttWriter| writer.confirm(7, PubackReasonCode::Success);
    assert_eq!(written(MqttVersion::V5, keep), b"\x40\x02\0\x07");
    assert_eq!(written(MqttVersion::V3, keep), b"\x40\x02\0\x07");
    let codes = vec![SubackReasonCode::GrantedQos1, SubackReasonCode::QuotaExceeded];
    let answer = |writer: &mut MqttWriter| writer.subscribed(7, codes.clone());
    assert_eq!(written(MqttVersion::V3, answer), b"\x90\x04\0\x07\x01\x80");
    assert_eq!(written(MqttVersion::V5, answer), b"\x90\x05\0\x07\0\x01\x97");
}

#[test]
fn a_packet_that_is_too_large_is_left_out_and_one_with_a_reason_first_comes_without() {
    let fault = MqttFault::new(DisconnectReasonCode::SessionTakenOver, "why");
    let small = |packet_max_bytes| {
        written(MqttVersion::V5, |writer| {
            writer.set_packet_max_bytes(packet_max_bytes);
            writer.leave(fault);
            writer.refuse(ConnectReasonCode::BadUserNameOrPassword, "why");
            writer.subscribed(7, vec![SubackReasonCode::GrantedQos1; 3]);
        })
    };
    assert_eq!(small(10)[..2], *b"\xE0\x08", "with its reason");
    assert_eq!(small(7), b"\xE0\x01\x8E\x20\x03\0\x86\0");
    assert!(small(2).is_empty());
}

#[test]
fn a_last_state_has_the_retain_flag() {
    let encoded = EncodedDelivery::encode(MqttVersion::V3, &delivery(), false).expect("it can be written");
    let retained = |writer: &mut MqttWriter| assert!(writer.publish(&encoded, None, true));
    assert_eq!(written(MqttVersion::V3, retained), b"\x31\x05\0\x01t{}");
}
