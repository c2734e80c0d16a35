//! Packets in the bytes of the standards.

use proptest::prelude::*;

use super::*;
use crate::mqtt::fuzzing;

/// A login of MQTT 3.1.1: `k` with keep alive 60, user `u` and password `p`.
const CONNECT_V3: &[u8] = b"\x10\x13\0\x04MQTT\x04\xC2\0\x3C\0\x01k\0\x01u\0\x01p";
/// The same of MQTT 5, with a receive maximum of 2 and a packet size of 64 at most.
const CONNECT_V5: &[u8] =
    b"\x10\x1C\0\x04MQTT\x05\xC2\0\x3C\x08\x21\0\x02\x27\0\0\0\x40\0\x01k\0\x01u\0\x01p";

fn reader(first: &[u8]) -> (MqttReader, MqttRequest) {
    let mut reader = MqttReader::new(1_024);
    reader.take(first);
    let request = reader.next().expect("read").expect("whole");
    (reader, request)
}

fn fault(bytes: &[u8]) -> u8 {
    let (mut reader, _) = reader(CONNECT_V5);
    reader.take(bytes);
    reader.next().expect_err("refused").code as u8
}

#[test]
fn a_login_is_read_in_both_versions() {
    for (bytes, version, receive_max, packet_max) in
        [(CONNECT_V3, MqttVersion::V3, u16::MAX, u32::MAX), (CONNECT_V5, MqttVersion::V5, 2, 64)]
    {
        let MqttRequest::Connect(connect) = reader(bytes).1 else { panic!("no login") };
        assert_eq!((connect.version, connect.client_id.as_str()), (version, "k"));
        assert_eq!((connect.keep_alive_seconds, connect.token.as_deref()), (60, Some("u")));
        assert_eq!((connect.receive_max_count, connect.packet_max_bytes), (receive_max, packet_max));
        assert!(connect.is_clean && !connect.is_kept() && connect.secret.is_some() && connect.will.is_none());
    }
}

#[test]
fn a_reader_that_has_nothing_left_holds_no_buffer() {
    let (mut reader, _) = reader(CONNECT_V5);
    reader.take(b"\xC0\0\xC0");
    assert!(matches!(reader.next(), Ok(Some(MqttRequest::Ping))));
    assert!(matches!(reader.next(), Ok(None)));
    assert_eq!(reader.input.capacity(), 0);
    reader.take(b"\0");
    assert!(matches!(reader.next(), Ok(Some(MqttRequest::Ping))));
}

#[test]
fn what_the_standard_forbids_is_refused() {
    let faults: [(&[u8], u8); 9] = [
        (b"\xC1\0", 0x81),
        (b"\xC0\x01\0", 0x81),
        (b"\x82\x03\0\x01\0", 0x82),
        (b"\x82\x07\0\0\0\0\x01#\0", 0x82),
        (b"\xA0\x06\0\x01\0\0\x01#", 0x81),
        (b"\x36\x05\0\x01a\0\x01", 0x81),
        (b"\x50\x02\0\x01", 0x82),
        (b"\xF0\0", 0x82),
        (b"\x30\xFF\xFF\xFF\xFF", 0x81),
    ];
    for (bytes, code) in faults {
        assert_eq!(fault(bytes), code, "{bytes:x?}");
    }
    assert_eq!(fault(b"\x30\x80\x08"), 0x95, "a kilobyte and three");
}

proptest! {
    #[test]
    fn any_bytes_in_any_pieces_are_read_the_same(
        bytes in proptest::collection::vec(any::<u8>(), 0..600),
        piece_bytes in 1..64_usize,
        is_5 in any::<bool>(),
    ) {
        let login = if is_5 { CONNECT_V5 } else { CONNECT_V3 };
        let all = [login, &bytes].concat();
        let whole = fuzzing::read(&all, all.len(), 512);
        prop_assert_eq!(fuzzing::read(&all, piece_bytes, 512), whole);
        prop_assert!(whole >= 1);
    }

    #[test]
    fn a_topic_and_a_payload_are_read_as_they_were_written(
        topic in "[a-z/]{1,40}",
        payload in proptest::collection::vec(any::<u8>(), 0..200),
    ) {
        let mut body = u16::try_from(topic.len()).expect("fits").to_be_bytes().to_vec();
        body.extend(topic.as_bytes());
        body.extend([0, 9]);
        body.extend(&payload);
        let mut bytes = vec![0x32, (body.len() & 0x7F) as u8];
        if body.len() > 0x7F {
            bytes[1] |= 0x80;
            bytes.push((body.len() >> 7) as u8);
        }
        bytes.extend(body);
        let (mut reader, _) = reader(CONNECT_V3);
        reader.take(&bytes);
        let Ok(Some(MqttRequest::Publish(publish))) = reader.next() else { panic!("not read") };
        prop_assert_eq!((publish.topic.as_str(), &publish.payload), (topic.as_str(), &payload));
        prop_assert_eq!((publish.qos, publish.packet_id), (1, 9));
    }
}
