//! Input of an MQTT device: any bytes are read the same in any pieces, and never more bytes than were sent.
#![no_main]
use libfuzzer_sys::fuzz_target;
use stentor_gateway::mqtt::fuzzing;

const PACKET_MAX_BYTES: u32 = 2_048;
/// The shortest packet.
const PACKET_MIN_BYTES: usize = 2;

const CONNECT_V3: &[u8] = b"\x10\x13\0\x04MQTT\x04\xC2\0\x3C\0\x01k\0\x01u\0\x01p";
const CONNECT_V5: &[u8] = b"\x10\x14\0\x04MQTT\x05\xC2\0\x3C\0\0\x01k\0\x01u\0\x01p";

fn check(bytes: &[u8], piece_bytes: usize) {
    let requests = fuzzing::read(bytes, piece_bytes, PACKET_MAX_BYTES);
    assert!(requests * PACKET_MIN_BYTES <= bytes.len());
    assert_eq!(requests, fuzzing::read(bytes, bytes.len(), PACKET_MAX_BYTES));
}

fuzz_target!(|input: &[u8]| {
    let Some((&piece_bytes, bytes)) = input.split_first() else { return };
    let piece_bytes = usize::from(piece_bytes) + 1;
    check(bytes, piece_bytes);
    for login in [CONNECT_V3, CONNECT_V5] {
        check(&[login, bytes].concat(), piece_bytes);
    }
});
